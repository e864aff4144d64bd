print("never")
def f(:
