"""Grading as Hugging Face's metric ``code_eval`` does, in sandboxes: asserts that follow a program in one file.

A program that was written to cheat can end such a file early, or say that it has passed: what it must not know must not be in its sandbox. Grade
programs that have not been read with ``cases`` of :func:`pawl.map` instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .client import Client
from .errors import InvalidRequest, invalid

__all__ = ["compute", "pass_at_k"]

# Runs the file program.py as code_eval does: within a timer, as text without a module, with text streams that keep the output and
# cannot be read. The value of the run says how the program ended; a program that ends the process leaves no value.
HARNESS = """
import io, json, os, signal, sys

class Timeout(Exception):
    pass

class Stream(io.StringIO):
    def read(self, *args):
        raise OSError
    readline = readlines = read
    def readable(self, *args):
        return False

def expired(*args):
    raise Timeout("Timed out!")

said, seconds = os.environ.pop("PAWL_OUTPUT"), float(sys.argv[1])
with open("program.py", encoding="utf-8", newline="") as f:
    program = f.read()
os.remove("program.py")
streams = sys.stdin, sys.stdout, sys.stderr
sys.stdin = sys.stdout = sys.stderr = Stream()
import builtins
builtins.exit = builtins.quit = None
signal.signal(signal.SIGALRM, expired)
try:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        exec(program, {})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    result = "passed"
except Timeout:
    result = "timed out"
except BaseException as e:
    result = f"failed: {e}"
sys.stdin, sys.stdout, sys.stderr = streams
with open(said, "w") as f:
    json.dump(result, f)
"""

START = 5.0  # seconds beyond the time limit: a busy machine needs time to start an interpreter, and the inner timer should decide


def compute(
    references: Sequence[str],
    predictions: Sequence[Sequence[str]],
    k: Sequence[int] | int = (1, 10, 100),
    num_workers: int = 0,
    timeout: float = 3.0,
    *,
    client: Client | None = None,
    limits: Mapping[str, Any] | None = None,
) -> tuple[dict[str, float], dict[int, list[tuple[int, dict[str, Any]]]]]:
    """Grades programs by tests that follow them in one file, in sandboxes.

    Args:
        references: One test for each task: Python that raises where a program is wrong.
        predictions: For each task its candidates.
        k: Of which pass@k is estimated; left out where a task has fewer candidates.
        num_workers: Most programs under way at once; 0: as many as keep the server's slots busy.
        timeout: Seconds of a program with its test.
        client: By default that of the process.
        limits: Further limits, as ``{"memory": "1GB"}``.

    Returns:
        ``({"pass@1": 0.5}, {0: [(0, {"task_id": 0, "passed": True, "result": "passed", "completion_id": 0}), …]})``, as the
        metric does. ``result`` is ``passed``, ``timed out`` or ``failed: …``.

    Raises:
        InfraError: The box broke: there is no verdict of a program, and so none of the whole.
        InvalidRequest: An argument that cannot be meant.

    Example:
        >>> pawl.code_eval.compute(["assert add(2, 3) == 5"], [["def add(a, b): return a * b", "def add(a, b): return a + b"]], k=[1, 2])[0]
        {'pass@1': 0.5, 'pass@2': 1.0}
    """
    for name, given, fix in (("references", references, '["assert add(2, 3) == 5"]'), ("predictions", predictions, "[[program]]")):
        if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
            raise invalid(name, given, f"is not a list, and of type {type(given).__name__}", f"give a list, as {fix}")
    if len(references) != len(predictions):
        raise invalid("predictions", predictions, f"{len(predictions)} for {len(references)} references", "give candidates for each")
    ks = list(k) if isinstance(k, Iterable) else [k]
    if not all(isinstance(n, int) and n > 0 for n in ks):
        raise invalid("k", k, "is not a list of whole numbers from 1", "give one, as [1, 10]")
    for task, (candidates, test) in enumerate(zip(predictions, references, strict=True)):
        if not isinstance(test, str):
            raise invalid(f"references[{task}]", test, f"a test is of type {type(test).__name__}", "give its text as str")
        if isinstance(candidates, (str, bytes)) or not isinstance(candidates, Sequence):
            raise invalid(
                f"predictions[{task}]", candidates, f"candidates are not a {type(candidates).__name__}", "give a list of candidates, as [[program]]"
            )
        for completion, candidate in enumerate(candidates):
            if not isinstance(candidate, str):
                place = f"predictions[{task}][{completion}]"
                raise invalid(
                    place, candidate, f"a candidate is of type {type(candidate).__name__}", 'give its text as str; "" is a program that fails'
                )
    if isinstance(num_workers, bool) or not isinstance(num_workers, int) or num_workers < 0:
        raise invalid("num_workers", num_workers, "is not a number of programs", "give a whole number, as 4, or 0 for the server's slots")
    if not isinstance(timeout, (int, float)) or not 0 < timeout <= 3600:
        raise invalid("timeout", timeout, "is not a number of seconds above 0", "give seconds, as 3.0")
    if client is None:
        from . import default_client

        client = default_client()

    def items() -> Iterator[tuple[int, int, str]]:
        for task, (candidates, test) in enumerate(zip(predictions, references, strict=True)):
            for completion, candidate in enumerate(candidates):
                yield task, completion, f"{candidate}\n{test}"

    def program(item: tuple[int, int, str]) -> dict[str, Any]:
        # A file keeps a lone surrogate, which the text of a request could not carry: Python then refuses the program, as a fault of its own.
        return {"source": HARNESS, "files": {"program.py": item[2].encode("utf-8", "surrogatepass")}, "args": [repr(float(timeout))]}

    results: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    window = {"window": num_workers} if num_workers else {}
    mine = {"wall": timeout + START, "cpu": timeout + START, **(limits or {})}
    for r in client.map(items(), program=program, limits=mine, **window):  # type: ignore[arg-type]
        if isinstance(r, InvalidRequest):
            raise r
        _ = r.passed  # raises if the sandbox broke
        assert not isinstance(r, InvalidRequest)
        task, completion, _ = r.item
        result = _result(r)
        entry = {"task_id": task, "passed": result == "passed", "result": result, "completion_id": completion}
        results.setdefault(task, []).append((completion, entry))
    for entries in results.values():
        entries.sort(key=lambda e: e[0])
    counts = [(len(e), sum(entry["passed"] for _, entry in e)) for e in results.values()]
    return {f"pass@{n}": math.fsum(pass_at_k(total, passed, n) for total, passed in counts) / len(counts)
            for n in ks if counts and all(total >= n for total, _ in counts)}, results  # fmt: skip


def _result(r: Any) -> str:
    if isinstance(r.value, str):
        return r.value
    if r.verdict in ("timeout", "cpu_timeout"):
        return "timed out"
    return f"failed: {r.message or 'the program has ended its process'}"


def pass_at_k(total: int, passed: int, k: int) -> float:
    """The estimate without bias of how likely one of k candidates passes, of which so many of a total did.

    Example:
        >>> pass_at_k(2, 1, 1)
        0.5
    """
    if total - passed < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / n for n in range(total - passed + 1, total + 1))
