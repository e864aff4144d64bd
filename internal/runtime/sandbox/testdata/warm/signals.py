import os, signal, time
got = []
signal.signal(signal.SIGUSR1, lambda n, f: got.append(n))
signal.signal(signal.SIGALRM, lambda n, f: got.append(n))
signal.signal(signal.SIGCHLD, lambda n, f: got.append(n))
os.kill(os.getpid(), signal.SIGUSR1)
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.pause()
if os.fork() == 0:
    os._exit(3)
print(os.wait()[1], got)
signal.raise_signal(signal.SIGINT)
