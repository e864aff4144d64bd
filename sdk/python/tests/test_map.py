import gc
import itertools
import os
import threading
import time
import tracemalloc

import pytest
from conftest import until

import pawl


def program(n):
    return f"import sys; n = {n}; print(n * n); sys.exit(n % 7 == 0)"


def grade(client, server, count, kills, **options):
    """Maps count programs while the server is killed and restarted, and checks that each outcome comes once, with the right verdict."""
    seen, moments = {}, {count * (k + 1) // (kills + 1) for k in range(kills)}
    restarts = []
    for r in client.map(range(count), program=program, **options):
        assert r.index not in seen, f"{r.index} came twice"
        seen[r.index] = (r.item, r.passed, r.stdout)
        if len(seen) in moments:
            server.kill()
            restarts.append(threading.Thread(target=server.start))
            restarts[-1].start()
    for thread in restarts:
        thread.join()
    assert len(restarts) == kills
    assert seen == {n: (n, n % 7 != 0, f"{n * n}\n") for n in range(count)}


def test_server_is_killed_in_the_middle(server, leaves_nothing):
    with pawl.Client(server.url) as client:
        grade(client, server, 500, 1, window=200)


@pytest.mark.long
def test_ten_thousand(server, leaves_nothing):
    with pawl.Client(server.url, patience=120) as client:
        grade(client, server, 500, 1)
        gc.collect()
        tracemalloc.start()
        try:
            grade(client, server, 10_000, 5)
            assert tracemalloc.get_traced_memory()[1] < 64 << 20
        finally:
            tracemalloc.stop()


def test_items_are_taken_as_they_are_needed(client):
    taken = []
    items = (taken.append(n) or n for n in itertools.count())
    results = client.map(items, program=lambda n: f"print({n})", window=20, labels={"test": "window"})
    for _ in range(30):
        next(results)
    assert len(taken) <= 60
    results.close()
    assert client.count({"test": "window"}, evaluations=True).total == len(taken)
    until(lambda: client.count({"test": "window"}, evaluations=True).unfinished == 0, "what was under way is cancelled")


def test_a_named_run_is_taken_up_again(client):
    run = f"run-{time.time_ns()}"
    programs = [f"print({n})" for n in range(40)]
    first = client.map(programs, run=run, window=30)
    for _ in range(5):
        next(first)
    first.close()
    results = list(client.map(programs, run=run, window=30))
    assert sorted(r.index for r in results) == list(range(40))
    assert all(r.stdout == f"{r.index}\n" for r in results)
    assert client.count({"run": run}, evaluations=True).total == 40
    with pytest.raises(pawl.InvalidRequest, match="key"):
        _ = [r.passed for r in client.map(["print(7)"], run=run)]


def test_nothing_to_do(client):
    assert list(client.map([])) == []


def test_inputs_are_uploaded_once(client, monkeypatch):
    sent = []
    send = client._connections.send

    def watched(c, call, timeout):
        sent.append(call.path)
        return send(c, call, timeout)

    monkeypatch.setattr(client._connections, "send", watched)
    big = os.urandom(100_000)
    results = list(client.map([f"import sys; print({n}, len(sys.stdin.buffer.read()))" for n in range(20)], cases=[(big, None)]))
    assert len(results) == 20
    assert all(r.passed for r in results)
    assert sum("/blobs/" in path for path in sent) == 1
    assert sum(":batch" in path for path in sent) == 1


def test_interrupted(client):
    def items():
        yield from (f"import time; time.sleep(60); print({n})" for n in range(3))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(client.map(items(), limits={"wall": 90}, labels={"test": "interrupted"}, window=4))
    until(lambda: client.count({"test": "interrupted"}, evaluations=True).unfinished == 0, "nothing is left behind")
