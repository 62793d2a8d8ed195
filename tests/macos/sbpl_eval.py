#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sbpl_eval - a model checker for macOS Seatbelt (SBPL) profiles.

Pure Python 3.9+, no dependency, runs on Linux.  It parses a profile, answers
"may this sandbox do OPERATION on PATH, and which rule says so?", lints the
profile for constructs whose meaning is contested or dangerous, and compares it
with a three-tier file policy (readWrite / readOnly / deny, deepest rule wins).

It is a MODEL.  Nothing here talks to a kernel.  The sources of each modelled
fact are in macos.md; the points that decide the shape of the code:

  * among filtered rules of ONE operation the last match wins;
  * rules on a specific operation (file-read-data) are consulted before rules
    on its wildcard parent (file-read*), whatever their order in the text;
  * an unfiltered rule is only that operation's default: it does not override
    a filtered rule of the same operation.

Those last two are not what "last match wins" alone would give, so every query
can be answered under two models:

  graph    the three facts above (what was measured on real macOS);
  textual  plain last-match-wins over every applicable rule in text order.

A profile whose answers are equal under both models does not lean on the
contested part of the semantics; `agree` and `lint` insist on that.
"""
from __future__ import annotations

import argparse
import functools
import json
import random
import re
import sys
import unicodedata
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

# --------------------------------------------------------------------------
# Operation vocabulary (macOS 14.4.1 libsandbox, 196 names) and hierarchy
# --------------------------------------------------------------------------

_OPS = """
default appleevent-send authorization-right-obtain boot-arg-set device* device-camera
device-microphone darwin-notification-post distributed-notification-post
dynamic-code-generation file* file-chroot file-clone file-ioctl file-issue-extension
file-link file-lock file-map-executable file-mknod file-mount file-mount-update
file-read* file-read-data file-read-metadata file-read-xattr file-revoke file-search
file-test-existence file-unmount file-write* file-write-acl file-write-create
file-write-data file-write-finderinfo file-write-flags file-write-mode file-write-owner
file-write-setugid file-write-times file-write-unlink file-write-xattr fs-quota*
fs-quota-get fs-quota-on fs-quota-off fs-quota-set* fs-quota-set-limits
fs-quota-set-usage fs-quota-stat fs-quota-sync fs-rename fs-snapshot*
fs-snapshot-create fs-snapshot-delete fs-snapshot-mount fs-snapshot-revert
generic-issue-extension qtn-user hid-control iokit* iokit-get-properties
iokit-issue-extension iokit-open* iokit-open-user-client iokit-open-service
iokit-set-properties ipc* ipc-posix* ipc-posix-issue-extension ipc-posix-sem*
ipc-posix-sem-create ipc-posix-sem-open ipc-posix-sem-post ipc-posix-sem-unlink
ipc-posix-sem-wait ipc-posix-shm* ipc-posix-shm-read-data ipc-posix-shm-write*
ipc-posix-shm-write-create ipc-posix-shm-write-data ipc-posix-shm-write-unlink
ipc-sysv* ipc-sysv-msg ipc-sysv-sem ipc-sysv-shm job-creation lsopen mach*
mach-bootstrap mach-cross-domain-lookup mach-derive-port mach-host*
mach-host-exception-port-set mach-host-special-port-set mach-issue-extension
mach-kernel-endpoint mach-lookup mach-priv* mach-priv-host-port mach-priv-task-port
mach-register mach-task* mach-task-inspect mach-task-name mach-task-read
mach-task-special-port* mach-task-special-port-get mach-task-special-port-set
necp-client-open network* network-inbound network-bind network-outbound nvram*
nvram-delete nvram-get nvram-set opendirectory-user-modify process*
process-codesigning process-exec* process-exec-interpreter process-fork process-info*
process-info-codesignature process-info-dirtycontrol process-info-ledger
process-info-listpids process-info-rusage process-info-pidinfo process-info-pidfdinfo
process-info-pidfileportinfo process-info-setcontrol process-legacy-codesigning*
process-legacy-codesigning-blob-get process-legacy-codesigning-cdhash-get
process-legacy-codesigning-entitlements-blob-get
process-legacy-codesigning-entitlements-der-blob-get
process-legacy-codesigning-identity-get process-legacy-codesigning-status*
process-legacy-codesigning-status-get process-legacy-codesigning-status-set
process-legacy-codesigning-teamid-get process-legacy-codesigning-text-offset-get
pseudo-tty signal socket-ioctl socket-option* socket-option-get socket-option-set
syscall* syscall-unix syscall-mach syscall-mig sysctl* sysctl-read sysctl-write system*
system-acct system-audit system-automount system-debug system-fcntl system-fsctl
system-info system-kas-info system-kext* system-kext-load system-kext-unload
system-kext-query system-mac* system-mac-label system-mac-syscall
system-memorystatus-control system-necp-client-action system-nfssvc
system-package-check system-privilege system-reboot system-sched system-set-time
system-socket system-suspend-resume system-swap user-preference* user-preference-read
managed-preference-read user-preference-write storage-class-map
process-exec-update-label default-message-filter iokit-async-external-method
iokit-external-method iokit-external-trap mach-message-send xpc-message-send
""".split()

VOCABULARY = frozenset(_OPS)

# Names accepted in shipped profiles that stand for a group.
ALIASES = {
    "process-exec": "process-exec*",
    "iokit-open": "iokit-open*",
    "ipc-posix-sem": "ipc-posix-sem*",
    "ipc-posix-shm": "ipc-posix-shm*",
    "ipc-posix-shm-read*": "ipc-posix-shm-read-data",
    "sysctl": "sysctl*",
    "file-write-umount": "file-unmount",
    "file-write-mount": "file-mount",
    "process-info-pidinfo*": "process-info-pidinfo",
    "system-necp*": "system-necp-client-action",
}

_WILD = sorted((o for o in VOCABULARY if o.endswith("*")), key=len, reverse=True)


def parent_op(op: str) -> Optional[str]:
    """Wildcard parent of OP, 'default' at the top, None above default."""
    if op == "default":
        return None
    stem = op[:-1] if op.endswith("*") else op
    for w in _WILD:
        if w != op and len(w) - 1 < len(stem) and stem.startswith(w[:-1]):
            rest = stem[len(w) - 1:]
            if rest.startswith("-"):
                return w
    return "default"


@functools.lru_cache(maxsize=None)
def op_chain(op: str) -> Tuple[str, ...]:
    """OP, its parents, ..., 'default'."""
    out: List[str] = []
    cur: Optional[str] = op
    while cur is not None:
        out.append(cur)
        cur = parent_op(cur)
    return tuple(out)


READ_OPS = ("file-read-data", "file-read-xattr")
META_OPS = ("file-read-metadata", "file-test-existence")
WRITE_OPS = ("file-write-data", "file-write-create", "file-write-unlink",
             "file-write-mode", "file-write-owner", "file-write-flags",
             "file-write-times", "file-write-xattr", "file-write-acl",
             "file-write-setugid")

# --------------------------------------------------------------------------
# Reader
# --------------------------------------------------------------------------


class SbplError(Exception):
    """Profile that sandbox-exec would refuse (it exits 65)."""


class Sym(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Raw(str):
    """#"..." literal."""
    __slots__ = ()


@dataclass
class Node:
    items: list
    line: int
    text: str = ""


def _loc(text: str, pos: int) -> str:
    line = text.count("\n", 0, pos) + 1
    col = pos - (text.rfind("\n", 0, pos) + 1) + 1
    return f"line {line}, column {col}"


