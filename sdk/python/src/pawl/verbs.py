"""What both clients can do, as plans: generators that yield calls and are sent the answers. ``client.py`` says what each does."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from . import api
from .call import MAX_WAIT, Call, Emit, Open, Pause, ReadLine, encode, new_key, pause_after, query, read_json
from .decode import decode
from .errors import ExecutionFailed, InfraError, PawlError, invalid
from .request import Upload, cases, content_name, evaluation, plain
from .result import Result, result_of

T = TypeVar("T")
Plan = Generator[Call, Any, T]
Stream = Generator[Call | Open | ReadLine | Pause | Emit, Any, None]

_log = logging.getLogger("pawl")

FINAL = ("completed", "failed", "cancelled", "timed_out")
_EXPLAINED_AFTER = 10.0  # seconds after which a wait asks why its execution has not begun
_UPLOADED_FOR = 3600.0  # seconds for which an upload is reused; the server keeps it for a day
_HASHES = 10_000


class Uploads:
    """The contents that this client has uploaded lately."""

    def __init__(self) -> None:
        self._sent: dict[str, float] = {}
        self._lock = threading.Lock()

    def reset(self) -> None:
        """Gives a forked child a lock of its own."""
        self._lock = threading.Lock()

    def upload(self, data: bytes) -> Plan[str]:
        """Sends bytes, unless they were sent within the hour."""
        name = content_name(data)
        with self._lock:
            known = time.monotonic() - self._sent.get(name, -_UPLOADED_FOR) < _UPLOADED_FOR
        if not known:
            yield Call("PUT", f"/api/v1/blobs/{name}", data)
            with self._lock:
                if len(self._sent) >= _HASHES:
                    self._sent.clear()
                self._sent[name] = time.monotonic()
        return name


def upload(content: bytes | Path, keep: Upload) -> Plan[str]:
    if isinstance(content, Path):
        return (yield from upload_file(content))
    if not isinstance(content, (bytes, bytearray)):
        raise invalid("content", content, f"a content is not a {type(content).__name__}", "give bytes, or its file as pathlib.Path")
    return (yield from keep(bytes(content)))


def upload_cases(given: Iterable[Any], keep: Upload) -> Plan[str]:
    listed = yield from cases(given, None)
    if not listed:
        raise invalid("cases", listed, "there are no cases", "give one or more")
    return (yield from keep(encode(listed)))


def upload_file(path: Path) -> Plan[str]:
    try:
        with open(path, "rb") as f:
            digest = hashlib.sha256()
            while part := f.read(1 << 20):
                digest.update(part)
    except OSError as e:
        raise invalid("content", str(path), f"cannot be read: {e.strerror}", "give a file that this process may read") from None
    name = f"sha256:{digest.hexdigest()}"
    yield Call("PUT", f"/api/v1/blobs/{name}", path)
    return name


def post(path: str, body: object, hold: float = 0.0, key: str = "") -> Call:
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Idempotency-Key"] = key
    return Call("POST", f"/api/v1/{path}", encode(body), headers, hold)


def one(id: str, rest: str = "") -> str:
    """The path of an execution."""
    if not isinstance(id, str) or not id:
        raise invalid("id", id, "is not the id of an execution", "give its id, which begins with ex_, as result.id")
    return f"/api/v1/executions/{quote(id, safe='')}{rest}"


def wait_json(id: str, timeout: float | None, explained: bool = False) -> Plan[dict[str, Any]]:
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout >= 0):
        raise invalid("timeout", timeout, "is not a number of seconds", "give seconds, as 30, or None to wait for the end")
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        most = MAX_WAIT if explained else _EXPLAINED_AFTER
        hold = most if deadline is None else max(0.0, min(most, deadline - time.monotonic()))
        x: dict[str, Any] = yield Call("GET", query(one(id), wait=f"{hold:.3f}s"), hold=hold)
        if x["status"] in FINAL:
            return x
        if deadline is not None and time.monotonic() >= deadline:
            raise TimeoutError(f"{id} is {x['status']} after {timeout:g}s; client.why({id!r}) says what it waits for")
        if not explained:
            yield from explain(x)
            explained = True


def explain(x: Mapping[str, Any]) -> Plan[None]:
    """Logs a warning where an execution waits for a worker of a kind that is not there: it may wait for ever."""
    if x["status"] != "scheduled":
        return
    try:
        why: dict[str, Any] = yield Call("GET", one(x["id"], "/why"))
    except PawlError:
        return  # the wait itself reports the fault
    if why.get("waiting") == "worker":
        _log.warning("%s waits: %s. To continue it: %s", x["id"], why["summary"], "; or ".join(u["text"] for u in why["unblock"]))


class Evaluated:
    """One call of ``evaluate``."""

    def __init__(self, fields: Mapping[str, Any], upload: Upload) -> None:
        self.fields, self.upload, self.key = dict(fields), upload, fields.get("idempotency_key") or new_key()
        self.id = ""
        self.body: dict[str, Any] = {}

    def plan(self) -> Plan[Result]:
        self.body = yield from evaluation(self.fields, self.upload)
        self.body["idempotency_key"] = self.key
        x: dict[str, Any] = yield post(f"evaluations?wait={_EXPLAINED_AFTER:g}s", self.body, _EXPLAINED_AFTER)
        self.id = x["id"]
        if x["status"] not in FINAL:
            yield from explain(x)
            x = yield from wait_json(self.id, None, explained=True)
        r = result_of(x)
        if isinstance(r, InfraError):
            r.execution = decode(api.Execution, x)
            raise r
        return r

    def abandon(self) -> Plan[None]:
        """Kills the program whose caller was interrupted. What was submitted is found by its key."""
        if not self.id and self.body:
            self.id = (yield post("evaluations", self.body))["id"]
        if self.id:
            yield post(f"executions/{self.id}/kill", {"reason": "the caller of evaluate was interrupted"})


def submit(fields: Mapping[str, Any]) -> Plan[api.Execution]:
    body = {k: plain(v, k) for k, v in fields.items() if v is not None}
    body.setdefault("idempotency_key", new_key())
    return decode(api.Execution, (yield post("executions", body)))


def submit_evaluation(fields: Mapping[str, Any], upload: Upload) -> Plan[api.Execution]:
    body = yield from evaluation(fields, upload)
    body.setdefault("idempotency_key", new_key())
    return decode(api.Execution, (yield post("evaluations", body)))


def run(action: str, input: Mapping[str, Any]) -> Plan[Any]:
    started = yield from submit({"action": action, "input": input})
    x = decode(api.Execution, (yield from wait_json(started.id, None)))
    if x.status == "completed":
        return x.output
    code, message = (x.error.code, x.error.message) if x.error else (x.status, "")
    if code in ("infra_error", "worker_lost", "internal_error"):
        raise InfraError(f"{x.id}: {code}: {message}", code=code, execution=x)
    raise ExecutionFailed(f"{x.id} is {x.status}: {code}: {message}", code=code, execution=x)


def get(id: str) -> Plan[api.Execution]:
    return decode(api.Execution, (yield Call("GET", one(id))))


def wait(id: str, timeout: float | None) -> Plan[api.Execution]:
    return decode(api.Execution, (yield from wait_json(id, timeout)))


def why(id: str) -> Plan[api.Why]:
    return decode(api.Why, (yield Call("GET", one(id, "/why"))))


def end(id: str, how: str, reason: str) -> Plan[api.Execution]:
    path = one(id, f"/{how}").removeprefix("/api/v1/")
    return decode(api.Execution, (yield post(f"{path}?wait={MAX_WAIT:g}s", {"reason": reason}, MAX_WAIT, new_key())))


def again(id: str, how: str, options: Mapping[str, Any]) -> Plan[api.Execution]:
    body = {k.rstrip("_"): v for k, v in options.items()}
    path = one(id, f"/{how}").removeprefix("/api/v1/")
    given = {k: plain(v, k) for k, v in body.items() if v is not None}
    return decode(api.Execution, (yield post(path, given, key=new_key())))


def apply(document: str | bytes | Path, file: str) -> Plan[api.Defined]:
    if isinstance(document, Path):
        try:
            document, file = document.read_bytes(), file or str(document)
        except OSError as e:
            raise invalid("document", str(document), f"cannot be read: {e.strerror}", "give a file that this process may read") from None
    if isinstance(document, str) and "\n" not in document and document.endswith((".yaml", ".yml", ".json")):
        raise invalid("document", document, "is the name of a file", f"give its text, or pathlib.Path({document!r})")
    if not isinstance(document, (str, bytes)):
        raise invalid("document", document, f"a document is not a {type(document).__name__}", "give its YAML as str, or its file as pathlib.Path")
    data = document.encode() if isinstance(document, str) else document
    return decode(
        api.Defined, (yield Call("POST", query("/api/v1/definitions", file=file or "document"), data, {"Content-Type": "application/yaml"}))
    )


def emit(trigger: str, data: Any, key: str, subject: str, execution: str) -> Plan[api.Emitted]:
    body = {"trigger": trigger, "data": {} if data is None else data, "key": key or new_key()}
    if subject:
        body["subject"] = subject
    path = one(execution, "/signals").removeprefix("/api/v1/") if execution else "signals"
    return decode(api.Emitted, (yield post(path, body)))


def answer(inquiry: str, value: Any, by: str, note: str, groups: Iterable[str]) -> Plan[api.Inquiry]:
    body: dict[str, Any] = {"answer": value, "by": by, "groups": list(groups)}
    if note:
        body["note"] = note
    return decode(api.Inquiry, (yield post(f"inquiries/{quote(inquiry, safe='')}/answer", body)))


def count(label: Mapping[str, str], evaluations: bool) -> Plan[api.Counts]:
    noun = "evaluations" if evaluations else "executions"
    return decode(api.Counts, (yield Call("GET", query(f"/api/v1/{noun}:count", label=labels(label)))))


def scores(label: Mapping[str, str], by: Iterable[str], task: str, k: Iterable[int]) -> Plan[api.Scores]:
    if len(named := labels(label)) != 1:
        raise invalid("labels", label, f"it has {len(named)} labels", 'give one, as {"run": "17"}; by groups by others')
    if isinstance(by, str):
        raise invalid("by", by, "it is one text", f"give a list, as [{by!r}]")
    if not isinstance(k, Iterable):
        raise invalid("k", k, "it is one number", f"give a list, as [{k}]")
    path = query("/api/v1/evaluations:scores", label=named, by=[*by], task=task, k=[*k])
    return decode(api.Scores, (yield Call("GET", path)))


def file(id: str, path: str) -> Plan[bytes]:
    data: bytes = yield Call("GET", one(id, f"/files/{quote(path)}"), raw=True)
    return data


def read_log(id: str, stream: str, attempt: int) -> Plan[bytes]:
    path = query(one(id, "/logs"), stream=stream, attempt=attempt or None)
    data: bytes = yield Call("GET", path, headers={"Accept": "text/plain"}, raw=True)
    return data


def labels(given: Mapping[str, str] | None) -> list[str]:
    if given is not None and not isinstance(given, Mapping):
        raise invalid("labels", given, f"labels are not a {type(given).__name__}", 'give a dict, as {"run": "17"}')
    return [f"{k}={v}" for k, v in (given or {}).items()]


def executions(filters: Mapping[str, Any], limit: int | None) -> Stream:
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise invalid("limit", limit, "is not how many executions there may be", "give a whole number, as 10, or None for all")
    left, cursor = limit, ""
    given = {k: plain(v, k) for k, v in filters.items() if v is not None}
    given["label"] = labels(given.pop("labels", None))
    while left is None or left > 0:
        page = yield Call("GET", query("/api/v1/executions", **given, cursor=cursor, limit=min(left or 100, 100)))
        for x in page["executions"][:left]:
            yield Emit(decode(api.Execution, x))
        left = None if left is None else left - len(page["executions"])
        if not (cursor := page.get("next_cursor", "")):
            return


def pages(path: str, items: str, cls: type[Any], parameters: Mapping[str, Any]) -> Stream:
    """Walks through what there is now of logs or events."""
    after: Any = ""
    while True:
        page = yield Call("GET", query(path, **{**parameters, "after": after}))
        for item in page[items]:
            yield Emit(decode(cls, item))
        if not page.get("more"):
            return
        after = page.get("next_cursor") or page[items][-1]["seq"]


def follow(path: str, name: str, cls: type[Any], parameters: Mapping[str, Any]) -> Stream:
    """Walks through a stream of server-sent events until it says its end, and takes it up again where it broke off."""
    last, failures = "", 0
    while True:
        yield Open(query(path, **{**parameters, "after": last}), "text/event-stream")
        event, identity, data = "", "", ""
        while (line := (yield ReadLine())) is not None:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                event = value
            elif field == "id":
                identity = value
            elif field == "data":
                data += value
            elif not line:
                if event == "end":
                    return
                if event == name and data:
                    yield Emit(decode(cls, read_json(data)))
                last, event, data, failures = identity or last, "", "", 0
        failures += 1
        yield Pause(pause_after(failures, 0))
