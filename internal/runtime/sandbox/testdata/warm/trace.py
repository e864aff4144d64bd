import traceback, inspect
def f(n):
    if n == 0:
        traceback.print_stack()
        print(len(inspect.stack()))
        raise ValueError("deep ü")
    f(n - 1)
try:
    f(2)
except ValueError as e:
    try:
        raise KeyError("second") from e
    except KeyError:
        1 / 0
