/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/grantcheck.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/scope.h"
#include "common/sha256.h"
#include "tests/ordinary.h"
#include "tests/test.h"

/* @args  as in a job's memfd; @terms: what fits them */
struct fixture {
	struct buf args;
	char **argv;
	char **envp;
	struct command command;
	struct grant_terms terms;
	int null_fd;
	struct error err;
};

static void add_text(struct buf *buf, const char *text)
{
	assert_int_equal(buf_add(buf, text, strlen(text) + 1), 0);
}

static void hash_file(const char *path, uint8_t ret_hash[HASH_BYTES])
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char bytes[4096];
	struct sha256 sha;
	ssize_t got = 0;

	assert_true(fd >= 0);
	sha256_init(&sha);
	while ((got = read(fd, bytes, sizeof(bytes))) > 0)
		sha256_add(&sha, bytes, (size_t)got);
	sha256_finish(&sha, ret_hash);
}

/* PROGRAM is run, with a grant for FILE's content. */
static void begin(struct fixture *fixture, const char *program, const char *path, const char *file)
{
	struct args_header header = { .magic = ARGS_MAGIC, .argc = 2, .envc = 2 };
	const char *cwd = NULL;

	memset(fixture, 0, sizeof(*fixture));
	buf_init(&fixture->args, 4096);
	assert_int_equal(buf_add(&fixture->args, &header, sizeof(header)), 0);
	add_text(&fixture->args, "/");
	add_text(&fixture->args, program);
	add_text(&fixture->args, "argument");
	add_text(&fixture->args, "A=b");
	add_text(&fixture->args, path);
	((struct args_header *)(void *)fixture->args.data)->size = (uint32_t)fixture->args.size;
	assert_int_equal(
		args_check((const void *)fixture->args.data, fixture->args.size, &fixture->err), 0);
	assert_int_equal(args_split((const void *)fixture->args.data, &cwd, &fixture->argv,
				    &fixture->envp, NULL),
			 0);
	fixture->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	fixture->command = (struct command){
		.cwd = cwd,
		.argv = fixture->argv,
		.envp = fixture->envp,
		.stdio = { fixture->null_fd, fixture->null_fd, fixture->null_fd },
		.program = -1,
	};
	fixture->terms.stdio[0] = fixture->terms.stdio[1] = fixture->terms.stdio[2] =
		STDIO_KIND_NULL;
	args_hash((const void *)fixture->args.data, fixture->terms.args_hash,
		  fixture->terms.env_hash);
	hash_file(file, fixture->terms.exec_hash);
}

static void end(struct fixture *fixture)
{
	buf_deinit(&fixture->args);
	free((void *)fixture->argv);
	free((void *)fixture->envp);
	(void)close(fixture->null_fd);
}

/* 0 also says that what is to be executed is FILE itself. */
static int check(struct fixture *fixture, const char *file)
{
	AUTO(auto_close) int program = -1;
	struct stat found;
	struct stat wanted;
	int r = grantcheck(&fixture->terms, (const void *)fixture->args.data, &fixture->command,
			   fixture->null_fd, &program, &fixture->err);

	assert_int_equal(program >= 0, r == 0);
	if (r == 0) {
		assert_int_equal(fstat(program, &found), 0);
		assert_int_equal(stat(file, &wanted), 0);
		assert_int_equal(found.st_ino, wanted.st_ino);
	}
	return r;
}

static void refused(struct fixture *fixture, const char *why)
{
	assert_int_equal(check(fixture, "/bin/cat"), -ERR_GRANT_INVALID);
	if (!strstr(fixture->err.message, why))
		fail_msg("'%s' does not say '%s'", fixture->err.message, why);
}

static void R29_each_of_its_terms_must_fit(void **state)
{
	struct fixture fixture;

	(void)state;
	begin(&fixture, "/bin/cat", "PATH=/usr/bin:/bin", "/bin/cat");
	assert_int_equal(check(&fixture, "/bin/cat"), 0);
	fixture.terms.args_hash[31] ^= 1;
	refused(&fixture, "arguments");
	fixture.terms.args_hash[31] ^= 1;
	fixture.terms.env_hash[0] ^= 1;
	refused(&fixture, "environment");
	fixture.terms.env_hash[0] ^= 1;
	fixture.terms.exec_hash[7] ^= 1;
	refused(&fixture, "not the program");
	fixture.terms.exec_hash[7] ^= 1;
	assert_int_equal(check(&fixture, "/bin/cat"), 0);
	end(&fixture);
}

static void R29_standard_descriptors_are_of_the_kinds_it_says(void **state)
{
	static const enum stdio_kind others[] = { STDIO_KIND_PIPE, STDIO_KIND_SOCKET,
						  STDIO_KIND_FILE, STDIO_KIND_OTHER };
	struct fixture fixture;
	int fds[4];
	int pair[2];
	char name[] = "/tmp/fsbox-test-XXXXXX";

	(void)state;
	begin(&fixture, "/bin/cat", "PATH=/bin", "/bin/cat");
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	fds[0] = pair[0];
	(void)close(pair[1]);
	fds[1] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fds[2] = mkstemp(name);
	(void)unlink(name);
	fds[3] = open("/dev/zero", O_RDWR | O_CLOEXEC);
	assert_int_equal(grantcheck_kind(fixture.null_fd), STDIO_KIND_NULL);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		assert_int_equal(grantcheck_kind(fds[i]), others[i]);
		for (size_t which = 0; which < 3; which++) {
			fixture.command.stdio[which] = fds[i];
			refused(&fixture, "standard");
			fixture.command.stdio[which] = fixture.null_fd;
		}
	}
	assert_int_equal(grantcheck_kind(-1), STDIO_KIND_OTHER);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		(void)close(fds[i]);
	end(&fixture);
}

static void R29_its_program_is_found_as_the_job_would(void **state)
{
	struct fixture fixture;

	(void)state;
	/* What is no regular file that can be executed is passed over. */
	begin(&fixture, "cat", "PATH=:relative:/etc:/proc/self:/nowhere:/bin", "/bin/cat");
	assert_int_equal(check(&fixture, "/bin/cat"), 0);
	end(&fixture);
	begin(&fixture, "cat", "PATH=/nowhere", "/bin/cat");
	assert_int_equal(check(&fixture, "/bin/cat"), -ERR_COMMAND_NOT_FOUND);
	end(&fixture);
	begin(&fixture, "bin/cat", "PATH=/bin", "/bin/cat");
	assert_int_equal(check(&fixture, "/bin/cat"), -ERR_COMMAND_NOT_FOUND);
	end(&fixture);
	begin(&fixture, "/bin", "PATH=/bin", "/bin/cat");
	assert_int_equal(check(&fixture, "/bin/cat"), -ERR_COMMAND_NOT_FOUND);
	end(&fixture);
}

static void R29_what_its_user_can_change_is_refused(void **state)
{
	char dir[] = "/tmp/fsbox-test-XXXXXX";
	char path[64];
	struct fixture fixture;
	int fd = -1;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/tool", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_int_equal(write(fd, "x", 1), 1);
	(void)close(fd);
	begin(&fixture, path, "PATH=/bin", path);
	refused(&fixture, "can be changed");
	end(&fixture);
	(void)unlink(path);
	(void)rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R29_each_of_its_terms_must_fit),
		cmocka_unit_test(R29_standard_descriptors_are_of_the_kinds_it_says),
		cmocka_unit_test(R29_its_program_is_found_as_the_job_would),
		cmocka_unit_test(R29_what_its_user_can_change_is_refused),
	};

	/* Root can change every program, so no grant would be good for it. */
	if (getuid() == 0 && setresuid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
