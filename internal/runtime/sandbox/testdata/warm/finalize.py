import atexit, threading, time, sys, weakref
class D:
    def __init__(self, n): self.n = n
    def __del__(self): print("del", self.n)
x = D("global")
y = D("cycle"); y.y = y
atexit.register(print, "atexit")
def late():
    threading.main_thread().join()
    print("thread", threading.current_thread().name, threading.main_thread().name)
threading.Thread(target=late).start()
threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
print("end", threading.active_count(), threading.main_thread() is threading.current_thread())