class Reader:
    """Scheme reader for the SBPL subset."""

    def __init__(self, text: str, name: str = "<profile>"):
        if "\0" in text:
            raise SbplError("NUL byte in profile")
        self.t, self.i, self.name = text, 0, name

    def fail(self, msg: str, pos: Optional[int] = None):
        raise SbplError(f"{self.name}: {msg} at {_loc(self.t, self.i if pos is None else pos)}")

    def skip(self) -> None:
        t = self.t
        while self.i < len(t):
            c = t[self.i]
            if c in " \t\r\n\f":
                self.i += 1
            elif c == ";":
                j = t.find("\n", self.i)
                self.i = len(t) if j < 0 else j + 1
            else:
                return

    def read_all(self) -> list:
        out = []
        while True:
            self.skip()
            if self.i >= len(self.t):
                return out
            out.append(self.read())

    def read(self):
        self.skip()
        if self.i >= len(self.t):
            self.fail("unexpected end of profile")
        t, start = self.t, self.i
        c = t[start]
        if c == "(":
            self.i += 1
            items = []
            while True:
                self.skip()
                if self.i >= len(t):
                    self.fail("unclosed parenthesis", start)
                if t[self.i] == ")":
                    self.i += 1
                    return Node(items, t.count("\n", 0, start) + 1, t[start:self.i])
                items.append(self.read())
        if c == ")":
            self.fail("unexpected ')'")
        if c == "'":
            self.i += 1
            x = self.read()
            return Node([Sym("quote"), x], t.count("\n", 0, start) + 1, t[start:self.i])
        if c == '"':
            return self.string()
        if c == "#":
            if t.startswith('#"', start):
                return self.raw()
            if t.startswith("#t", start) or t.startswith("#f", start):
                self.i += 2
                return t[start + 1] == "t"
            self.fail("unsupported '#' syntax")
        j = start
        while j < len(t) and t[j] not in " \t\r\n\f()\";'":
            j += 1
        self.i = j
        word = t[start:j]
        if re.fullmatch(r"[+-]?\d+", word):
            return int(word)
        return Sym(word)

    def string(self) -> str:
        t, start, out = self.t, self.i, []
        j = start + 1
        while j < len(t):
            c = t[j]
            if c == '"':
                self.i = j + 1
                return "".join(out)
            if c == "\\":
                j += 1
                if j >= len(t):
                    break
                e = t[j]
                if e in '"\\':
                    out.append(e)
                elif e in "ntr":
                    out.append({"n": "\n", "t": "\t", "r": "\r"}[e])
                elif e == "u" and re.fullmatch(r"[0-9A-Fa-f]{4}", t[j + 1:j + 5]):
                    out.append(chr(int(t[j + 1:j + 5], 16)))
                    j += 4
                else:
                    self.fail(f"string escape '\\{e}' is not one this model knows", j)
                j += 1
                continue
            out.append(c)
            j += 1
        self.fail("unterminated string", start)
        raise AssertionError

    def raw(self) -> Raw:
        t, start = self.t, self.i
        j, out = start + 2, []
        while j < len(t):
            c = t[j]
            if c == '"':
                self.i = j + 1
                return Raw("".join(out))
            if c == "\\" and j + 1 < len(t):
                # a backslash is kept for the regex engine; \" is a quote
                out.append(t[j + 1] if t[j + 1] == '"' else c + t[j + 1])
                j += 2
                continue
            out.append(c)
            j += 1
        self.fail("unterminated #\"\" literal", start)
        raise AssertionError


# --------------------------------------------------------------------------
# Seatbelt regular expressions
# --------------------------------------------------------------------------


def compile_regex(src: str, where: str = "") -> "re.Pattern[str]":
    """Seatbelt regex -> Python regex.  Refuses what Seatbelt is known or
    believed not to support, since it does so silently there."""
    if not src:
        raise SbplError(f"empty regex{where}")
    if any(ord(c) > 126 or ord(c) < 32 for c in src):
        raise SbplError(f"regex has a character outside printable ASCII{where}: {src!r}")
    out: List[str] = []
    i, in_class, class_start = 0, False, 0
    while i < len(src):
        c = src[i]
        if c == "\\":
            if i + 1 >= len(src):
                raise SbplError(f"regex ends in a backslash{where}: {src!r}")
            e = src[i + 1]
            if e.isalnum():
                raise SbplError(f"regex escape '\\{e}' is not portable to Seatbelt{where}: {src!r}")
            out.append("\\" + e)
            i += 2
            continue
        if in_class:
            if c == "]" and i > class_start:
                in_class = False
            out.append("\\[" if c == "[" else c)
        elif c == "[":
            in_class, class_start = True, i + 1
            out.append(c)
            if src[i + 1:i + 2] == "^":
                out.append("^")
                i += 1
                class_start = i + 1
            if src[i + 1:i + 2] == "]":
                out.append("\\]")
                i += 1
                class_start = i
        elif c == "(" and src[i + 1:i + 2] == "?":
            raise SbplError(f"'(?' group: Seatbelt ignores the rule silently{where}: {src!r}")
        elif c in "{}":
            raise SbplError(f"'{c}' quantifier is not portable to Seatbelt{where}: {src!r}")
        elif c == "$":
            out.append(r"\Z")
        else:
            out.append(c)
        i += 1
    if in_class:
        raise SbplError(f"unclosed '[' in regex{where}: {src!r}")
    try:
        return re.compile("".join(out), re.S)
    except re.error as e:
        raise SbplError(f"bad regex{where}: {src!r}: {e}")


# --------------------------------------------------------------------------
# Filters: each is a function Query -> True | False | None (cannot tell)
# --------------------------------------------------------------------------

Tri = Optional[bool]


@dataclass
class Query:
    op: str
    path: Optional[str] = None        # vnode path, or AF_UNIX path for network-*
    vnode_type: Optional[str] = None  # REGULAR-FILE DIRECTORY SYMLINK CHARACTER-DEVICE ...
    name: Optional[str] = None        # mach/sysctl/ipc name
    addr: Optional[str] = None        # "localhost:80" or "*:80" for ip filters
    target: Optional[str] = None      # self same-sandbox children others


@dataclass
class Filter:
    kind: str
    args: tuple
    fn: Callable[[Query], Tri]
    text: str = ""
    path_like: bool = False
    compound: bool = False
    kids: tuple = ()


def subpath_match(root: str, path: str) -> bool:
    root = root.rstrip("/") or "/"
    return path == root or root == "/" or path.startswith(root + "/")


def ancestors(path: str) -> List[str]:
    """Strict ancestors, nearest first, '/' last."""
    out = []
    p = path
    while p != "/":
        p = p[:p.rfind("/")] or "/"
        out.append(p)
    return out


def _any(fs: Sequence[Filter], q: Query) -> Tri:
    r: Tri = False
    for f in fs:
        v = f.fn(q)
        if v is True:
            return True
        if v is None:
            r = None
    return r


def _all(fs: Sequence[Filter], q: Query) -> Tri:
    r: Tri = True
    for f in fs:
        v = f.fn(q)
        if v is False:
            return False
        if v is None:
            r = None
    return r


def _not(v: Tri) -> Tri:
    return None if v is None else not v


# --------------------------------------------------------------------------
# Profile
# --------------------------------------------------------------------------


@dataclass
class Rule:
    index: int
    action: str                # allow | deny
    op: str                    # canonical operation name
    filters: Tuple[Filter, ...]
    modifiers: Tuple[str, ...]
    line: int
    text: str
    origin: str

    @property
    def unfiltered(self) -> bool:
        return not self.filters

    def match(self, q: Query) -> Tri:
        return True if not self.filters else _any(self.filters, q)

    def __str__(self) -> str:
        one = " ".join(re.sub(r'(?m)[ \t];[^"\n]*$', "", self.text).split())
        return f"{self.origin}:{self.line}: {one if len(one) < 160 else one[:157] + '...'}"


@dataclass
class Decision:
    allowed: bool
    rule: Optional[Rule]
    certain: bool = True
    via: str = ""              # operation whose rule list decided

    def __bool__(self) -> bool:
        return self.allowed


@dataclass
class Finding:
    severity: str              # error | warning | note
    code: str
    message: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.severity}: {self.code}: line {self.line}: {self.message}"


_PATH_FILTERS = {"literal", "path", "path-literal", "subpath", "prefix", "literal-prefix", "regex",
                 "path-regex", "path-ancestors", "subpath-prefix"}
_NAME_FILTERS = {"global-name", "local-name", "xpc-service-name", "sysctl-name", "ipc-posix-name",
                 "mac-policy-name", "preference-domain", "right-name", "notification-name",
                 "iokit-user-client-class", "iokit-registry-entry-class", "iokit-connection",
                 "iokit-property", "nvram-variable", "appleevent-destination", "info-type"}
