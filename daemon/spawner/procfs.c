/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/scope.h"

int proc_open(pid_t pid)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "/proc/%d", (int)pid);
	return open(name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

ssize_t proc_read(int proc_fd, const char *name, char *buffer, size_t size)
{
	AUTO(auto_close) int fd = openat(proc_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	size_t used = 0;

	if (fd < 0)
		return -1;
	while (used < size - 1) {
		ssize_t got = read(fd, buffer + used, size - 1 - used);

		if (got < 0)
			return -1;
		if (got == 0)
			break;
		used += (size_t)got;
	}
	buffer[used] = '\0';
	return (ssize_t)used;
}

/* What follows "KEY:" at the beginning of a line, or NULL. */
static const char *field_of(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, length) == 0 && line[length] == ':')
			return line + length + 1;
	}
	return NULL;
}

/* The next number on this line; false at its end. */
static bool next_number(const char **cursor, uint64_t *ret_number)
{
	const char *text = *cursor;
	char *end = NULL;

	while (*text == ' ' || *text == '\t')
		text++;
	if (*text < '0' || *text > '9')
		return false;
	*ret_number = strtoull(text, &end, 10);
	*cursor = end;
	return true;
}

static bool one_number(const char *text, const char *key, uint64_t *ret_number)
{
	const char *cursor = field_of(text, key);

	return cursor && next_number(&cursor, ret_number);
}

bool proc_status_parse(const char *text, struct proc_status *ret_status)
{
	struct proc_status status = { 0 };
	const char *cursor = NULL;
	uint64_t number = 0;

	if (!one_number(text, "PPid", &number))
		return false;
	status.parent = (pid_t)number;
	if (!one_number(text, "NoNewPrivs", &number))
		return false;
	status.no_new_privs = number != 0;
	if (!one_number(text, "Seccomp", &number))
		return false;
	status.seccomp = (uint32_t)number;

	cursor = field_of(text, "Uid");
	for (size_t i = 0; i < ARRAY_SIZE(status.uids); i++) {
		if (!cursor || !next_number(&cursor, &number))
			return false;
		status.uids[i] = (uid_t)number;
	}
	cursor = field_of(text, "NSpid");
	while (cursor && next_number(&cursor, &number)) {
		status.ns_depth++;
		status.ns_pid = (pid_t)number;
	}
	if (status.ns_depth == 0)
		return false;
	*ret_status = status;
	return true;
}

bool proc_stat_parse(const char *text, pid_t *ret_parent, uint64_t *ret_start_time)
{
	/* The name in parentheses is the process's own choice and may hold anything: from the end. */
	const char *cursor = strrchr(text, ')');
	unsigned field = 3; /* the state is the third of proc_pid_stat(5) */
	char *end = NULL;

	if (!cursor || cursor[1] != ' ' || cursor[2] == '\0')
		return false;
	cursor += 3;
	while (*cursor == ' ') {
		long long value = strtoll(cursor, &end, 10);

		if (end == cursor)
			return false;
		field++;
		cursor = end;
		if (field == 4)
			*ret_parent = (pid_t)value;
		if (field == 22) {
			*ret_start_time = (uint64_t)value;
			return true;
		}
	}
	return false;
}

int proc_status_read(int proc_fd, struct proc_status *ret_status, struct error *err)
{
	char text[8192];

	if (proc_read(proc_fd, "status", text, sizeof(text)) < 0)
		return error_set(err, ERR_SYSTEM, errno, "read /proc/PID/status");
	if (!proc_status_parse(text, ret_status))
		return error_set(err, ERR_SYSTEM, 0, "/proc/PID/status lacks a field");
	return 0;
}

int proc_start_time(int proc_fd, uint64_t *ret_start_time, struct error *err)
{
	char text[2048];
	pid_t parent = 0;

	if (proc_read(proc_fd, "stat", text, sizeof(text)) < 0)
		return error_set(err, ERR_SYSTEM, errno, "read /proc/PID/stat");
	if (!proc_stat_parse(text, &parent, ret_start_time))
		return error_set(err, ERR_SYSTEM, 0, "/proc/PID/stat lacks a field");
	return 0;
}

/* Kernels without CONFIG_PROC_CHILDREN: ask everybody for their parent. */
static size_t children_by_scan(pid_t pid, pid_t *ret_children, size_t capacity)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry = NULL;
	size_t count = 0;

	if (!proc)
		return 0;
	while (count < capacity && (entry = readdir(proc))) {
		AUTO(auto_close) int fd = -1;
		char text[2048];
		uint64_t start = 0;
		pid_t parent = 0;
		long number = strtol(entry->d_name, NULL, 10);

		if (number <= 0)
			continue;
		fd = proc_open((pid_t)number);
		if (fd >= 0 && proc_read(fd, "stat", text, sizeof(text)) > 0 &&
		    proc_stat_parse(text, &parent, &start) && parent == pid)
			ret_children[count++] = (pid_t)number;
	}
	(void)closedir(proc);
	return count;
}

size_t proc_children(pid_t pid, pid_t *ret_children, size_t capacity)
{
	AUTO(auto_close) int fd = -1;
	const char *cursor = NULL;
	uint64_t number = 0;
	size_t count = 0;
	char name[48];
	char text[1024];

	fd = proc_open(pid);
	(void)snprintf(name, sizeof(name), "task/%d/children", (int)pid);
	if (fd < 0)
		return 0;
	if (proc_read(fd, name, text, sizeof(text)) < 0)
		return errno == ENOENT ? children_by_scan(pid, ret_children, capacity) : 0;

	cursor = text;
	while (count < capacity && next_number(&cursor, &number))
		ret_children[count++] = (pid_t)number;
	return count;
}
