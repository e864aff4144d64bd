"""How the run of a program ended: a :class:`Result`, or an :class:`~pawl.InfraError` where there is no verdict of the program."""

from __future__ import annotations

import base64
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from .api import CaseResult, CodeResult
from .decode import decode
from .errors import InfraError

# The verdicts about the program itself. With any other verdict the sandbox, the checker or a person has ended it.
PROGRAM_VERDICTS = frozenset(
    "ok nonzero_exit signal timeout cpu_timeout oom output_limit compile_error syntax_error wrong_answer invalid_output".split()
)
_BROKEN_CASES = ("infra_error", "checker_error", "killed")


@dataclasses.dataclass(frozen=True)
class Result:
    """How a program ended.

    Attributes:
        id: Of the execution; begins with ``ex_``.
        verdict: ``ok``, ``wrong_answer``, ``nonzero_exit``, ``timeout``, ``cpu_timeout``, ``oom``, ``signal``,
            ``output_limit``, ``compile_error``, ``syntax_error`` or ``invalid_output``.
        message: Why it is not ``ok``, for people; empty where it is.
        item: Of :func:`pawl.map`: what was given for it. None of :func:`pawl.evaluate`.
        index: Of :func:`pawl.map`: its place in what was given, from 0.
        raw: The output of the execution as the server sent it.

    Example:
        >>> import pawl
        >>> r = pawl.evaluate("print(6*7)")
        >>> r.passed, r.stdout
        (True, '42\\n')
    """

    id: str
    verdict: str
    message: str
    raw: Mapping[str, Any]
    item: Any = None
    index: int = 0

    @property
    def passed(self) -> bool:
        """The program ended with 0, and each of its cases passed."""
        return self.verdict == "ok"

    @property
    def stdout(self) -> str:
        """The first 100 KB that it wrote to stdout; U+FFFD stands for what is not text. Of cases: empty, see ``cases``."""
        return str(self.raw.get("stdout", ""))

    @property
    def stderr(self) -> str:
        """As ``stdout``."""
        return str(self.raw.get("stderr", ""))

    @property
    def stdout_exact(self) -> bytes:
        """The same 100 KB, byte for byte."""
        encoded = self.raw.get("stdout_base64")
        return base64.b64decode(encoded) if encoded is not None else self.stdout.encode()

    @property
    def exit_code(self) -> int | None:
        """None where it did not end by itself."""
        return self.raw.get("exit_code")

    @property
    def cpu_ms(self) -> float:
        """User and system time, in milliseconds; of cases, together."""
        return float(self.raw.get("cpu_ms", 0))

    @property
    def wall_ms(self) -> float:
        """From start to end, in milliseconds; of cases, together."""
        return float(self.raw.get("wall_ms", 0))

    @property
    def peak_memory_bytes(self) -> int:
        """Most memory at once; of cases, the most of any."""
        return int(self.raw.get("peak_memory_bytes", 0))

    @property
    def value(self) -> Any:
        """The JSON value that the program wrote to the file named by ``$PAWL_OUTPUT``; None where it wrote none."""
        return self.raw.get("result")

    @property
    def cases(self) -> list[CaseResult]:
        """How each case ended, in their order; empty where none were given."""
        return self.details.cases or []

    @functools.cached_property
    def details(self) -> CodeResult:
        """Everything that the server says of the run."""
        return decode(CodeResult, self.raw)


def result_of(execution: Mapping[str, Any], item: Any = None, index: int = 0) -> Result | InfraError:
    """How an evaluation ended, from its execution as JSON."""
    error = execution.get("error") or {}
    verdict = execution.get("verdict") or error.get("code") or "ok"
    output = execution.get("output")
    message = str(error.get("message", ""))
    broken = ""
    if not isinstance(output, dict) or verdict not in PROGRAM_VERDICTS:
        broken = verdict
    else:
        for case in output.get("cases", ()):
            if case["verdict"] in _BROKEN_CASES:
                broken, message = case["verdict"], f"case {case['name']}: {case.get('message', '')}"
                break
    if not broken and isinstance(output, dict):
        return Result(str(execution["id"]), verdict, message, output, item, index)
    infra = InfraError(f"{execution['id']} has no verdict of the program: {broken}: {message}", code=broken, execution=execution)
    infra.item, infra.index = item, index
    return infra
