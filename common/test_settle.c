/* SPDX-License-Identifier: Apache-2.0 */
#include "common/settle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/path.h"
#include "common/scope.h"
#include "tests/gen_policy.h"
#include "tests/plan_text.h"
#include "tests/test.h"

static const struct settle_options standard = { .absent_deny = ABSENT_DEFAULT };

static void candidates(const char *text, struct rule_list *list)
{
	rules_of(text, list);
}

static int settle(const char *text, const struct settle_options *options, struct policy *ret_policy,
		  struct error *err)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;

	candidates(text, &list);
	return policy_settle(ret_policy, &list, options, err);
}

/* What the plain functions answer for the same candidates: no facts, no stricter rules. */
static enum access plain_answer(const char *text, const char *path)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	candidates(text, &list);
	assert_int_equal(rule_list_merge(&policy.rules, &list, NULL), 0);
	assert_int_equal(policy_index(&policy, NULL), 0);
	return policy_access(&policy, path).access;
}

/* For PATH the plain answer is PLAIN and ours is OURS. */
static void expect(const char *text, const char *path, enum access plain, enum access ours)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct error err = ERROR_INIT;

	if (settle(text, &standard, &policy, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	assert_string_equal(access_name(plain_answer(text, path)), access_name(plain));
	assert_string_equal(access_name(policy_access(&policy, path).access), access_name(ours));
}

static void expect_suppressed(const char *text, const char *path, const char *reason)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct error err = ERROR_INIT;

	if (settle(text, &standard, &policy, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	assert_int_equal(policy.suppressed.count, 1);
	assert_string_equal(policy.suppressed.items[0], path);
	assert_int_equal(policy.note_count, 1);
	assert_string_equal(policy.notes[0].path, path);
	assert_string_equal(policy.notes[0].reason, reason);
}

static void refuse(const char *text, enum error_kind kind, const char *message)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct error err = ERROR_INIT;

	assert_int_equal(settle(text, &standard, &policy, &err), -(int)kind);
	assert_string_equal(err.message, message);
}

/* Plain: vanishes in the merge. Ours: an error of the request. */
static void unusable_paths_are_errors(void **state)
{
	(void)state;
	assert_int_equal(plain_answer("rw:/p deny:p/secret", "/p/secret"), ACCESS_READ_WRITE);
	refuse("rw:/p deny:p/secret", ERR_POLICY_INVALID, "deny 'p/secret' (test): is relative");
	assert_int_equal(plain_answer("rw:/p deny:/p/../p/x", "/p/x"), ACCESS_READ_WRITE);
	refuse("rw:/p deny:/p/../p/x", ERR_POLICY_INVALID,
	       "deny '/p/../p/x' (test): has a '..' segment");
	refuse("rw:/p@rel", ERR_POLICY_INVALID, "readWrite '/p' (test): is relative");
	expect("rw:/p/ deny:/p/x/", "/p/x", ACCESS_DENY, ACCESS_DENY);
}

/* R28: what a job could have planted shows nothing by itself. */
static void R28_what_was_planted_takes_away_only(void **state)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	candidates("internal/rw:/p ro:/p/a ro:/x/.git/config ro:/p/l ro:/p/m internal/rw:/p/git "
		   "internal/rw:/r/.git",
		   &list);
	for (size_t i = 1; i < list.count; i++)
		(list.rules[i].access == ACCESS_READ_ONLY ? &list.rules[i].lowers
							  : &list.rules[i].exact)[0] = true;
	list.rules[3].real = strdup("/home/documents"); /* a link to outside */
	list.rules[3].link = strdup("/p/l");
	list.rules[4].real = strdup("/p/in"); /* to inside */
	list.rules[4].link = strdup("/p/m");
	list.rules[5].real = strdup("/home/pictures");
	assert_int_equal(policy_settle(&policy, &list, &standard, NULL), 0);
	assert_int_equal(policy_access(&policy, "/p/a").access, ACCESS_READ_ONLY);
	assert_int_equal(policy_access(&policy, "/x/.git/config").access, ACCESS_NONE);
	assert_int_equal(policy_access(&policy, "/home/documents").access, ACCESS_NONE);
	assert_int_equal(policy_access(&policy, "/home/pictures").access, ACCESS_NONE);
	assert_int_equal(policy_access(&policy, "/p/l").access, ACCESS_READ_ONLY);
	assert_int_equal(policy_access(&policy, "/p/in").access, ACCESS_READ_ONLY);
	assert_int_equal(policy_access(&policy, "/p/m").access, ACCESS_READ_ONLY);
	assert_int_equal(policy_access(&policy, "/p/git").access, ACCESS_READ_WRITE);
	assert_int_equal(policy_access(&policy, "/r/.git").access, ACCESS_READ_WRITE);
}

