import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest
from test_docs import blocks

PACKAGE = pathlib.Path(__file__).resolve().parent.parent


def run(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, **options).stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    directory = tmp_path_factory.mktemp("dist")
    run(sys.executable, PACKAGE / "scripts" / "wheels", directory / "dist", "--binary", shutil.which("pawl"))
    return directory


def test_two_lines_in_a_fresh_environment(dist, tmp_path):
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    install = blocks("sh")[0].removeprefix("make wheels\n")
    run("bash", "-ec", f'pip() {{ {sys.executable} -m pip --python {python} "$@"; }}; {install}', cwd=dist)
    # Neither the sources nor a pawl in PATH: only the files of the wheel.
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PAWL_SERVER")}
    environment |= {"PATH": "/usr/bin:/bin", "PAWL_STATE_DIR": str(tmp_path / "state")}
    code = """
import pawl
programs, cases, score = ["print(1)", "print(2)"], [("", "1")], print
print(pawl.evaluate("print(6*7)").stdout)
for r in pawl.map(programs, cases=cases, limits={"wall": 2}):
    score(r.item, r.passed)
"""
    assert sorted(run(python, "-W", "error", "-c", code, env=environment).split("\n")) == ["", "", "42", "print(1) True", "print(2) False"]
    assert run(python.parent / "pawl", "version").startswith("pawl ")


def test_archives_are_the_same_for_the_same_content(tmp_path):
    sys.path.insert(0, str(PACKAGE / "scripts"))
    try:
        import backend
    finally:
        sys.path.pop(0)
    (tmp_path / "pawl").write_bytes(b"program")
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        wheel = backend.write_wheel(tmp_path / name, "py3-none-any", binary=tmp_path / "pawl")
        sdist = backend.build_sdist(tmp_path / name)
        made.append([(tmp_path / name / f).read_bytes() for f in (wheel, sdist)])
    assert made[0] == made[1]
    with zipfile.ZipFile(tmp_path / "one" / wheel) as z:
        names = z.namelist()
        assert z.getinfo(next(n for n in names if n.endswith("scripts/pawl"))).external_attr >> 16 == 0o100755
    assert "pawl/py.typed" in names
    assert sorted(names) == sorted(line.split(",")[0] for line in _record(tmp_path / "one" / wheel))


def _record(wheel):
    with zipfile.ZipFile(wheel) as z:
        (record,) = [n for n in z.namelist() if n.endswith("/RECORD")]
        return z.read(record).decode().splitlines()


def test_source_distribution_installs(tmp_path):
    sys.path.insert(0, str(PACKAGE / "scripts"))
    try:
        import backend
    finally:
        sys.path.pop(0)
    sdist = backend.build_sdist(tmp_path)
    run(sys.executable, "-m", "pip", "install", "--no-index", "--no-cache-dir", "--target", tmp_path / "target", tmp_path / sdist)
    said = run(sys.executable, "-c", "import pawl; print(pawl.__file__)", env={**os.environ, "PYTHONPATH": str(tmp_path / "target")})
    assert said.startswith(str(tmp_path / "target"))
