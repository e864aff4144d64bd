# The source ends, and objects are finalized wherever they hang.
import atexit, json, sys, threading, time, weakref
import second


class Late:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("finalized:", self.name)


def generator():
    try:
        yield
    finally:
        print("finalized: generator")


kept, cycle = Late("global"), Late("cycle")
cycle.itself = cycle
second.late = Late("of another module")
sys.late = Late("of sys")
running = generator()
next(running)
weakref.finalize(kept, print, "weakref.finalize")
atexit.register(print, "atexit")
threading.Thread(target=lambda: (time.sleep(0.05), print("thread"))).start()
open("left", "w").write(json.dumps("buffered"))
unflushed = open("left", "a")
unflushed.write(" and more")
print("end of the source", end="")