static void a_mandatory_deny_means_the_subtree(void **state)
{
	(void)state;
	expect("rw:/p mandatory/deny:/p/m rw:/p/m/x", "/p/m/x", ACCESS_READ_WRITE, ACCESS_DENY);
	expect("rw:/p mandatory/deny:/p/m adapter/ro:/p/m/x", "/p/m/x", ACCESS_READ_ONLY,
	       ACCESS_DENY);
	expect("rw:/p mandatory/deny:/p/m baseline/ro:/p/m/x", "/p/m/x", ACCESS_READ_ONLY,
	       ACCESS_DENY);
	expect_suppressed("rw:/p mandatory/deny:/p/m rw:/p/m/x", "/p/m/x",
			  "not granted: it lies in what '/p/m' denies");

	/* Holes that the profile leaves stay, but open no further. */
	expect("mandatory/deny:/m internal/rw:/m/out", "/m/out", ACCESS_READ_WRITE,
	       ACCESS_READ_WRITE);
	expect("mandatory/deny:/m internal/ro:/m/out rw:/m/out/x", "/m/out/x", ACCESS_READ_WRITE,
	       ACCESS_READ_ONLY);
	expect("mandatory/deny:/m internal/ro:/m/out rw:/m/out", "/m/out", ACCESS_READ_WRITE,
	       ACCESS_READ_ONLY);
	expect("mandatory/deny:/m internal/rw:/m/out ro:/m/out/x", "/m/out/x", ACCESS_READ_ONLY,
	       ACCESS_READ_ONLY);
	expect("mandatory/deny:/m internal/rw:/m/out deny:/m/out/x", "/m/out/x", ACCESS_DENY,
	       ACCESS_DENY);
}

static void mandatory_read_only_means_the_subtree(void **state)
{
	(void)state;
	expect("rw:/p mandatory/ro:/p/m rw:/p/m/x", "/p/m/x", ACCESS_READ_WRITE, ACCESS_READ_ONLY);
	expect("rw:/p mandatory/ro:/p/m internal/rw:/p/m/x", "/p/m/x", ACCESS_READ_WRITE,
	       ACCESS_READ_WRITE);
	expect_suppressed("rw:/p mandatory/ro:/p/m rw:/p/m/x", "/p/m/x",
			  "readOnly: it lies in what '/p/m' keeps read-only");
	/* Absent, it could be made: nothing can where it is denied. */
	expect("rw:/p mandatory/ro:/p/m=absent", "/p/m", ACCESS_READ_ONLY, ACCESS_DENY);
}

/* R25: not even what a profile leaves open by itself lifts a rule of the host's. */
static void R25_nothing_lifts_the_hosts_rules(void **state)
{
	(void)state;
	expect("rw:/p mandatory/deny:/p/m* internal/rw:/p/m/x", "/p/m/x", ACCESS_READ_WRITE,
	       ACCESS_DENY);
	expect("rw:/p mandatory/deny:/p/m* mandatory/ro:/p/m/x", "/p/m/x", ACCESS_READ_ONLY,
	       ACCESS_DENY);
	expect("rw:/p mandatory/ro:/p/m* internal/rw:/p/m/x", "/p/m/x", ACCESS_READ_WRITE,
	       ACCESS_READ_ONLY);
	/* A readOnly rule of the host's takes away, and shows nothing by itself. */
	expect("rw:/p mandatory/deny:/p/m* mandatory/ro:/p/m/x*", "/p/m/x", ACCESS_READ_ONLY,
	       ACCESS_DENY);
	expect("rw:/p mandatory/ro:/q*", "/q", ACCESS_READ_ONLY, ACCESS_NONE);
	expect("rw:/p mandatory/ro:/q* rw:/q/x", "/q/x", ACCESS_READ_WRITE, ACCESS_READ_ONLY);
	expect("rw:/p mandatory/ro:/q* rw:/q/x", "/q/y", ACCESS_READ_ONLY, ACCESS_NONE);
	expect("rw:/p mandatory/ro:/p/m*", "/p/m", ACCESS_READ_ONLY, ACCESS_READ_ONLY);
	expect_suppressed("rw:/p mandatory/deny:/p/m* internal/rw:/p/m/x", "/p/m/x",
			  "not granted: it lies in what '/p/m' denies");
}