_OPAQUE = {"extension", "extension-class", "issue-extension", "signing-identifier", "process-path",
           "process-attribute", "entitlement-is-present", "entitlement-value", "debug-mode",
           "file-mode", "system-attribute", "csr", "require-entitlement", "socket-domain",
           "socket-type", "socket-protocol", "control-name", "fsctl-command", "mac-syscall-number",
           "syscall-number", "syscall-group", "mig", "machtrap-number", "kernel-mig-routine",
           "fs-rename", "storage-class", "device-major", "device-minor", "mount-relative-literal",
           "rootless-boot-device-filter", "rootless-disk-filter", "semaphore-owner", "xattr",
           "reference-count", "uid", "ioctl-command", "message-number", "sip"}


class Profile:
    """A parsed profile: an ordered list of rules."""

    def __init__(self, text: str, params: Optional[Dict[str, str]] = None,
                 name: str = "<profile>", import_stub: Optional[Dict[str, str]] = None,
                 strict_ops: bool = True):
        self.params = dict(params or {})
        self.rules: List[Rule] = []
        self.imports: List[str] = []
        self.version: Optional[int] = None
        self.strict_ops = strict_ops
        self.stub = import_stub or {}
        self.env: Dict[str, Any] = {}
        self.text = text
        self._context: List[Filter] = []
        self._run(text, name)
        if self.version is None:
            raise SbplError(f"{name}: no (version 1)")
        self._filtered: Dict[str, List[Rule]] = {}
        self._bare: Dict[str, Rule] = {}
        self._flat: Dict[str, List[Rule]] = {}
        for r in self.rules:
            if r.unfiltered:
                self._bare[r.op] = r
            else:
                self._filtered.setdefault(r.op, []).append(r)

    # ---- evaluation of the text ------------------------------------------

    def _run(self, text: str, name: str) -> None:
        for form in Reader(text, name).read_all():
            self._top(form, name, self.env)

    def _top(self, form, name: str, env: Dict[str, Any]) -> None:
        if not isinstance(form, Node) or not form.items or not isinstance(form.items[0], Sym):
            raise SbplError(f"{name}: stray expression at top level: {form!r}")
        self._stmt(form, name, env)

    def _stmt(self, form: Node, name: str, env: Dict[str, Any]):
        head, args = form.items[0], form.items[1:]
        if head == "version":
            if args != [1]:
                raise SbplError(f"{name}: only (version 1) is modelled")
            self.version = 1
        elif head in ("allow", "deny"):
            self._rule(str(head), form, args, name, env)
        elif head == "import":
            self._import(self._expr(args[0], env, name))
        elif head == "define":
            self._define(args, env, name)
        elif head in ("if", "when", "unless", "begin", "let", "let*"):
            self._control(head, args, name, env)
        elif head == "with-filter":
            f = self._expr(args[0], env, name)
            if not isinstance(f, Filter):
                raise SbplError(f"{name}: with-filter wants a filter at line {form.line}")
            self._context.append(f)
            for a in args[1:]:
                self._stmt(a, name, env)
            self._context.pop()
        elif head in ("debug", "trace", "disable-callouts", "disable-full-symbolication"):
            pass
        elif head in env and callable(env[head]):
            env[head](*[self._expr(a, env, name) for a in args])
        else:
            # sandbox-exec: "unbound variable: NAME", exit status 65
            raise SbplError(f"{name}: unbound variable: {head} at line {form.line}")

    def _control(self, head, args, name, env) -> None:
        if head == "begin":
            for a in args:
                self._stmt(a, name, env)
        elif head == "if":
            if len(args) not in (2, 3):
                raise SbplError(f"{name}: (if) takes two or three forms")
            if self._expr(args[0], env, name) is not False:
                self._stmt(args[1], name, env)
            elif len(args) == 3:
                self._stmt(args[2], name, env)
        elif head in ("when", "unless"):
            v = self._expr(args[0], env, name) is not False
            if v == (head == "when"):
                for a in args[1:]:
                    self._stmt(a, name, env)
        else:  # let / let*
            inner = dict(env)
            for b in args[0].items:
                inner[b.items[0]] = self._expr(b.items[1], inner if head == "let*" else env, name)
            for a in args[1:]:
                self._stmt(a, name, inner)

    def _define(self, args, env, name) -> None:
        target = args[0]
        if isinstance(target, Node):
            fname, formals, body = target.items[0], target.items[1:], args[1:]

            def proc(*actual):
                if len(actual) != len(formals):
                    raise SbplError(f"{name}: {fname} takes {len(formals)} arguments")
                inner = dict(env)
                inner.update(zip(formals, actual))
                result = None
                for b in body:
                    if isinstance(b, Node) and b.items and b.items[0] in (
                            "allow", "deny", "begin", "when", "unless"):
                        self._stmt(b, name, inner)
                    else:
                        result = self._expr(b, inner, name)
                return result
            env[fname] = proc
        else:
            env[target] = self._expr(args[1], env, name)

    def _import(self, which: str) -> None:
        self.imports.append(which)
        base = which.rsplit("/", 1)[-1]
        text = self.stub.get(which, self.stub.get(base))
        if text is not None:
            keep = self.version
            self._run(text, base)
            self.version = keep if keep is not None else self.version

    # ---- expressions ------------------------------------------------------

    def _expr(self, x, env, name):
        if isinstance(x, (Raw, bool, int)):
            return x
        if isinstance(x, Sym):
            if x in env:
                return env[x]
            raise SbplError(f"{name}: unbound variable: {x}")
        if isinstance(x, str):
            return x
        if isinstance(x, Filter):
            return x
        assert isinstance(x, Node)
        if not x.items:
            raise SbplError(f"{name}: empty form at line {x.line}")
        head, args = x.items[0], x.items[1:]
        if head == "quote":
            return args[0]
        if head == "param":
            key = self._expr(args[0], env, name)
            return self.params.get(key, False)
        if head == "string-append":
            parts = [self._expr(a, env, name) for a in args]
            if not all(isinstance(p, str) for p in parts):
                raise SbplError(f"{name}: string-append: not a string at line {x.line} "
                                f"(missing -D parameter?)")
            return "".join(parts)
        if head == "defined?":
            sym = self._expr(args[0], env, name)
            return sym in VOCABULARY or sym in ALIASES or sym in env or sym in _PATH_FILTERS
        if head == "not":
            return self._expr(args[0], env, name) is False
        if head in ("and", "or"):
            v: Any = head == "and"
            for a in args:
                v = self._expr(a, env, name)
                if (v is False) == (head == "and"):
                    return v
            return v
        if head in ("string=?", "equal?", "eq?"):
            a, b = (self._expr(y, env, name) for y in args)
            return a == b
        if head == "if":
            c = self._expr(args[0], env, name)
            return self._expr(args[1] if c is not False else args[2], env, name)
        if head in env and callable(env[head]):
            return env[head](*[self._expr(a, env, name) for a in args])
        return self._filter(x, env, name)

    # ---- rules ------------------------------------------------------------

    def _canon_op(self, op: str, name: str, line: int) -> str:
        op = ALIASES.get(op, op)
        if op not in VOCABULARY:
            if self.strict_ops:
                raise SbplError(f"{name}: unbound variable: {op} at line {line}")
        return op

    def _rule(self, action, form: Node, args, name, env) -> None:
        ops: List[str] = []
        filters: List[Filter] = []
        mods: List[str] = []
        for a in args:
            if isinstance(a, Sym) and not (a in env and isinstance(env[a], Filter)):
                if filters:
                    raise SbplError(f"{name}: operation after filter at line {form.line}")
                ops.append(self._canon_op(str(a), name, form.line))
            elif isinstance(a, Node) and a.items and a.items[0] == "with":
                mods.extend(str(m) if not isinstance(m, Node) else " ".join(map(str, m.items))
                            for m in a.items[1:])
            else:
                f = self._expr(a, env, name)
                if not isinstance(f, Filter):
                    raise SbplError(f"{name}: not a filter at line {form.line}: {a!r}")
                filters.append(f)
        if not ops:
            raise SbplError(f"{name}: rule without operation at line {form.line}")
        if self._context:
            ctx, own = tuple(self._context), tuple(filters)

            def both(q, ctx=ctx, own=own):
                a = _all(ctx, q)
                return a if not own or a is False else _all((Filter("ctx", (), lambda _: a),
                                                              Filter("own", (), lambda _: _any(own, q))), q)
            filters = [Filter("with-filter", (), both, "with-filter", compound=True, kids=ctx + own)]
        for op in ops:
            if op == "default" and filters:
                raise SbplError(f"{name}: filter on default at line {form.line}")
            self.rules.append(Rule(len(self.rules), action, op, tuple(filters), tuple(mods),
                                   form.line, form.text, name))

    def _strings(self, args, env, name, what, line) -> List[str]:
        out = []
        for a in args:
            v = self._expr(a, env, name)
            if v is False:
                raise SbplError(f"{name}: {what}: not a string at line {line} (missing -D parameter?)")
            if not isinstance(v, str) or isinstance(v, Sym):
                raise SbplError(f"{name}: {what}: not a string at line {line}")
            out.append(v)
        if not out:
            raise SbplError(f"{name}: {what}: no argument at line {line}")
        return out

    def _filter(self, node: Node, env, name) -> Filter:
        head, args = str(node.items[0]), node.items[1:]
        text = " ".join(node.text.split())
        line = node.line

        def mk(fn, vals=(), **kw) -> Filter:
            return Filter(head, tuple(vals), fn, text, **kw)

        if head in ("require-all", "require-any", "require-not"):
            kids = tuple(self._expr(a, env, name) for a in args)
            if not kids or not all(isinstance(k, Filter) for k in kids):
                raise SbplError(f"{name}: {head} wants filters at line {line}")
            if head == "require-not":
                return mk(lambda q: _not(_any(kids, q)), compound=True, kids=kids)
            comb = _all if head == "require-all" else _any
            return mk(lambda q: comb(kids, q), compound=True, kids=kids)

        if head in _PATH_FILTERS:
            vals = self._strings(args, env, name, head, line)
            if head in ("regex", "path-regex"):
                pats = [compile_regex(v, f" at line {line}") for v in vals]
                return mk(lambda q: False if q.path is None else any(p.search(q.path) for p in pats),
                          vals, path_like=True)
            for v in vals:
                if not v.startswith("/"):
                    raise SbplError(f"{name}: {head}: not an absolute path at line {line}: {v!r}")
            if head == "subpath":
                def sub(q: Query) -> Tri:
                    r: Tri = False
                    for v in vals:
                        if q.path is not None and subpath_match(v, q.path):
                            if v == "/" or not v.endswith("/"):
                                return True
                            r = None       # reported dead by some, alive by others
                    return r
                return mk(sub, vals, path_like=True)
            if head in ("prefix", "literal-prefix", "subpath-prefix"):
                return mk(lambda q: q.path is not None and any(q.path.startswith(v) for v in vals),
                          vals, path_like=True)
            if head == "path-ancestors":
                anc = {a for v in vals for a in ancestors(v)}
                return mk(lambda q: q.path in anc, vals, path_like=True)
            keep = set(vals)
            return mk(lambda q: q.path in keep, vals, path_like=True)

        if head == "vnode-type":
            want = {str(a) for a in args}
            return mk(lambda q: None if q.vnode_type is None else q.vnode_type in want, sorted(want))

        if head == "target":
            want = {str(a) for a in args}
            return mk(lambda q: None if q.target is None else q.target in want, sorted(want))

        base = head
        for suffix in ("-prefix", "-regex"):
            if head.endswith(suffix) and head[:-len(suffix)] in _NAME_FILTERS:
                base = head[:-len(suffix)]
        if base in _NAME_FILTERS:
            vals = self._strings(args, env, name, head, line)
            if head.endswith("-regex"):
                pats = [compile_regex(v, f" at line {line}") for v in vals]
                return mk(lambda q: None if q.name is None else any(p.search(q.name) for p in pats), vals)
            if head.endswith("-prefix"):
                return mk(lambda q: None if q.name is None else any(q.name.startswith(v) for v in vals), vals)
            keep = set(vals)
            return mk(lambda q: None if q.name is None else q.name in keep, vals)

        if head in ("remote", "local", "from", "to"):
            return self._net(head, args, env, name, node, mk)

        if head in _OPAQUE:
            return mk(lambda q: None, [str(a) for a in args])
        raise SbplError(f"{name}: unbound variable: {head} at line {line}")

    def _net(self, head, args, env, name, node, mk) -> Filter:
        proto = str(args[0]) if args else "ip"
        if proto == "unix-socket":
            kids = [self._expr(a, env, name) for a in args[1:]]
            if not kids:
                return mk(lambda q: q.path is not None, ("unix-socket",))
            return mk(lambda q: False if q.path is None else _all(kids, q), ("unix-socket",),
                      kids=tuple(kids))
        if proto not in ("ip", "ip4", "ip6", "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6"):
            raise SbplError(f"{name}: {head}: unknown protocol {proto} at line {node.line}")
        addrs = [self._expr(a, env, name) for a in args[1:]]
        for a in addrs:
            host = a.rsplit(":", 1)[0]
            if host not in ("*", "localhost"):
                raise SbplError(f"{name}: host must be * or localhost at line {node.line}: {a!r}")

        def fn(q: Query) -> Tri:
            if q.path is not None:
                return False
            if not addrs:
                return True
            if q.addr is None:
                return None
            qh, qp = q.addr.rsplit(":", 1)
            for a in addrs:
                h, p = a.rsplit(":", 1)
                if (h == "*" or h == qh) and (p == "*" or p == qp):
                    return True
            return False
        return mk(fn, [proto, *addrs])

    # ---- decisions --------------------------------------------------------

    def decide(self, op: str, path: Optional[str] = None, model: str = "graph", **kw) -> Decision:
        op = ALIASES.get(op, op)
        if op not in VOCABULARY:
            raise ValueError(f"unknown operation {op}")
        q = Query(op, path, **kw)
        if model == "graph":
            return self._graph(q)
        if model == "textual":
            return self._textual(q)
        raise ValueError(model)

    def _settle(self, hit: Optional[Rule], via: str, maybe: List[Rule], default: bool) -> Decision:
        allowed = hit.action == "allow" if hit else default
        certain = all((m.action == "allow") == allowed for m in maybe)
        return Decision(allowed, hit, certain, via)

    def _graph(self, q: Query) -> Decision:
        maybe: List[Rule] = []
        for op in op_chain(q.op):
            for r in reversed(self._filtered.get(op, ())):
                m = r.match(q)
                if m is True:
                    return self._settle(r, op, maybe, False)
                if m is None:
                    maybe.append(r)
            bare = self._bare.get(op)
            if bare is not None:
                return self._settle(bare, op, maybe, False)
        return self._settle(None, "implicit", maybe, False)

    def _textual(self, q: Query) -> Decision:
        if q.op not in self._flat:
            chain = set(op_chain(q.op)) - {"default"}
            self._flat[q.op] = [r for r in self.rules if r.op in chain]
        maybe: List[Rule] = []
        for r in reversed(self._flat[q.op]):
            m = r.match(q)
            if m is True:
                return self._settle(r, r.op, maybe, False)
            if m is None:
                maybe.append(r)
        bare = self._bare.get("default")
        return self._settle(bare, "default" if bare else "implicit", maybe, False)

    def allowed(self, op: str, path: Optional[str] = None, **kw) -> bool:
        """True only if both models allow it, and say so for certain.
        Raises AssertionError when the two models differ."""
        g, t = self.decide(op, path, "graph", **kw), self.decide(op, path, "textual", **kw)
        if g.allowed != t.allowed:
            raise AssertionError(
                f"{op} {path}: models differ: graph={g.allowed} by [{g.rule}], "
                f"textual={t.allowed} by [{t.rule}]")
        return g.allowed and g.certain and t.certain

    def possible(self, op: str, path: Optional[str] = None, **kw) -> bool:
        """True if either model allows it, or cannot rule it out."""
        return any(d.allowed or not d.certain
                   for d in (self.decide(op, path, m, **kw) for m in ("graph", "textual")))

    # ---- composite system calls (model; pessimistic: possible, not certain) --

    def can_rename(self, src: str, dst: str, dst_exists: bool = False, **kw) -> bool:
        ok = self.possible("file-write-unlink", src, **kw) and self.possible("file-write-create", dst, **kw)
        return ok and (not dst_exists or self.possible("file-write-unlink", dst, **kw))

    def can_link(self, src: str, dst: str) -> bool:
        """link(2): file-link on the source and on the new name, plus create.
        Public reports differ on which end file-link looks at; take the weaker."""
        link = self.possible("file-link", src) or self.possible("file-link", dst)
        return link and self.possible("file-write-create", dst)

    def can_connect_unix(self, path: str) -> bool:
        return self.allowed("network-outbound", path)

    def can_open(self, path: str, mode: str = "r", fs: Optional["FsView"] = None) -> Tuple[bool, str]:
        """open(2) by absolute path as seen through FsView: metadata on every
        symlink component met, then the data operation on the physical path."""
        fs = fs or FsView()
        real, hops = fs.resolve(path)
        for h in hops:
            if not self.allowed("file-read-metadata", h):
                return False, f"file-read-metadata {h}"
        ops = {"r": ["file-read-data"], "w": ["file-write-data"], "rw": ["file-read-data", "file-write-data"],
               "c": ["file-write-create"]}[mode]
        for op in ops:
            if not self.allowed(op, real):
                return False, f"{op} {real}"
        return True, ""


