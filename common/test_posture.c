/* SPDX-License-Identifier: Apache-2.0 */
#include "common/posture.h"

#include <string.h>

#include "tests/test.h"

/* One variable that is set. */
struct setting {
	const char *name;
	const char *value;
};

static const char *get(void *arg, const char *name)
{
	const struct setting *setting = arg;

	return setting && strcmp(setting->name, name) == 0 ? setting->value : NULL;
}

static struct posture_env with(struct setting *setting)
{
	return (struct posture_env){ .get = get, .arg = setting };
}

struct trial {
	unsigned times;
	bool works;
	enum mechanism mechanism;
};

static int run(void *arg, enum mechanism mechanism, struct error *err)
{
	struct trial *trial = arg;

	trial->times++;
	trial->mechanism = mechanism;
	return trial->works ? 0 : error_set(err, ERR_SYSTEM, 0, "it was refused");
}

static void what_works_was_tried(void **state)
{
	struct trial trial = { .works = true };
	const struct posture_probe probe = { .run = run, .arg = &trial };
	const struct posture_env env = with(NULL);
	struct detection detection;

	(void)state;
	posture_detect(&detection, &posture_terms, "linux", &env, &probe);
	assert_true(detection.supported && detection.available);
	assert_int_equal(detection.mechanism, MECHANISM_NAMESPACE);
	assert_string_equal(mechanism_name(detection.mechanism), "namespace");
	assert_false(detection.loopback);
	assert_string_equal(detection.reason, "");
	posture_detect(&detection, &posture_terms, "darwin", &env, &probe);
	assert_int_equal(trial.mechanism, MECHANISM_SANDBOX_EXEC);
	assert_true(detection.loopback);

	trial.works = false;
	posture_detect(&detection, &posture_terms, "linux", &env, &probe);
	assert_true(detection.supported);
	assert_false(detection.available);
	assert_int_equal(detection.mechanism, MECHANISM_NONE);
	assert_string_equal(detection.reason, "namespace: it was refused");

	posture_detect(&detection, &posture_terms, "linux", &env, NULL);
	assert_false(detection.available);
	posture_detect(&detection, &posture_terms, "plan9", &env, &probe);
	assert_false(detection.supported);
	assert_non_null(strstr(detection.reason, "plan9"));
	assert_int_equal(trial.times, 3);
}

static void switches_only_refuse_more(void **state)
{
	static const char *const values[] = { "", "0", "true", " 1", "11" };
	struct trial trial = { .works = true };
	const struct posture_probe probe = { .run = run, .arg = &trial };
	struct setting setting = { "FSBOX_FORCE_UNAVAILABLE", "1" };
	const struct posture_env env = with(&setting);
	struct detection detection;

	(void)state;
	posture_detect(&detection, &posture_terms, "linux", &env, &probe);
	assert_true(detection.supported);
	assert_false(detection.available);
	assert_non_null(strstr(detection.reason, setting.name));
	assert_int_equal(trial.times, 0);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		setting.value = values[i];
		posture_detect(&detection, &posture_terms, "linux", &env, &probe);
		assert_true(detection.available);
	}
	setting = (struct setting){ "FSBOX_SANDBOX_REQUIRED", "1" };
	assert_true(posture_required(&posture_terms, &env));
	setting.value = "2";
	assert_false(posture_required(&posture_terms, &env));
}

static void asked_once(void **state)
{
	struct trial trial = { .works = true };
	const struct posture_probe probe = { .run = run, .arg = &trial };
	const struct posture_env env = with(NULL);
	struct detection_cache cache = { .known = false };

	(void)state;
	assert_true(posture_detect_cached(&cache, "linux", &env, &probe)->available);
	trial.works = false;
	assert_true(posture_detect_cached(&cache, "linux", &env, &probe)->available);
	assert_int_equal(trial.times, 1);
}

static void broken_refuses_before_anything_is_asked(void **state)
{
	struct detection broken = { .supported = true, .reason = "broken" };
	struct detection absent = { .supported = false, .reason = "absent" };
	struct detection works = { .supported = true,
				   .available = true,
				   .mechanism = MECHANISM_NAMESPACE };
	struct posture_input input = { .opted_out = true, .granted = true, .detection = &broken };
	struct posture posture = posture_decide(&input);

	(void)state;
	assert_int_equal(posture.kind, POSTURE_REFUSE);
	assert_string_equal(posture.reason, "broken");
	input.detection = &absent;
	assert_int_equal(posture_decide(&input).state, POSTURE_UNSUPPORTED);
	input.require_supported = true;
	assert_int_equal(posture_decide(&input).kind, POSTURE_REFUSE);
	input.detection = &works;
	assert_int_equal(posture_decide(&input).state, POSTURE_OPTED_OUT);
	input.opted_out = false;
	assert_int_equal(posture_decide(&input).state, POSTURE_GRANTED_EGRESS);
	input.granted = false;
	posture = posture_decide(&input);
	assert_int_equal(posture.kind, POSTURE_APPLY);
	assert_int_equal(posture.mechanism, MECHANISM_NAMESPACE);
	assert_string_equal(posture_state_name(posture.state), "egress-denied");
	works.mechanism = MECHANISM_NONE;
	assert_int_equal(posture_decide(&input).kind, POSTURE_REFUSE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_works_was_tried),
		cmocka_unit_test(switches_only_refuse_more),
		cmocka_unit_test(asked_once),
		cmocka_unit_test(broken_refuses_before_anything_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
