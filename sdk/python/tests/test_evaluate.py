import datetime
import pathlib

import pytest

import pawl
from pawl import verbs


def test_the_two_lines(pawl):
    assert pawl.evaluate("print(6*7)").stdout == "42\n"
    results = sorted(pawl.map(["print(1)", "print(2)"], cases=[("", "1")], limits={"wall": 2}), key=lambda r: r.index)
    assert [(r.item, r.passed) for r in results] == [("print(1)", True), ("print(2)", False)]


@pytest.mark.parametrize(
    ("source", "verdict", "options"),
    [
        ("print(1)", "ok", {}),
        ("raise SystemExit(3)", "nonzero_exit", {}),
        ("while True: pass", "timeout", {"limits": {"wall": 0.5}}),
        ("import time; time.sleep(9)", "timeout", {"limits": {"wall": datetime.timedelta(milliseconds=300)}}),
        ("x = [0] * 10**9", "oom", {"limits": {"memory": "64MB"}}),
        ("import os; os.kill(os.getpid(), 11)", "signal", {}),
        ("print('x' * 10**6)", "output_limit", {"limits": {"output": 1000}}),
        ("def (", "syntax_error", {}),
        ("print(2)", "wrong_answer", {"cases": [("", "1")]}),
    ],
)
def test_a_program_that_fails_is_a_result(client, source, verdict, options):
    r = client.evaluate(source, **options)
    assert (r.verdict, r.passed) == (verdict, verdict == "ok")
    assert (r.message == "") == r.passed
    assert r.id.startswith("ex_")


def test_contents(client, tmp_path):
    big = b"1" * 300_000
    (tmp_path / "in.bin").write_bytes(b"\x00\xff" * 40_000)
    (tmp_path / "main.py").write_text("import sys; print(len(sys.stdin.buffer.read()), len(open('a', 'rb').read()), open('b').read(), sys.argv[1:])")
    r = client.evaluate(tmp_path / "main.py", stdin=big, files={"a": tmp_path / "in.bin", "b": "text"}, args=["x", "y"])
    assert r.stdout == "300000 80000 text ['x', 'y']\n"
    r = client.evaluate("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())", stdin=b"\xff\x00")
    assert r.stdout_exact == b"\xff\x00"
    name = client.upload(big)
    assert client.upload(big) == name == client.upload(_file(tmp_path, big))
    assert client.evaluate("print(len(input()))", stdin={"blob": name}).stdout == "300000\n"


def _file(directory: pathlib.Path, content: bytes) -> pathlib.Path:
    (directory / "content").write_bytes(content)
    return directory / "content"


def test_cases(client):
    calls = [
        {"call": {"function": "pair", "args": (1, [2.5]), "expect": [1, [2.5]]}},
        {"call": {"function": "pair", "args": [1, None], "expect": [1]}},
    ]
    r = client.evaluate("def pair(a, b): return (a, b)", cases=calls)
    assert [c.verdict for c in r.cases] == ["ok", "wrong_answer"]
    assert r.cases[1].message == "pair: [1]: got null, expected (nothing)"
    r = client.evaluate("print(int(input()) * 2)", cases=[("1", "2"), {"name": "two", "stdin": "2", "expect": b"5"}])
    assert not r.passed
    assert [(c.name, c.verdict) for c in r.cases] == [("1", "ok"), ("two", "wrong_answer")]
    assert r.cases[1].mismatch.got == '"4"'
    assert r.details.summary.passed == 1


def test_cases_are_uploaded_once_and_named(client):
    tests = [("1 2", "3"), {"name": "bytes", "stdin": b"4 5", "expect": b"9"}, ("0 " * 50_000, "0")]
    name = client.upload_cases(tests)
    assert name == client.upload_cases(iter(tests))
    right, wrong = "print(sum(map(int, input().split())))", "print(3)"
    for cases in (name, {"set": name}):
        assert [c.verdict for c in client.evaluate(right, cases=cases).cases] == ["ok"] * 3
    assert {r.item: r.passed for r in client.map([right, wrong], cases=name)} == {right: True, wrong: False}


