"""Ten mistakes of Python users, and more: each error names the place, the value and the fix."""

import datetime
import decimal
import enum
import pathlib

import pytest

import pawl
from pawl import code_eval, rewards
from pawl.request import plain


class Array:  # as numpy's arrays and numbers are
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Array({self.value})"

    def tolist(self):
        return self.value


class Language(enum.Enum):
    PYTHON = "python"


@pytest.mark.parametrize(
    ("mistake", "place", "value", "fix"),
    [
        (lambda c: c.evaluate("print(1)", limts={"wall": 1}), "limts", "limts", 'did you mean "limits"?'),
        (lambda c: c.evaluate("print(1)", limits={"wal": 1}), "limits.wal", "wal", 'did you mean "wall"?'),
        (lambda c: c.evaluate("print(1)", limits={"wall": "fast"}), "limits.wall", "fast", "a number of seconds"),
        (lambda c: c.evaluate("print(1)", language="pyton"), "language", "pyton", 'did you mean "python"?'),
        (lambda c: c.evaluate(b"print(1)"), "source", "b'print(1)'", "give its text as str"),
        (lambda c: c.evaluate("print(1)", stdin=5), "stdin", "5", "give str, bytes"),
        (lambda c: c.evaluate("print(1)", cases="1 2"), "cases", "'1 2'", "give a list"),
        (lambda c: next(c.map(["print(1)"], cases="1 2")).passed, "cases", "'1 2'", "give a list"),
        (lambda c: c.evaluate("print(1)", cases=[("1", "2", "3")]), "cases[0]", "('1', '2', '3')", "give (stdin, expect)"),
        (lambda c: c.evaluate("print(1)", cases=[{"stdin": "1", "expected": "2"}]), "cases[0].expected", "expected", "expect"),
        (lambda c: c.evaluate("print('\ud800')"), "source", "ud800", 'encode("utf-8", "replace")'),
        (lambda c: c.evaluate("print(1)\0"), "source", "x00", "leave it out"),
        (lambda c: c.evaluate("print(1)", env={"A": object()}), "env.A", "object", "give str"),
        (lambda c: c.evaluate("print(1)", limits={"wall": float("nan")}), "limits.wall", "nan", "finite"),
        (lambda c: c.evaluate("print(1)", labels={1: "a"}), "labels.1", "1", "str(name)"),
        (lambda c: c.evaluate("print(1)", not_before=datetime.datetime(2030, 1, 1)), "not_before", "2030", "timezone.utc"),
        (lambda c: next(c.map("print(1)")), "programs", "'print(1)'", "give a list"),
        (lambda c: c.map(["print(1)"], window=0), "window", "0", "give 1 or more"),
        (lambda c: c.list(labels=["a=b"]).__next__(), "labels", "['a=b']", "give a dict"),
        (lambda c: c.list(state="failed").__next__(), "state", "state", "status"),
        (lambda c: c.get(None), "id", "None", "begins with ex_"),
        (lambda c: c.submit("no-such-action"), "action", "no-such-action", "apply"),
        (lambda c: c.apply({"kind": "workflow"}), "document", "{'kind'", "give its YAML"),
        (lambda c: c.evaluate("print(1)", cases={"set": "sha256:1"}), "cases.set", "sha256:1", "pawl upload"),
        (lambda c: c.upload_cases({"set": "x"}), "cases", "{'set': 'x'}", "give a list"),
        (lambda c: c.scores({}), "labels", "{}", "give one"),
        (lambda c: c.scores({"run": "1"}, by="model"), "by", "'model'", "give a list"),
        (lambda c: c.scores({"run": "1"}, k=[0]), "k", "0", "a whole number from 1"),
        (
            lambda c: c.evaluate("print(1)", cases=[("", "")], compare={"interactor": {"language": "python"}}),
            "compare.interactor.source",
            "",
            "give the program",
        ),
        (lambda c: c.evaluate("print(1)", lang="python"), "lang", "lang", 'did you mean "language"?'),
        (lambda c: c.evaluate("print(1)", input="1"), "input", "input", 'did you mean "stdin"?'),
        (lambda c: c.evaluate("print(1)", limits=2), "limits", "2", "write {…} with wall, cpu"),
        (lambda c: c.evaluate("print(1)", retry=3), "retry", "3", "write {…} with max_attempts"),
        (lambda c: c.evaluate("#" * (17 << 20)), "source", "####", "17,825,792 characters"),
        (
            lambda c: c.evaluate("", cases=[("", "")], compare={"checker": {"language": "python", "source": pathlib.Path("no.py")}}),
            "compare.checker.source",
            "no.py",
            "may read",
        ),
        (lambda c: c.map(["print(1)"], concurrency=8), "concurrency", "8", "window=8"),
        (lambda c: c.wait("ex_1", timeout="3"), "timeout", "'3'", "give seconds"),
        (lambda c: c.list(limit=-1).__next__(), "limit", "-1", "as 10"),
        (lambda c: c.scores({"run": "1"}, k=1), "k", "1", "[1]"),
        (lambda c: c.apply("pipeline.yaml"), "document", "pipeline.yaml", "pathlib.Path('pipeline.yaml')"),
        (lambda _: pawl.code_eval.compute(["assert f()"], [["f = int"]], k="1"), "k", "'1'", "as [1, 10]"),
        (lambda _: pawl.Client(7411), "url", "7411", "http://127.0.0.1:7411"),
        (lambda _: pawl.Client("http://x", token="secret\n"), "token", "", "without a line end"),
        (lambda _: pawl.Client("http://x", token=5), "token", "", "give the token alone"),
        (lambda _: pawl.Client("http://x", timeout=0), "timeout", "0", "give seconds"),
        (lambda c: c.upload("text"), "content", "'text'", "give bytes"),
        (lambda _: pawl.Client("127.0.0.1:7411"), "url", "127.0.0.1:7411", "http://127.0.0.1:7411"),
        (lambda _: pawl.Client(timeout="30"), "timeout", "'30'", "give seconds"),
        (lambda _: pawl.Client("http://x", state_dir="y"), "state_dir", "y", "give url or state_dir"),
        (lambda _: pawl.Client(""), "url", "''", "leave it out"),
        (lambda _: pawl.Client("http://a b"), "url", "a b", "http://127.0.0.1:7411"),
        (lambda c: c.evaluate("print(1)", limits={"wall": Array(2)}), "limits.wall", "Array(2)", "give value.tolist()"),
        (lambda c: c.evaluate("print(1)", limits={"wall": decimal.Decimal("2")}), "limits.wall", "Decimal('2')", "int, float"),
        (lambda c: c.evaluate("print(1)", language=Language.PYTHON), "language", "Language.PYTHON", "give its .value"),
        (lambda c: c.evaluate("print(1)", cases=[Array(["", "1"])]), "cases[0]", "Array", "give value.tolist()"),
        (lambda c: c.evaluate("print(1)", cases=[None]), "cases[0]", "None", "give (stdin, expect)"),
        (lambda c: c.evaluate("print(1)", labels={"a": None}), "labels.a", "null", "leave it out"),
        (lambda c: c.evaluate("print(1)", env={"a": None}), "env.a", "null", "leave it out"),
        (lambda c: c.evaluate("print(1)", files={"a": None}), "files.a", "None", "give str, bytes"),
        (lambda c: c.map(["print(1)"], run=17), "run", "17", "nightly-17"),
        (lambda c: c.map(["print(1)"], run=""), "run", "''", "leave it out"),
        (lambda c: c.map(["print(1)"], window="10"), "window", "'10'", "give 1 or more"),
        (lambda c: c.map(["print(1)"], max_workers=8), "max_workers", "8", "window=8"),
        (lambda c: c.map([1], program="code"), "program", "'code'", "give a function"),
        (lambda c: c.upload_cases([]), "cases", "[]", "give one or more"),
        (lambda c: c.submit("sleep"), "input", "nothing", '{"for": "90s"}'),
        (lambda _: code_eval.compute("assert f()", [["f = int"]]), "references", "'assert f()'", "give a list"),
        (lambda _: code_eval.compute(["assert True"], [[None]]), "predictions[0][0]", "None", "give its text as str"),
        (lambda _: code_eval.compute([None], [["f = int"]]), "references[0]", "None", "give its text as str"),
        (lambda _: code_eval.compute(["assert True"], [["f = int"]], num_workers=-1), "num_workers", "-1", "as 4"),
        (lambda _: rewards.trl("print(1)", cases=[[["", "1"]]]), "completions", "'print(1)'", "give [completion]"),
        (lambda _: rewards.trl(["print(1)"], cases=[None]), "cases[0]", "None", "[stdin, expected]"),
        (lambda _: rewards.trl(["print(1)"], cases=[[["", None]]]), "cases[0][0]", "None", "give its text as str"),
        (lambda _: rewards.trl(["print(1)"], cases=[[["1", "2"]]], language=["python", "c"]), "language", "'c'", "give one for each"),
        (lambda _: rewards.verl("x", "print(1)", {"inputs": ["1"]}), "ground_truth", "inputs", "outputs"),
        (lambda _: rewards.verl("x", "print(1)", {"inputs": [["1"]], "outputs": ["2"]}), "ground_truth[0]", "['1']", "give its text as str"),
        (lambda _: rewards.verl("x", "print(1)", {"inputs": ["1"], "outputs": ["2"], "fn_name": "f"}), "ground_truth.fn_name", "'f'", "data set"),
        (
            lambda _: rewards.open_r1(
                ["x"], verification_info=[{"test_cases": [{"input": "1", "output": "2", "type": "function_call", "fn_name": "f"}]}]
            ),
            "verification_info[0].test_cases[0]",
            "function_call",
            "stdin_stdout",
        ),
        (lambda _: rewards.open_r1(["x"], verification_info=[None]), "verification_info[0]", "None", "test_cases"),
    ],
)
def test_mistake(client, mistake, place, value, fix):
    with pytest.raises(pawl.InvalidRequest) as e:
        mistake(client)
    assert e.value.place.lstrip("?") == place
    assert value in str(e.value)
    assert fix in str(e.value)