# --------------------------------------------------------------------------
# What path string does the kernel show the sandbox?
# --------------------------------------------------------------------------


class FsView:
    """Minimal path resolver for a stock macOS root."""

    SYMLINKS = {"/tmp": "/private/tmp", "/var": "/private/var", "/etc": "/private/etc"}
    DATA = "/System/Volumes/Data"
    FIRMLINKED = ("Users", "Applications", "Library", "private", "opt", "cores", "Volumes",
                  "usr/local", "home", "sw", "pkg")

    def __init__(self, symlinks: Optional[Dict[str, str]] = None):
        self.links = dict(self.SYMLINKS)
        self.links.update(symlinks or {})

    def resolve(self, path: str) -> Tuple[str, List[str]]:
        if not path.startswith("/"):
            raise ValueError("absolute path wanted")
        hops: List[str] = []
        todo = [c for c in path.split("/") if c not in ("", ".")]
        cur = ""
        budget = 40
        while todo:
            c = todo.pop(0)
            if c == "..":
                cur = cur[:cur.rfind("/")] if cur else ""
                continue
            nxt = cur + "/" + c
            if nxt in self.links:
                budget -= 1
                if budget < 0:
                    raise OSError("ELOOP")
                hops.append(nxt)
                tgt = self.links[nxt]
                rest = [x for x in tgt.split("/") if x not in ("", ".")]
                if tgt.startswith("/"):
                    cur = ""
                todo = rest + todo
                continue
            cur = nxt
        real = cur or "/"
        for top in self.FIRMLINKED:
            p = f"{self.DATA}/{top}"
            if subpath_match(p, real):
                real = real[len(self.DATA):]
        return real, hops


