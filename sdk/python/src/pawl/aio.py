"""The client for asyncio: the same plans, over asyncio's streams. It starts no thread."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from . import api, verbs
from .call import STREAM_SILENCE, Broken, Call, Emit, Open, Pause, ReadLine, Refused, Retries, read_answer
from .client import ABANDON, Client, Settings
from .errors import InfraError, InvalidRequest, PawlError
from .local import Joined, join
from .mapping import DEFAULT_WINDOW, Mapped
from .request import kept
from .result import Result

T = TypeVar("T")

_LINE = 64 << 20  # bytes of a stream's longest line: an outcome with its output
_PART = 1 << 18  # bytes of a file in one write


class _Connection:
    """One connection of HTTP/1.1, for one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self.reader, self.writer, self.host = reader, writer, host
        self.keeps, self.chunked, self.left = True, False, 0

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # its event loop is closed
            self.writer.transport.abort()

    async def send(self, call: Call, target: str, headers: Mapping[str, str]) -> tuple[int, dict[str, str]]:
        """Sends a request, and reads the head of the answer."""
        size = 0
        if isinstance(call.body, Path):
            size = os.stat(call.body).st_size
        elif call.body is not None:
            size = len(call.body)
        lines = [f"{call.method} {target} HTTP/1.1", f"Host: {self.host}", *(f"{k}: {v}" for k, v in headers.items())]
        if call.body is not None or call.method in ("POST", "PUT"):
            lines.append(f"Content-Length: {size}")
        self.writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        if isinstance(call.body, Path):
            with open(call.body, "rb") as f:
                while part := f.read(_PART):
                    self.writer.write(part)
                    await self.writer.drain()
        elif call.body:
            self.writer.write(call.body)
        await self.writer.drain()
        status = 100
        while status < 200:
            words = (await self.reader.readline()).split(None, 2)
            if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
                raise Broken("the connection was closed before an answer" if not words else f"an answer that is not HTTP: {words[:1]!r}")
            status, answered = int(words[1]), {}
            while (line := await self.reader.readline()).strip():
                name, _, value = line.decode("latin-1").partition(":")
                answered[name.strip().lower()] = value.strip()
        self.chunked = answered.get("transfer-encoding", "").lower() == "chunked"
        self.left = 0 if self.chunked else int(answered.get("content-length", -1))
        if status in (204, 304):
            self.left = 0
        self.keeps = answered.get("connection", "").lower() != "close" and self.left >= 0
        return status, answered

    async def _chunk(self) -> bytes:
        size = int((await self.reader.readline()).split(b";")[0], 16)
        data = await self.reader.readexactly(size)
        await self.reader.readexactly(2)
        return data

    async def body(self) -> bytes:
        """The whole rest of an answer."""
        if not self.chunked:
            return await (self.reader.readexactly(self.left) if self.left >= 0 else self.reader.read())
        parts = []
        while part := await self._chunk():
            parts.append(part)
        return b"".join(parts)

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """The lines of an answer that comes in chunks; it ends where the answer breaks off, or ends."""
        kept = b""
        while part := await self._chunk():
            kept += part
            if b"\n" in part:
                *whole, kept = kept.split(b"\n")
                for line in whole:
                    yield line
            if len(kept) > _LINE:
                raise Broken("a line that does not end")


_BREAKS = (OSError, EOFError, ValueError, Broken, asyncio.TimeoutError)


def _close(held: list[_Connection]) -> None:
    while held:
        held.pop().close()


if sys.version_info >= (3, 12):
    _within = asyncio.wait_for
else:

    async def _within(work: Awaitable[T], timeout: float) -> T:
        """asyncio.wait_for, which before Python 3.12 loses a cancellation that comes together with the result."""
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait({task}, timeout=timeout)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # without reading it, the loop would report it
        if not done:
            raise asyncio.TimeoutError
        return task.result()


async def _next_line(lines: AsyncGenerator[bytes, None]) -> str | None:
    try:
        line = await _within(lines.__anext__(), STREAM_SILENCE)
    except (StopAsyncIteration, *_BREAKS):
        return None
    return line.decode().rstrip("\r")


