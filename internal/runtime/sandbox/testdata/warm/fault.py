import faulthandler, warnings, sys, io
print(faulthandler.is_enabled())
warnings.warn("careful")
def f(): raise RuntimeError("unraisable")
class D:
    def __del__(self): f()
d = D(); del d
print(open("main.py").encoding, io.text_encoding(None), "é\udcff".encode("utf-8", "surrogateescape"))
print("\udc80")