static void grants_through_links(void **state)
{
	(void)state;
	/* Rewritten to where they lead. */
	expect("ro:/h/.nvm</opt/nvm", "/opt/nvm/x", ACCESS_NONE, ACCESS_READ_ONLY);
	/* Suppressed where that is denied. */
	expect("rw:/p deny:/h/.ssh rw:/p/l</h/.ssh/id", "/h/.ssh/id", ACCESS_DENY, ACCESS_DENY);
	expect_suppressed("rw:/p deny:/h/.ssh rw:/p/l</h/.ssh/id", "/p/l",
			  "not granted: it lies in what '/h/.ssh' denies");
	expect_suppressed("rw:/p deny:/h/.ssh rw:/p/l</h/.ssh", "/p/l",
			  "not granted: it lies in what '/h/.ssh' denies");
	expect_suppressed("rw:/p mandatory/deny:/m* internal/rw:/p/l</m/x", "/p/l",
			  "not granted: it lies in what '/m' denies");
	/* Not where a grant that is no link opens that part. */
	expect("deny:/d ro:/d/open ro:/p/l</d/open/x", "/d/open/x", ACCESS_READ_ONLY,
	       ACCESS_READ_ONLY);
	/* Spelled as standing in the denied tree: the user meant it, a link on the way or not. */
	expect("deny:/home/u/.ssh</data/u/.ssh rw:/home/u/.ssh/known</data/u/.ssh/known",
	       "/data/u/.ssh/known", ACCESS_NONE, ACCESS_READ_WRITE);
	/* Above a deny a link grants like any other. */
	expect("deny:/d/x ro:/p/l</d", "/d/x", ACCESS_DENY, ACCESS_DENY);
	expect("deny:/d/x ro:/p/l</d", "/d/y", ACCESS_NONE, ACCESS_READ_ONLY);
}

static void expect_aliases(const char *text, const char *expected)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(buf_deinit) struct buf found = BUF_INIT(4096);

	assert_int_equal(settle(text, &standard, &policy, NULL), 0);
	for (size_t i = 0; i < policy.aliases.count; i++)
		(void)buf_printf(&found, "%s%s",
				 i == 0  ? ""
				 : i % 2 ? "="
					 : " ",
				 policy.aliases.items[i]);
	assert_string_equal(buf_text(&found), expected);
	for (size_t i = 0; i < policy.rules.count; i++)
		assert_null(policy.rules.rules[i].link);
}

/* Each name, also where a merge keeps one rule of several; none for what is not granted. */
static void grants_remember_their_spelling(void **state)
{
	(void)state;
	expect_aliases("ro:/h/.nvm</opt/nvm>/h/.nvm rw:/p deny:/p/l</q>/p/l", "/h/.nvm=/opt/nvm");
	expect_aliases("ro:/h/a</d>/h/a rw:/h/b</d>/h/b ro:/d", "/h/a=/d /h/b=/d");
	expect_aliases("rw:/h/a</d>/h/a deny:/d", "");
	expect_aliases("ro:/h/a</d=absent?>/h/a", "");
	expect_aliases("mandatory/deny:/d ro:/h/a</d/x>/h/a", "");
}

/* B7: both the link node and what it leads to. */
static void denies_on_links_take_both(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	const struct rule *node = NULL;

	(void)state;
	expect("rw:/p deny:/p/l</p/t>/p/l", "/p/t", ACCESS_READ_WRITE, ACCESS_DENY);
	expect("rw:/p deny:/p/l</p/t>/p/l", "/p/l", ACCESS_DENY, ACCESS_DENY);
	assert_int_equal(settle("rw:/p deny:/p/l</p/t>/p/l", &standard, &policy, NULL), 0);
	node = policy_access(&policy, "/p/l").rule;
	assert_true(node->denied_link);
	assert_int_equal(node->type, NODE_OTHER);
	assert_false(policy_access(&policy, "/p/t").rule->denied_link);

	/* B9: absent behind a link, anchored where it really is. */
	expect("rw:/p ro:/usr deny:/p/store/.env=absent</usr/share/.env", "/usr/share/.env",
	       ACCESS_READ_ONLY, ACCESS_DENY);

	/* A read-only link stays what it is, where it could be replaced. */
	expect("rw:/p ro:/p/hooks</p/h>/p/hooks", "/p/h", ACCESS_READ_WRITE, ACCESS_READ_ONLY);
	expect("rw:/p ro:/p/hooks</p/h>/p/hooks", "/p/hooks", ACCESS_READ_ONLY, ACCESS_READ_ONLY);
	expect("ro:/p ro:/p/hooks</q>/p/hooks", "/p/hooks", ACCESS_READ_ONLY, ACCESS_READ_ONLY);
	expect("ro:/h/.nvm</opt/nvm>/h/.nvm", "/h/.nvm", ACCESS_READ_ONLY, ACCESS_NONE);
	expect("rw:/p rw:/p/l</q>/p/l", "/p/l", ACCESS_READ_WRITE, ACCESS_READ_WRITE);
}