class AsyncClient:
    """A Pawl server, with calls to await: the verbs, arguments and errors of :class:`pawl.Client`.

    It belongs to the event loop that used it first. Leaving ``async with``, or ``aclose``, closes its connections. Cancelling a task
    that awaits ``evaluate`` ends the program.

    Example:
        >>> async with pawl.AsyncClient() as client:
        ...     results = await asyncio.gather(*(client.evaluate(p) for p in programs))
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        timeout: float = 30.0,
        *,
        patience: float = 60.0,
        connections: int = 16,
        state_dir: str | os.PathLike[str] | None = None,
        binary: str | None = None,
    ) -> None:
        self._settings = Settings(url, token, timeout, patience, connections, state_dir, binary)
        self._uploads = verbs.Uploads()
        self._slots = asyncio.Semaphore(self._settings.connections)
        self._joining = asyncio.Lock()
        self._joined: Joined | None = None
        self._idle: list[_Connection] = []
        self._closed = False
        self._pid = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tls = ssl.create_default_context() if self._settings.tls else None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        await self.aclose()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # the arguments were refused
            if self._joined:
                self._joined.leave()

    def __repr__(self) -> str:
        return f"pawl.AsyncClient({self._settings.where!r})"

    async def aclose(self) -> None:
        """Closes the connections, and lets a local server end. Calls after it fail."""
        self._closed = True
        idle, self._idle = self._idle, []
        for c in idle:
            c.close()
        if self._joined:
            self._joined.leave()
            self._joined = None
        await asyncio.sleep(0)  # transports close their sockets at the next turn of the loop

    # Running plans.

    async def _connect(self) -> _Connection:
        if self._closed:
            raise PawlError("the client is closed: make another, or use it within its async with statement")
        if os.getpid() != self._pid:
            raise PawlError("this AsyncClient belongs to the process that made it: make another after a fork")
        s = self._settings
        if s.url:
            reader, writer = await asyncio.open_connection(s.host, s.port, ssl=self._tls)
            return _Connection(reader, writer, f"{s.host}:{s.port}")
        async with self._joining:
            if self._joined is None:
                steps = join(s.state_dir, s.binary, time.monotonic)
                while True:
                    try:
                        await asyncio.sleep(next(steps).seconds)
                    except StopIteration as end:
                        self._joined = end.value
                        break
            address = self._joined.address
        return _Connection(*await asyncio.open_unix_connection(address), "localhost")

    def _lost(self, joined: Joined | None) -> None:
        if joined is not None and self._joined is joined:
            self._joined = None
            joined.leave()

    async def _exchange(self, held: list[_Connection], call: Call) -> tuple[int, dict[str, str]]:
        """Sends a call on the connection that is held, or on a new one, which is held from then on."""
        if not held:
            held.append(await self._connect())
        return await held[0].send(call, self._settings.base + call.path, self._settings.headers(call, self._joined))

    async def _whole(self, held: list[_Connection], call: Call) -> tuple[int, dict[str, str], bytes]:
        status, headers = await self._exchange(held, call)
        return status, headers, await held[0].body()

    async def _once(self, call: Call) -> Any:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise PawlError("this AsyncClient belongs to the event loop that used it first: make one within each asyncio.run")
        async with self._slots:
            held = [self._idle.pop()] if self._idle else []
            reused = bool(held)
            while True:
                joined = self._joined
                try:
                    status, headers, body = await _within(self._whole(held, call), self._settings.timeout + call.hold)
                    break
                except BaseException as e:
                    _close(held)
                    if not isinstance(e, _BREAKS):
                        raise
                    if reused:  # the server may have closed the connection meanwhile
                        reused = False
                        continue
                    self._lost(joined or self._joined)
                    raise Broken(str(e) or type(e).__name__) from None
            if held[0].keeps and not self._closed:
                self._idle.append(held[0])
            else:
                held[0].close()
        return read_answer(call, status, headers, body)

    async def request(self, call: Call) -> Any:
        return await self._request(call, self._settings.patience)

    async def _request(self, call: Call, patience: float) -> Any:
        retries = Retries(patience, time.monotonic(), self._settings.where)
        while True:
            try:
                return await self._once(call)
            except (Broken, Refused) as e:
                await asyncio.sleep(retries.failed(e, time.monotonic()))

    async def _do(self, plan: Generator[Call, Any, T], patience: float | None = None) -> T:
        patience = self._settings.patience if patience is None else patience
        try:
            call = next(plan)
            while True:
                try:
                    answer = await self._request(call, patience)
                except PawlError as e:
                    call = plan.throw(e)
                else:
                    call = plan.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            plan.close()

    async def _abandon(self, plan: Generator[Call, Any, None]) -> None:
        with contextlib.suppress(PawlError):
            await asyncio.shield(asyncio.ensure_future(self._do(plan, ABANDON)))

    async def _iterate(self, plan: verbs.Stream) -> AsyncGenerator[Any, None]:
        c: _Connection | None = None
        lines: AsyncGenerator[bytes, None] | None = None
        answer: Any = None
        try:
            while True:
                try:
                    step = plan.send(answer)
                except StopIteration:
                    return
                answer = None
                if isinstance(step, Emit):
                    yield step.value
                elif isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                elif isinstance(step, Call):
                    answer = await self.request(step)
                elif isinstance(step, Open):
                    if c:
                        c.close()
                    c = await self._open(step)
                    lines = c.lines()
                elif isinstance(step, ReadLine) and lines:
                    answer = await _next_line(lines)
        finally:
            plan.close()
            if lines:
                await lines.aclose()
            if c:
                c.close()

    async def _open(self, step: Open) -> _Connection:
        call = Call("GET", step.path, headers={"Accept": step.accept})
        retries = Retries(self._settings.patience, time.monotonic(), self._settings.where)
        while True:
            held: list[_Connection] = []
            joined = self._joined
            try:
                status, headers = await _within(self._exchange(held, call), self._settings.timeout)
                if status < 300:
                    return held[0]
                read_answer(call, status, headers, await _within(held[0].body(), self._settings.timeout))
            except BaseException as e:
                _close(held)
                if isinstance(e, Refused):
                    pause = retries.failed(e, time.monotonic())
                elif isinstance(e, _BREAKS):
                    self._lost(joined or self._joined)
                    pause = retries.failed(Broken(str(e) or type(e).__name__), time.monotonic())
                else:
                    raise
            await asyncio.sleep(pause)

    # The verbs. Client documents them.

    async def evaluate(
        self,
        source: str | Path,
        *,
        language: str = "python",
        stdin: str | bytes | Path | None = None,
        cases: str | Iterable[Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        files: Mapping[str, str | bytes | Path] | None = None,
        args: Iterable[str] | None = None,
        env: Mapping[str, str] | None = None,
        compare: str | Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Result:
        fields = dict(source=source, language=language, stdin=stdin, cases=cases, limits=limits, files=files, args=args,
                      env=env, compare=compare, labels=labels, **options)  # fmt: skip
        one = verbs.Evaluated(fields, self._uploads.upload)
        try:
            return await self._do(one.plan())
        except BaseException as e:
            if not isinstance(e, Exception):
                await self._abandon(one.abandon())
            raise

    def map(
        self,
        programs: Iterable[Any],
        *,
        program: Callable[[Any], str | Mapping[str, Any]] | None = None,
        language: str = "python",
        cases: str | Iterable[Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        run: str | None = None,
        window: int = DEFAULT_WINDOW,
        **options: Any,
    ) -> AsyncIterator[Result | InfraError | InvalidRequest]:
        shared = dict(language=language, cases=kept(cases), limits=limits, labels=labels, **options)
        return self._map(Mapped(programs, program, shared, run, window, self._uploads.upload))

    async def _map(self, mapped: Mapped) -> AsyncIterator[Any]:
        results = self._iterate(mapped.plan())
        try:
            async for result in results:
                yield result
        except BaseException:
            await results.aclose()
            await self._abandon(mapped.abandon())
            raise

    async def submit_evaluation(self, source: str | Path, *, language: str = "python", **options: Any) -> api.Execution:
        return await self._do(verbs.submit_evaluation({"source": source, "language": language, **options}, self._uploads.upload))

    async def submit(self, action: str, input: Any = None, **options: Any) -> api.Execution:
        return await self._do(verbs.submit({"action": action, "input": input, **options}))

    async def run(self, workflow: str, /, **input: Any) -> Any:
        return await self._do(verbs.run(workflow, input))

    async def get(self, id: str) -> api.Execution:
        return await self._do(verbs.get(id))

    async def wait(self, id: str, timeout: float | None = None) -> api.Execution:
        return await self._do(verbs.wait(id, timeout))

    def list(self, *, limit: int | None = None, **filters: Any) -> AsyncIterator[api.Execution]:
        return self._iterate(verbs.executions(filters, limit))

    async def count(self, labels: Mapping[str, str], *, evaluations: bool = False) -> api.Counts:
        return await self._do(verbs.count(labels, evaluations))

    async def scores(self, labels: Mapping[str, str], *, by: Iterable[str] = (), task: str = "task", k: Iterable[int] = (1, 10, 100)) -> api.Scores:
        return await self._do(verbs.scores(labels, by, task, k))

    def logs(self, id: str, *, follow: bool = False, stream: str | None = None, attempt: int | None = None) -> AsyncIterator[api.LogChunk]:
        parameters = {"stream": stream, "attempt": attempt}
        if follow:
            return self._iterate(verbs.follow(verbs.one(id, "/logs"), "log", api.LogChunk, parameters))
        return self._iterate(verbs.pages(verbs.one(id, "/logs"), "chunks", api.LogChunk, parameters))

    async def read_log(self, id: str, stream: str = "stdout", attempt: int = 0) -> bytes:
        return await self._do(verbs.read_log(id, stream, attempt))

    def events(self, id: str, *, follow: bool = False) -> AsyncIterator[api.Event]:
        if follow:
            return self._iterate(verbs.follow(verbs.one(id, "/events"), "event", api.Event, {}))
        return self._iterate(verbs.pages(verbs.one(id, "/events"), "events", api.Event, {}))

    async def file(self, id: str, path: str) -> bytes:
        return await self._do(verbs.file(id, path))

    async def why(self, id: str) -> api.Why:
        return await self._do(verbs.why(id))

    async def cancel(self, id: str, reason: str = "") -> api.Execution:
        return await self._do(verbs.end(id, "cancel", reason))

    async def kill(self, id: str, reason: str = "") -> api.Execution:
        return await self._do(verbs.end(id, "kill", reason))

    async def retry(self, id: str) -> api.Execution:
        return await self._do(verbs.again(id, "retry", {}))

    async def rerun(self, id: str, **options: Any) -> api.Execution:
        return await self._do(verbs.again(id, "rerun", options))

    async def apply(self, document: str | bytes | Path, file: str = "") -> api.Defined:
        return await self._do(verbs.apply(document, file))

    async def emit(self, trigger: str, data: Any = None, *, key: str = "", subject: str = "", execution: str = "") -> api.Emitted:
        return await self._do(verbs.emit(trigger, data, key, subject, execution))

    async def answer(self, inquiry: str, answer: Any, *, by: str, note: str = "", groups: Iterable[str] = ()) -> api.Inquiry:
        return await self._do(verbs.answer(inquiry, answer, by, note, groups))

    async def upload(self, content: bytes | Path) -> str:
        return await self._do(verbs.upload(content, self._uploads.upload))

    async def upload_cases(self, cases: Iterable[Any]) -> str:
        return await self._do(verbs.upload_cases(cases, self._uploads.upload))


for _name, _method in vars(AsyncClient).items():
    if _name in vars(Client) and not _name.startswith("_"):
        _method.__doc__ = vars(Client)[_name].__doc__