def test_all_faults_at_once(client):
    with pytest.raises(pawl.InvalidRequest) as e:
        client.evaluate("print(1)", progam="", limts={}, priority="high")
    assert {f.place for f in e.value.faults} >= {"progam", "limts", "priority"}


def test_a_document_has_lines(client):
    with pytest.raises(pawl.InvalidRequest, match=r"document:3:1: .*did you mean"):
        client.apply("kind: workflow\nname: x\ntaks: {}\n")


def test_no_server(tmp_path):
    with pawl.Client("http://127.0.0.1:9", patience=0.2) as client, pytest.raises(pawl.Unavailable, match="is pawl server running there"):
        client.evaluate("print(1)")
    with pawl.Client(state_dir=tmp_path, binary="/nonexistent/pawl") as client, pytest.raises(pawl.Unavailable, match="nonexistent"):
        client.evaluate("print(1)")


def test_a_refused_item_does_not_stop_the_others(client):
    results = {r.index: r for r in client.map(["print(1)", "print(2)\0", {"source": "print(3)", "limits": {"wal": 1}}, "print(4)", 5])}
    assert [type(results[i]).__name__ for i in range(5)] == ["Result", "InvalidRequest", "InvalidRequest", "Result", "InvalidRequest"]
    assert (results[2].place, results[2].item["source"]) == ("limits.wal", "print(3)")
    with pytest.raises(pawl.InvalidRequest):
        _ = results[1].passed


def test_tokens(tmp_path, monkeypatch):
    from conftest import Server

    secret = tmp_path / "token"
    secret.write_text("sesame-sesame-sesame\n")
    server = Server(tmp_path / "state", "--token-file", str(secret)).start()
    try:
        with pawl.Client(server.url) as client, pytest.raises(pawl.Unauthorized):
            client.evaluate("print(1)")
        monkeypatch.setenv("PAWL_TOKEN_FILE", str(secret))
        monkeypatch.setenv("PAWL_SERVER", server.url)
        with pawl.Client() as client:
            assert client.evaluate("print(1)").passed
    finally:
        server.kill()


def test_times_are_of_one_length():
    utc = datetime.timezone.utc
    given = [datetime.datetime(2030, 1, 1, tzinfo=utc), datetime.datetime(2030, 1, 1, microsecond=10030, tzinfo=utc)]
    assert plain(given, "input") == ["2030-01-01T00:00:00.000000+00:00", "2030-01-01T00:00:00.010030+00:00"]
