# SPDX-License-Identifier: Apache-2.0
"""fsboxctl on policies from files: no daemon, no machine of our own."""

import json
import os
import subprocess
import sys
import tempfile

import lib
from lib import case, equal


def vectors(name):
    path = os.path.join(os.environ.get("FSBOX_VECTORS", ""), f"{name}.json")
    with open(path, encoding="utf-8") as file:
        return json.load(file)["cases"]


def offline(*arguments, text=""):
    """fsboxctl with TEXT on standard input and nowhere to find a daemon; status and JSON."""
    result = subprocess.run([lib.FSBOXCTL, "--no-autostart", "--json", *arguments],
                            input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=dict(os.environ, FSBOX_SOCKET="/nonexistent/socket"), check=False,
                            timeout=20)
    equal(result.stderr, b"", arguments)
    return result.returncode, json.loads(result.stdout)


@case()
def policy_compile_gives_the_shared_vectors():
    lists = ("suppressedAuthorityPaths", "writeRegexes", "denyRegexes", "finalReadOnlyPaths")
    seen = 0
    for row in vectors("buildFsPolicy"):
        if "embedded-nul" in row.get("tags", ()):
            continue
        status, found = offline("policy", "compile", "--plain", "--context", "-",
                                text=json.dumps(row["input"]))
        seen += 1
        if "error" in row:
            equal((status, found["error"]["kind"]), (1, row["error"]["kind"]), row["name"])
            continue
        wanted = row.get("expectByteOrder", row["expect"])
        equal(status, 0, row["name"])
        equal(found["rules"], [list(rule) for rule in wanted["rules"]], row["name"])
        equal(found["net"], wanted["net"], row["name"])
        for key in lists:
            equal(found[key], wanted.get(key, []), f"{row['name']}: {key}")
    equal(seen > 100, True, f"{seen} vectors")


@case()
def policy_migrate_gives_the_shared_vectors():
    for row in vectors("migrateLegacySandboxFields"):
        status, found = offline("policy", "migrate", "-", text=json.dumps(row["input"]["entry"]))
        equal((status, found), (0, row["expect"]["result"]), row["name"])


@case()
def every_form_of_a_policy_is_json_on_request():
    context = json.dumps(vectors("buildFsPolicy")[0]["input"])
    for plain in ([], ["--plain"]):
        for to, keys in (("rules", {"rules", "net"}), ("plan", {"plan", "net", "chdir"}),
                         ("seatbelt", {"seatbelt"}),
                         ("bwrap", {"args", "emptyFiles", "maskMounts"} if plain else {"args"})):
            status, found = offline("policy", "compile", "--context", "-", "--to", to, *plain,
                                    text=context)
            equal(status, 0, to)
            equal(keys - set(found), set(), f"{to} lacks")
    status, found = offline("why", "--context", "-", "/home/u/.ssh/id", text=context)
    equal((status, found["access"], found["rule"]["path"]), (1, "deny", "/home/u/.ssh"))
    status, found = offline("why", "--context", "-", "/home/u/proj/x", text=context)
    equal((status, found["access"], found["rule"]["source"]), (0, "readWrite", "internal"))
    status, found = offline("why", "--context", "-", "/nowhere", text=context)
    equal((status, found["access"], found["rule"]), (1, "none", None))
    equal(offline("policy", "check", "--context", "-", text=context)[0], 0)
    status, found = offline("policy", "check", "--context", "-", text='{"platform":"linux"}')
    equal((status, found["error"]["kind"]), (1, "bad-request"))
    status, found = offline("policy", "compile", "--context", "-", text="{")
    equal((status, found["error"]["kind"]), (1, "bad-json"))
    status, found = offline("policy", "compile", "--context", "/nonexistent/file")
    equal((status, found["error"]["kind"]), (1, "path-not-found"))


@case()
def policy_diff_names_what_differs():
    first = vectors("buildFsPolicy")[0]["input"]
    second = {**first, "workingDir": "/home/u/other", "net": False}
    with tempfile.TemporaryDirectory() as place:
        for name, value in (("a", first), ("b", second)):
            with open(f"{place}/{name}", "w", encoding="utf-8") as file:
                json.dump(value, file)
        equal(offline("policy", "diff", f"{place}/a", f"{place}/a"), (0, {"rules": []}))
        status, found = offline("policy", "diff", f"{place}/a", f"{place}/b")
        equal((status, found["net"]), (1, False))
        equal([(row["path"], bool(row["old"]), bool(row["new"])) for row in found["rules"]],
              [("/home/u/other", False, True), ("/home/u/proj", True, False)])


def main():
    runner = lib.Runner()
    for function, _, _ in lib.CASES:
        runner.run(function.__name__, function)
    print(f"1..{runner.number}")
    sys.exit(1 if runner.failed else 0)


if __name__ == "__main__":
    main()
