/* SPDX-License-Identifier: Apache-2.0 */
#include "common/protect.h"

#include <string.h>

#include "common/buf.h"
#include "common/path.h"
#include "common/scope.h"
#include "tests/test.h"

static size_t index_of(const char *name)
{
	size_t count = 0;
	const struct protected_name *names = protected_names(&count);

	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i].name, name) == 0)
			return i;
	fail_msg("no name '%s'", name);
	return 0;
}

static void the_table_is_sane(void **state)
{
	size_t count = 0;
	const struct protected_name *names = protected_names(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		assert_true(path_is_relative(names[i].name));
		for (size_t j = 0; j < i; j++)
			assert_true(names[i].scope != names[j].scope ||
				    strcmp(names[i].name, names[j].name) != 0);
	}
}

static void text_of(const struct rule_list *rules, struct buf *text)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->rules[i];

		assert_int_equal(buf_printf(text, "%s %s %s", access_name(rule->access),
					    rule_source_name(rule->source), rule->path),
				 0);
		if (rule->real)
			assert_int_equal(buf_printf(text, " -> %s (%s)", rule->real, rule->link),
					 0);
		assert_int_equal(buf_add_byte(text, '\n'), 0);
	}
}

/* R28: what exists is readOnly, what would execute when it appears is quarantined. */
static void R28_found_and_absent_names(void **state)
{
	const struct protect_found found[] = {
		{ index_of(".envrc"), "/p/.envrc", NULL, NODE_FILE },
		{ index_of(".vscode"), "/p/.vscode", "/p/.vscode", NODE_DIRECTORY },
		{ index_of("hooks"), "/p/.git/hooks", "/p/h", NODE_DIRECTORY },
		{ index_of("config"), "/p/.git/config", NULL, NODE_FILE },
		{ index_of("modules"), "/p/.git/modules", NULL, NODE_DIRECTORY },
		{ index_of("modules"), "/q/.git/modules", "/q/m", NODE_DIRECTORY },
		{ index_of("modules"), "/r/.git/modules", NULL, NODE_ABSENT },
		{ index_of("commondir"), "/p/.git/commondir", NULL, NODE_ABSENT },
		{ index_of(".mcp.json"), "/p/.mcp.json", NULL, NODE_ABSENT },
		{ index_of(".git"), "/p/.git", NULL, NODE_DIRECTORY },
		{ index_of(".git"), "/s/.git", NULL, NODE_ABSENT },
	};
	struct protect_facts facts = { .found = found, .found_count = ARRAY_SIZE(found) };
	AUTO(rule_list_deinit) struct rule_list rules = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list lifted = RULE_LIST_INIT;
	AUTO(protect_watch_deinit) struct protect_watch watch = { .report.items = NULL };
	AUTO(buf_deinit) struct buf text = BUF_INIT(4096);

	(void)state;
	assert_int_equal(protect_rules(&rules, &facts, &watch, NULL), 0);
	text_of(&rules, &text);
	assert_string_equal(buf_text(&text), "readOnly user /p/.envrc\nreadOnly user /p/.vscode\n"
					     "readOnly user /p/.git/hooks -> /p/h (/p/.git/hooks)\n"
					     "readOnly user /p/.git/config\n");
	assert_int_equal(watch.report.count, 2);
	assert_string_equal(watch.report.items[0], "/p/.mcp.json");
	assert_string_equal(watch.report.items[1], "/s/.git");
	assert_int_equal(watch.quarantine.count, 2);
	assert_string_equal(watch.quarantine.items[0], "/r/.git/modules");
	assert_string_equal(watch.quarantine.items[1], "/p/.git/commondir");
	assert_int_equal(watch.entries.count, 1);
	assert_string_equal(watch.entries.items[0], "/p/.git/modules");

	facts.allow_git_config = true;
	assert_int_equal(protect_rules(&lifted, &facts, NULL, NULL), 0);
	assert_int_equal(lifted.count, 3);
}

static void worktrees_and_submodules(void **state)
{
	struct protect_repository repository = {
		.dot_git = "/wt/.git",
		.is_file = true,
		.git_dir = "/r/.git/worktrees/wt",
		.common_dir = "/r/.git",
		.hooks_dir = "/r/tools/hooks",
	};
	struct protect_facts facts = { .repositories = &repository, .repository_count = 1 };
	AUTO(buf_deinit) struct buf text = BUF_INIT(4096);

	(void)state;
	for (int points_back = 0; points_back < 2; points_back++) {
		AUTO(rule_list_deinit) struct rule_list rules = RULE_LIST_INIT;

		repository.points_back = points_back;
		assert_int_equal(protect_rules(&rules, &facts, NULL, NULL), 0);
		buf_clear(&text);
		text_of(&rules, &text);
		/* Nothing is granted on the word of the `.git` file alone. */
		assert_string_equal(buf_text(&text),
				    points_back ? "readOnly user /wt/.git\n"
						  "readWrite internal /r/.git\n"
						  "readWrite internal /r/.git/worktrees/wt\n"
						  "readOnly user /r/tools/hooks\n"
						: "readOnly user /wt/.git\n"
						  "readOnly user /r/tools/hooks\n");
	}
	repository = (struct protect_repository){ .dot_git = "/s/.git",
						  .is_file = true,
						  .git_dir = "/r/.git/modules/s",
						  .points_back = true };
	for (int directory = 0; directory < 2; directory++) {
		AUTO(rule_list_deinit) struct rule_list rules = RULE_LIST_INIT;

		repository.is_file = !directory;
		assert_int_equal(protect_rules(&rules, &facts, NULL, NULL), 0);
		buf_clear(&text);
		text_of(&rules, &text);
		assert_string_equal(buf_text(&text),
				    directory ? ""
					      : "readOnly user /s/.git\n"
						"readWrite internal /r/.git/modules/s\n");
	}
}

static void too_many_rules(void **state)
{
	const struct protect_found found = { 0, "/p/.bashrc", NULL, NODE_FILE };
	const struct protect_facts facts = { .found = &found, .found_count = 1 };
	AUTO(rule_list_deinit) struct rule_list rules = RULE_LIST_INIT;
	struct error err = ERROR_INIT;
	int r = 0;

	(void)state;
	for (size_t i = 0; r == 0 && i <= 100000; i++)
		r = protect_rules(&rules, &facts, NULL, i < 100000 ? &err : NULL);
	assert_true(r < 0);
	assert_int_equal(rules.count, 100000);
	assert_int_equal(protect_rules(&rules, &facts, NULL, &err), -ERR_POLICY_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_sane),
		cmocka_unit_test(R28_found_and_absent_names),
		cmocka_unit_test(worktrees_and_submodules),
		cmocka_unit_test(too_many_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
