import ctypes, socket, struct, json, sqlite3, ssl, hashlib, decimal, datetime, asyncio, time, gc, select, mmap, threading
print(ctypes.sizeof(ctypes.c_long), ctypes.CDLL(None).getppid(), struct.pack("<q", 5), json.dumps({"a": [1, None]}))
class P(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int)]
print(P(3).a, ctypes.cast(ctypes.pointer(ctypes.c_int(7)), ctypes.POINTER(ctypes.c_int))[0], ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 5)())
a, b = socket.socketpair()
a.send(b"hi")
print(b.recv(9), sqlite3.connect(":memory:").execute("select 1+1").fetchall(), hashlib.sha256(b"").hexdigest())
s = socket.create_server(("127.0.0.1", 0))
c = socket.create_connection(s.getsockname())
print(s.accept()[0].send(b"x"), c.recv(1))
async def f():
    await asyncio.sleep(0.001)
    return await (await asyncio.create_subprocess_exec("true")).wait()
print(asyncio.run(f()))
print(time.tzname, datetime.datetime.fromtimestamp(0), decimal.Decimal(1) / 3)
m = mmap.mmap(-1, 4096); m[0:2] = b"ok"; print(m[0:2], gc.collect() >= 0)
try:
    socket.create_connection(("10.0.0.1", 80), timeout=1)
except OSError as e:
    print(e)
t = threading.Thread(target=lambda: print(time.process_time() < 5)); t.start(); t.join()
