"""Requests from what Python callers give: contents as text, bytes or paths, durations as numbers or timedelta, cases as pairs."""

from __future__ import annotations

import base64
import datetime
import hashlib
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any

from .call import Call
from .errors import invalid, python_value

# A content larger than this is uploaded once and named by its hash, so that a thousand programs with the same input send it once.
UPLOAD_FROM = 64 << 10
REQUEST = 16 << 20  # bytes: the server's limit of a request

Upload = Callable[[bytes], Generator[Call, Any, str]]


def is_text(data: bytes) -> bool:
    """Whether bytes may stand in a request as text: UTF-8 without NUL."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _content(place: str, value: Any, upload: Upload | None) -> Generator[Call, Any, Any]:
    if isinstance(value, Path):
        try:
            value = value.read_bytes()
        except OSError as e:
            raise invalid(place, str(value), f"cannot be read: {e.strerror}", "give a file that this process may read") from None
    if isinstance(value, (bytearray, memoryview)):
        value = bytes(value)
    if isinstance(value, str) and (len(value) > UPLOAD_FROM // 4 or "\0" in value):  # a text in a request cannot have a NUL, but bytes can
        try:
            value = value.encode()
        except UnicodeEncodeError:
            return value  # refused with its place when the request is encoded
    if isinstance(value, bytes):
        if upload is not None and len(value) > UPLOAD_FROM:
            return {"blob": (yield from upload(value))}
        return value.decode() if is_text(value) else {"base64": base64.b64encode(value).decode()}
    if value is None or isinstance(value, (str, Mapping)):
        return value
    raise invalid(place, value, f"a content is not a {type(value).__name__}", "give str, bytes, a pathlib.Path, or an object of the API")


def _files(place: str, files: Any, upload: Upload) -> Generator[Call, Any, Any]:
    if not isinstance(files, Mapping):
        raise invalid(place, files, f"files are not a {type(files).__name__}", 'give a dict of names to contents, as {"in.txt": "1 2"}')
    out = {}
    for name, content in files.items():
        if content is None:
            raise invalid(f"{place}.{name}", None, "the file has no content", 'give str, bytes or a pathlib.Path; "" makes an empty file')
        out[str(name)] = yield from _content(f"{place}.{name}", content, upload)
    return out


def _case(place: str, case: Any, upload: Upload | None) -> Generator[Call, Any, Any]:
    if isinstance(case, (tuple, list)):
        if len(case) != 2:
            raise invalid(place, case, f"a case has {len(case)} parts", "give (stdin, expect), or a dict")
        case = {"stdin": case[0], "expect": case[1]}
    if not isinstance(case, Mapping):
        fix = python_value(case, 'give (stdin, expect), or a dict as {"stdin": "1 2", "expect": "3"}')
        raise invalid(place, case, f"a case is not a {type(case).__name__}", fix)
    out = dict(case)
    for part in ("stdin", "expect"):
        if part in out:
            out[part] = yield from _content(f"{place}.{part}", out[part], upload)
            if out[part] is None:
                del out[part]
    if "call" in out:
        out["call"] = plain(out["call"], f"{place}.call")
    if "limits" in out:
        out["limits"] = plain(out["limits"], f"{place}.limits")
    return out


def cases(value: Any, upload: Upload | None) -> Generator[Call, Any, list[Any]]:
    """A list of cases as the API has it. Without upload all contents are in it, as in a set, which names no other uploads."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise invalid("cases", value, f"cases are not a {type(value).__name__}", 'give a list, as [("1 2", "3")], or the name of a set, "sha256:…"')
    out = []
    for i, case in enumerate(value):
        out.append((yield from _case(f"cases[{i}]", case, upload)))
    return out


def kept(cases: Any) -> Any:
    """Cases that several programs are given: what can be read once, such as a generator, is read."""
    return list(cases) if isinstance(cases, Iterable) and not isinstance(cases, (str, bytes, Mapping)) else cases


def plain(value: Any, place: str) -> Any:
    """A value with durations as seconds and times as texts, of one length. JSON has only names that are str: another one would be changed."""
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise invalid(place, value, "has no time zone", "give one, as datetime.now(timezone.utc)")
        return value.isoformat(timespec="microseconds")
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise invalid(f"{place}.{name}", name, f"a name must be a str, and is {type(name).__name__}", "use str(name)")
        return {k: plain(v, f"{place}.{k}") for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v, f"{place}[{i}]") for i, v in enumerate(value)]
    return value


def evaluation(fields: Mapping[str, Any], upload: Upload) -> Generator[Call, Any, dict[str, Any]]:
    """The body of an evaluation. Fields that are None are left out; names that do not exist are the server's to refuse."""
    out: dict[str, Any] = {}
    for name, value in fields.items():
        if value is None:
            continue
        if name == "source":
            if isinstance(value, Path):
                value = yield from _content(name, value, upload)
            if not isinstance(value, str):
                raise invalid(name, value, f"a program is not a {type(value).__name__}", "give its text as str, or its file as pathlib.Path")
            if len(value) > REQUEST:
                raise invalid(name, value, f"has {len(value):,} characters, and a request at most {REQUEST:,} bytes", "read data from stdin or files")
            out[name] = value
        elif name == "stdin":
            out[name] = yield from _content(name, value, upload)
        elif name == "files":
            out[name] = yield from _files(name, value, upload)
        elif name == "cases":
            if isinstance(value, str) and value.startswith("sha256:"):
                value = {"set": value}
            named = isinstance(value, Mapping) and "set" in value
            out[name] = plain(value, name) if named else (yield from cases(value, upload))
        elif name == "compare" and isinstance(value, Mapping):
            out[name] = {**plain(value, name)}
            for judge in ("checker", "interactor"):
                if not isinstance(value.get(judge), Mapping):
                    continue
                if "files" in value[judge]:
                    out[name][judge]["files"] = yield from _files(f"compare.{judge}.files", value[judge]["files"], upload)
                if isinstance(value[judge].get("source"), Path):
                    out[name][judge]["source"] = yield from _content(f"compare.{judge}.source", value[judge]["source"], None)
        else:
            out[name] = plain(value, name)
    return out


def content_name(data: bytes) -> str:
    """By which requests name uploaded bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
