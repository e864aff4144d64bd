#!/usr/bin/env python3
"""Grade many programs with one submission and one stream: grade_many.py TASKS.jsonl RUN

A line of TASKS.jsonl is a task as HumanEval has them. RUN names the run; the same again submits nothing anew.
"""
import collections, http.client, json, os, sys, time, urllib.request

def call(path, body=None, **headers):
    headers["Authorization"] = "Bearer " + os.environ.get("PAWL_TOKEN", "")
    server = os.environ.get("PAWL_SERVER") or "http://127.0.0.1:7411"
    return urllib.request.urlopen(urllib.request.Request(f"{server}/api/v1/{path}", body, headers))

def evaluation(task):
    source = f"{task['prompt']}{task['canonical_solution']}\n{task['test']}\ncheck({task['entry_point']})\n"
    return {"language": "python", "source": source, "limits": {"cpu": "5s", "wall": "60s"}, "labels": {"run": run, "task": task["task_id"]}}

if len(sys.argv) != 3: sys.exit(__doc__)
tasks, run = [json.loads(line) for line in open(sys.argv[1])], sys.argv[2]
batch = json.dumps({"evaluations": [evaluation(t) for t in tasks]}).encode()
accepted = json.load(call("evaluations:batch", batch, **{"Idempotency-Key": run, "Content-Type": "application/json"}))
outcome, verdicts = {"cursor": "0"}, collections.Counter(refused=accepted["refused"])
while "end" not in outcome:  # a stream that breaks off is taken up again behind the last outcome
    try:
        for line in filter(str.strip, map(bytes.decode, call(f"evaluations:outcomes?label=run={run}&after={outcome['cursor']}"))):
            outcome = json.loads(line)
            if "verdict" in outcome:
                verdicts[outcome["verdict"]] += 1
                print(outcome["labels"]["task"], outcome["verdict"], f"{outcome.get('cpu_ms', 0):.0f} ms", sep="\t")
    except (OSError, http.client.HTTPException, ValueError):
        time.sleep(1)
print(*(f"{n} {verdict}" for verdict, n in verdicts.most_common() if n), sep=", ", file=sys.stderr)
