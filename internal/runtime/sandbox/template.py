# Pawl adds IMPORTS, and FILTER, which is an array of struct sock_filter. The interpreter imports this file as sitecustomize, as the last
# thing before its program. In the template that import lasts: it forks a process for each program. In a fork it ends, and the interpreter
# goes on to the program. See decision 94.
import sys


def wait():
    import os, posix

    stage = "start the template"

    def message(kind, stage, detail, errno, *numbers):
        q = lambda n: n.to_bytes(8, "little")
        s, d = stage.encode(), detail.encode("utf-8", "replace")[:400]
        body = kind + q(len(s)) + s + q(len(d)) + d + q(errno) + b"\0" + b"".join(map(q, numbers)) + b"\1"
        return q(len(body)) + body

    def fail(fd, e):
        os.write(fd, message(b"F", stage, type(e).__name__ + ": " + str(e), getattr(e, "errno", None) or 0, 0, 0, 0, 0, 0))
        os._exit(1)

    atexit_is_ours = "atexit" not in sys.modules
    place = os.path.dirname(__file__)
    sys.path.remove(place)
    sys.path_importer_cache.pop(place, None)
    del sys.modules["sitecustomize"]
    absent = None
    try:
        try:
            import sitecustomize  # the host's
        except ImportError as e:
            if e.name != "sitecustomize":
                raise
            absent = e
        import atexit

        if atexit_is_ours:
            del sys.modules["atexit"]
        given, imported = set(sys.modules), {}
        # The interpreter takes apart, at its end, what is in sys.modules: 8 ms for numpy, most of it copies of pages that no program has
        # written to. As the last function to run at the end, this takes out what the program has not imported by itself.
        atexit.register(lambda: [sys.modules.pop(name, None) for name in imported])
        for name in IMPORTS:
            stage = "import " + name
            __import__(name)
        stage = "import what the template needs"
        imported.update((name, module) for name, module in sys.modules.items() if name not in given)
        theirs = set(sys.modules) | set(sys.path_importer_cache)
        import _signal, _socket, ctypes, gc, time
    except BaseException as e:
        fail(3, e)

    libc = ctypes.PyDLL(None, use_errno=True)
    word = ctypes.c_ulong
    libc.syscall.restype = ctypes.c_long
    libc.prctl.argtypes = [ctypes.c_int] + 4 * [word]
    def check(result):
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

    def prctl(option, first, second=0):
        return check(libc.prctl(option, first, second, 0, 0))

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

    filter = Filter(len(FILTER) // 8, FILTER)
    header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    CLONE3, PIDFD_OPEN, CLOSE_RANGE = 435, 434, 436
    NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 1 << 17, 1 << 25, 1 << 26, 1 << 27, 1 << 28, 1 << 29, 1 << 30
    INTO_CGROUP = 1 << 33
    pid = (ctypes.c_int * 1)(4_000)  # of the process between; the program's is then the next that is free

    def become(numbers, fds):
        """turns a fork into what pid1's execute makes of the program's process."""
        nonlocal stage
        numbers = iter(numbers)
        extra, trial, born = next(numbers), next(numbers), next(numbers)
        init, report, start, *streams = fds[:6]
        tasks = fds[6 + born :]
        stage = "enter the namespaces"
        check(libc.setns(init, NEWUSER | NEWNS | NEWNET | NEWIPC | NEWUTS))
        stage = "fork"
        if os.fork():
            os._exit(0)
        stage = "become the user"
        os.setgroups([])
        os.setresgid(1000, 1000, 1000)
        os.setresuid(1000, 1000, 1000)
        os.setpgid(0, 0)
        stage = "enter the working directory"
        os.chdir("/work")
        stage = "pin the program to its processors"
        cpus = [next(numbers) for _ in range(next(numbers))]
        if cpus:
            os.sched_setaffinity(0, cpus)
        for _ in range(next(numbers)):
            resource, value = next(numbers), next(numbers)
            stage = "set resource limit " + str(resource)
            check(libc.setrlimit(resource, (ctypes.c_uint64 * 2)(value, value)))
        stage = "enter the cgroup"
        for fd in tasks:
            os.write(fd, b"0")
        check(libc.unshare(NEWCGROUP))
        stage = "drop capabilities"
        for capability in range(64):
            if libc.prctl(24, capability, 0, 0, 0):
                if ctypes.get_errno() != 22:
                    check(-1)
                break
        prctl(47, 4)
        check(libc.capset(header, nothing))
        prctl(4, 1)  # the change of user had taken its files in /proc from the program
        stage = "take the streams"
        for i, fd in enumerate(streams):
            os.dup2(fd, i)
        stage = "take the environment"
        texts = os.read(start, 1 << 16).split(b"\0")[:-1]
        for text in texts[:extra]:
            sys.argv.append(os.fsdecode(text))
            sys.orig_argv.append(sys.argv[-1])
        os.environ.clear()
        posix.environ.clear()
        for text in texts[extra:]:
            name, _, value = text.partition(b"=")
            if name not in posix.environ:
                posix.environ[name] = os.environb[name] = value
        stage = "make the module of the program"
        # What is frozen is not collected at the end either, and a program's objects hang from this module.
        old, new = sys.modules["__main__"].__dict__, type(sys)("__main__")
        new.__dict__.clear()
        new.__dict__.update(old, __annotations__={})
        sys.modules["__main__"] = new
        stage = "seed numpy.random"
        if "numpy.random" in sys.modules:
            sys.modules["numpy.random"].seed()
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        while os.getppid() != 1:  # the process between has not ended
            os.sched_yield()
        stage = "close descriptors"
        requests.detach()
        os.dup2(report, 3)
        check(libc.syscall(CLOSE_RANGE, word(4), word(0xFFFFFFFF), word(0)))
        stage = "install the seccomp filter"
        prctl(38, 1)
        prctl(22, 2, ctypes.addressof(filter))
        now, used = time.monotonic_ns(), time.thread_time_ns()
        os.write(3, message(b"S", "", "", 0, os.getpid(), used, 0, now, 0))
        os.close(3)
        if trial:
            os._exit(0)

    requests = _socket.socket(fileno=3)
    stage = "an import has left a thread"
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # nobody waits for forks
    if os.fork() == 0:  # lets libraries end their threads, such as OpenBLAS
        os._exit(0)
    try:
        check(libc.unshare(0x100))  # fails in a process with threads
        home = check(libc.syscall(PIDFD_OPEN, os.getpid(), 0))
    except OSError as e:
        fail(3, e)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(imported))  # so that they live on
    for table in sys.modules, sys.path_importer_cache:
        for name in set(table) - theirs:
            del table[name]
    sys.stdout.flush()
    sys.stderr.flush()
    gc.collect()
    if hasattr(libc, "malloc_trim"):  # of glibc; a fork copies the page tables of memory that imports have freed
        libc.malloc_trim(0)
    gc.freeze()
    os.write(3, message(b"R", "", "", 0, 0, 0, 0, 0, 0))
    while True:
        data, rights, _, _ = requests.recvmsg(4096, _socket.CMSG_SPACE(4 * 32))
        if not data:
            os._exit(0)
        numbers, fds = memoryview(data).cast("q").tolist(), memoryview(rights[0][2]).cast("i").tolist()
        forked = -1
        if libc.setns(fds[0], NEWPID) == 0:
            arguments = (ctypes.c_uint64 * 11)(0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(pid), 1, 0)
            if numbers[2]:
                arguments[0], arguments[10] = INTO_CGROUP, fds[6]
            forked = libc.syscall(CLONE3, arguments, word(88))
        if forked == 0:
            try:
                become(numbers, fds)
            except BaseException as e:
                fail(3 if stage.startswith("install") else fds[1], e)
            break
        if libc.setns(home, NEWPID):
            os._exit(1)
        for fd in fds:
            os.close(fd)
    if absent:
        raise absent


wait()
