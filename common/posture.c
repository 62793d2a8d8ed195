/* SPDX-License-Identifier: Apache-2.0 */
#include "common/posture.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

const struct posture_terms posture_terms = {
	.force_unavailable = "FSBOX_FORCE_UNAVAILABLE",
	.required = "FSBOX_SANDBOX_REQUIRED",
	.linux_has = true,
};

const char *mechanism_name(enum mechanism mechanism)
{
	switch (mechanism) {
	case MECHANISM_NONE:
		return NULL;
	case MECHANISM_NAMESPACE:
		return "namespace";
	case MECHANISM_SANDBOX_EXEC:
		return "sandbox-exec";
	}
	return NULL;
}

const char *posture_state_name(enum posture_state state)
{
	switch (state) {
	case POSTURE_EGRESS_DENIED:
		return "egress-denied";
	case POSTURE_OPTED_OUT:
		return "opted-out";
	case POSTURE_GRANTED_EGRESS:
		return "granted-egress";
	case POSTURE_UNSUPPORTED:
		return "unsupported";
	}
	return "unsupported";
}

static bool switched_on(const struct posture_env *env, const char *name)
{
	const char *value = env->get(env->arg, name);

	return value && strcmp(value, "1") == 0;
}

bool posture_required(const struct posture_terms *terms, const struct posture_env *env)
{
	return switched_on(env, terms->required);
}

static enum mechanism mechanism_of(const struct posture_terms *terms, const char *platform)
{
	if (strcmp(platform, "darwin") == 0)
		return MECHANISM_SANDBOX_EXEC;
	if (strcmp(platform, "linux") == 0 && terms->linux_has)
		return MECHANISM_NAMESPACE;
	return MECHANISM_NONE;
}

void posture_detect(struct detection *ret_detection, const struct posture_terms *terms,
		    const char *platform, const struct posture_env *env,
		    const struct posture_probe *probe)
{
	enum mechanism mechanism = mechanism_of(terms, platform);
	struct detection detection = { .supported = true };
	struct error err = ERROR_INIT;

	if (switched_on(env, terms->force_unavailable)) {
		(void)snprintf(detection.reason, sizeof(detection.reason), "%s is set",
			       terms->force_unavailable);
	} else if (mechanism == MECHANISM_NONE) {
		detection.supported = false;
		(void)snprintf(detection.reason, sizeof(detection.reason),
			       "there is no mechanism for platform '%.64s'", platform);
	} else if (!probe) {
		(void)snprintf(detection.reason, sizeof(detection.reason), "%s was not tried",
			       mechanism_name(mechanism));
	} else if (probe->run(probe->arg, mechanism, &err) < 0) {
		(void)snprintf(detection.reason, sizeof(detection.reason), "%s: %.200s",
			       mechanism_name(mechanism), err.message);
	} else {
		detection.available = true;
		detection.mechanism = mechanism;
		/* A namespace of its own has a loopback, but not the host's. */
		detection.loopback = mechanism == MECHANISM_SANDBOX_EXEC;
	}
	*ret_detection = detection;
}

const struct detection *posture_detect_cached(struct detection_cache *cache, const char *platform,
					      const struct posture_env *env,
					      const struct posture_probe *probe)
{
	if (!cache->known)
		posture_detect(&cache->detection, &posture_terms, platform, env, probe);
	cache->known = true;
	return &cache->detection;
}

static struct posture skip(enum posture_state state)
{
	return (struct posture){ .kind = POSTURE_SKIP, .state = state };
}

static struct posture refuse(const char *reason)
{
	return (struct posture){ .kind = POSTURE_REFUSE, .reason = reason };
}

struct posture posture_decide(const struct posture_input *input)
{
	const struct detection *detection = input->detection;

	if (detection->supported && !detection->available)
		return refuse(detection->reason);
	if (!detection->supported)
		return input->require_supported ? refuse(detection->reason)
						: skip(POSTURE_UNSUPPORTED);
	if (input->opted_out)
		return skip(POSTURE_OPTED_OUT);
	if (input->granted)
		return skip(POSTURE_GRANTED_EGRESS);
	if (detection->mechanism == MECHANISM_NONE)
		return refuse("no mechanism was reported");
	return (struct posture){
		.kind = POSTURE_APPLY,
		.state = POSTURE_EGRESS_DENIED,
		.mechanism = detection->mechanism,
	};
}
