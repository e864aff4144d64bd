"""Reward functions for reinforcement learning, with the signatures that verl, TRL and open-r1 call.

A reward is the share of cases that pass. Where the box broke there is none, and :class:`pawl.InfraError` is raised after ``RETRY`` has been
tried: a zero would teach that a right program is wrong. All use :func:`pawl.default_client`, which bounds how much is under way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
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


def _completions(completions: Sequence[Any]) -> Sequence[Any]:
    if isinstance(completions, (str, bytes)) or not isinstance(completions, Sequence):
        raise invalid("completions", completions, f"completions are a list, not of type {type(completions).__name__}", "give [completion] for one")
    return completions


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


def _given(place: str, value: Any, count: int) -> Sequence[Any]:
    """One value for each completion."""
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise invalid(place, value, f"is not a list of {count}", "give one for each completion")
    if len(value) != count:
        raise invalid(place, value, f"{len(value)} for {count} completions", "give one for each completion")
    values: Sequence[Any] = value
    return values


def _cases(place: str, pairs: Any) -> list[tuple[str, str]]:
    fix = 'give [[stdin, expected], …], for example [["2", "4"]]'
    if not isinstance(pairs, Iterable) or isinstance(pairs, (str, bytes, Mapping)):
        raise invalid(place, pairs, "is not a list of cases", fix)
    cases = []
    for i, pair in enumerate(pairs):
        if isinstance(pair, (str, bytes, Mapping)) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise invalid(f"{place}[{i}]", pair, "is not a pair of input and expected output", fix)
        for value in pair:
            if not isinstance(value, (str, int, float)) or isinstance(value, bool):  # str() of others is not the text that a program reads or writes
                raise invalid(f"{place}[{i}]", value, f"an input or output is of type {type(value).__name__}", "give its text as str")
        cases.append((str(pair[0]), str(pair[1])))
    if not cases:
        raise invalid(place, [], "there are no cases", "give one or more: without them everything would pass")
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
    fix = 'give {"inputs": ["1"], "outputs": ["2"]}'
    if not isinstance(truth, Mapping) or not {"inputs", "outputs"} <= set(truth):
        raise invalid("ground_truth", ground_truth, "is not an object with inputs and outputs", fix)
    if truth.get("fn_name"):
        raise invalid(
            "ground_truth.fn_name",
            truth["fn_name"],
            "names a function, and this reward runs whole programs",
            "leave such problems out of the data set",
        )
    sides = [list(truth[name]) if isinstance(truth[name], Iterable) and not isinstance(truth[name], str) else None for name in ("inputs", "outputs")]
    if sides[0] is None or sides[1] is None or len(sides[0]) != len(sides[1]):
        raise invalid("ground_truth", ground_truth, "does not have as many outputs as inputs", fix)
    cases = _cases("ground_truth", zip(sides[0], sides[1], strict=True))
    return _scores([(extract(solution_str) or solution_str, "python", cases)], float(options.get("timeout", TIMEOUT)))[0]


def trl(completions: Sequence[Any], *, cases: Sequence[Any], language: str | Sequence[str] = "python", **columns: Any) -> list[float]:
    """A reward function of TRL's trainers: ``GRPOTrainer(reward_funcs=[pawl.rewards.trl])``.

    Args:
        completions: Texts, or lists of messages; the last block of code of each is the program.
        cases: The column ``cases`` of the data set: for each completion its ``[[stdin, expected], …]``.
        language: Of all programs, or the column ``language`` of the data set.
        **columns: The other columns; not looked at.

    Returns:
        For each completion the share of its cases that pass; 0.0 where it has no block of code.

    Example:
        >>> trl(["```python\\nprint(int(input()) * 2)\\n```"], cases=[[["2", "4"], ["3", "7"]]])
        [0.5]
    """
    completions = _completions(completions)
    languages = _given("language", [language] * len(completions) if isinstance(language, str) else language, len(completions))
    tasks = []
    for i, (completion, own, spoken) in enumerate(zip(completions, _given("cases", cases, len(completions)), languages, strict=True)):
        if not isinstance(spoken, str):
            raise invalid(f"language[{i}]", spoken, f"a language is of type {type(spoken).__name__}", 'give its name, for example "python"')
        tasks.append((extract(_text(completion), spoken), spoken, _cases(f"cases[{i}]", own)))
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
    completions = _completions(completions)
    infos = _given("verification_info", columns.get("verification_info"), len(completions))
    tasks = []
    for i, (completion, info) in enumerate(zip(completions, infos, strict=True)):
        place = f"verification_info[{i}]"
        if not isinstance(info, Mapping) or not isinstance(info.get("test_cases"), Sequence):
            raise invalid(
                place, info, "is not an object with test_cases", 'give {"language": "python", "test_cases": [{"input": "1", "output": "2"}]}'
            )
        language = str(info.get("language") or "python").lower()
        pairs = []
        for j, case in enumerate(info["test_cases"]):
            at = f"{place}.test_cases[{j}]"
            if not isinstance(case, Mapping) or not {"input", "output"} <= set(case):
                raise invalid(at, case, "is not an object with input and output", 'give {"input": "1", "output": "2"}')
            if case.get("fn_name") or case.get("type") not in (None, "stdin_stdout"):
                raise invalid(
                    at, case, "calls a function, and this reward runs whole programs", 'leave out all but test cases of type "stdin_stdout"'
                )
            pairs.append((case["input"], case["output"]))
        tasks.append((extract(_text(completion), language), language, _cases(f"{place}.test_cases", pairs)))
    return _scores(tasks, TIMEOUT)