# --------------------------------------------------------------------------
# Lint
# --------------------------------------------------------------------------

_ESCAPE_SERVICES = ("com.apple.coreservices.launchservicesd", "com.apple.launchservicesd",
                    "com.apple.coreservices.appleevents", "com.apple.lsd.open")
_SECRET_SERVICES = ("com.apple.SecurityServer", "com.apple.securityd", "com.apple.securityd.xpc",
                    "com.apple.secd", "com.apple.pasteboard.1")


def _walk(fs: Iterable[Filter]) -> Iterable[Filter]:
    for f in fs:
        yield f
        yield from _walk(f.kids)


def lint(p: Profile) -> List[Finding]:
    out: List[Finding] = []

    def add(sev, code, rule, msg):
        out.append(Finding(sev, code, msg, rule.line if rule else 0))

    defaults = [r for r in p.rules if r.op == "default"]
    if not defaults:
        add("error", "no-default", None, "no (deny default)")
    elif defaults[-1].action == "allow":
        add("error", "allow-default", defaults[-1], "(allow default) leaves mounts, launchd, Mach and IOKit open")
    if len(defaults) > 1:
        add("warning", "two-defaults", defaults[-1], "more than one rule on default")

    seen_filtered: Dict[str, Rule] = {}
    for r in p.rules:
        if "no-sandbox" in r.modifiers:
            add("error", "no-sandbox", r, "program started outside the sandbox")
        if r.unfiltered and r.op != "default":
            prev = seen_filtered.get(r.op)
            if prev is not None and prev.action != r.action:
                add("warning", "late-unfiltered", r,
                    f"unfiltered {r.action} {r.op} after a filtered {prev.action}: order-dependent only in the textual model")
            if r.action == "allow" and r.op in ("mach-lookup", "mach*"):
                add("error", "mach-open", r, "every Mach service reachable: LaunchServices can start programs outside the sandbox")
            if r.action == "allow" and r.op in ("lsopen", "appleevent-send", "job-creation", "file-mount",
                                                "file-mknod", "mach-priv-host-port"):
                add("error", "escape-op", r, f"{r.op} lets work run outside this sandbox")
            if r.action == "allow" and r.op in ("file-link", "file-clone"):
                add("warning", "second-name", r, f"unfiltered {r.op}: a read-only file can gain a writable name")
            if r.action == "allow" and r.op in ("file*", "file-write*"):
                add("error", "write-open", r, f"unfiltered allow {r.op}")
        if not r.unfiltered:
            seen_filtered[r.op] = r
        if r.op == "mach-lookup" and r.action == "allow":
            for f in _walk(r.filters):
                for v in f.args:
                    if v in _ESCAPE_SERVICES:
                        add("error", "escape-service", r, f"Mach service {v} can start programs outside the sandbox")
                    elif v in _SECRET_SERVICES:
                        add("warning", "secret-service", r, f"Mach service {v} serves the keychain or the pasteboard")
        for f in _walk(r.filters):
            if f.kind == "require-not" and r.action == "deny":
                add("warning", "deny-require-not", r, "require-not inside a deny has been reported to abort sandbox-exec")
            if not f.path_like:
                continue
            for v in f.args:
                if f.kind in ("regex", "path-regex"):
                    if not v.startswith("^"):
                        add("warning", "regex-unanchored", r, f"regex matches anywhere in the path: {v!r}")
                    continue
                if v != "/" and v.endswith("/"):
                    add("error", "dead-path", r, f"trailing slash: {v!r}")
                if "//" in v or any(c in (".", "..") for c in v.split("/")):
                    add("error", "dead-path", r, f"not a physical path: {v!r}")
                for link in FsView.SYMLINKS:
                    if v.startswith(link + "/") or (v == link and f.kind not in ("literal", "path")):
                        add("warning", "symlink-path", r,
                            f"{v!r} is behind the symlink {link}; the kernel matches /private{v}")
                if subpath_match(FsView.DATA, v) and v != FsView.DATA and r.action == "allow":
                    add("warning", "data-volume", r, f"allow by Data-volume spelling: {v!r}")
                if f.kind == "subpath" and v in ("/System", "/System/Volumes") and r.action == "allow":
                    add("warning", "data-volume", r, "allow of /System can cover /System/Volumes/Data: deny that after it")
                if any(ord(c) < 32 or ord(c) == 127 for c in v):
                    add("error", "control-char", r, f"control character in path: {v!r}")
                if unicodedata.normalize("NFC", v) != unicodedata.normalize("NFD", v):
                    add("note", "unicode", r, f"path has composed and decomposed spellings: {v!r}")
    # sandbox-exec exits 65 with "pattern serialization length N exceeds maximum
    # (65535)"; what exactly it adds up is not public, so count path bytes per operation
    size: Dict[str, int] = {}
    for r in p.rules:
        size[r.op] = size.get(r.op, 0) + sum(len(v.encode()) + 8 for f in _walk(r.filters) if f.path_like
                                             for v in f.args)
    for op, n in sorted(size.items()):
        if n > 48 * 1024:
            add("error" if n > 65535 else "warning", "size", None,
                f"{n} bytes of path filters on {op}; sandbox-exec has a limit of 65535")
    # wildcard rule that a specific-operation rule shields
    for d in p.rules:
        if d.action != "deny" or not d.op.endswith("*") or not d.filters:
            continue
        for a in p.rules:
            if (a.action == "allow" and a.op != d.op and d.op in op_chain(a.op) and not a.op.endswith("*")
                    and _may_overlap(a, d) and not _covered(p, a.op, d)):
                add("warning", "shielded-deny", d,
                    f"deny {d.op} does not reach {a.op}, allowed by line {a.line}; deny {a.op} by name too")
                break
    return out


