"""Reward functions for reinforcement learning, with the signatures that verl, TRL and open-r1 call.

A reward is the share of cases that pass. Where the box broke there is none, and :class:`pawl.InfraError` is raised after ``RETRY`` has been
tried: a zero would teach that a right program is wrong. All use :func:`pawl.default_client`, which bounds how much is under way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

# verl loads this file by its path, as a module without a package.
from pawl.errors import InvalidRequest, invalid

RETRY = {"max_attempts": 3, "on": ["infra_error", "worker_lost"], "delay": "1s"}
TIMEOUT = 10.0  # seconds for one case

_FENCE = re.compile(r"```([\w+#.-]*)[ \t]*\r?\n(.*?)```", re.S)


def extract(text: str, language: str = "python") -> str | None:
    """The last block of code in an answer: of the language, or without one.

    Example:
        >>> extract("Here:\\n```python\\nprint(1)\\n```")
        'print(1)\\n'
    """
    blocks = [code for said, code in _FENCE.findall(text) if said.lower() in (language, "", {"python": "py"}.get(language))]
    return blocks[-1] if blocks else None


def _text(completion: Any) -> str:
    """A completion as TRL gives it: a text, or messages of which the last is the answer."""
    if isinstance(completion, str):
        return completion
    if isinstance(completion, Sequence) and completion and isinstance(completion[-1], Mapping):
        return str(completion[-1].get("content") or "")
    raise invalid("completions", completion, f"a completion is not a {type(completion).__name__}", "give str, or a list of messages")


def _scores(tasks: Sequence[tuple[str | None, str, list[tuple[str, str]]]], timeout: float) -> list[float]:
    """The share of cases that pass, of each (source, language, cases)."""
    from pawl import default_client

    scores = [0.0] * len(tasks)
    given = [(i, source, language, cases) for i, (source, language, cases) in enumerate(tasks) if source]

    def program(item: tuple[int, str, str, list[tuple[str, str]]]) -> dict[str, Any]:
        return {"source": item[1], "language": item[2], "cases": item[3]}

    limits = {"cpu": timeout, "wall": 3 * timeout}
    for r in default_client().map(given, program=program, limits=limits, retry=RETRY):
        if isinstance(r, InvalidRequest) and r.place == "source":
            continue  # a text with NUL or half a surrogate is not a program
        _ = r.passed  # raises if the sandbox broke or the cases are wrong
        assert not isinstance(r, InvalidRequest)
        scores[r.item[0]] = sum(c.verdict == "ok" for c in r.cases) / len(r.item[3])  # type: ignore[union-attr]
    return scores


def _cases(place: str, pairs: Any) -> list[tuple[str, str]]:
    cases = [(str(a), str(b)) for a, b in pairs]
    if not cases:
        raise invalid(place, pairs, "there are no cases", "give one or more: without them everything would pass")
    return cases


def verl(data_source: Any, solution_str: str, ground_truth: Any, extra_info: Any = None, **options: Any) -> float:
    """A custom reward function of verl: ``custom_reward_function.path=…/pawl/rewards.py custom_reward_function.name=verl``.

    Args:
        data_source: Not looked at.
        solution_str: The answer; its last block of Python is the program, or all of it where there is none.
        ground_truth: ``{"inputs": […], "outputs": […]}``, also as JSON.
        extra_info: Not looked at.
        **options: ``timeout``: seconds of processor time of one case, 10 by default.

    Returns:
        The share of cases that pass, 0.0 to 1.0.

    Raises:
        InfraError: The box broke.
        InvalidRequest: The ground truth has no cases.

    Example:
        >>> verl("codecontests", "```python\\nprint(input())\\n```", {"inputs": ["1"], "outputs": ["1"]})
        1.0
    """
    truth = ground_truth
    if isinstance(truth, (str, bytes)):
        try:
            truth = json.loads(truth)
        except ValueError:
            truth = None
    if not isinstance(truth, Mapping) or len(truth.get("inputs", ())) != len(truth.get("outputs", ())) or truth.get("fn_name"):
        raise invalid("ground_truth", ground_truth, "is not inputs and as many outputs of programs", 'give {"inputs": ["1"], "outputs": ["2"]}')
    cases = _cases("ground_truth", zip(truth["inputs"], truth["outputs"], strict=True))
    return _scores([(extract(solution_str) or solution_str, "python", cases)], float(options.get("timeout", TIMEOUT)))[0]


def trl(completions: Sequence[Any], *, cases: Sequence[Any], language: str = "python", **columns: Any) -> list[float]:
    """A reward function of TRL's trainers: ``GRPOTrainer(reward_funcs=[pawl.rewards.trl])``.

    Args:
        completions: Texts, or lists of messages; the last block of code of each is the program.
        cases: The column ``cases`` of the data set: for each completion its ``[[stdin, expected], …]``.
        language: Of the programs.
        **columns: The other columns; not looked at.

    Returns:
        For each completion the share of its cases that pass; 0.0 where it has no block of code.

    Example:
        >>> trl(["```python\\nprint(int(input()) * 2)\\n```"], cases=[[["2", "4"], ["3", "7"]]])
        [0.5]
    """
    if len(cases) != len(completions):
        raise invalid("cases", cases, f"{len(cases)} for {len(completions)} completions", "give the cases of each completion")
    tasks = [(extract(_text(c), language), language, _cases(f"cases[{i}]", own)) for i, (c, own) in enumerate(zip(completions, cases, strict=True))]
    return _scores(tasks, TIMEOUT)


def open_r1(completions: Sequence[Any], **columns: Any) -> list[float]:
    """The reward ``code_reward`` of open-r1.

    Args:
        completions: Lists of messages, or texts.
        **columns: ``verification_info``: for each completion ``{"language": "python", "test_cases": [{"input": …, "output": …}]}``.

    Returns:
        For each completion the share of its cases that pass; 0.0 where it has no block of code.

    Example:
        >>> info = {"language": "python", "test_cases": [{"input": "1", "output": "1"}]}
        >>> open_r1([[{"role": "assistant", "content": "```python\\nprint(input())\\n```"}]], verification_info=[info])
        [1.0]
    """
    infos = columns.get("verification_info")
    if not isinstance(infos, Sequence) or len(infos) != len(completions):
        raise invalid("verification_info", infos, f"is not a list of {len(completions)}", "give it for each completion")
    tasks = []
    for i, (completion, info) in enumerate(zip(completions, infos, strict=True)):
        language = str(info.get("language") or "python").lower()
        cases = _cases(f"verification_info[{i}].test_cases", ((c["input"], c["output"]) for c in info["test_cases"]))
        tasks.append((extract(_text(completion), language), language, cases))
    return _scores(tasks, TIMEOUT)
