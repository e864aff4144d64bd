#!/usr/bin/env python3
"""Writes src/pawl/api.py from the OpenAPI document of a server: generate_types.py [DOCUMENT.json]

Without a document a server of the repository's bin/pawl is asked for it. Types of answers only: requests are given by keyword. A field that an
answer may leave out is None when it did.
"""

import json
import keyword
import pathlib
import sys
import tempfile
import textwrap

HERE = pathlib.Path(__file__).resolve().parent.parent
TARGET = HERE / "src" / "pawl" / "api.py"

# What the client hands out; the types in their fields follow.
ROOTS = (
    "BatchResult CodeResult Counts Defined Emitted EventPage Execution ExecutionPage Inquiry InquiryPage LogPage Outcome OutcomesEnd "
    "RerunPlan Scores Tasks Why"
).split()

HEAD = '''"""The answers of the API. Written by scripts/generate_types.py from the server's OpenAPI document: do not edit.

Times are texts (RFC 3339); what ends in ``_ms`` is in milliseconds, what ends in ``_bytes`` in bytes. A field is None where the answer left it out.
"""

from __future__ import annotations

import dataclasses
from typing import Any
'''

SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def referred(schema):
    """The names of the schemas that a schema refers to."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        for inner in schema.values():
            yield from referred(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from referred(inner)


def type_of(schema):
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if schema.get("type") in SCALARS:
        return SCALARS[schema["type"]]
    if schema.get("type") == "array":
        return f"list[{type_of(schema['items'])}]"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"dict[str, {type_of(schema['additionalProperties'])}]"
    return "Any"


def dataclass(name, schema):
    required = set(schema.get("required", ()))
    fields = schema.get("properties", {})
    lines = [f"@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)\nclass {name}:"]
    docs = ["Attributes:"]
    body = []
    for field in sorted(fields, key=lambda f: (f not in required, f)):
        attribute = field + "_" if keyword.iskeyword(field) else field
        text = f"{attribute}: {fields[field].get('description', '')}".replace("\\", "\\\\")
        docs += textwrap.wrap(text, 104, initial_indent="    ", subsequent_indent="        ")
        kind = type_of(fields[field])
        optional = "Any = None" if kind == "Any" else f"{kind} | None = None"
        body.append(f"{attribute}: {kind if field in required else optional}")
    lines.append(textwrap.indent('"""An object of the API.\n\n' + "\n".join(docs) + '\n"""\n', "    "))
    lines.append(textwrap.indent("\n".join(body), "    "))
    return "\n".join(lines)


def generate(document):
    schemas = document["components"]["schemas"]
    wanted, todo = set(), list(ROOTS)
    while todo:
        if (name := todo.pop()) not in wanted:
            wanted.add(name)
            todo += referred(schemas[name])
    return HEAD + "".join(f"\n\n{dataclass(name, schemas[name])}\n" for name in sorted(wanted))


def ask_server():
    sys.path.insert(0, str(HERE / "src"))
    from pawl.call import Call
    from pawl.client import Client

    with tempfile.TemporaryDirectory() as state, Client(state_dir=state, binary=str(HERE.parent.parent / "bin" / "pawl")) as client:
        return client.request(Call("GET", "/openapi.json"))


if __name__ == "__main__":
    TARGET.write_text(generate(json.loads(pathlib.Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else ask_server()))
