import os
import sys

token, test = sys.stdin.buffer.read().decode().split("\n", 1)
out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
with open("tested.py", encoding="utf-8", newline="") as file:
    program = file.read()
names = {}
exec(compile(program, "tested.py", "exec"), names)
exec(compile(test, "test", "exec"), names)
os.write(out, token.encode())
os._exit(0)
