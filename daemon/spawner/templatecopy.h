/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_TEMPLATECOPY_H
#define FSBOX_DAEMON_SPAWNER_TEMPLATECOPY_H

/*
 * Copies of a template's mount namespace, made before they are needed, with all in them that a job has for
 * itself but its /proc. Each is used once.
 *
 * The builder makes them, one after the other, once the template is ready; it waits in between, and ends
 * with the template. Where it has none ready, or is gone, a job makes its own copy.
 */

#include <stdbool.h>
#include <stddef.h>

struct template;

/* More would only hold kernel memory (a mount takes 0.4 kB). */
#define TEMPLATE_COPIES 2

/* A larger template is copied by its jobs. */
#define TEMPLATE_COPY_MOUNTS_MAX 4096

/*
 * @base         mounts of the template itself; @each: of a copy, as its builder says
 * @standing_fd  the one that the builder stands in: nobody gets it before the builder has left
 * @asked        the builder was told to make one and has not
 */
struct templatecopies {
	int fds[TEMPLATE_COPIES];
	size_t count;
	size_t base;
	size_t each;
	int standing_fd;
	bool asked;
};

#define TEMPLATECOPIES_INIT        \
	{                          \
		.standing_fd = -1, \
	}

/* The builder reported one, of MOUNTS. */
void templatecopy_made(struct template *template, size_t mounts);

/* Have one more made where there are too few; to be called when nobody waits for a processor. */
void templatecopy_more(struct template *template);

/* A namespace, the caller's to close, or -1. */
int templatecopy_take(struct template *template);

/* What TEMPLATE, its copies and its zygotes hold in mounts has changed. */
void templatecopy_count(struct template *template);

/* The builder is gone: what is ready stays. */
void templatecopy_no_more(struct template *template);

void templatecopy_deinit(struct template *template);

#endif
