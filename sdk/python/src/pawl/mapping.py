"""Many programs: batches under one label, and one stream of outcomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from . import api
from .call import Call, Emit, Open, Pause, ReadLine, encode, new_key, pause_after, query, read_json
from .decode import decode
from .errors import InfraError, InvalidRequest, PawlError, from_problem, invalid
from .request import Upload, evaluation
from .result import result_of
from .verbs import Plan, Stream, post

BATCH_BYTES = 8 << 20  # half of the limit of a request
DEFAULT_WINDOW = 1000


class Mapped:
    """One call of ``map``: what has been submitted and has not ended. Only one driver uses it."""

    def __init__(
        self,
        items: Iterable[Any],
        program: Callable[[Any], Any] | None,
        shared: Mapping[str, Any],
        run: str | None,
        window: int,
        upload: Upload,
    ) -> None:
        if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
            raise invalid(
                "programs", items, f"programs are not a {type(items).__name__}", 'give a list, as ["print(1)"]; one program is pawl.evaluate\'s'
            )
        if program is not None and not callable(program):
            raise invalid(
                "program", program, f"is not a function, and of type {type(program).__name__}", "give a function from an item to its program"
            )
        if run is not None and (not isinstance(run, str) or not run):
            raise invalid("run", run, "is not the name of a run", 'give a str that is not empty, as "nightly-17", or leave it out')
        if isinstance(window, bool) or not isinstance(window, int) or window < 1:
            raise invalid("window", window, "is not a whole number of programs", "give 1 or more, as 1000")
        if isinstance(at_once := shared.get("concurrency"), int):
            raise invalid("concurrency", at_once, "it is about a key that programs share", f"give window={at_once} for so many at once")
        for name in ("max_workers", "num_workers", "workers", "n_jobs"):
            if name in shared:
                raise invalid(name, shared[name], "is not an argument of map", f"give window={shared[name]} for so many at once")
        self.items: Iterator[tuple[int, Any]] = enumerate(items)
        self.program, self.shared, self.upload = program, dict(shared), upload
        self.resumes, self.run = run is not None, run or new_key()
        self.label = ("run" if run else "map", self.run)
        self.chunk, self.window = max(1, window // 2), window
        self.pending: dict[str, tuple[int, Any]] = {}
        self.early: dict[str, dict[str, Any]] = {}  # of a resumed run: outcomes that arrived before their item
        self.exhausted = False
        self.held: tuple[int, Any, bytes] | None = None  # read from items, but too large for the last batch
        self.submitted = False

    def _fields(self, item: Any) -> dict[str, Any]:
        given = self.program(item) if self.program else item
        if isinstance(given, (str, Path)):
            given = {"source": given}
        if not isinstance(given, Mapping):
            raise invalid("program", given, f"a program is not a {type(given).__name__}", 'give its source, or a dict as {"source": "print(1)"}')
        fields = {**self.shared, **{k: v for k, v in given.items() if v is not None}}
        own = {**(self.shared.get("labels") or {}), **(given.get("labels") or {})}
        return {**fields, "labels": {**own, self.label[0]: self.label[1]}}

    def _chunk(self) -> Plan[tuple[list[tuple[int, Any, bytes]], list[InvalidRequest]]]:
        """The next items as bodies, and what was wrong with others."""
        bodies: list[tuple[int, Any, bytes]] = []
        wrong: list[InvalidRequest] = []
        size = 0
        while len(bodies) < self.chunk and len(wrong) < self.chunk:
            if self.held:
                bodies.append(self.held)
                size, self.held = size + len(self.held[2]), None
                continue
            try:
                index, item = next(self.items)
            except StopIteration:
                self.exhausted = True
                break
            try:
                fields = yield from evaluation(self._fields(item), self.upload)
                fields.setdefault("idempotency_key", f"{self.run}/{index}")
                body = encode(fields)
            except InvalidRequest as e:
                e.item, e.index = item, index
                wrong.append(e)
                continue
            if bodies and size + len(body) > BATCH_BYTES:
                self.held = (index, item, body)
                break
            bodies.append((index, item, body))
            size += len(body)
        return bodies, wrong

    def _submit(self) -> Stream:
        bodies, wrong = yield from self._chunk()
        for refused in wrong:
            yield Emit(refused)
        failures = 0
        while bodies:
            body = b'{"evaluations":[' + b",".join(b for _, _, b in bodies) + b"]}"
            answer = yield Call("POST", "/api/v1/evaluations:batch", body, {"Content-Type": "application/json"})
            self.submitted = True
            again = []
            for (index, item, text), entry in zip(bodies, answer["results"], strict=True):
                if "problem" not in entry:
                    self.pending[entry["id"]] = (index, item)
                    if (outcome := self.early.pop(entry["id"], None)) is not None:
                        yield from self._ended(outcome)
                elif entry["problem"].get("status") in (429, 503):
                    again.append((index, item, text))
                else:
                    yield Emit(_refused(entry["problem"], item, index))
            bodies = again
            if again:
                failures += 1
                yield Pause(pause_after(failures, 0))

    def _ended(self, outcome: dict[str, Any]) -> Stream:
        index, item = self.pending.pop(outcome["id"])
        result = result_of(outcome, item, index)
        if isinstance(result, InfraError):
            result.execution = decode(api.Execution, {k: v for k, v in outcome.items() if k != "cursor"})
        yield Emit(result)

    def plan(self) -> Stream:
        """Submits while fewer than half a window are under way, and emits what ends."""
        cursor, is_open, failures = "", False, 0
        while True:
            while not self.exhausted and len(self.pending) <= self.window - self.chunk:
                yield from self._submit()
            if not self.pending:
                if self.exhausted and self.held is None:
                    return
                yield from self._submit()
                continue
            if not is_open:
                self.submitted, is_open = False, True
                yield Open(query("/api/v1/evaluations:outcomes", label="=".join(self.label), outputs=True, after=cursor))
            line = yield ReadLine()
            if line is None:
                is_open, failures = False, failures + 1
                yield Pause(pause_after(failures, 0))
                continue
            failures = 0
            if not line:
                continue
            message = read_json(line)
            cursor = message["cursor"]
            if message.get("end"):
                is_open = False
                if not self.submitted:
                    yield from self._lost()
            elif message["id"] in self.pending:
                yield from self._ended(message)
            elif self.resumes:
                self.early[message["id"]] = message

    def _lost(self) -> Stream:
        """Everything with the label has ended and was told of: what is still pending is not there any more."""
        for id, (index, item) in self.pending.items():
            lost = InfraError(f"{id} has no outcome: the server does not have it any more", code="gone")
            lost.item, lost.index = item, index
            yield Emit(lost)
        self.pending.clear()

    def abandon(self) -> Plan[None]:
        """Cancels what is under way, unless the run has a name and may be taken up again."""
        if self.resumes or not self.pending:
            return
        cursor, begun = "", time.monotonic()
        while time.monotonic() - begun < 5:
            path = query("executions:cancel", label="=".join(self.label), cursor=cursor)
            answer = yield post(path, {"reason": "the caller of map has left"})
            if not (cursor := answer.get("next_cursor", "")):
                return


def _refused(problem: Mapping[str, Any], item: Any, index: int) -> PawlError:
    error = from_problem(int(problem.get("status", 422)), problem)
    if not isinstance(error, InvalidRequest):
        infra = InfraError(str(error), code="refused")
        infra.item, infra.index = item, index
        return infra
    for fault in error.faults:  # a place is relative to the item: the caller does not know how batches are formed
        if fault.place.startswith("evaluations["):
            fault.place = fault.place.partition("].")[2]
    error.args = ("\n  ".join(map(str, error.faults)),)
    error.item, error.index = item, index
    return error
