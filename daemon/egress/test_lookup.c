/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/lookup.h"

#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/egress/resolver.h"
#include "tests/test.h"

/* A played resolver process: the other end of the socket. */
struct fixture {
	struct event_base *base;
	struct lookups lookups;
	int resolver;
	int gone;
	int answered;
	enum net_reason reason;
	size_t count;
};

static void on_gone(void *arg)
{
	struct fixture *fixture = arg;

	fixture->gone++;
	(void)event_base_loopbreak(fixture->base);
}

static void on_done(enum net_reason reason, const struct netaddr *addresses, size_t count,
		    void *arg)
{
	struct fixture *fixture = arg;

	(void)addresses;
	fixture->answered++;
	fixture->reason = reason;
	fixture->count = count;
}

static void begin(struct fixture *fixture)
{
	int ends[2];

	memset(fixture, 0, sizeof(*fixture));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	fixture->base = event_base_new();
	fixture->resolver = ends[1];
	lookups_init_take(&fixture->lookups, fixture->base, ends[0], on_gone, fixture);
}

static void end(struct fixture *fixture)
{
	lookups_deinit(&fixture->lookups);
	(void)close(fixture->resolver);
	event_base_free(fixture->base);
}

static void start(struct fixture *fixture, struct lookup *lookup, uint64_t job)
{
	lookup_start(&fixture->lookups, lookup, job, "example.org", on_done, fixture);
}

/* The queries that are in the socket. */
static size_t queries(struct fixture *fixture, struct resolver_query *ret_queries, size_t room)
{
	size_t count = 0;

	while (count < room && recv(fixture->resolver, &ret_queries[count], sizeof(*ret_queries),
				    MSG_DONTWAIT) == sizeof(*ret_queries))
		count++;
	return count;
}

static void answer(struct fixture *fixture, uint64_t id, uint32_t count)
{
	struct resolver_answer message = { .id = id, .reason = NET_ALLOWED, .count = count };

	for (size_t i = 0; i < LIMIT_EGRESS_ADDRESSES; i++)
		message.addresses[i].family = 4;
	assert_int_equal(send(fixture->resolver, &message, sizeof(message), 0), sizeof(message));
	(void)event_base_loop(fixture->base, EVLOOP_ONCE);
}

static void R13_lookups_of_a_job_are_bounded(void **state)
{
	struct fixture fixture;
	struct lookup lookups[3 * LIMIT_EGRESS_LOOKUPS];
	struct resolver_query asked[3 * LIMIT_EGRESS_LOOKUPS];
	size_t count = 0;

	(void)state;
	begin(&fixture);
	for (size_t i = 0; i < LIMIT_EGRESS_LOOKUPS_PER_JOB + 1; i++)
		start(&fixture, &lookups[i], 1);
	count = queries(&fixture, asked, ARRAY_SIZE(asked));
	assert_int_equal(count, LIMIT_EGRESS_LOOKUPS_PER_JOB);
	assert_string_equal(asked[0].name, "example.org");
	/* Another job's goes past the one that waits. */
	start(&fixture, &lookups[10], 2);
	assert_int_equal(queries(&fixture, asked + count, 1), 1);
	answer(&fixture, asked[0].id, 1);
	assert_int_equal(fixture.answered, 1);
	assert_int_equal(fixture.reason, NET_ALLOWED);
	assert_int_equal(queries(&fixture, asked + count + 1, 1), 1);
	end(&fixture);
}

static void R13_lookups_of_all_are_bounded(void **state)
{
	struct fixture fixture;
	struct lookup lookups[3 * LIMIT_EGRESS_LOOKUPS];
	struct resolver_query asked[3 * LIMIT_EGRESS_LOOKUPS];

	(void)state;
	begin(&fixture);
	for (size_t i = 0; i < ARRAY_SIZE(lookups); i++)
		start(&fixture, &lookups[i], i);
	assert_int_equal(queries(&fixture, asked, ARRAY_SIZE(asked)), LIMIT_EGRESS_LOOKUPS);
	/* One that is given up keeps its slot: its process may still be at it. */
	lookup_cancel(&fixture.lookups, &lookups[0]);
	assert_int_equal(queries(&fixture, asked + LIMIT_EGRESS_LOOKUPS, 1), 0);
	answer(&fixture, asked[0].id, 1);
	assert_int_equal(fixture.answered, 0);
	assert_int_equal(queries(&fixture, asked + LIMIT_EGRESS_LOOKUPS, 1), 1);
	for (size_t i = 0; i < ARRAY_SIZE(lookups); i++)
		lookup_cancel(&fixture.lookups, &lookups[i]);
	lookup_cancel(&fixture.lookups, &lookups[0]);
	assert_null(fixture.lookups.first);
	end(&fixture);
}

static void R33_forged_answers_find_nobody(void **state)
{
	struct fixture fixture;
	struct lookup lookup;
	struct resolver_query asked;

	(void)state;
	begin(&fixture);
	start(&fixture, &lookup, 1);
	assert_int_equal(queries(&fixture, &asked, 1), 1);
	answer(&fixture, asked.id + 1, 1);
	answer(&fixture, 0, 1);
	assert_int_equal(fixture.answered, 0);
	answer(&fixture, asked.id, LIMIT_EGRESS_ADDRESSES + 1);
	assert_int_equal(fixture.answered, 1);
	assert_int_equal(fixture.reason, NET_RESOLVE_FAILED);
	assert_int_equal(fixture.count, 0);
	answer(&fixture, asked.id, 1);
	assert_int_equal(fixture.answered, 1);
	end(&fixture);
}

static void the_resolvers_end_is_told(void **state)
{
	struct fixture fixture;

	(void)state;
	begin(&fixture);
	assert_int_equal(send(fixture.resolver, "short", 5, 0), 5);
	(void)event_base_dispatch(fixture.base);
	assert_int_equal(fixture.gone, 1);
	(void)shutdown(fixture.resolver, SHUT_RDWR);
	(void)event_base_dispatch(fixture.base);
	assert_int_equal(fixture.gone, 2);
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R13_lookups_of_a_job_are_bounded),
		cmocka_unit_test(R13_lookups_of_all_are_bounded),
		cmocka_unit_test(R33_forged_answers_find_nobody),
		cmocka_unit_test(the_resolvers_end_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
