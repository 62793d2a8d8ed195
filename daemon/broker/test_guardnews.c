/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/guardnews.h"

#include <stdio.h>

#include "tests/test.h"

static struct link_guard_news news_of(enum guard_news_kind kind, enum guard_action action,
				      const char *path, const char *kept_as)
{
	struct link_guard_news message = { .kind = kind, .what.action = action };

	(void)snprintf(message.what.path, sizeof(message.what.path), "%s", path);
	(void)snprintf(message.what.kept_as, sizeof(message.what.kept_as), "%s", kept_as);
	return message;
}

static void R27_every_repair_counts(void **state)
{
	struct guardnews news = { .repaired = 0 };
	struct link_guard_news message = news_of(GUARD_NEWS_REPAIRED, 0, "/w/.env", "");
	struct wait_result result = { .repaired = 0 };

	(void)state;
	guardnews_take(&news, &message);
	guardnews_take(&news, &message);
	message.kind = GUARD_NEWS_LOST;
	guardnews_take(&news, &message);
	guardnews_fill(&news, &result);
	assert_int_equal(result.repaired, 3);
	assert_int_equal(result.planted.count, 0);
	guardnews_deinit(&news);
}

static void R28_what_was_planted_is_listed_once_and_bounded(void **state)
{
	struct guardnews news = { .repaired = 0 };
	struct wait_result result = { .repaired = 0 };
	struct link_guard_news message =
		news_of(GUARD_NEWS_APPEARED, GUARD_QUARANTINED, "/w/.git/commondir",
			"fsbox-quarantined.commondir");

	(void)state;
	guardnews_take(&news, &message);
	guardnews_take(&news, &message);
	message = news_of(GUARD_NEWS_APPEARED, GUARD_REPORTED, "/w/.envrc", "");
	guardnews_take(&news, &message);
	guardnews_fill(&news, &result);
	assert_int_equal(result.planted.count, 2);
	assert_string_equal(result.planted.items[0],
			    "/w/.git/commondir (quarantined, now fsbox-quarantined.commondir)");
	assert_string_equal(result.planted.items[1], "/w/.envrc (reported)");
	for (int i = 0; i < 2 * GUARDNEWS_PLANTED_MAX; i++) {
		(void)snprintf(message.what.path, sizeof(message.what.path), "/w/%d", i);
		guardnews_take(&news, &message);
	}
	assert_int_equal(news.planted.count, GUARDNEWS_PLANTED_MAX);
	string_list_deinit(&result.planted);
	guardnews_deinit(&news);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R27_every_repair_counts),
		cmocka_unit_test(R28_what_was_planted_is_listed_once_and_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
