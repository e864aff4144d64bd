import pathlib
import re
import subprocess

import pytest

import pawl as package

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]


def blocks(kind):
    text = (REPOSITORY / "docs/python.md").read_text()
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.M | re.S)


@pytest.fixture
def local(tmp_path, monkeypatch):
    monkeypatch.setattr(package, "_default", None)
    monkeypatch.delenv("PAWL_SERVER", raising=False)
    monkeypatch.setenv("PAWL_STATE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield
    if package._default:
        package._default.close()


def test_every_block_of_the_page_runs(local, capsys, pawl):
    found = blocks("python")
    assert len(found) >= 7
    names = {"__name__": "page"}
    for block in found:
        exec(compile(block, "docs/python.md", "exec"), names)
    names["test_answer"](pawl)
    said = capsys.readouterr().out
    # The page's remarks on the output of a line.
    for promised in re.findall(r"print\(.*  # (.*)$", "\n".join(found), re.M):
        assert promised.partition(";")[0] in said or "run it again" in promised


def test_commands_of_the_page(local, tmp_path):
    text = (REPOSITORY / "docs/python.md").read_text()
    found = re.findall(r"^```sh\n((?:(?!```).*\n)+)```\n\n```\n((?:(?!```).*\n)+)```", text, re.M)
    assert len(found) + 1 == len(blocks("sh"))  # test_wheel runs the first
    for command, want in found:
        assert subprocess.run(["bash", "-ec", command], cwd=tmp_path, check=True, capture_output=True, text=True).stdout == want
