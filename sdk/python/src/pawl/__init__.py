"""Pawl from Python: run programs that are not trusted, thousands at a time, and the workflows around them.

    import pawl

    print(pawl.evaluate("print(6*7)").stdout)
    for r in pawl.map(programs, cases=cases, limits={"wall": 2}):
        score(r.item, r.passed)

The functions of the package use one :class:`Client` of the process, made at the first call: of the server that ``PAWL_SERVER`` names, or of the
local one, which is started where there is none. :class:`AsyncClient` has the same verbs for asyncio. ``pawl.code_eval`` and ``pawl.rewards``
grade as harnesses call graders; ``pawl.testing`` has fixtures for pytest.

Handlers of tasks (``serve``) and interactive sessions (``session``) are not part of this version.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from . import api, code_eval, rewards
from .aio import AsyncClient
from .call import Call
from .client import Client
from .errors import (
    Conflict,
    ExecutionFailed,
    Fault,
    InfraError,
    InvalidRequest,
    NotFound,
    PawlError,
    SessionGone,
    Unauthorized,
    Unavailable,
)
from .result import Result
from .version import __version__

_VERBS = (
    "answer apply cancel count emit evaluate events file get kill list logs map read_log rerun retry run scores "
    "submit submit_evaluation upload upload_cases wait why"
).split()

__all__ = [
    "AsyncClient",
    "Call",
    "Client",
    "Conflict",
    "ExecutionFailed",
    "Fault",
    "InfraError",
    "InvalidRequest",
    "NotFound",
    "PawlError",
    "Result",
    "SessionGone",
    "Unauthorized",
    "Unavailable",
    "__version__",
    "answer",
    "api",
    "apply",
    "cancel",
    "code_eval",
    "count",
    "default_client",
    "emit",
    "evaluate",
    "events",
    "file",
    "get",
    "kill",
    "list",
    "logs",
    "map",
    "read_log",
    "rerun",
    "retry",
    "rewards",
    "run",
    "scores",
    "submit",
    "submit_evaluation",
    "upload",
    "upload_cases",
    "wait",
    "why",
]  # fmt: skip

_default: Client | None = None
_lock = threading.Lock()


def default_client() -> Client:
    """The client that the functions of the package use."""
    global _default
    with _lock:
        if _default is None:
            _default = Client()
        return _default


if TYPE_CHECKING:
    _typed = Client()
    answer, apply, cancel, count, emit = _typed.answer, _typed.apply, _typed.cancel, _typed.count, _typed.emit
    evaluate, events, file, get, kill = _typed.evaluate, _typed.events, _typed.file, _typed.get, _typed.kill
    list, logs, map, read_log, rerun = _typed.list, _typed.logs, _typed.map, _typed.read_log, _typed.rerun
    retry, run, scores, submit, submit_evaluation = _typed.retry, _typed.run, _typed.scores, _typed.submit, _typed.submit_evaluation
    upload, upload_cases, wait, why = _typed.upload, _typed.upload_cases, _typed.wait, _typed.why
else:

    def _verb(name: str) -> Any:
        import functools
        import inspect

        method = getattr(Client, name)

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(default_client(), name)(*args, **kwargs)

        signature = inspect.signature(method)
        call.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])
        call.__qualname__ = name
        call.__module__ = __name__
        del call.__wrapped__
        return call

    for _name in _VERBS:
        globals()[_name] = _verb(_name)