def test_interactor(client):
    judge = "import sys, secret\nprint(open(sys.argv[1]).read(), flush=True)\nsys.exit(0 if input() == secret.of(2) else 'not the double')"
    compare = {
        "interactor": {"language": "python", "source": judge, "files": {"secret.py": b"def of(n): return str(7 * n)\n"}, "limits": {"wall": 5}}
    }
    r = client.evaluate("print(int(input()) * 2)", cases=[("7", None)], compare=compare)
    assert [(t.by, t.text) for t in r.cases[0].transcript] == [("interactor", "7\n"), ("program", "14\n")]
    assert r.passed
    r = client.evaluate("print(input())", cases=[{"stdin": "7"}], compare=compare)
    assert (r.verdict, r.cases[0].message) == ("wrong_answer", "not the double")


def test_scores(client):
    for model, task, source in [("a", "1", "1"), ("a", "1", "1/0"), ("b", "1", "1"), ("b", "2", "1")]:
        client.evaluate(source, labels={"test": "scores", "model": model, "task": task})
    (everything,) = client.scores({"test": "scores"}, k=[1]).groups
    assert (everything.judged, everything.passed, everything.accuracy, everything.tasks) == (4, 3, 0.75, 2)
    groups = {g.labels["model"]: g for g in client.scores({"test": "scores"}, by=["model"], k=(1, 2)).groups}
    assert [(p.k, p.value) for p in groups["a"].pass_at] == [(1, 0.5), (2, 1.0)]
    assert [(p.k, p.value) for p in groups["b"].pass_at] == [(1, 1.0)]


def test_a_broken_checker_is_never_a_zero(client):
    checker = {"checker": {"language": "python", "source": "raise SystemExit(7)"}}
    with pytest.raises(pawl.InfraError) as e:
        client.evaluate("print(1)", cases=[("", "1")], compare=checker)
    assert e.value.code == "checker_error"
    assert e.value.execution.status == "failed"
    (r,) = client.map(["print(1)"], cases=[("", "1")], compare=checker)
    assert isinstance(r, pawl.InfraError)
    assert r.item == "print(1)"
    for name in ("passed", "stdout", "stderr"):
        with pytest.raises(pawl.InfraError):
            getattr(r, name)


def test_a_box_without_an_interpreter_is_never_a_zero(tmp_path):
    profile = "{override: true, tools: [/nonexistent/python3], run: ['{tool}', '{file}']}"
    (tmp_path / "pawl.yaml").write_text(f"languages: {{python: {profile}}}\n")
    with pawl.Client(state_dir=tmp_path) as client:
        with pytest.raises(pawl.InfraError, match="nonexistent") as e:
            client.evaluate("print(1)")
        assert (e.value.code, e.value.execution.status) == ("infra_error", "failed")
        assert [type(r) for r in client.map(["print(1)", "print(2)"])] == [pawl.InfraError] * 2


def test_value_and_files(client):
    r = client.evaluate(
        "import os, json; json.dump({'a': [1]}, open(os.environ['PAWL_OUTPUT'], 'w')); open('out', 'w').write('x' * 200_000)", collect=["out"]
    )
    assert r.value == {"a": [1]}
    assert client.file(r.id, "out") == b"x" * 200_000
    with pytest.raises(pawl.NotFound):
        client.file(r.id, "other")


