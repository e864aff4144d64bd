# The exit code is 120: the interpreter cannot write its output at the end.
import os

print("lost")
os.close(1)