def _paths_of(r: Rule) -> Optional[List[Tuple[str, str]]]:
    if r.unfiltered:
        return None
    out = []
    for f in r.filters:
        if not f.path_like or f.kind in ("regex", "path-regex") or f.compound:
            return None
        out.extend((f.kind, v) for v in f.args)
    return out


def _may_overlap(a: Rule, d: Rule) -> bool:
    pa, pd = _paths_of(a), _paths_of(d)
    if pa is None or pd is None:
        return True
    for ka, va in pa:
        for kd, vd in pd:
            if kd == "subpath" and subpath_match(vd, va):
                return True
            if ka == "subpath" and subpath_match(va, vd):
                return True
            if va == vd:
                return True
    return False


def _covered(p: Profile, op: str, d: Rule) -> bool:
    """Is there a deny on OP itself with the same filters as D?"""
    key = {f.text for f in d.filters}
    return any(r.action == "deny" and r.op == op and key <= {f.text for f in r.filters} for r in p.rules)


# --------------------------------------------------------------------------
# Three-tier policy
# --------------------------------------------------------------------------


def norm(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"not absolute: {path!r}")
    parts = [c for c in path.split("/") if c]
    if any(c in (".", "..") for c in parts):
        raise ValueError(f"not normal: {path!r}")
    return "/" + "/".join(parts)


def tier(rules: Dict[str, str], path: str) -> str:
    """readWrite | readOnly | deny | none: the deepest rule covering PATH."""
    best, val = -1, "none"
    for p, acc in rules.items():
        if subpath_match(p, path) and len(p) > best:
            best, val = len(p), acc
    return val


def pinned(rules: Dict[str, str]) -> List[str]:
    """Strict ancestors that must not be renamed: those of a rule whose tier
    is stricter than the tree it sits in."""
    rank = {"readWrite": 0, "readOnly": 1, "deny": 2, "none": 2}
    out = set()
    for p, acc in rules.items():
        for a in ancestors(p):
            if rank[acc] > rank[tier(rules, a)] or rank[acc] < rank[tier(rules, a)]:
                out.add(a)
    return sorted(x for x in out if tier(rules, x) == "readWrite" and x != "/")


def sample_paths(rules: Dict[str, str]) -> List[str]:
    out = {"/", "/nonexistent", "/Users", "/private/var/db/x"}
    for p in rules:
        out.update((p, p + "/c", p + "/c/d/e", p + "x", p + ".bak", p + "-2/y"))
        out.update(ancestors(p))
        out.update(a.rstrip("/") + "/sibling" for a in ancestors(p))
        if p != "/" and p[:-1].rsplit("/", 1)[1] not in (".", ".."):
            out.add(p[:-1] or "/")
    return sorted(norm(x) for x in out)


def agree(p: Profile, rules: Dict[str, str], paths: Optional[Iterable[str]] = None,
          ignore_prefixes: Sequence[str] = (), unix: bool = True, setugid: bool = True,
          metadata: bool = True) -> List[str]:
    """Every way in which profile P departs from policy RULES on PATHS.
    Also reports any answer on which the two models of SBPL differ.
    UNIX: connecting to a socket needs readWrite.  SETUGID: setting those mode
    bits is never allowed.  METADATA: stat is allowed only on readable paths and
    on the way to them."""
    rules = {norm(k): v for k, v in rules.items()}
    pins = set(pinned(rules))
    onway = {a for k, v in rules.items() if v != "deny" for a in ancestors(k)}
    bad: List[str] = []

    def want(op, path, expect):
        try:
            got = p.allowed(op, path)
        except AssertionError as e:
            bad.append(str(e))
            return
        d = p.decide(op, path)
        if not d.certain:
            bad.append(f"{op} {path}: cannot tell (filter outside the model) by [{d.rule}]")
        elif got != expect:
            bad.append(f"{op} {path}: policy says {'allow' if expect else 'deny'}, "
                       f"profile says {'allow' if got else 'deny'} by [{d.rule}]")

    for path in (sample_paths(rules) if paths is None else paths):
        if any(subpath_match(x, path) for x in ignore_prefixes):
            continue
        t = tier(rules, path)
        for op in READ_OPS:
            want(op, path, t in ("readWrite", "readOnly"))
        for op in WRITE_OPS:
            if op == "file-write-unlink" and path in pins:
                want(op, path, False)
            elif op == "file-write-setugid":
                if setugid:
                    want(op, path, False)
            else:
                want(op, path, t == "readWrite")
        if unix:
            want("network-outbound", path, t == "readWrite")
        if metadata:
            want("file-read-metadata", path, t in ("readWrite", "readOnly") or path in onway)
    return bad


def rename_escapes(p: Profile, rules: Dict[str, str]) -> List[str]:
    """Renames that would carry a protected object to a looser path."""
    rules = {norm(k): v for k, v in rules.items()}
    out = []
    writable = sorted(k for k, v in rules.items() if v == "readWrite")
    for prot, acc in sorted(rules.items()):
        if acc == "readWrite":
            continue
        for a in [prot] + ancestors(prot):
            if a == "/":
                continue
            rest = prot[len(a):]
            for root in [a[:a.rfind("/")] or "/"] + writable:
                dst = root.rstrip("/") + "/.moved"
                if subpath_match(a, dst) or subpath_match(prot, dst):
                    continue
                if not p.can_rename(a, dst):
                    continue
                landed = dst + rest
                if acc == "deny" and p.possible("file-read-data", landed):
                    out.append(f"rename {a} -> {dst} makes {prot} readable as {landed}")
                    break
                if p.possible("file-write-data", landed):
                    out.append(f"rename {a} -> {dst} makes {prot} writable as {landed}")
                    break
    return out


def link_escapes(p: Profile, rules: Dict[str, str]) -> List[str]:
    out = []
    writable = [k for k, v in rules.items() if v == "readWrite"]
    for prot, acc in rules.items():
        if acc == "readWrite":
            continue
        for w in writable:
            dst = w.rstrip("/") + "/.second-name"
            if p.can_link(prot + "/f", dst):
                out.append(f"link {prot}/f -> {dst}")
    return out


def alias_holes(p: Profile, denied_missing: Iterable[str]) -> List[str]:
    """Case and Unicode spellings under which a denied path that does not exist
    yet could be created on a case- and normalisation-insensitive volume."""
    out = []
    for path in denied_missing:
        head, leaf = path[:path.rfind("/")], path[path.rfind("/") + 1:]
        variants = {leaf.upper(), leaf.lower(), leaf.swapcase(), leaf.capitalize(),
                    unicodedata.normalize("NFD", leaf), unicodedata.normalize("NFC", leaf)} - {leaf}
        for v in sorted(variants):
            alias = f"{head}/{v}"
            if p.possible("file-write-create", alias):
                out.append(f"{path}: can be created as {alias}")
    return out


# --------------------------------------------------------------------------
# Reference compiler (for the self-test; the project has its own in C)
# --------------------------------------------------------------------------


def quote(s: str) -> str:
    if any(ord(c) < 32 or ord(c) == 127 for c in s):
        raise ValueError("control character in path")
    return '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '"'


DENY_R = "file-read* file-read-data file-read-metadata file-read-xattr file-test-existence file-map-executable"
DENY_W = ("file-write* file-write-data file-write-create file-write-unlink file-write-mode "
          "file-write-owner file-write-flags file-write-times file-write-xattr")
ALLOW_R = DENY_R
ALLOW_W = DENY_W


def reference_compile(rules: Dict[str, str], base: str = "") -> str:
    """Shallow to deep; the same operation list in every allow and deny, so that
    only 'last match wins within one operation' is relied on."""
    rules = {norm(k): v for k, v in rules.items()}
    out = ["(version 1)", "(deny default)"]
    if base:
        out.append(f"(import {quote(base)})")
    out += ["(allow process-exec* process-fork)", "(allow signal (target same-sandbox))",
            "(allow sysctl-read)"]
    for path in sorted(rules, key=lambda x: (x.count("/") if x != "/" else 0, x)):
        acc, f = rules[path], f"(literal {quote(path)}) (subpath {quote(path)})"
        if acc == "deny":
            out.append(f"(deny {DENY_R} {DENY_W} file-link file-clone network-bind network-outbound {f})")
        else:
            out.append(f"(allow {ALLOW_R} {f})")
            if acc == "readWrite":
                out.append(f"(allow {ALLOW_W} network-bind network-outbound {f})")
            else:
                out.append(f"(deny {DENY_W} file-link file-clone network-bind network-outbound {f})")
    out.append("(deny file-write-setugid)")
    pins = pinned(rules)
    if pins:
        out.append("(deny file-write-unlink " + " ".join(f"(literal {quote(x)})" for x in pins) + ")")
    trav = sorted({a for k, v in rules.items() if v != "deny" for a in ancestors(k)})
    if trav:
        out.append("(allow file-read-metadata " + " ".join(f"(literal {quote(x)})" for x in trav) + ")")
    return "\n".join(out) + "\n"