static void absent_grants(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	refuse("rw:/p ro:/q=absent", ERR_PATH_NOT_FOUND,
	       "readOnly '/q' (test): there is no such file or directory");
	expect("rw:/p ro:/q=absent?", "/q", ACCESS_READ_ONLY, ACCESS_NONE);
	expect("rw:/p rw:/q=absent@/priv/q", "/q", ACCESS_READ_WRITE, ACCESS_READ_WRITE);
	assert_int_equal(
		settle("rw:/p ro:/q=absent? baseline/ro:/r=absent?", &standard, &policy, NULL), 0);
	assert_int_equal(policy.note_count, 1); /* the baseline's is no news */
	assert_string_equal(policy.notes[0].path, "/q");
	assert_string_equal(policy.notes[0].reason,
			    "not granted: there is no such file or directory");
}

static void a_grant_below_a_denied_file(void **state)
{
	(void)state;
	assert_int_equal(plain_answer("rw:/p deny:/p/f=file ro:/p/f/x", "/p/f/x"),
			 ACCESS_READ_ONLY);
	refuse("rw:/p deny:/p/f=file ro:/p/f/x=absent", ERR_POLICY_INVALID,
	       "readOnly '/p/f/x' (test): '/p/f' above it is denied and no directory");
	expect("rw:/p deny:/p/f=file ro:/p/f/x=absent?", "/p/f/x", ACCESS_READ_ONLY, ACCESS_DENY);
	/* A grant on the file itself at higher rank lifts the deny. */
	expect("rw:/p baseline/deny:/p/f=file ro:/p/f=file", "/p/f", ACCESS_READ_ONLY,
	       ACCESS_READ_ONLY);
}

static enum absent_mode mode_of(const char *text, enum absent_mode absent_deny)
{
	const struct settle_options options = { .absent_deny = absent_deny };
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	assert_int_equal(settle(text, &options, &policy, NULL), 0);
	return policy_access(&policy, "/p/gone").rule->absent;
}

static void modes_of_absent_denies(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	assert_int_equal(mode_of("rw:/p deny:/p/gone=absent", ABSENT_DEFAULT), ABSENT_PLACEHOLDER);
	assert_int_equal(mode_of("rw:/p deny:/p/gone=absent", ABSENT_WATCH), ABSENT_WATCH);
	assert_int_equal(mode_of("rw:/p deny:/p/gone=absent!ignore", ABSENT_WATCH), ABSENT_IGNORE);
	/* Of one that is there: what happens when it goes. */
	assert_int_equal(mode_of("rw:/p deny:/p/gone", ABSENT_DEFAULT), ABSENT_DEFAULT);
	assert_int_equal(mode_of("rw:/p deny:/p/gone", ABSENT_WATCH), ABSENT_WATCH);
	assert_int_equal(mode_of("rw:/p mandatory/deny:/p/gone", ABSENT_WATCH), ABSENT_DEFAULT);
	assert_int_equal(mode_of("rw:/p mandatory/deny:/p/gone=absent!ignore", ABSENT_IGNORE),
			 ABSENT_PLACEHOLDER);
	assert_int_equal(mode_of("rw:/p mandatory/deny:/p/gone=absent!watch", ABSENT_IGNORE),
			 ABSENT_WATCH);
	assert_int_equal(mode_of("rw:/p mandatory/deny:/p/gone=absent!watch*", ABSENT_IGNORE),
			 ABSENT_PLACEHOLDER);
	assert_int_equal(settle("rw:/p deny:/p/gone=absent!report", &standard, &policy, NULL), 0);
	assert_int_equal(policy.note_count, 1);
	assert_string_equal(policy.notes[0].reason,
			    "not denied: it is absent, and what is made there later is not held");
}

