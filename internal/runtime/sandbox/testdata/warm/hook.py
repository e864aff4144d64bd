# The exit code is 1, though nothing is left of the exception.
import sys


def hook(*error):
    print("hook", error[0])
    for name in "last_type", "last_value", "last_traceback", "last_exc":
        if hasattr(sys, name):
            delattr(sys, name)


sys.excepthook = hook
raise KeyError("x")
