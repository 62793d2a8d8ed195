# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema, the manual of the protocol and the example messages agree with the code's tables.

usage: schema.py PROTOCOL_TABLES            check
       schema.py PROTOCOL_TABLES --update   rewrite the schema from the tables, keeping descriptions

PROTOCOL_TABLES is the program of that name: it prints the tables and reencodes messages by them.
"""

import json
import os
import re
import subprocess
import sys

import tree

try:
    import jsonschema
except ImportError:
    print("schema: python3-jsonschema is not here")
    sys.exit(77)

SCHEMA = "proto/json/fsbox-1.schema.json"
MANUAL = "docs/fsbox-protocol.7.scd"
MESSAGES = "tests/data/messages"

# What several tables use, and no table is.
BASE = {
    "bytes": {
        "description": "Text; where it is not UTF-8, the base64 of its bytes. No U+0000 and no NUL byte.",
        "anyOf": [{"type": "string"}, {"$ref": "#/$defs/b64"}],
    },
    "nonEmptyBytes": {
        "anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/$defs/b64"}],
    },
    "absolutePath": {
        "description": "An absolute path of at most 4095 bytes.",
        "anyOf": [{"type": "string", "pattern": "^/"}, {"$ref": "#/$defs/b64"}],
    },
    "b64": {
        "type": "object",
        "properties": {"b64": {
            "type": "string",
            "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        }},
        "required": ["b64"],
        "additionalProperties": False,
    },
    "descriptor": {
        "description": "Index of a descriptor that rides with the frame; each is named exactly once.",
        "type": "integer", "minimum": 0, "maximum": 15,
    },
    "environment": {
        "description": "Variables; as \"NAME=VALUE\" where a name is not UTF-8.",
        "anyOf": [
            {"type": "object", "propertyNames": {"pattern": "^[^=]+$"},
             "additionalProperties": {"$ref": "#/$defs/bytes"}, "maxProperties": 65536},
            {"type": "array", "items": {"$ref": "#/$defs/nonEmptyBytes"}, "maxItems": 65536},
        ],
    },
    "id": {
        "anyOf": [
            {"type": "integer", "minimum": -2**63, "maximum": 2**63 - 1},
            {"type": "string", "maxLength": 64},
        ],
    },
}


def ref(name):
    return {"$ref": f"#/$defs/{name}"}


def value_of(field):
    """The schema of one value of a field's kind."""
    kind, low, high = field["kind"], field["min"], field["max"]
    if kind == "bool":
        return {"type": "boolean"}
    if kind == "integer":
        return {"type": "integer", "minimum": low, "maximum": high}
    if kind == "milli":
        return {"anyOf": [{"type": "integer", "minimum": 0, "maximum": high // 1000},
                          {"type": "string", "pattern": "^[0-9]{1,9}(\\.[0-9]{1,3})?$"}]}
    if kind == "enum":
        return {"enum": field["names"]}
    if kind == "text":
        return {"type": "string", **({"minLength": low} if low else {}), "maxLength": high}
    if kind == "bytes":
        return ref("nonEmptyBytes" if low else "bytes")
    if kind == "path":
        return ref("absolutePath")
    if kind == "fd":
        return ref("descriptor")
    if kind == "fdOrNull":
        return {"anyOf": [ref("descriptor"), {"const": "null"}]}
    if kind == "env":
        return ref("environment")
    assert kind == "struct", kind
    return ref(field["table"])


def member_of(field):
    if field["list"]:
        return {"type": "array", "items": value_of(field), "maxItems": field["maxCount"]}
    return value_of(field)


def table_of(table):
    fields = table["fields"]
    if table["form"] == "tuple":
        count = table["tupleCount"]
        return {"type": "array", "prefixItems": [member_of(f) for f in fields[:count]],
                "items": False, "minItems": count}
    whole = {"type": "object", "properties": {f["name"]: member_of(f) for f in fields},
             "required": [f["name"] for f in fields if f["required"]],
             "additionalProperties": False}
    if table["form"] == "objectOrFirst":
        return {"anyOf": [member_of(fields[0]), whole]}
    return whole


def envelope(members, required):
    return {"type": "object", "properties": {"jsonrpc": {"const": "2.0"}, **members},
            "required": ["jsonrpc", *required], "additionalProperties": False}


def body(name, table, must):
    """A member that may also ride in a memfd."""
    members = {name: ref(table), f"{name}Fd": ref("descriptor")}
    rule = {"oneOf": [{"required": [name]}, {"required": [f"{name}Fd"]}]} if must else \
        {"not": {"required": [name, f"{name}Fd"]}}
    return members, rule


def derive(dump):
    """The whole schema that the tables ask for."""
    defs = dict(BASE)
    for name, table in dump["tables"].items():
        defs[name] = table_of(table)
    tops = []
    for method in dump["methods"]:
        needed = any(f["required"] for f in dump["tables"][method["params"]]["fields"])
        members, rule = body("params", method["params"], needed)
        defs[method["name"] + "Request"] = {
            "description": method["meaning"],
            **envelope({"id": ref("id"), "method": {"const": method["name"]}, **members},
                       ["id", "method"]), **rule}
        members, rule = body("result", method["result"], True)
        defs[method["name"] + "Response"] = {**envelope({"id": ref("id"), **members}, ["id"]), **rule}
        tops += [method["name"] + "Request", method["name"] + "Response"]
    defs["errorResponse"] = envelope(
        {"id": {"anyOf": [ref("id"), {"type": "null"}]}, "error": ref("error")}, ["id", "error"])
    members, rule = body("params", "exited", True)
    defs["exitedNotification"] = {
        **envelope({"method": {"const": "exited"}, **members}, ["method"]), **rule}
    tops += ["errorResponse", "exitedNotification"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "fsbox protocol, version 1",
        "description": "One frame's payload. fsbox-protocol(7) says what the members mean.",
        "anyOf": [ref(top) for top in tops],
        "$defs": defs,
    }


def plain(value):
    """Without descriptions, which are for people and not in the tables."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()
                if not (k == "description" and isinstance(v, str))}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def describe(new, old):
    """Put the descriptions of OLD into NEW where NEW has none."""
    if isinstance(new, dict) and isinstance(old, dict):
        out = {}
        if isinstance(old.get("description"), str) and "description" not in new:
            out["description"] = old["description"]
        out.update({k: describe(v, old.get(k)) for k, v in new.items()})
        return out
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [describe(n, o) for n, o in zip(new, old)]
    return new


def differences(wanted, found, where):
    if type(wanted) is not type(found):
        return [f"{where}: {json.dumps(found)}, the tables say {json.dumps(wanted)}"]
    if isinstance(wanted, dict):
        out = [f"{where}.{k}: not in the schema" for k in wanted if k not in found]
        out += [f"{where}.{k}: not in the tables" for k in found if k not in wanted]
        for k in wanted:
            if k in found:
                out += differences(wanted[k], found[k], f"{where}.{k}")
        return out
    if wanted != found:
        return [f"{where}: {json.dumps(found)}, the tables say {json.dumps(wanted)}"]
    return []


def check_schema(dump, schema):
    return [f"{SCHEMA}: {d}" for d in differences(plain(derive(dump)), plain(schema), "$")]


# ---- messages --------------------------------------------------------------------------------------

def envelope_name(example):
    message = example["message"]
    if "error" in message:
        return "errorResponse"
    if "id" not in message and message.get("method") == "exited":
        return "exitedNotification"
    return example["method"] + ("Request" if "method" in message else "Response")


def validator_of(schema, name):
    return jsonschema.Draft202012Validator({**schema, "anyOf": [ref(name)]})


def reencode(program, text):
    return subprocess.run([program, "reencode"], input=text, capture_output=True, check=False)


def check_good(program, schema, name):
    text = tree.read(name)
    example = json.loads(text)
    problems = []
    validator = validator_of(schema, envelope_name(example))
    for error in validator.iter_errors(example["message"]):
        problems.append(f"{name}: not valid: {error.message[:200]}")
    again = reencode(program, text.encode())
    if again.returncode != 0:
        return problems + [f"{name}: refused: {again.stderr.decode().strip()}"]
    written = json.loads(again.stdout)
    if written != example["message"]:
        problems.append(f"{name}: comes back as {json.dumps(written)[:300]}")
    for error in validator.iter_errors(written):
        problems.append(f"{name}: what comes back is not valid: {error.message[:200]}")
    return problems


def check_bad(program, schema, name):
    """A refused message: by the decoder always, by the schema as its "schema" says."""
    text = tree.read(name)
    example = json.loads(text)
    problems = []
    valid = validator_of(schema, envelope_name(example)).is_valid(example["message"])
    if valid == example["schema"]:
        problems.append(f"{name}: the schema {'takes' if valid else 'refuses'} it")
    again = reencode(program, text.encode())
    said = again.stderr.decode().strip()
    if again.returncode == 0:
        problems.append(f"{name}: taken")
    elif said != example["error"]:
        problems.append(f"{name}: refused with '{said}', not '{example['error']}'")
    return problems


def check_messages(program, schema, dump):
    problems = []
    shown = set()
    folder = os.path.join(tree.ROOT, MESSAGES)
    good = sorted(n for n in os.listdir(folder) if n.endswith(".json"))
    bad = sorted(os.listdir(os.path.join(folder, "bad")))
    for leaf in good:
        name = f"{MESSAGES}/{leaf}"
        problems += check_good(program, schema, name)
        shown.add(envelope_name(json.loads(tree.read(name))))
    for leaf in bad:
        problems += check_bad(program, schema, f"{MESSAGES}/bad/{leaf}")
    wanted = {m["name"] + kind for m in dump["methods"] for kind in ("Request", "Response")}
    for name in sorted((wanted | {"errorResponse", "exitedNotification"}) - shown):
        problems.append(f"{MESSAGES}: no example of a {name}")
    return problems, len(good) + len(bad)


# ---- manual ----------------------------------------------------------------------------------------

def sections(text):
    """By heading of the second level, the text below it."""
    out = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        title, _, rest = part.partition("\n")
        out[title.strip()] = re.split(r"^# ", rest, flags=re.M)[0]
    return out


def words(text):
    """What is set in bold: names of members, kinds and values."""
    return set(re.findall(r"\*([A-Za-z0-9_.-]+)\*", text))


def check_manual(dump):
    if not os.path.exists(os.path.join(tree.ROOT, MANUAL)):
        return [f"{MANUAL}: is missing"]
    text = tree.read(MANUAL)
    bold = words(text)
    parts = sections(text)
    problems = []
    for method in dump["methods"]:
        section = parts.get(method["name"])
        if section is None:
            problems.append(f"{MANUAL}: no section '{method['name']}'")
            continue
        for half in ("params", "result"):
            for field in dump["tables"][method[half]]["fields"]:
                # What spawn's section says about its params is not said again.
                inherited = half == "params" and method["name"] in ("policy", "why")
                if field["name"] not in words(section) and not inherited:
                    problems.append(
                        f"{MANUAL}: section '{method['name']}' does not name *{field['name']}*")
    for name, table in dump["tables"].items():
        if name.startswith(("profile", "context")):
            continue
        for field in table["fields"]:
            names = [field["name"], *field.get("names", [])]
            problems += [f"{MANUAL}: *{n}* ({name}) is not named" for n in names if n not in bold]
    for error in dump["errors"]:
        row = f"|  *{error['name']}*\n:  {error['code']}\n:  {error['meaning']}\n"
        if row not in text:
            problems.append(f"{MANUAL}: row of {error['name']} must be:\n{row}")
    return problems


def run():
    program = sys.argv[1]
    dump = json.loads(subprocess.run([program], capture_output=True, check=True).stdout)
    path = os.path.join(tree.ROOT, SCHEMA)
    if "--update" in sys.argv:
        old = json.loads(tree.read(SCHEMA)) if os.path.exists(path) else {}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(describe(derive(dump), old), file, indent=2, ensure_ascii=False)
            file.write("\n")
    schema = json.loads(tree.read(SCHEMA))
    jsonschema.Draft202012Validator.check_schema(schema)
    problems = check_schema(dump, schema)
    found, count = check_messages(program, schema, dump)
    problems += found + check_manual(dump)
    return tree.finish(problems, len(dump["tables"]) + count, "schema")


tree.main(run)
