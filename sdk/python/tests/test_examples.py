import json
import os
import pathlib
import subprocess
import sys

PACKAGE = pathlib.Path(__file__).resolve().parent.parent


def example(shared, name, *args, **options):
    environment = {**os.environ, "PAWL_SERVER": shared.url, "PYTHONPATH": str(PACKAGE / "src")}
    command = [sys.executable, str(PACKAGE / "examples" / name), *map(str, args)]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment, **options)


def test_grade(shared, tmp_path):
    cases = [["1 2", "3"], ["5 5", "10"]]
    sources = {"sum": "print(sum(map(int, input().split())))", "product": "a, b = map(int, input().split()); print(a * b)"}
    lines = [json.dumps({"task": t, "source": s, "cases": cases}) for t, s in sources.items()]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines))
    ran = example(shared, "grade.py", tmp_path / "samples.jsonl")
    assert sorted(ran.stdout.splitlines()) == ["product\twrong_answer", "sum\tok"]


def test_best_of(shared, tmp_path):
    programs = {"wrong": "1/0", "endless": "while True: pass", "right": "print(int(input()) + 1)"}
    for name, source in programs.items():
        (tmp_path / f"{name}.py").write_text(source)
    assert example(shared, "best_of.py", *(tmp_path / f"{n}.py" for n in programs), input="41").stdout == "42\n"
