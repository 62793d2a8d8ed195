# SPDX-License-Identifier: Apache-2.0
"""Calls that have a better one.

Unbounded copies, numbers without errors, shells, memory without a ceiling, descriptors without
close-on-exec, names that may be swapped under us.
"""

import re

import tree

BANNED = {
    "strcpy": "snprintf or buf_add", "strcat": "buf_add", "strncpy": "memcpy with a length",
    "strncat": "buf_add", "sprintf": "snprintf", "vsprintf": "vsnprintf",
    "gets": "fgets", "atoi": "strtol with checks", "atol": "strtol with checks",
    "atof": "integers", "strtok": "strcspn", "system": "fork and exec", "popen": "fork and exec",
    "alloca": "buf", "strdupa": "strdup", "tmpnam": "mkstemp", "tempnam": "mkstemp",
    "mktemp": "mkstemp", "dup": "fcntl F_DUPFD_CLOEXEC", "vfork": "fork",
    "readdir_r": "readdir", "rand": "getrandom", "random": "getrandom", "usleep": "poll",
    "bcopy": "memmove", "setuid": "setresuid", "setgid": "setresgid", "seteuid": "setresuid",
    "setegid": "setresgid", "localtime": "gmtime_r", "gmtime": "gmtime_r", "ctime": "strftime",
    "asctime": "strftime", "strerror_r": "strerrorname_np or strerror",
    "pipe": "pipe2 with O_CLOEXEC", "accept": "accept4 with SOCK_CLOEXEC",
    "creat": "open with O_CLOEXEC", "epoll_create": "epoll_create1", "inotify_init": "inotify_init1",
}
# What tests may not do either; the rest is about programs that others depend on.
EVERYWHERE = {"strcpy", "strcat", "sprintf", "vsprintf", "atoi", "strtok", "system", "popen", "alloca",
              "gets"}
CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])+\'', re.S)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def is_test(name):
    return name.startswith("tests/") or "/test_" in name


def check(name):
    text = COMMENT_OR_STRING.sub(blank, tree.read(name))
    for match in CALL.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        call = match.group(1)
        if call not in EVERYWHERE and is_test(name):
            continue
        yield f"{name}:{line}: {call}() is banned, use {BANNED[call]}"


def run():
    names = tree.sources()
    problems = [problem for name in names for problem in check(name)]
    for name in names:  # the libraries neither print nor exit
        if name.startswith(("common/", "proto/", "client/fsbox")) and not is_test(name):
            text = COMMENT_OR_STRING.sub(blank, tree.read(name))
            for match in re.finditer(r"(?<![\w.>])(printf|puts|perror|syslog|exit|_exit|abort)\s*\(",
                                     text):
                line = text.count("\n", 0, match.start()) + 1
                problems.append(f"{name}:{line}: {match.group(1)}() in a library")
    return tree.finish(problems, len(names), "banned")


tree.main(run)
