/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes of a hostile broker as a plan: decoded, checked, compiled. A plan that decodes encodes to the
 * same bytes; one that passes the check shows nothing that the host denies and has what it must.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/bwrap.h"
#include "common/hostconf.h"
#include "common/limits.h"
#include "common/plan.h"
#include "common/plan_op.h"
#include "common/scope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static bool is_closed(const struct plan *plan, const char *path)
{
	enum access access = plan_access(plan, path);

	return access == ACCESS_NONE || access == ACCESS_DENY;
}

static bool has_argument(const struct buf *args, const char *argument)
{
	return memmem(args->data, args->size, argument, strlen(argument) + 1) != NULL;
}

static void check_compiled(const struct plan *plan)
{
	static const struct bwrap_options options = {
		.mask_dir = "/m/d",
		.mask_file = "/m/f",
		.disable_userns = true,
	};
	AUTO(buf_deinit) struct buf args = BUF_INIT(64u << 20);
	struct error err = ERROR_INIT;

	if (bwrap_compile(plan, &options, &args, &err) < 0) {
		must(err.kind == ERR_ENGINE_UNAVAILABLE);
		return;
	}
	must(has_argument(&args, "--unshare-user") && has_argument(&args, "--unshare-pid"));
	must(has_argument(&args, "--cap-drop") && has_argument(&args, "--disable-userns"));
	must(has_argument(&args, "--unshare-net") == (plan->net != NET_HOST));
}

static void check_accepted(const struct plan *plan, const struct hostconf *conf)
{
	bool private = false;

	must(plan->net <= conf->max_net);
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		must(plan_path_is_canonical(op->path));
		if (op->kind == PLAN_BIND && !(op->flags & PLAN_PRIVATE_SOURCE))
			must(strcmp(op->path, op->source) == 0);
		private |= (op->flags & PLAN_PRIVATE_SOURCE) != 0;
	}
	/* A private directory may stand in place of what is protected: that shows nothing of it. */
	if (!private) {
		must(is_closed(plan, "/srv/secret") && is_closed(plan, "/srv/secret/x"));
		must(plan_access(plan, "/srv/tools/x") != ACCESS_READ_WRITE);
		must(is_closed(plan, "/sys/fs/cgroup/x"));
	}
	check_compiled(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(hostconf_deinit) struct hostconf conf;
	AUTO(buf_deinit) struct buf again = BUF_INIT(2 * LIMIT_PLAN_BYTES);
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };
	struct error err = ERROR_INIT;

	must(hostconf_init(&conf, NULL) == 0);
	must(string_list_add(&conf.mandatory_deny, "/srv/secret", NULL) == 0);
	must(string_list_add(&conf.mandatory_read_only, "/srv/tools", NULL) == 0);
	must(string_list_add(&roots, "/priv", NULL) == 0);
	conf.max_net = NET_PROXY;

	if (plan_decode(&plan, data, size, &err) < 0) {
		must(err.kind == ERR_BAD_FRAME);
		return 0;
	}
	must(plan_encode(&plan, &again, NULL) == 0);
	must(again.size == size && memcmp(again.data, data, size) == 0);

	if (plan_check(&plan, &conf, NULL, NULL, &roots, &err) == 0)
		check_accepted(&plan, &conf);
	else
		must(err.kind == ERR_POLICY_INVALID || err.kind == ERR_NOT_AUTHORIZED);
	return 0;
}
