# Finds numbers among those given that add up to the first. There may be several right answers, so a checker decides:
#
#   pawl eval --cases examples/cases/subset --checker examples/cases/check_subset.py examples/cases/subset.py
target, *numbers = map(int, input().split())
reached = {0: []}
for n in numbers:
    for total, used in list(reached.items()):
        reached.setdefault(total + n, used + [n])
print(*reached[target] if target in reached else ["none"])
