"""Grades many programs on the same cases: grade.py SAMPLES.jsonl

A line is {"task": …, "source": …, "cases": [[stdin, expected], …]}. A program whose box broke is listed apart, and is not a zero.
"""

import collections
import json
import pathlib
import sys

import pawl


def program(sample: dict[str, object]) -> dict[str, object]:
    return {"source": sample["source"], "cases": sample["cases"], "labels": {"task": str(sample["task"])}}


def main(path: str) -> None:
    samples = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    verdicts: collections.Counter[str] = collections.Counter()
    for r in pawl.map(samples, program=program, limits={"cpu": 2, "wall": 6}):
        verdicts[r.verdict] += 1
        print(r.item["task"], r.verdict, sep="\t")
    print(dict(verdicts), file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
