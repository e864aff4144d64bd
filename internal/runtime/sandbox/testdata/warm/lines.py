import sys
for line in sys.stdin:
    print(repr(line))
print(open("/dev/stdin").read() == "", open(0, closefd=False).fileno())
