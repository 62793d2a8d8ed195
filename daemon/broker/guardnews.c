/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/guardnews.h"

#include <string.h>

#include "common/buf.h"

void guardnews_deinit(struct guardnews *news)
{
	string_list_deinit(&news->planted);
	news->repaired = 0;
}

/* "/w/.git/commondir (quarantined as fsbox-quarantined.commondir)" */
static void add_planted(struct guardnews *news, const struct report_guard *what)
{
	struct buf text = BUF_INIT(LIMIT_PATH_BYTES + LIMIT_LEAF_BYTES + 64);
	bool renamed = what->kept_as[0] != '\0';

	(void)buf_printf(&text, "%s (%s%s%s)", what->path,
			 guard_action_name((enum guard_action)what->action),
			 renamed ? ", now " : "", what->kept_as);
	if (!text.failed && news->planted.count < GUARDNEWS_PLANTED_MAX &&
	    !string_list_has(&news->planted, buf_text(&text)))
		(void)string_list_add(&news->planted, buf_text(&text), NULL);
	buf_deinit(&text);
}

void guardnews_take(struct guardnews *news, const struct link_guard_news *message)
{
	switch ((enum guard_news_kind)message->kind) {
	case GUARD_NEWS_REPAIRED:
	case GUARD_NEWS_LOST:
		news->repaired++;
		return;
	case GUARD_NEWS_APPEARED:
		add_planted(news, &message->what);
		return;
	}
}

void guardnews_fill(const struct guardnews *news, struct wait_result *result)
{
	for (size_t i = 0; i < news->planted.count; i++)
		if (string_list_add(&result->planted, news->planted.items[i], NULL) < 0)
			break;
	result->repaired = news->repaired;
}
