import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from conftest import until

import pawl

SRC = os.path.dirname(os.path.dirname(pawl.__file__))


def owner(state):
    return json.loads((state / "pawl.lock").read_text())


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_server_ends_when_the_last_client_has_gone(tmp_path, leaves_nothing):
    with pawl.Client(state_dir=tmp_path) as client:
        assert client.evaluate("print(1)").passed
        pid = owner(tmp_path)["pid"]
        with pawl.Client(state_dir=tmp_path) as other:
            assert other.evaluate("print(2)").passed
        assert owner(tmp_path)["pid"] == pid
        said = subprocess.run(["pawl", "eval", "--state-dir", str(tmp_path), "-l", "python", "-"], input="print(3)", capture_output=True, text=True)
        assert said.stdout == "3\n"
        assert alive(pid)
    until(lambda: not alive(pid), "the server has ended")


def test_many_start_one_server(tmp_path):
    code = "import pawl, sys; print(pawl.Client(state_dir=sys.argv[1]).evaluate('print(1)').stdout)"
    run = [sys.executable, "-c", code, str(tmp_path)]
    processes = [subprocess.Popen(run, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": SRC}) for _ in range(5)]
    for p in processes:
        assert p.communicate(timeout=120)[0] == "1\n\n"
    assert (tmp_path / "local.log").read_text().count("panic") == 0


def test_server_dies(tmp_path, leaves_nothing):
    with pawl.Client(state_dir=tmp_path) as client:
        results = client.map(range(60), program=lambda n: f"print({n})")
        first = next(results)
        os.kill(owner(tmp_path)["pid"], signal.SIGKILL)
        rest = list(results)
        assert sorted(r.index for r in [first, *rest]) == list(range(60))
        assert all(r.stdout == f"{r.index}\n" for r in rest)


def test_cannot_start(tmp_path):
    (tmp_path / "pawl.yaml").write_text("slots: many\n")
    with pawl.Client(state_dir=tmp_path) as client, pytest.raises(pawl.Unavailable, match="slots"):
        client.evaluate("print(1)")


def test_a_hundred_clients(shared, leaves_nothing):
    for _ in range(100):
        with pawl.Client(shared.url) as client:
            client.count({"a": "b"})
    for _ in range(100):  # including clients that are not closed
        pawl.Client(shared.url).count({"a": "b"})


def test_threads_share_a_client(shared, leaves_nothing):
    with pawl.Client(shared.url, connections=4) as client:
        out = {}
        threads = [threading.Thread(target=lambda n=n: out.update({n: client.evaluate(f"print({n})").stdout})) for n in range(24)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert out == {n: f"{n}\n" for n in range(24)}
        assert len(client._connections.idle) <= 4


def test_forks(shared):
    with pawl.Client(shared.url) as client:
        assert client.evaluate("print(0)").passed
        children = []
        for n in range(4):
            if (child := os.fork()) == 0:
                try:
                    os._exit(0 if client.evaluate(f"print({n})").stdout == f"{n}\n" else 1)
                finally:
                    os._exit(2)
            children.append(child)
        assert client.evaluate("print(9)").stdout == "9\n"
        assert [os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children] == [0] * 4


def test_ctrl_c_leaves_nothing(shared):
    code = "import pawl, sys; pawl.Client(sys.argv[1]).evaluate('import time; time.sleep(600)', limits={'wall': 900}, labels={'test': 'ctrl-c'})"
    p = subprocess.Popen([sys.executable, "-c", code, shared.url], stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": SRC})
    with pawl.Client(shared.url) as client:
        until(lambda: any(x.status == "running" for x in client.list(labels={"test": "ctrl-c"})), "it runs")
        p.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in p.communicate(timeout=60)[1]
        until(lambda: client.count({"test": "ctrl-c"}).statuses == {"cancelled": 1}, "it is cancelled")


def test_closed(shared):
    client = pawl.Client(shared.url)
    client.close()
    with pytest.raises(pawl.PawlError, match="closed"):
        client.evaluate("print(1)")
