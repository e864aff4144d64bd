import asyncio
import contextlib
import gc
import inspect
import os
import signal
import threading

import pytest
from conftest import until

import pawl
from pawl.aio import _within


def test_same_verbs():
    sync = {n: m for n, m in vars(pawl.Client).items() if not n.startswith("_") and callable(m)}
    other = {n: m for n, m in vars(pawl.AsyncClient).items() if not n.startswith("_") and callable(m)}
    assert set(sync) - {"close"} == set(other) - {"aclose"}
    for name in set(sync) - {"close"}:
        assert inspect.signature(sync[name]).parameters == inspect.signature(other[name]).parameters, name
        assert other[name].__doc__ == sync[name].__doc__
        assert name == "request" or hasattr(pawl, name)


def test_gather(shared, leaves_nothing):
    async def main():
        async with pawl.AsyncClient(shared.url) as client:
            results = await asyncio.gather(*(client.evaluate(f"print({n})") for n in range(40)))
            assert [r.stdout for r in results] == [f"{n}\n" for n in range(40)]
            assert threading.active_count() == 1
            x = await client.submit_evaluation("print(1)")
            assert [c.text async for c in client.logs(x.id, follow=True)] == ["1\n"]
            assert [e.seq async for e in client.events(x.id, follow=True)] == [1, 2, 3, 4, 5]
            with pytest.raises(pawl.InvalidRequest, match="did you mean"):
                await client.evaluate("print(1)", limts={})
            with pytest.raises(pawl.NotFound):
                await client.get("ex_069mrpkv21x133sy88eskm1bdg")

    asyncio.run(main())


def test_server_is_killed_in_the_middle(server, leaves_nothing):
    async def main():
        seen, restart = set(), None
        async with pawl.AsyncClient(server.url) as client:
            async for r in client.map(range(100), program=lambda n: f"print({n})", window=40):
                assert r.stdout == f"{r.index}\n"
                assert r.index not in seen
                seen.add(r.index)
                if len(seen) == 30:
                    server.kill()
                    restart = threading.Thread(target=server.start)
                    restart.start()
        restart.join()
        assert seen == set(range(100))

    asyncio.run(main())


def test_local(tmp_path, leaves_nothing):
    async def main():
        async with pawl.AsyncClient(state_dir=tmp_path) as client:
            assert (await client.evaluate("print(1)")).passed
            import json

            os.kill(json.loads((tmp_path / "pawl.lock").read_text())["pid"], signal.SIGKILL)
            assert (await client.evaluate("print(1)")).passed

    asyncio.run(main())


def test_a_cancellation_that_comes_with_the_result_is_kept():
    async def main(turns):
        answer = asyncio.get_running_loop().create_future()

        async def work():
            return await answer

        waiting = asyncio.create_task(_within(work(), 60))
        for _ in range(3):
            await asyncio.sleep(0)
        answer.set_result(1)
        for _ in range(turns):
            await asyncio.sleep(0)
        if waiting.cancel():
            with pytest.raises(asyncio.CancelledError):
                await waiting

    for turns in range(5):
        asyncio.run(main(turns))


def test_cancelled(shared, leaves_nothing):
    async def main():
        async with pawl.AsyncClient(shared.url) as client:
            slow = "import time; time.sleep(600)"
            task = asyncio.create_task(client.evaluate(slow, limits={"wall": 900}, labels={"test": "cancelled"}))
            while not (await client.count({"test": "cancelled"})).statuses.get("running"):
                await asyncio.sleep(0.02)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            mapped = client.map([slow] * 5, limits={"wall": 900}, labels={"test": "cancelled"}, window=2)
            waiting = asyncio.create_task(mapped.__anext__())
            while (await client.count({"test": "cancelled"})).total < 3:
                await asyncio.sleep(0.02)
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting

    asyncio.run(main())
    with pawl.Client(shared.url) as client:
        until(lambda: client.count({"test": "cancelled"}).unfinished == 0, "nothing is left behind")


def test_a_client_belongs_to_one_loop(shared):
    client = pawl.AsyncClient(shared.url)

    async def once():
        return (await client.evaluate("print(1)")).stdout

    async def last():
        with pytest.raises(pawl.PawlError, match=r"make one within each asyncio\.run"):
            await once()
        await client.aclose()

    with pytest.warns(ResourceWarning, match="unclosed"):  # the loop ended before the client was closed
        assert asyncio.run(once()) == "1\n"
        asyncio.run(last())
        gc.collect()
