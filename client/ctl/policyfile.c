/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/policyfile.h"

#include <stdlib.h>

#include "client/ctl/command.h"
#include "client/ctl/request.h"
#include "common/scope.h"
#include "proto/json/contextjson.h"
#include "proto/json/json.h"

int policyfile_load(const struct ctl *ctl, const char *file, struct policy_context *ret_context,
		    struct policy *ret_policy, struct error *err)
{
	AUTO(auto_free) char *text = NULL;
	size_t size = 0;
	int r = 0;

	*ret_context = (struct policy_context)POLICY_CONTEXT_INIT;
	*ret_policy = (struct policy)POLICY_INIT;
	r = file_read(file, &text, &size, err);
	if (r == 0)
		r = context_parse(ret_context, text, size, CONTEXT_FULL, err);
	if (r == 0 && ctl->args.platform)
		(void)platform_parse(ctl->args.platform, &ret_context->platform);
	if (r == 0)
		r = policy_context_build(ret_policy, ret_context, err);
	return r;
}

void policyfile_rule_json(struct json_writer *writer, const struct rule *rule)
{
	json_write_array(writer);
	json_write_bytes(writer, rule->path);
	json_write_text(writer, access_name(rule->access));
	json_write_text(writer, rule_source_name(rule->source));
	json_write_array_end(writer);
}

int policyfile_refused(const struct ctl *ctl, const char *what, const struct error *err)
{
	output_failure(ctl, what, err);
	return CTL_NO;
}
