# An object that is finalized at the end prints, and the stream outlives it: a context variable holds it.
import contextvars, sys


class Late:
    def __del__(self):
        print("finalized")


kept = Late()
contextvars.ContextVar("output").set(sys.stdout)
