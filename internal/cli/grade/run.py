import os

# The program must not find where its verdict is written: one that ends its process early has not passed.
said = os.environ.pop("PAWL_OUTPUT")
with open("program.py", encoding="utf-8", newline="") as f:
    program = f.read()
exec(program, {})
with open(said, "w") as f:
    f.write('"passed"')
