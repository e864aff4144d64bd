import json
import sys

import solution

name = sys.argv[1]
call = getattr(solution.Solution(), name) if hasattr(solution, "Solution") else getattr(solution, name)
got = call(*[json.loads(line) for line in sys.stdin.read().split("\n") if line.strip()])
print(json.dumps(got, ensure_ascii=False, sort_keys=True, separators=(",", ":")))
