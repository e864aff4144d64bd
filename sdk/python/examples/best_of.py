"""Runs candidates for one task side by side with asyncio, and stops at the first that passes: best_of.py CANDIDATE.py… < INPUT"""

import asyncio
import pathlib
import sys

import pawl


async def main(paths: list[str], stdin: bytes) -> None:
    async with pawl.AsyncClient() as client:
        candidates = [asyncio.create_task(client.evaluate(pathlib.Path(p), stdin=stdin, limits={"wall": 5})) for p in paths]
        for ended in asyncio.as_completed(candidates):
            result = await ended
            if result.passed:
                print(result.stdout, end="")
                break
        for task in candidates:  # what still runs is killed
            task.cancel()
        await asyncio.gather(*candidates, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:], sys.stdin.buffer.read()))
