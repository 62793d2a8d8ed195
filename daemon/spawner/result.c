/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/result.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* A scribe that was stopped or killed must not keep a job from ending. */
#define SCRIBE_MS 1000

off_t result_offset(void)
{
	return (off_t)sysconf(_SC_PAGESIZE);
}

int result_map(int fd, struct result_page **ret_page, struct error *err)
{
	void *page = mmap(NULL, RESULT_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  result_offset());

	if (page == MAP_FAILED)
		return error_set(err, ERR_SYSTEM, errno, "map the page for the result");
	*ret_page = page;
	return 0;
}

/* ---- init's side --------------------------------------------------------------------- */

/* Whoever reads meanwhile sees the state of before or of after. */
static void put(struct result_page *page, const struct result_page *what)
{
	page->version = RESULT_VERSION;
	page->error_kind = what->error_kind;
	if (what->started_ms != 0)
		page->started_ms = what->started_ms;
	page->record = what->record;
	__atomic_store_n(&page->state, what->state, __ATOMIC_RELEASE);
}

static void tell(const struct result_to *to, const struct result_page *what, bool wait)
{
	struct pollfd answer = { .fd = to->scribe_fd, .events = POLLIN };

	if (to->page)
		put(to->page, what);
	if (to->scribe_fd >= 0 &&
	    send(to->scribe_fd, what, sizeof(*what), MSG_NOSIGNAL | MSG_DONTWAIT) > 0 && wait)
		(void)poll(&answer, 1, SCRIBE_MS);
}

void result_started(const struct result_to *to, uint64_t started_ms)
{
	const struct result_page what = { .state = RESULT_STARTED, .started_ms = started_ms };

	tell(to, &what, false);
}

void result_exited(const struct result_to *to, const struct exit_record *record)
{
	const struct result_page what = { .state = RESULT_EXITED, .record = *record };

	tell(to, &what, true);
}

void result_failed(const struct result_to *to, enum error_kind kind)
{
	const struct result_page what = { .state = RESULT_FAILED, .error_kind = kind };

	tell(to, &what, true);
}

void result_scribe(int fd, struct result_page *page)
{
	struct result_page what;

	while (recv(fd, &what, sizeof(what), 0) == (ssize_t)sizeof(what)) {
		put(page, &what);
		if (what.state != RESULT_STARTED)
			break; /* the end of this process is the answer */
	}
}

/* ---- fsboxd's side ------------------------------------------------------------------- */

static bool is_sound(const struct result_page *page)
{
	struct report_message report = {
		.size = (uint32_t)report_message_size(REPORT_EXITED),
		.kind = REPORT_EXITED,
		.u.exited = page->record,
	};

	if (page->version != RESULT_VERSION || page->reserved != 0)
		return false;
	switch (page->state) {
	case RESULT_STARTED:
		return true;
	case RESULT_FAILED:
		return page->error_kind > ERR_NONE && page->error_kind < ERROR_KIND_COUNT;
	case RESULT_EXITED:
		/* Init knows of two ways only; of the others fsboxd does. */
		return report_message_check(&report, report.size, NULL) == 0 &&
		       (page->record.reason == EXIT_EXITED || page->record.reason == EXIT_SIGNALED);
	default: /* a number of somebody's, not of the enum */
		return false;
	}
}

void result_read(int fd, struct result_page *ret_result)
{
	struct result_page page = { .state = RESULT_NONE };

	if (pread(fd, &page, sizeof(page), result_offset()) != (ssize_t)sizeof(page) ||
	    !is_sound(&page))
		memset(&page, 0, sizeof(page));
	*ret_result = page;
}
