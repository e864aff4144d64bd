"""What a hostile Python does that a C program would not, and what a harmless one must be able to do all the same.

    python3 hostile.py TOKEN HOST_PID_NAMESPACE

Prints a line for each thing that it should not have been able to do, and "works" when all harmless things worked.
"""
import ctypes
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading


def guard(token, namespace):
    inside = os.stat("/proc/self/ns/pid").st_ino != int(namespace)
    if len(token) < 16 or os.environ.get("PAWL_HOSTILE_TOKEN") != token or not inside:
        sys.stderr.write("refusing to run\n")
        os._exit(99)


def attempt(name, action):
    try:
        action()
    except (OSError, PermissionError, ValueError):
        return
    print(name, flush=True)


def attack():
    libc = ctypes.CDLL(None, use_errno=True)

    def call(*arguments):
        if libc.syscall(*arguments) == -1:
            raise OSError(ctypes.get_errno())

    attempt("read the memory of process 1", lambda: open("/proc/1/mem", "rb").read(1))
    attempt("write to the interpreter", lambda: open(sys.executable, "r+b"))
    attempt("write to the library", lambda: open(os.path.join(os.path.dirname(os.__file__), "planted.py"), "w"))
    attempt("reach the internet", lambda: socket.create_connection(("1.1.1.1", 53), timeout=1))
    attempt("resolve a name", lambda: socket.getaddrinfo("example.com", 80))
    attempt("listen to packets", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
    attempt("leave its root", lambda: os.chroot("/proc/1/root"))
    attempt("unshare", lambda: call(272 if os.uname().machine == "x86_64" else 97, 0x10000000))
    attempt("list the host's users", lambda: open("/etc/shadow").read())
    attempt("signal everybody else", lambda: os.kill(-2147483647, 9))


def work():
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "file"), "w") as file:
            file.write("x" * 100000)
        shutil.copytree(directory, os.path.join("copy"))
    assert subprocess.run(["sh", "-c", "cat"], input=b"in", capture_output=True).stdout == b"in"
    done = []
    threads = [threading.Thread(target=done.append, args=(i,)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(done) == list(range(8))
    a, b = socket.socketpair()
    a.send(b"hello")
    assert b.recv(5) == b"hello"
    queue = multiprocessing.get_context("fork").SimpleQueue()
    child = multiprocessing.get_context("fork").Process(target=queue.put, args=(42,))
    child.start()
    assert queue.get() == 42
    child.join()
    assert os.cpu_count() and os.getcwd() and os.urandom(8)
    print("works")


if __name__ == "__main__":
    guard(sys.argv[1], sys.argv[2])
    attack()
    work()