static void the_working_directory_must_be_granted(void **state)
{
	const struct settle_options options = { .cwd = "/p/w" };
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(settle("rw:/p deny:/p/w", &options, &policy, &err), -ERR_POLICY_INVALID);
	assert_string_equal(err.message, "the working directory '/p/w' is denied by '/p/w' (test)");
	assert_int_equal(settle("rw:/q", &options, &policy, &err), -ERR_POLICY_INVALID);
	assert_string_equal(err.message, "the working directory '/p/w' is not granted");
	assert_int_equal(settle("ro:/p", &options, &policy, &err), 0);
}

/* Without links, absences and mandatory rules ours is the plain answer. */
static void plain_policies_stay_as_they_are(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct gen gen = gen_start(seed);
		const struct gen_options options = {
			.max_rules = 30, .max_depth = 6, .bytes = true, .root = true
		};
		AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
		AUTO(policy_deinit) struct policy plain = POLICY_INIT;
		AUTO(policy_deinit) struct policy ours = POLICY_INIT;

		gen_candidates(&gen, &list, &options);
		for (size_t i = 0; i < list.count; i++)
			if (list.rules[i].source == RULE_MANDATORY)
				list.rules[i].source = RULE_USER;
		assert_int_equal(rule_list_merge(&plain.rules, &list, NULL), 0);
		assert_int_equal(policy_index(&plain, NULL), 0);
		assert_int_equal(policy_settle(&ours, &list, &standard, NULL), 0);
		assert_int_equal(ours.rules.count, plain.rules.count);
		assert_int_equal(ours.note_count, 0);
		for (int i = 0; i < 30; i++) {
			AUTO(auto_free) char *probe = gen_probe(&gen, &list, &options);

			assert_int_equal(policy_access(&ours, probe).access,
					 policy_access(&plain, probe).access);
		}
	}
}

static int stricter(enum access a, enum access b)
{
	static const int openness[] = { [ACCESS_NONE] = 0,
					[ACCESS_DENY] = 0,
					[ACCESS_READ_ONLY] = 1,
					[ACCESS_READ_WRITE] = 2 };

	return openness[a] <= openness[b];
}

/* With mandatory and host rules: never more open than plain, and host denies hold everywhere below. */
static void never_more_open_than_plain(void **state)
{
	size_t suppressed = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 2000; seed++) {
		struct gen gen = gen_start(seed);
		const struct gen_options options = { .max_rules = 25, .max_depth = 5 };
		AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
		AUTO(policy_deinit) struct policy plain = POLICY_INIT;
		AUTO(policy_deinit) struct policy ours = POLICY_INIT;

		gen_candidates(&gen, &list, &options);
		for (size_t i = 0; i < list.count; i++)
			list.rules[i].host = list.rules[i].source == RULE_MANDATORY &&
					     list.rules[i].access == ACCESS_DENY &&
					     gen_below(&gen, 2) == 0;
		assert_int_equal(rule_list_merge(&plain.rules, &list, NULL), 0);
		assert_int_equal(policy_index(&plain, NULL), 0);
		assert_int_equal(policy_settle(&ours, &list, &standard, NULL), 0);
		suppressed += ours.suppressed.count;
		for (int i = 0; i < 40; i++) {
			AUTO(auto_free) char *probe = gen_probe(&gen, &list, &options);
			enum access answer = policy_access(&ours, probe).access;

			assert_true(stricter(answer, policy_access(&plain, probe).access));
			for (size_t j = 0; j < list.count; j++)
				if (list.rules[j].host && path_covers(list.rules[j].path, probe))
					assert_true(stricter(answer, ACCESS_DENY));
		}
	}
	assert_true(suppressed > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unusable_paths_are_errors),
		cmocka_unit_test(R28_what_was_planted_takes_away_only),
		cmocka_unit_test(a_mandatory_deny_means_the_subtree),
		cmocka_unit_test(mandatory_read_only_means_the_subtree),
		cmocka_unit_test(R25_nothing_lifts_the_hosts_rules),
		cmocka_unit_test(grants_through_links),
		cmocka_unit_test(grants_remember_their_spelling),
		cmocka_unit_test(denies_on_links_take_both),
		cmocka_unit_test(absent_grants),
		cmocka_unit_test(a_grant_below_a_denied_file),
		cmocka_unit_test(modes_of_absent_denies),
		cmocka_unit_test(the_working_directory_must_be_granted),
		cmocka_unit_test(plain_policies_stay_as_they_are),
		cmocka_unit_test(never_more_open_than_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