# --------------------------------------------------------------------------
# Self-test
# --------------------------------------------------------------------------


def self_test() -> int:
    n = 0

    def ok(cond, what):
        nonlocal n
        n += 1
        if not cond:
            raise AssertionError(f"self-test {n}: {what}")

    def fails(text, needle, **kw):
        try:
            Profile(text, **kw)
        except SbplError as e:
            ok(needle in str(e), f"error text {e!s} lacks {needle!r}")
        else:
            ok(False, f"accepted: {text!r}")

    V = "(version 1)(deny default)"
    # --- hierarchy
    ok(op_chain("file-read-data") == ("file-read-data", "file-read*", "file*", "default"), "chain read")
    ok(op_chain("file-link") == ("file-link", "file*", "default"), "file-link hangs off file*")
    ok(op_chain("process-exec-interpreter") == ("process-exec-interpreter", "process-exec*", "process*", "default"), "chain exec")
    ok(op_chain("fs-quota-set-usage")[1:3] == ("fs-quota-set*", "fs-quota*"), "chain quota")
    ok(op_chain("signal") == ("signal", "default"), "chain signal")
    ok(len(VOCABULARY) == 196, "vocabulary size")
    # --- reader
    p = Profile('; c\n(version 1) ; d\n(deny default)\n(allow file-read* (literal "/a;b") (subpath "/q\\"q\\\\"))')
    ok(p.allowed("file-read-data", "/a;b"), "semicolon in string")
    ok(p.allowed("file-read-data", '/q"q\\/x'), "escapes in string")
    ok(p.rules[1].line == 4, "line numbers")
    fails("(version 1)(allow file-read*", "unclosed")
    fails("(version 1))", "unexpected ')'")
    fails('(version 1)(allow file-read* (literal "/a))', "unterminated")
    fails("(deny default)", "no (version 1)")
    fails(V + "(setenv A)", "unbound variable: setenv")
    fails(V + "(allow file-readx*)", "unbound variable: file-readx*")
    fails(V + '(allow file-read* (literal "rel"))', "not an absolute path")
    fails(V + '(allow file-read* (subpath (param "NOPE")))', "missing -D")
    fails(V + '(allow network-outbound (remote ip "1.2.3.4:80"))', "* or localhost")
    # --- last match wins, both directions
    p = Profile(V + '(allow file-read* (subpath "/a"))(deny file-read* (subpath "/a/b"))(allow file-read* (subpath "/a/b/c"))')
    ok(p.allowed("file-read-data", "/a/x"), "allow tree")
    ok(not p.allowed("file-read-data", "/a/b"), "deny hole")
    ok(p.allowed("file-read-data", "/a/b/c/d"), "white in black in white")
    ok(not p.allowed("file-read-data", "/ab"), "subpath stops at a component")
    ok(p.decide("file-read-data", "/a/b/z").rule.index == 2, "deciding rule")
    # --- specific operation shields wildcard (greywall, fence, nono)
    p = Profile(V + '(allow file-read-data (subpath "/"))(deny file-read* (literal "/s"))')
    ok(p.decide("file-read-data", "/s", "graph").allowed, "wildcard deny does not reach specific allow")
    ok(not p.decide("file-read-data", "/s", "textual").allowed, "textual model says otherwise")
    try:
        p.allowed("file-read-data", "/s")
        ok(False, "difference not reported")
    except AssertionError as e:
        ok("models differ" in str(e), "difference reported")
    ok(any(f.code == "shielded-deny" for f in lint(p)), "lint sees the shielded deny")
    p = Profile(V + '(deny file-read-data (subpath "/k"))(allow file-read* (subpath "/k"))')
    ok(not p.decide("file-read-data", "/k/x", "graph").allowed, "wildcard allow does not lift specific deny")
    # --- unfiltered rule is only a default (mxc)
    for text in ('(deny network-outbound (subpath "/d"))(allow network-outbound)',
                 '(allow network-outbound)(deny network-outbound (subpath "/d"))'):
        p = Profile(V + text)
        ok(not p.decide("network-outbound", "/d/s", "graph").allowed, "filtered deny survives unfiltered allow")
        ok(p.decide("network-outbound", None, addr="*:443").allowed, "unfiltered allow elsewhere")
    # --- pins: specific deny beats wildcard allow in either order and model
    p = Profile(V + '(allow file-write* (subpath "/p"))(deny file-write-unlink (literal "/p/a"))')
    ok(not p.can_rename("/p/a", "/p/b"), "pinned ancestor")
    ok(p.can_rename("/p/c", "/p/b"), "other entries still move")
    ok(p.allowed("file-write-create", "/p/a"), "pin leaves create alone")
    # --- filters
    p = Profile(V + '(allow file-read* (regex #"^/dev/ttys[0-9]+$") (prefix "/pre/fix") (path-ancestors "/x/y/z"))')
    ok(p.allowed("file-read-data", "/dev/ttys003"), "regex")
    ok(not p.allowed("file-read-data", "/dev/ttys003x") and not p.allowed("file-read-data", "/dev/ttys003\n"), "regex anchors")
    ok(p.allowed("file-read-data", "/pre/fixed/q"), "prefix is textual")
    ok(p.allowed("file-read-data", "/x/y") and not p.allowed("file-read-data", "/x/y/z"), "path-ancestors is strict")
    fails(V + '(deny file-read* (regex #"^/a/(?:b)?"))', "(?")
    fails(V + '(deny file-read* (regex #"^/\u00e9"))', "printable ASCII")
    p = Profile(V + r'(deny file-read* (regex #"^/a/\.env$"))(allow file-read* (subpath "/b"))')
    ok(p.decide("file-read-data", "/a/.env").rule is not None and p.decide("file-read-data", "/a/xenv").rule.op == "default", "raw backslash")
    p = Profile(V + '(allow file-read* (require-all (subpath "/r") (require-not (subpath "/r/n"))))')
    ok(p.allowed("file-read-data", "/r/x") and not p.allowed("file-read-data", "/r/n/x"), "require-*")
    p = Profile(V + '(allow file-write-data (require-all (path "/dev/null") (vnode-type CHARACTER-DEVICE)))')
    ok(not p.allowed("file-write-data", "/dev/null"), "unknown vnode type is not a yes")
    ok(p.allowed("file-write-data", "/dev/null", vnode_type="CHARACTER-DEVICE"), "known vnode type")
    ok(not p.decide("file-write-data", "/dev/null").certain, "uncertainty is reported")
    p = Profile(V + '(allow network-outbound (remote ip "localhost:*") (remote unix-socket (path-literal "/s.sock")))')
    ok(p.decide("network-outbound", None, addr="localhost:80").allowed, "loopback")
    ok(not p.decide("network-outbound", None, addr="*:80").allowed, "not the world")
    ok(p.can_connect_unix("/s.sock") and not p.can_connect_unix("/t.sock"), "unix socket by path")
    # --- scheme subset
    p = Profile('(version 1)(define H (param "H"))(define (home r) (subpath (string-append H r)))'
                '(deny default)(allow file-read* (home "/.cfg"))(if (param "W") (begin (allow file-write* (home "/w"))))'
                "(when (defined? 'file-link) (deny file-link))(when (defined? 'file-nope) (deny file-nope))",
                params={"H": "/Users/u"})
    ok(p.allowed("file-read-data", "/Users/u/.cfg/x") and not p.allowed("file-write-data", "/Users/u/w"), "define, param, if")
    ok(p.rules[-1].op == "file-link", "defined?")
    p = Profile(V + '(with-filter (path-ancestors "/q/r/s") (allow file-read* (subpath "/q")) (deny file-write*))')
    ok(p.allowed("file-read-data", "/q/r") and not p.allowed("file-read-data", "/q/r/s"), "with-filter")
    p = Profile(V + '(allow file-read* (subpath "/s/"))')
    ok(not p.allowed("file-read-data", "/s/x") and p.possible("file-read-data", "/s/x"), "trailing slash is unsettled")
    ok(not p.possible("file-read-data", "/sx"), "and only inside the tree")
    # --- import
    stub = {"bsd.sb": '(version 1)(allow file-read-metadata (literal "/etc"))'}
    t = '(version 1)(deny default)(import "/System/Library/Sandbox/Profiles/bsd.sb")'
    ok(Profile(t).imports and not Profile(t).allowed("file-read-metadata", "/etc"), "import ignored by default")
    ok(Profile(t, import_stub=stub).allowed("file-read-metadata", "/etc"), "import stub")
    # --- kernel view of paths
    fs = FsView({"/Users/u/link": "/opt/real"})
    ok(fs.resolve("/tmp/x") == ("/private/tmp/x", ["/tmp"]), "/tmp")
    ok(fs.resolve("/System/Volumes/Data/Users/u/f")[0] == "/Users/u/f", "firmlink")
    ok(fs.resolve("/Users/u/link/../a") == ("/opt/a", ["/Users/u/link"]), "physical ..")
    p = Profile(V + '(allow file-read* (literal "/etc/hosts") (literal "/private/etc/hosts"))')
    ok(p.can_open("/etc/hosts") == (False, "file-read-metadata /etc"), "symlink hop needs metadata")
    ok(p.can_open("/private/etc/hosts")[0], "physical spelling")
    # --- lint
    codes = {f.code for f in lint(Profile('(version 1)(allow default)(allow mach-lookup)(deny file-read* (subpath "/tmp/s"))'
                                          '(allow process-exec (literal "/bin/ps") (with no-sandbox))(deny file-write* (subpath "/x/"))'))}
    ok({"allow-default", "mach-open", "symlink-path", "no-sandbox", "dead-path"} <= codes, f"lint codes {codes}")
    many = V + "(allow file-read* " + " ".join(f'(subpath "/n/{i:0100d}")' for i in range(700)) + ")"
    ok([f.code for f in lint(Profile(many))] == ["size"], "size limit")
    # --- three tiers against the reference compiler
    pol = {"/Users/u/p": "readWrite", "/Users/u/p/.git/hooks": "readOnly", "/Users/u/p/a/secret": "deny",
           "/Users/u/p/a/secret/pub": "readOnly", "/Users/u/p/a/secret/pub/w": "readWrite",
           "/usr/lib": "readOnly", "/Users/u/.ssh": "deny", "/opt/q\"uo\\te": "readWrite"}
    prof = Profile(reference_compile(pol))
    ok(agree(prof, pol) == [], f"agree: {agree(prof, pol)[:3]}")
    ok(rename_escapes(prof, pol) == [], f"renames: {rename_escapes(prof, pol)}")
    ok(link_escapes(prof, pol) == [], "links")
    naive = Profile(V + '(allow file-read* file-write* (subpath "/w"))(deny file-read* file-write* (subpath "/w/a/s"))')
    ok(any("/w/a ->" in x for x in rename_escapes(naive, {"/w": "readWrite", "/w/a/s": "deny"})), "naive profile leaks by rename")
    ok(alias_holes(naive, ["/w/a/s"]) != [], "naive profile has a case alias")
    lines = reference_compile(pol).splitlines()
    hole = [ln for ln in lines if not (ln.startswith("(deny") and '"/Users/u/p/a/secret")' in ln)]
    ok(len(hole) == len(lines) - 1 and agree(Profile("\n".join(hole)), pol) != [], "a dropped deny is noticed")
    ok(rename_escapes(Profile("\n".join(ln for ln in lines if "(deny file-write-unlink " not in ln)), pol) != [],
       "dropped pins are noticed")
    # --- random policies: compiler, deepest-rule policy and both models agree
    rnd = random.Random(20261130)
    names = ["a", "b", "ab", "a.b", "c"]
    for _ in range(300):
        rules = {}
        for _ in range(rnd.randint(1, 7)):
            path = "/" + "/".join(rnd.choice(names) for _ in range(rnd.randint(1, 5)))
            rules[path] = rnd.choice(["readWrite", "readOnly", "deny"])
        pr = Profile(reference_compile(rules))
        bad = agree(pr, rules)
        ok(not bad, f"random policy {rules}: {bad[:2]}")
        ok(not rename_escapes(pr, rules), f"random policy {rules}: {rename_escapes(pr, rules)[:2]}")
    print(f"{n} passed, 0 failed")
    return 0


