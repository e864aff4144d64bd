"""What goes wrong, as exceptions. The messages are the server's: they name the place, the value and the fix."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = [
    "Conflict",
    "ExecutionFailed",
    "Fault",
    "InfraError",
    "InvalidRequest",
    "NotFound",
    "PawlError",
    "SessionGone",
    "Unauthorized",
    "Unavailable",
]


class Fault:
    """One thing that is wrong with a request.

    Attributes:
        place: Where, as in ``limits.wall`` or ``cases[3].stdin``; empty where it is the whole.
        value: The value at fault, shortened; empty where none is.
        message: What is wrong with it.
        fix: What to do about it; empty where the message says so.
        line: Of a document, as in ``pipeline.yaml:3:1``; empty for other requests.
    """

    __slots__ = ("fix", "line", "message", "place", "value")

    def __init__(self, message: str, place: str = "", value: str = "", fix: str = "", line: str = "") -> None:
        self.place, self.value, self.message, self.fix, self.line = place, value, message, fix, line

    def __str__(self) -> str:
        text = ": ".join(filter(None, [self.line, self.place, self.message]))
        if self.value and self.value not in self.message:
            text += f" (got {self.value})"
        return f"{text}; {self.fix}" if self.fix else text

    def __repr__(self) -> str:
        return f"Fault({str(self)!r})"


class PawlError(Exception):
    """Everything that this package raises.

    Attributes:
        status: The HTTP status of the server's answer; 0 where there was none.
        type: What kind of problem it is, as in ``urn:pawl:problem:not-found``; stable.
        request_id: By which the server's log knows the request.
    """

    def __init__(self, message: str, *, status: int = 0, type: str = "", request_id: str = "") -> None:
        super().__init__(message)
        self.status, self.type, self.request_id = status, type, request_id


class _NoVerdict(PawlError):
    """Stands in a stream of results where a program has none, so that a missing verdict cannot be counted as a zero."""

    item: Any = None
    index: int = -1

    def _raise(self) -> NoReturn:
        raise self

    @property
    def passed(self) -> bool:
        """Raises this error: there is no verdict."""
        self._raise()

    @property
    def stdout(self) -> str:
        """Raises this error: there is no output."""
        self._raise()

    @property
    def stderr(self) -> str:
        """Raises this error: there is no output."""
        self._raise()

    @property
    def verdict(self) -> str:
        """The code of the error: why there is no verdict of the program."""
        return "refused"


class InvalidRequest(_NoVerdict):
    """A request that cannot be carried out as it is.

    ``place``, ``value`` and ``fix`` are those of the first fault; ``faults`` has all. As a result of :func:`pawl.map`
    it has the ``item`` that was refused.
    """

    def __init__(
        self,
        message: str = "",
        *,
        faults: list[Fault] | None = None,
        status: int = 0,
        type: str = "",
        request_id: str = "",
    ) -> None:
        self.faults = faults or [Fault(message)]
        super().__init__(message or "\n  ".join(str(f) for f in self.faults), status=status, type=type, request_id=request_id)

    @property
    def place(self) -> str:
        """Where the first fault is, as in ``limits.wall``."""
        return self.faults[0].place

    @property
    def value(self) -> str:
        """The value at fault, shortened."""
        return self.faults[0].value

    @property
    def fix(self) -> str:
        """What to do about the first fault."""
        return self.faults[0].fix


class NotFound(PawlError):
    """There is no such execution, definition, file or question."""


class Conflict(PawlError):
    """Things do not stand as the call needs them: it has ended already, not ended yet, or another answer stands."""


class Unauthorized(PawlError):
    """The server wants a token, or another one."""


class Unavailable(PawlError):
    """The server could not be reached, or could not work, for as long as the client's ``patience``."""


class InfraError(_NoVerdict):
    """The box broke, and not the program: there is no verdict, and above all no zero.

    Attributes:
        code: Why, as in ``infra_error``, ``worker_lost``, ``cancelled`` or ``checker_error``.
        execution: The execution that ended so; None where it is not known.
        item, index: Of :func:`pawl.map`: what was to run, and its place in the input, from 0.
    """

    def __init__(self, message: str, *, code: str = "infra_error", execution: Any = None) -> None:
        super().__init__(message)
        self.code, self.execution = code, execution

    @property
    def verdict(self) -> str:
        """The code of the error."""
        return self.code


class ExecutionFailed(PawlError):
    """A workflow or action that :meth:`pawl.Client.run` waited for did not complete.

    Attributes:
        code: Why, as in ``task_failed`` or ``timeout``; stable.
        execution: How it ended.
    """

    def __init__(self, message: str, *, code: str, execution: Any) -> None:
        super().__init__(message)
        self.code, self.execution = code, execution


class SessionGone(PawlError):
    """The session has ended."""


def invalid(place: str, value: object, message: str, fix: str) -> InvalidRequest:
    """An error of an argument, made before anything is sent."""
    shown = repr(value)
    if len(shown) > 80:
        shown = shown[:77] + "..."
    return InvalidRequest(faults=[Fault(message, place, shown, fix)])


def python_value(value: object, otherwise: str) -> str:
    """The fix for a value of another type than Python's own: numpy and enum have a way to the value that was meant."""
    if hasattr(value, "tolist"):
        return "give value.tolist(), which is a value of Python"
    return "give its .value" if isinstance(value, enum.Enum) else otherwise


def from_problem(status: int, problem: Mapping[str, Any]) -> PawlError:
    """The error that a problem document of the server says.

    Args:
        status: The HTTP status.
        problem: The document (RFC 9457).
    """
    faults = [Fault(e.get("message", ""), e.get("path", ""), e.get("value", ""), e.get("fix", ""), _line(e)) for e in problem.get("errors", ())]
    text = str(problem.get("detail") or problem.get("title") or f"the server answered {status}")
    known = {"status": status, "type": str(problem.get("type", "")), "request_id": str(problem.get("request_id", ""))}
    if status in (400, 413, 415, 422):
        return InvalidRequest("" if faults else text, faults=faults or [Fault(text)], **known)  # type: ignore[arg-type]
    kinds: dict[int, type[PawlError]] = {401: Unauthorized, 403: Unauthorized, 404: NotFound, 405: NotFound, 409: Conflict}
    kind = kinds.get(status, Unavailable if status == 429 or status >= 500 else PawlError)
    return kind("\n  ".join([text, *map(str, faults)]), **known)  # type: ignore[arg-type]


def _line(error: Mapping[str, Any]) -> str:
    # This package wrote the body, so its line numbers mean nothing to callers.
    if not error.get("line") or error.get("file") == "body":
        return ""
    return f"{error.get('file') or 'line'}:{error['line']}:{error.get('column', 1)}"
