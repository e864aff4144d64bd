import importlib.util
import json
import math
import os
import pathlib

import pytest

import pawl
from pawl import code_eval, rewards

HUMANEVAL = pathlib.Path(__file__).resolve().parents[4] / "shared" / "data" / "humaneval.jsonl"


@pytest.fixture(autouse=True)
def default(client, monkeypatch):
    monkeypatch.setattr(pawl, "_default", client)


def test_shape():
    tests, candidates = ["assert add(2,3)==5"], [["def add(a,b): return a*b", "def add(a, b): return a+b"]]
    pass_at_k, results = code_eval.compute(references=tests, predictions=candidates, k=[1, 2, 10])
    assert pass_at_k == {"pass@1": 0.5, "pass@2": 1.0}
    assert results == {
        0: [
            (0, {"task_id": 0, "passed": False, "result": "failed: ", "completion_id": 0}),
            (1, {"task_id": 0, "passed": True, "result": "passed", "completion_id": 1}),
        ]
    }


# A program, a test, and the metric's result for them.
FAMILIES = [
    ("def f(x): return x + {n}", "assert f(1) == 1 + {n}", "passed"),
    ("def f(x): return x - {n} - 1", "assert f(1) == 1 + {n}, 'off by {n}'", "failed: off by {n}"),
    ("def f(x):\n return x +", "f({n})", "failed: invalid syntax"),
    ("print({n}); import sys; print(1, file=sys.stderr)", "", "passed"),
    ("input()", "f({n})", "failed: "),
    ("import sys; sys.exit({n} % 2)", "", "failed: {odd}"),
    ("exit()", "f({n})", "failed: 'NoneType' object is not callable"),
    ("raise KeyboardInterrupt('{n}')", "", "failed: {n}"),
    ("def f(x): return f(x)", "f({n})", "failed: maximum recursion depth exceeded"),
    ("if __name__ == '__main__': 1/0", "assert __name__ == 'builtins'", "passed"),
    ("x = 'h\u00e9 \U0001f600 {n}'", "assert len(x) == 5 + len('{n}')", "passed"),
    ("import json, math, re, collections", "assert math.floor({n}.5) == {n}", "passed"),
    ("x = 1\n\0", "f({n})", "failed: source code string cannot contain null bytes"),
    ("import signal\ntry:\n  raise ValueError({n})\nexcept Exception as e:\n  x = e", "assert x.args == ({n},)", "passed"),
]
SLOW = ("while True: pass", "", "timed out")


def generated(count):
    made = [[part.replace("{n}", str(i)).replace("{odd}", str(i % 2)) for part in FAMILIES[i % len(FAMILIES)]] for i in range(count - 2)]
    return [*made, list(SLOW), ["import time; time.sleep(60)", "", "timed out"]]


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_generated(count):
    programs = generated(count)
    _, results = code_eval.compute([test for _, test, _ in programs], [[source] for source, _, _ in programs], k=[1], timeout=3.0)
    assert len(results) == count
    for task, (source, _, want) in enumerate(programs):
        entry = results[task][0][1]
        assert entry["result"].startswith(want), (source, entry)
        assert entry["passed"] == (want == "passed")


@pytest.mark.long
@pytest.mark.skipif(not HUMANEVAL.exists(), reason="the HumanEval problems are not here")
def test_humaneval():
    tasks = [json.loads(line) for line in HUMANEVAL.read_text().splitlines()]
    right = [t["prompt"] + t["canonical_solution"] for t in tasks]
    wrong = [t["prompt"] + "    return 'no'\n" for t in tasks]
    tests = [f"{t['test']}\ncheck({t['entry_point']})" for t in tasks]
    pass_at_k, results = code_eval.compute(tests, [list(pair) for pair in zip(right, wrong, strict=True)], k=[1, 2], timeout=10.0)
    assert pass_at_k == {"pass@1": 0.5, "pass@2": 1.0}
    assert {tuple(e["passed"] for _, e in entries) for entries in results.values()} == {(True, False)}


