# Decides whether an answer is right: exit code 0 says yes, 1 no, and what it prints is the reason.
import sys
from collections import Counter

input_file, output_file, expected_file = sys.argv[1:]
target, *numbers = map(int, open(input_file).read().split())
answer, expected = open(output_file).read().split(), open(expected_file).read().split()
if answer == ["none"]:
    sys.exit(0 if expected == ["none"] else "there is an answer, such as " + " ".join(expected))
chosen = list(map(int, answer))
if Counter(chosen) - Counter(numbers):
    print("it uses numbers that were not given")
    sys.exit(1)
if sum(chosen) != target:
    print(f"they add up to {sum(chosen)}, not to {target}")
    sys.exit(1)
print(f"{len(chosen)} numbers")
