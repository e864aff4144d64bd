"""The client with blocking calls, and the one that the functions of the package use."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from . import api, verbs
from .call import STREAM_SILENCE, Broken, Call, Emit, Open, Pause, Refused, Retries, read_answer
from .errors import InfraError, InvalidRequest, PawlError, invalid
from .local import Joined, join, state_directory
from .mapping import DEFAULT_WINDOW, Mapped
from .request import kept
from .result import Result
from .version import __version__

T = TypeVar("T")

ABANDON = 5.0  # seconds for which an interrupted call tries to end the executions that it has started


class Settings:
    """Where the server is, and how patient calls are; the same for both clients."""

    def __init__(
        self,
        url: str | None,
        token: str | None,
        timeout: float,
        patience: float,
        connections: int,
        state_dir: str | os.PathLike[str] | None,
        binary: str | None,
    ) -> None:
        if url == "":
            raise invalid("url", url, "is empty", "leave it out for PAWL_SERVER or the local server, or write it as in http://127.0.0.1:7411")
        url = url or os.environ.get("PAWL_SERVER") or ""
        if not isinstance(url, str):
            raise invalid("url", url, f"the address of a server is not a {type(url).__name__}", "write it as in http://127.0.0.1:7411")
        if url and state_dir:
            raise invalid("state_dir", str(state_dir), f"there is a server, {url}, as well", "give url or state_dir")
        for name, number, least in (("timeout", timeout, 0.001), ("patience", patience, 0), ("connections", connections, 1)):
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= least:
                raise invalid(name, number, "is not a number that can be used", "give seconds, as 30" if name != "connections" else "give 1 or more")
        self.url, self.timeout, self.patience, self.connections = url.rstrip("/"), float(timeout), float(patience), int(connections)
        self.binary = binary or ""
        self.state_dir = Path(state_dir) if state_dir else state_directory()
        self.token = _token() if token is None else token
        if not isinstance(self.token, str) or not (self.token.isascii() and self.token.isprintable()):  # its value is a secret
            raise invalid("token", "", "is not a text of printable ASCII characters, as a header has it", "give the token alone, without a line end")
        self.tls = False
        self.host, self.port, self.base = "localhost", 0, ""
        if self.url:
            parts = urlsplit(self.url)
            try:
                port = parts.port
            except ValueError:
                port = -1
            if (
                parts.scheme not in ("http", "https")
                or not parts.hostname
                or parts.query
                or parts.fragment
                or parts.username
                or port == -1
                or " " in self.url
            ):
                raise invalid("url", url, "is not the address of a server", "write it as in http://127.0.0.1:7411")
            self.tls = parts.scheme == "https"
            self.host, self.port, self.base = parts.hostname, port or (443 if self.tls else 80), parts.path

    @property
    def where(self) -> str:
        """The server, for messages."""
        return self.url or f"of {self.state_dir}"

    def headers(self, call: Call, joined: Joined | None) -> dict[str, str]:
        """The headers of a request."""
        headers = {"Accept": "application/json", "User-Agent": f"pawl-python/{__version__}", **call.headers}
        if token := (joined.token if joined else self.token):
            headers["Authorization"] = f"Bearer {token}"
        if chain := os.environ.get("PAWL_CHAIN"):
            headers["Pawl-Chain"] = chain
        return headers


def _token() -> str:
    if token := os.environ.get("PAWL_TOKEN"):
        return token
    if name := os.environ.get("PAWL_TOKEN_FILE"):
        try:
            return Path(name).read_text().strip()
        except OSError as e:
            raise invalid("PAWL_TOKEN_FILE", name, f"cannot be read: {e.strerror}", "name a file that this process may read") from None
    return ""


def _lower(response: http.client.HTTPResponse) -> dict[str, str]:
    return {k.lower(): v for k, v in response.headers.items()}


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, address: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self.address = address

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(self.address)
        except BaseException:
            self.sock.close()
            raise


class _Connections:
    """The connections of a client: kept, at most ``connections`` of them for calls, and one for each stream that is read."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.joined: Joined | None = None
        self.closed = False
        self._tls = ssl.create_default_context() if settings.tls else None
        self._renew()

    def _renew(self) -> None:
        self.lock = threading.Lock()
        self.slots = threading.BoundedSemaphore(self.settings.connections)
        self.idle: list[http.client.HTTPConnection] = []

    def forked(self) -> None:
        """Leaves the parent's connections to the parent. Closing a copy of a socket sends nothing."""
        for c in self.idle:
            c.close()
        if self.joined:
            self.joined.leave()
        self.joined = None
        self._renew()

    def close(self) -> None:
        with self.lock:
            self.closed = True
            idle, self.idle = self.idle, []
            joined, self.joined = self.joined, None
        for c in idle:
            c.close()
        if joined:
            joined.leave()

    def make(self, timeout: float) -> http.client.HTTPConnection:
        if self.closed:
            raise PawlError("the client is closed: make another, or use it within its with statement")
        s = self.settings
        if not s.url:
            with self.lock:
                if self.joined is None:
                    steps = join(s.state_dir, s.binary, time.monotonic)
                    while True:
                        try:
                            time.sleep(next(steps).seconds)
                        except StopIteration as end:
                            self.joined = end.value
                            break
                return _UnixConnection(self.joined.address, timeout)
        if self._tls:
            return http.client.HTTPSConnection(s.host, s.port, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(s.host, s.port, timeout=timeout)

    def lost(self, joined: Joined | None) -> None:
        """The server of the state directory does not answer any more: the next connection joins or starts another."""
        with self.lock:
            if joined is not None and self.joined is joined:
                self.joined = None
                joined.leave()

    def send(self, c: http.client.HTTPConnection, call: Call, timeout: float) -> http.client.HTTPResponse:
        c.timeout = timeout
        if c.sock is not None:
            c.sock.settimeout(timeout)
        headers = self.settings.headers(call, self.joined)
        if isinstance(call.body, Path):
            with open(call.body, "rb") as f:
                headers["Content-Length"] = str(os.fstat(f.fileno()).st_size)
                c.request(call.method, self.settings.base + call.path, f, headers)
        else:
            c.request(call.method, self.settings.base + call.path, call.body, headers)
        return c.getresponse()

    def once(self, call: Call) -> Any:
        """One try of a call.

        Raises:
            Broken, Refused: It did not work.
        """
        timeout = self.settings.timeout + call.hold
        with self.slots:
            with self.lock:
                c = self.idle.pop() if self.idle else None
            reused = c is not None
            while True:
                joined = self.joined
                c = c or self.make(timeout)
                try:
                    response = self.send(c, call, timeout)
                    body = response.read()
                except BaseException as e:
                    c.close()
                    if not isinstance(e, (OSError, http.client.HTTPException)):
                        raise
                    if reused:  # the server may have closed the connection meanwhile
                        reused, c = False, None
                        continue
                    self.lost(joined or self.joined)
                    raise Broken(str(e) or type(e).__name__) from None
                break
            if response.will_close:
                c.close()
            with self.lock:
                if not response.will_close and not self.closed:
                    self.idle.append(c)
                elif self.closed:
                    c.close()
        return read_answer(call, response.status, _lower(response), body)

    def open(self, call: Call) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """One try of opening a stream."""
        joined, c = self.joined, self.make(self.settings.timeout)
        try:
            response = self.send(c, call, max(self.settings.timeout, STREAM_SILENCE))
            if response.status >= 300:
                read_answer(call, response.status, _lower(response), response.read())
        except (OSError, http.client.HTTPException) as e:
            c.close()
            self.lost(joined or self.joined)
            raise Broken(str(e) or type(e).__name__) from None
        except BaseException:
            c.close()
            raise
        return c, response


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _after_fork() -> None:
    for client in list(_clients):
        client._connections.forked()
        client._uploads.reset()


os.register_at_fork(after_in_child=_after_fork)


class Client:
    """A Pawl server, with blocking calls.

    Threads may share a client. A forked child opens connections of its own. Calls that fail because the server cannot be
    reached, restarts or is overloaded are tried again, with pauses that grow and differ, for ``patience`` seconds; every
    submission has an idempotency key, so that none runs twice.

    Args:
        url: Of the server, as in ``http://127.0.0.1:7411``. By default ``PAWL_SERVER``; without that the **local** server:
            the one that works on this user's state directory is joined, or one is started, which ends 3 s after its last
            client has gone. It is found again, or started again, should it die.
        token: By default ``PAWL_TOKEN``, or what the file ``PAWL_TOKEN_FILE`` has.
        timeout: Seconds until an answer must come, beyond those for which the server was asked to wait.
        patience: Seconds for which a call is tried again.
        connections: How many calls are under way at once; others wait for one of them.
        state_dir: Of the local server. By default ``PAWL_STATE_DIR``, as for the command ``pawl``.
        binary: The program ``pawl`` of the local server. By default the wheel's, or the one in ``PATH``.

    Raises:
        InvalidRequest: An argument that cannot be meant.

    Example:
        >>> import pawl
        >>> with pawl.Client() as client:
        ...     client.evaluate("print(6*7)").stdout
        '42\\n'
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
        self._connections = _Connections(self._settings)
        self._uploads = verbs.Uploads()
        _clients.add(self)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # the arguments were refused
            self._connections.close()

    def __repr__(self) -> str:
        return f"pawl.Client({self._settings.where!r})"

    def close(self) -> None:
        """Closes the connections, and lets a local server end. Calls after it fail."""
        self._connections.close()

    # Running plans.

    def request(self, call: Call) -> Any:
        """One request of the HTTP API that has no verb here, with the retries of all others.

        Args:
            call: As ``pawl.Call("GET", "/api/v1/queues")``.

        Returns:
            The answer's JSON.
        """
        return self._request(call, self._settings.patience)

    def _request(self, call: Call, patience: float) -> Any:
        retries = Retries(patience, time.monotonic(), self._settings.where)
        while True:
            try:
                return self._connections.once(call)
            except (Broken, Refused) as e:
                time.sleep(retries.failed(e, time.monotonic()))

    def _do(self, plan: Generator[Call, Any, T], patience: float | None = None) -> T:
        patience = self._settings.patience if patience is None else patience
        try:
            call = next(plan)
            while True:
                try:
                    answer = self._request(call, patience)
                except PawlError as e:
                    call = plan.throw(e)
                else:
                    call = plan.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            plan.close()

    def _abandon(self, plan: Generator[Call, Any, None]) -> None:
        with contextlib.suppress(PawlError):
            self._do(plan, ABANDON)

    def _iterate(self, plan: verbs.Stream) -> Iterator[Any]:
        stream: tuple[http.client.HTTPConnection, http.client.HTTPResponse] | None = None
        answer: Any = None
        try:
            while True:
                step = plan.send(answer)
                answer = None
                if isinstance(step, Emit):
                    yield step.value
                elif isinstance(step, Pause):
                    time.sleep(step.seconds)
                elif isinstance(step, Call):
                    answer = self.request(step)
                elif isinstance(step, Open):
                    if stream:
                        stream[0].close()
                        stream = None
                    stream = self._open(step)
                elif stream:
                    answer = self._line(stream)
        except StopIteration:
            return
        finally:
            plan.close()
            if stream:
                stream[1].close()
                stream[0].close()

    def _open(self, step: Open) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        retries = Retries(self._settings.patience, time.monotonic(), self._settings.where)
        while True:
            try:
                return self._connections.open(Call("GET", step.path, headers={"Accept": step.accept}))
            except (Broken, Refused) as e:
                time.sleep(retries.failed(e, time.monotonic()))

    def _line(self, stream: tuple[http.client.HTTPConnection, http.client.HTTPResponse]) -> str | None:
        try:
            line = stream[1].readline()
        except (OSError, http.client.HTTPException, ValueError):
            return None
        return line.decode().rstrip("\r\n") if line.endswith(b"\n") else None

    # Programs.

    def evaluate(
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
        """Runs a program in the sandbox, and waits for its end. A program that fails is a result, not an error.

        Args:
            source: Its text, or its file as ``pathlib.Path``.
            language: As in ``pawl languages``.
            stdin: What it reads: text, bytes, or a file as ``pathlib.Path``. From 64 KiB on it is uploaded first, once.
            cases: Many inputs instead of one, each ``(stdin, expect)`` or a dict of the API, such as
                ``{"call": {"function": "add", "args": [1, 2], "expect": 3}}``: at most 1,000. Or the name that :meth:`upload_cases`
                has returned.
            limits: ``wall`` and ``cpu`` in seconds (or ``"500ms"``), ``memory``, ``output`` and ``disk`` in bytes (or
                ``"256MB"``), ``pids``, ``cpus``.
            files: Contents by name, put into its working directory.
            args: Arguments after the program's name.
            env: Environment variables.
            compare: ``exact``, ``trimmed`` (the default), ``tokens``, ``numeric``, or a dict: with tolerances, with a ``checker``,
                or with an ``interactor``, a program that talks with this one, as ``{"interactor": {"language": "python", "source": …}}``.
            labels: By which lists, counts and waits select it.
            **options: Any other field of ``POST /api/v1/evaluations``, such as ``retry={"max_attempts": 3}``, ``queue``,
                ``priority``, ``collect``, ``std``, ``flags``, ``cache``, ``idempotency_key``.

        Raises:
            InvalidRequest: It was refused, with place, value and fix.
            InfraError: There is no verdict of the program: the box or the checker broke, or somebody cancelled it.
            Unavailable: The server could not be reached within ``patience``.

        An interruption, such as Ctrl-C, ends the program as well.

        Example:
            >>> client.evaluate("print(int(input()) ** 2)", stdin="7", limits={"wall": 2}).stdout
            '49\\n'
        """
        fields = dict(source=source, language=language, stdin=stdin, cases=cases, limits=limits, files=files, args=args,
                      env=env, compare=compare, labels=labels, **options)  # fmt: skip
        one = verbs.Evaluated(fields, self._uploads.upload)
        try:
            return self._do(one.plan())
        except BaseException as e:
            if not isinstance(e, Exception):
                self._abandon(one.abandon())
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
    ) -> Iterator[Result | InfraError | InvalidRequest]:
        """Runs many programs, and yields how each ended, in the order in which they end.

        They are submitted in batches while fewer than ``window`` are under way, as the results are taken; their outcomes come
        on one stream, which is taken up again after a lost connection or a restart of the server. Each is yielded once.

        Args:
            programs: Sources, or dicts of the API (``{"source": …, "stdin": …}``), which go before the options here.
            program: Makes a source or such a dict of an item, where items are something else.
            language, cases, limits, labels, options: As of :meth:`evaluate`, for all of them.
            run: A name for the run. The same again submits nothing anew and yields all results: those that there are at
                once. Without a name, leaving the loop cancels what is under way.
            window: Most programs under way at once.

        Yields:
            :class:`Result`, with ``item`` and ``index``; :class:`InfraError` where the box broke; :class:`InvalidRequest`
            where the item was refused. Of these two, ``passed`` and ``stdout`` raise the error: it cannot be taken for a zero.

        Raises:
            InvalidRequest: An argument that cannot be meant.
            Unavailable: The server could not be reached within ``patience``.

        Example:
            >>> for r in client.map(["print(1)", "print(2)"], cases=[("", "1")]):
            ...     print(r.index, r.passed)
            0 True
            1 False
        """
        shared = dict(language=language, cases=kept(cases), limits=limits, labels=labels, **options)
        return self._map(Mapped(programs, program, shared, run, window, self._uploads.upload))

    def _map(self, mapped: Mapped) -> Iterator[Any]:
        try:
            yield from self._iterate(mapped.plan())
        except BaseException:
            self._abandon(mapped.abandon())
            raise

    def submit_evaluation(self, source: str | Path, *, language: str = "python", **options: Any) -> api.Execution:
        """Accepts a program as :meth:`evaluate` does, and does not wait: the answer has its ``id``.

        Example:
            >>> x = client.submit_evaluation("print(1)")
            >>> client.wait(x.id).status
            'completed'
        """
        return self._do(verbs.submit_evaluation({"source": source, "language": language, **options}, self._uploads.upload))

    # Executions.

    def submit(self, action: str, input: Any = None, **options: Any) -> api.Execution:
        """Accepts an execution of a registered action or workflow, and does not wait: the answer has its ``id``.

        Args:
            action: Its name, ``name@3`` or ``name@stable``.
            input: What it is given.
            **options: Any other field of ``POST /api/v1/executions``, such as ``labels``, ``priority``, ``timeout`` (seconds
                or timedelta), ``not_before`` (datetime), ``idempotency_key``.

        Raises:
            InvalidRequest: It was refused.

        Example:
            >>> x = client.submit("pipeline", {"day": "2026-11-28"}, labels={"team": "docs"})
        """
        return self._do(verbs.submit({"action": action, "input": input, **options}))

    def run(self, workflow: str, /, **input: Any) -> Any:
        """Runs a registered workflow or action with an input by keyword, waits, and returns its output.

        Raises:
            ExecutionFailed: It did not complete.
            InfraError: A worker or its machine failed.

        Example:
            >>> client.run("fanout", texts=["one fish two fish"])
        """
        return self._do(verbs.run(workflow, input))

    def get(self, id: str) -> api.Execution:
        """An execution, with input and output.

        Raises:
            NotFound: There is none with the id.
        """
        return self._do(verbs.get(id))

    def wait(self, id: str, timeout: float | None = None) -> api.Execution:
        """Waits for the end of an execution.

        Args:
            id: Of the execution.
            timeout: Seconds; without one it waits as long as it takes.

        Raises:
            TimeoutError: It had not ended by then.
            NotFound: There is none with the id.
        """
        return self._do(verbs.wait(id, timeout))

    def list(self, *, limit: int | None = None, **filters: Any) -> Iterator[api.Execution]:
        """Walks through executions, the newest first.

        Args:
            limit: Most of them.
            **filters: Parameters of ``GET /api/v1/executions``, such as ``status="failed"``, ``labels={"run": "17"}``,
                ``where="created > -1d"``, ``since`` (datetime), ``outputs=True``.

        Example:
            >>> [x.id for x in client.list(status="failed", limit=10)]
        """
        return self._iterate(verbs.executions(filters, limit))

    def count(self, labels: Mapping[str, str], *, evaluations: bool = False) -> api.Counts:
        """How many executions with a label there are, by status and verdict."""
        return self._do(verbs.count(labels, evaluations))

    def scores(self, labels: Mapping[str, str], *, by: Iterable[str] = (), task: str = "task", k: Iterable[int] = (1, 10, 100)) -> api.Scores:
        """Accuracy and pass@k of the evaluations with a label that have ended.

        Args:
            labels: The one label, as ``{"run": "17"}``.
            by: Labels by whose values they are grouped, up to four, as ``["model"]``. Without it there is one group.
            task: The label that names the task which a program is for.
            k: Of pass@k, up to 20 numbers from 1 to 10,000. One for which a task has too few programs is absent.

        Example:
            >>> [(g.labels, g.accuracy) for g in client.scores({"run": "17"}, by=["model"]).groups]
        """
        return self._do(verbs.scores(labels, by, task, k))

    def logs(self, id: str, *, follow: bool = False, stream: str | None = None, attempt: int | None = None) -> Iterator[api.LogChunk]:
        """Walks through what an execution wrote.

        Args:
            id: Of the execution.
            follow: Go on until it has ended, also after a lost connection.
            stream: ``stdout``, ``stderr`` or ``log``; all by default.
            attempt: Only this attempt, from 1.

        Example:
            >>> print("".join(chunk.text or "" for chunk in client.logs(id, stream="stdout")))
        """
        parameters = {"stream": stream, "attempt": attempt}
        if follow:
            return self._iterate(verbs.follow(verbs.one(id, "/logs"), "log", api.LogChunk, parameters))
        return self._iterate(verbs.pages(verbs.one(id, "/logs"), "chunks", api.LogChunk, parameters))

    def read_log(self, id: str, stream: str = "stdout", attempt: int = 0) -> bytes:
        """Everything that one stream of an attempt has so far, byte for byte; attempt 0 is the latest."""
        return self._do(verbs.read_log(id, stream, attempt))

    def events(self, id: str, *, follow: bool = False) -> Iterator[api.Event]:
        """Walks through the history of an execution, numbered without gaps; with ``follow`` until it has ended."""
        if follow:
            return self._iterate(verbs.follow(verbs.one(id, "/events"), "event", api.Event, {}))
        return self._iterate(verbs.pages(verbs.one(id, "/events"), "events", api.Event, {}))

    def file(self, id: str, path: str) -> bytes:
        """A file that an execution left, by its path in ``details.files``.

        Raises:
            NotFound: There is none of that name, or it is not kept any more.
        """
        return self._do(verbs.file(id, path))

    def why(self, id: str) -> api.Why:
        """What an execution waits for, who holds that, and what would unblock it.

        Example:
            >>> print(client.why(id).facts)
        """
        return self._do(verbs.why(id))

    def cancel(self, id: str, reason: str = "") -> api.Execution:
        """Ends an execution, and waits up to a minute for its worker to confirm it.

        Raises:
            Conflict: It had ended otherwise.
        """
        return self._do(verbs.end(id, "cancel", reason))

    def kill(self, id: str, reason: str = "") -> api.Execution:
        """As :meth:`cancel`, without time for the program to end by itself."""
        return self._do(verbs.end(id, "kill", reason))

    def retry(self, id: str) -> api.Execution:
        """The request of a finished execution again, as a new execution."""
        return self._do(verbs.again(id, "retry", {}))

    def rerun(self, id: str, **options: Any) -> api.Execution:
        """A finished execution again from where it failed, with the outcomes of what completed.

        Args:
            id: Of the execution.
            **options: ``from_`` (tasks that run again though they completed), ``only``, ``input``, ``outputs``,
                ``definition``, ``by``.
        """
        return self._do(verbs.again(id, "rerun", options))

    # Definitions, signals, questions, contents.

    def apply(self, document: str | bytes | Path, file: str = "") -> api.Defined:
        """Registers definitions: YAML as text, or its file as ``pathlib.Path``; all of them or none.

        Raises:
            InvalidRequest: With the line, the value and the fix of everything that is wrong.

        Example:
            >>> client.apply(pathlib.Path("examples/fanout.yaml"))
        """
        return self._do(verbs.apply(document, file))

    def emit(self, trigger: str, data: Any = None, *, key: str = "", subject: str = "", execution: str = "") -> api.Emitted:
        """Says that something has happened; the rules that it meets start executions.

        Args:
            trigger: What kind of thing, as in ``alert.fired``.
            data: Any JSON, of at most 1 MiB.
            key: The same content again under this key gives the same signal; a fresh one by default.
            subject: What it is about, such as a host.
            execution: Only for this execution, whose tasks may wait for it.
        """
        return self._do(verbs.emit(trigger, data, key, subject, execution))

    def answer(self, inquiry: str, answer: Any, *, by: str, note: str = "", groups: Iterable[str] = ()) -> api.Inquiry:
        """Answers a question that a task waits for.

        Raises:
            Conflict: Another answer stands, or it has expired.
            InvalidRequest: The answer does not fit the form.
        """
        return self._do(verbs.answer(inquiry, answer, by, note, groups))

    def upload(self, content: bytes | Path) -> str:
        """Sends a content ahead, and returns its name, ``sha256:…``, by which requests give it: ``{"blob": name}``.

        Contents of 64 KiB and more of :meth:`evaluate` and :meth:`map` are uploaded without this call.
        """
        return self._do(verbs.upload(content, self._uploads.upload))

    def upload_cases(self, cases: Iterable[Any]) -> str:
        """Sends a list of cases ahead, and returns its name, ``sha256:…``, which :meth:`evaluate` and :meth:`map` take as ``cases``.

        Samples of one problem then share one copy of its tests: up to 1,000 cases and 32 MiB. It is kept for a day, and as long as an
        execution names it.

        Example:
            >>> tests = client.upload_cases([("1 2", "3"), ("4 5", "9")])
            >>> client.evaluate("print(sum(map(int, input().split())))", cases=tests).passed
            True
        """
        return self._do(verbs.upload_cases(cases, self._uploads.upload))