def test_executions(client):
    x = client.submit_evaluation("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(1)", labels={"test": "executions"})
    assert client.wait(x.id).status == "failed"
    assert client.get(x.id).error.code == "nonzero_exit"
    assert client.read_log(x.id) == b"out\n"
    for follow in (False, True):
        assert {(c.stream, c.text) for c in client.logs(x.id, follow=follow)} == {("stdout", "out\n"), ("stderr", "err\n")}
        assert [e.seq for e in client.events(x.id, follow=follow)] == [1, 2, 3, 4, 5]
    again = client.retry(x.id)
    assert client.wait(again.id).retry_of == x.id
    assert client.why(x.id).waiting == "nothing"
    with pytest.raises(pawl.Conflict):
        client.cancel(x.id)
    assert {y.id for y in client.list(labels={"test": "executions"})} == {x.id, again.id}
    assert client.count({"test": "executions"}).verdicts == {"nonzero_exit": 2}
    y = client.submit_evaluation("import time; time.sleep(60)", limits={"wall": 90})
    with pytest.raises(TimeoutError, match="why"):
        client.wait(y.id, timeout=0.1)
    assert client.kill(y.id, "enough").status == "cancelled"


def test_each_cancel_has_a_key():
    """After a lost answer the client repeats a request. Without its key the repeated cancel would be a second one, which ends a clean-up."""
    keys = [next(verbs.end("ex_1", "cancel", "enough")).headers["Idempotency-Key"] for _ in range(2)]
    assert all(keys)
    assert keys[0] != keys[1]


def test_a_wait_for_a_worker_that_is_not_there_is_logged(client, monkeypatch, caplog):
    monkeypatch.setattr("pawl.verbs._EXPLAINED_AFTER", 0.05)
    x = client.submit_evaluation("print(1)", runtime="docker")
    with pytest.raises(TimeoutError):
        client.wait(x.id, timeout=0.2)
    assert [r.getMessage() for r in caplog.records if x.id in r.getMessage() and 'has runtime "docker"' in r.getMessage()]
    assert client.kill(x.id, "enough").status == "cancelled"


WORKFLOW = """
kind: workflow
name: double
input: {type: object, properties: {n: {type: integer}}, required: [n]}
tasks:
  ask:
    if: input.n > 100
    action: ask
    with: {title: "So much?", form: {type: object, properties: {ok: {type: boolean}}}}
  double:
    needs: [ask]
    if: always()
    action: code
    with: {language: python, source: "import os, json; json.dump(${{ input.n }} * 2, open(os.environ['PAWL_OUTPUT'], 'w'))"}
outputs: {n: "${{ tasks.double.output.result }}"}
"""


def test_workflows(client):
    assert client.apply(WORKFLOW).definitions[0].name == "double"
    assert client.run("double", n=21) == {"n": 42}
    with pytest.raises(pawl.InvalidRequest) as e:
        client.run("double", m=21)
    assert e.value.faults
    x = client.submit("double", {"n": 1}, priority=5, timeout=datetime.timedelta(minutes=5))
    x = client.wait(x.id)
    assert (x.status, x.output) == ("completed", {"n": 2})
    again = client.wait(client.rerun(x.id, from_=["double"]).id)
    assert again.status == "completed"


def test_failed_workflow(client):
    client.apply("kind: workflow\nname: fails\ntasks: {a: {action: code, with: {language: python, source: 1/0}}}")
    with pytest.raises(pawl.ExecutionFailed) as e:
        client.run("fails")
    assert e.value.code == "task_failed"
    assert e.value.execution.status == "failed"


def test_signals_and_questions(client):
    client.apply(
        "kind: workflow\nname: asks\ntasks: {a: {action: ask, with: {title: 'Well?', form: {type: object, properties: {ok: {type: boolean}}}}}}"
    )
    x = client.submit("asks")
    question = None
    for _ in client.events(x.id, follow=True):
        question = next((t.inquiry for t in client.list(limit=50) if t.workflow == x.id and t.inquiry), None)
        if question:
            break
    assert client.answer(question, {"ok": True}, by="ann").state == "answered"
    assert client.wait(x.id).status == "completed"
    with pytest.raises(pawl.Conflict):
        client.answer(question, {"ok": False}, by="bob")
    client.apply("kind: trigger\nname: door.opened")
    assert client.emit("door.opened", {"n": 1}, key="one").signal == client.emit("door.opened", {"n": 1}, key="one").signal