def test_a_program_cannot_end_the_file_early():
    ends = ["import os; os._exit(0)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "x = bytearray(10**9)"]
    _, results = code_eval.compute(["assert False"] * 3, [[e] for e in ends])
    assert not any(e["passed"] for entries in results.values() for _, e in entries)


def test_a_broken_box_is_never_a_zero(monkeypatch):
    monkeypatch.setattr("pawl.client.Client.map", lambda *_, **__: iter([pawl.InfraError("the box broke")]))
    for grade in (
        lambda: code_eval.compute(["assert True"], [["x = 1"]]),
        lambda: rewards.verl("", "```python\nprint(1)\n```", {"inputs": [""], "outputs": ["1"]}),
        lambda: rewards.trl(["```python\nprint(1)\n```"], cases=[[("", "1")]]),
    ):
        with pytest.raises(pawl.InfraError):
            grade()


@pytest.mark.parametrize(
    ("mistake", "place"),
    [
        (lambda: code_eval.compute(["assert True"], ["x = 1"]), "predictions[0]"),
        (lambda: code_eval.compute("assert True", [["x = 1"]]), "references"),
        (lambda: code_eval.compute(["a"], [["x"]], timeout=0), "timeout"),
        (lambda: code_eval.compute(["a"], [["x"]], limits={"wal": 1}), "limits.wal"),
        (lambda: rewards.verl("", "x", "no JSON"), "ground_truth"),
        (lambda: rewards.verl("", "x", {"inputs": [], "outputs": []}), "ground_truth"),
        (lambda: rewards.trl(["x"], cases=[]), "cases"),
        (lambda: rewards.trl([5], cases=[[("", "1")]]), "completions"),
        (lambda: rewards.open_r1(["x"]), "verification_info"),
    ],
)
def test_mistakes(mistake, place):
    with pytest.raises(pawl.InvalidRequest) as e:
        mistake()
    assert e.value.place == place


def test_pass_at_k():
    assert code_eval.pass_at_k(2, 1, 1) == 0.5
    assert code_eval.pass_at_k(200, 3, 10) == pytest.approx(1 - math.comb(197, 10) / math.comb(200, 10))
    assert code_eval.pass_at_k(5, 4, 2) == 1.0


FENCED = "Think.\n```python\nprint(int(input()) * 2)\n```\nDone."
CASES = [["2", "4"], ["3", "7"]]


def test_rewards():
    messages = [{"role": "assistant", "content": FENCED}]
    assert rewards.trl(prompts=["a", "b", "c"], completions=[FENCED, messages, "no code"], cases=[CASES] * 3) == [0.5, 0.5, 0.0]
    info = {"language": "Python", "test_cases": [{"input": a, "output": b} for a, b in CASES]}
    assert rewards.open_r1([messages, messages], prompts=["a", "b"], verification_info=[info, info]) == [0.5, 0.5]
    truth = {"inputs": ["2", "3"], "outputs": ["4\n", "6\n"]}
    assert rewards.verl("codecontests", FENCED, json.dumps(truth), extra_info={}) == 1.0
    assert rewards.verl(data_source="x", solution_str="print(4)", ground_truth=truth) == 0.5
    assert rewards.trl(["```bash\necho 4\n```"], cases=[CASES], language="bash") == [0.5]
    assert rewards.trl(["```python\nx\0\n```"], cases=[CASES]) == [0.0]
    assert rewards.trl(["```bash\necho 4\n```", FENCED], cases=[CASES] * 2, language=["bash", "python"]) == [0.5, 0.5]


def test_verl_loads_the_file_by_its_path():
    spec = importlib.util.spec_from_file_location("custom_module", rewards.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.verl("x", FENCED, {"inputs": ["2"], "outputs": ["4"]}) == 1.0


def test_rewards_in_forked_workers(shared, monkeypatch):
    monkeypatch.setenv("PAWL_SERVER", shared.url)
    monkeypatch.setattr(pawl, "_default", None)
    assert rewards.trl([FENCED], cases=[CASES]) == [0.5]
    if (child := os.fork()) == 0:
        os._exit(0 if rewards.trl([FENCED], cases=[CASES]) == [0.5] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    pawl._default.close()