# --------------------------------------------------------------------------
# Command line
# --------------------------------------------------------------------------


def main(argv: Optional[Sequence[str]] = None) -> int:
    ap = argparse.ArgumentParser(description="Model checker for Seatbelt (SBPL) profiles.")
    ap.add_argument("--self-test", action="store_true")
    sub = ap.add_subparsers(dest="cmd")

    def common(s):
        s.add_argument("profile")
        s.add_argument("-D", action="append", default=[], metavar="K=V")
        s.add_argument("--stub", action="append", default=[], metavar="NAME=FILE",
                       help="text to use for (import NAME)")
        s.add_argument("--lax-ops", action="store_true", help="accept operation names not in the vocabulary")
        return s
    s = common(sub.add_parser("eval", help="decide one operation on one path"))
    s.add_argument("op")
    s.add_argument("path")
    s.add_argument("--resolve", action="store_true", help="apply stock macOS symlinks and firmlinks first")
    s = common(sub.add_parser("table", help="read/write/exec/connect table for paths"))
    s.add_argument("paths", nargs="+")
    common(sub.add_parser("lint", help="contested or dangerous constructs"))
    s = common(sub.add_parser("agree", help="compare with a policy: {\"/path\": \"readWrite|readOnly|deny\"}"))
    s.add_argument("policy")
    s.add_argument("--ignore", action="append", default=[], metavar="PREFIX")
    s.add_argument("--path", action="append", help="check these paths instead of the sampled ones")
    s.add_argument("--skip", action="append", default=[], choices=["unix", "setugid", "metadata", "escapes"])
    a = ap.parse_args(argv)
    if a.self_test:
        return self_test()
    if not a.cmd:
        ap.error("a command is needed")
    try:
        with open(a.profile, encoding="utf-8") as f:
            text = f.read()
        stub = {}
        for kv in a.stub:
            k, v = kv.split("=", 1)
            with open(v, encoding="utf-8") as f:
                stub[k] = f.read()
        p = Profile(text, dict(kv.split("=", 1) for kv in a.D), a.profile, stub, not a.lax_ops)
    except SbplError as e:
        print(f"sbpl_eval: {e}", file=sys.stderr)
        return 65
    if a.cmd == "eval":
        path = FsView().resolve(a.path)[0] if a.resolve else a.path
        g, t = p.decide(a.op, path), p.decide(a.op, path, "textual")
        for label, d in (("graph", g), ("textual", t)):
            print(f"{label:8} {'allow' if d.allowed else 'deny'}{'' if d.certain else ' (uncertain)'}  {d.rule or 'no rule'}")
        return 0 if g.allowed and t.allowed else 1
    if a.cmd == "table":
        ops = ["file-read-metadata", "file-read-data", "file-write-create", "file-write-data",
               "file-write-unlink", "file-link", "process-exec*", "network-outbound"]
        print("  ".join(["stat read crea writ unln link exec conn", "path"]))
        for path in a.paths:
            cells = []
            for op in ops:
                g, t = p.decide(op, path), p.decide(op, path, "textual")
                c = "+" if g.allowed else "-"
                c += "" if g.allowed == t.allowed else "!"
                c += "" if g.certain else "?"
                cells.append(f"{c:4}")
            print(" ".join(cells) + "  " + path)
        return 0
    if a.cmd == "lint":
        found = lint(p)
        for f in found:
            print(f)
        return 1 if any(f.severity == "error" for f in found) else 0
    with open(a.policy, encoding="utf-8") as f:
        rules = json.load(f)
    bad = agree(p, rules, a.path, a.ignore,
                **{k: k not in a.skip for k in ("unix", "setugid", "metadata")})
    if "escapes" not in a.skip:
        bad += rename_escapes(p, rules) + link_escapes(p, rules)
    for b in bad:
        print(b)
    print(f"{len(bad)} departures")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
