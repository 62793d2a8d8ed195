/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_POSTURE_H
#define FSBOX_COMMON_POSTURE_H

/*
 * Whether a command runs without a way out, and what is said about the room that it ran in. Pure: the
 * one thing that must be tried (does the mechanism work now?) is tried by whoever asks.
 */

#include <stdbool.h>

#include "common/error.h"

/* How the way out is closed. */
enum mechanism {
	MECHANISM_NONE = 0,
	MECHANISM_NAMESPACE,    /* Linux: a network namespace of its own */
	MECHANISM_SANDBOX_EXEC, /* macOS */
};

const char *mechanism_name(enum mechanism mechanism); /* NULL for none */

/*
 * What the parts of a system are called, so that the rules here hold for more than one product.
 *
 * @force_unavailable, @required  environment switches; each counts as exactly "1" and can only make
 *                                more be refused
 * @linux_has                     whether there is a mechanism on Linux at all
 */
struct posture_terms {
	const char *force_unavailable;
	const char *required;
	bool linux_has;
};

extern const struct posture_terms posture_terms; /* fsbox's own */

/* Looks up one variable; NULL when it is not set. */
struct posture_env {
	const char *(*get)(void *arg, const char *name);
	void *arg;
};

/*
 * What a machine can do now.
 *
 * @supported  there is a mechanism for its kind, working or not. What was never there is a known gap;
 *             what is there and does not work is a broken promise, and refuses.
 * @available  a command was run by it
 * @loopback   loopback can be left open by it
 * @reason     why it is not available; "" when it is
 */
struct detection {
	bool supported;
	bool available;
	bool loopback;
	enum mechanism mechanism;
	char reason[256];
};

/* Runs a trivial command by MECHANISM; fails with the reason in ERR. */
struct posture_probe {
	int (*run)(void *arg, enum mechanism mechanism, struct error *err);
	void *arg;
};

/*
 * @platform  "linux", "darwin" or any other name
 * @probe     asked at most once, and only when nothing else decides; NULL: nothing can be tried
 */
void posture_detect(struct detection *ret_detection, const struct posture_terms *terms,
		    const char *platform, const struct posture_env *env,
		    const struct posture_probe *probe);

/*
 * The same for this platform and this process's own environment, asked once: the answer cannot change
 * while a process lives. Zeroed before.
 */
struct detection_cache {
	bool known;
	struct detection detection;
};

const struct detection *posture_detect_cached(struct detection_cache *cache, const char *platform,
					      const struct posture_env *env,
					      const struct posture_probe *probe);

/* Whether a machine without a mechanism refuses rather than going on. */
bool posture_required(const struct posture_terms *terms, const struct posture_env *env);

/*
 * @opted_out  who asks wants no room
 * @granted    an administrator allowed exactly this
 */
struct posture_input {
	bool opted_out;
	bool granted;
	bool require_supported;
	const struct detection *detection; /* borrowed */
};

enum posture_kind { POSTURE_APPLY, POSTURE_SKIP, POSTURE_REFUSE };

enum posture_state {
	POSTURE_EGRESS_DENIED,
	POSTURE_OPTED_OUT,
	POSTURE_GRANTED_EGRESS,
	POSTURE_UNSUPPORTED,
};

/*
 * @state      of _APPLY and _SKIP
 * @mechanism  of _APPLY
 * @reason     of _REFUSE; of the detection or static
 */
struct posture {
	enum posture_kind kind;
	enum posture_state state;
	enum mechanism mechanism;
	const char *reason;
};

/*
 * What to do for one command. Total; the order is the policy: what is broken refuses even those who
 * want no room, so that opting out is no way to silence it.
 */
struct posture posture_decide(const struct posture_input *input);

const char *posture_state_name(enum posture_state state); /* "egress-denied" ... */

#endif
