package task_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/runtime"
)

// leaver leaves whatever a program can leave, and looks for what another run has left. Its input selects what to do.
const leaver = `import ctypes, os, socket, time
libc = ctypes.CDLL(None, use_errno=True)
what = input()
# The system's shared memory and message queues, by a key that both know.
key, create = 4711, 0o1600

def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 3)
            time.sleep(600)
        os._exit(0)
    os.wait()

if what == "leave":
    for path in ("left", "/tmp/left", "/dev/shm/left", os.path.expanduser("~/left-at-home")):
        open(path, "w").write("left")
    os.mkdir("/work/dir")
    os.chdir("/work/dir")
    print("objects", libc.shmget(key, 4096, create) >= 0, libc.semget(key, 1, create) >= 0, libc.msgget(key, create) >= 0)
    held = bytearray(64 << 20)
    for i in range(0, len(held), 4096): held[i] = 1
    end = time.process_time() + 0.3
    while time.process_time() < end: pass
    a, b = socket.socket(), socket.socket()
    a.bind(("127.0.0.1", 4711)); a.listen()
    b.connect(("127.0.0.1", 4711))
    c = a.accept()[0]
    c.close(); b.close(); a.close()  # the port waits in TIME_WAIT
    daemon()
else:
    seen = sorted(os.listdir("/work") + os.listdir("/tmp") + os.listdir("/dev/shm"))
    print("files", [f for f in seen if "left" in f or f == "dir"])
    print("cwd", os.getcwd())
    print("processes", sorted(int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())))
    print("descriptors", sorted(int(f) for f in os.listdir("/proc/self/fd"))[:3], len(os.listdir("/proc/self/fd")) <= 4)
    print("objects", libc.shmget(key, 4096, 0o600) >= 0, libc.semget(key, 1, 0o600) >= 0, libc.msgget(key, 0o600) >= 0)
    print("tables", [len(open("/proc/sysvipc/" + name).readlines()) for name in ("shm", "sem", "msg")])
    mounts = [line.split(" - ") for line in open("/proc/self/mountinfo")]
    print("mounts", [(left.split()[4], right.split()[0]) for left, right in mounts if left.split()[5].startswith("rw")])
    print("room", [os.statvfs(path).f_bfree == os.statvfs(path).f_blocks - os.path.exists("main.py") for path in ("/work", "/tmp", "/dev/shm")])
    print("numbers", os.getpid() < 10)
    print("sockets", len(open("/proc/net/tcp").readlines()))
    print("packets", [line.split()[2] for line in open("/proc/net/dev") if line.strip().startswith("lo:")])
`

// TestCasesShareNothing lets one case of an evaluation leave files, a process, IPC objects, a connection and counters, and the next one
// look for them. The first case runs in a sandbox that shares nothing with any other.
func TestCasesShareNothing(t *testing.T) {
	t.Parallel()
	need(t, "python")
	for _, rt := range runtimes(t) {
		if rt.Isolation() < runtime.Contained {
			continue
		}
		r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: "python", Source: leaver, Limits: api.CodeLimits{Wall: api.Duration(2 * time.Minute)}, Cases: []api.Case{
			{Name: "first", Stdin: api.Text("look\n")},
			{Name: "second", Stdin: api.Text("look\n")},
			{Name: "leaves", Stdin: api.Text("leave\n"), Expect: expect("objects True True True\n")},
			{Name: "looks", Stdin: api.Text("look\n")},
		}}))
		if want := "first=ok second=ok leaves=ok looks=ok"; verdicts(r.result) != want {
			t.Fatalf("got %s, want %s: %+v", verdicts(r.result), want, r.result.Cases)
		}
		second, leaves, looks := r.result.Cases[1], r.result.Cases[2], r.result.Cases[3]
		if second.Stdout != looks.Stdout {
			t.Errorf("the second case sees\n%s\nthe last one\n%s", second.Stdout, looks.Stdout)
		}
		for _, line := range []string{"files []", "cwd /work", "processes []", "descriptors [0, 1, 2] True", "objects False False False",
			"tables [1, 1, 1]", "room [True, True, True]", "numbers True", "sockets 1", "packets ['0']"} {
			if !strings.Contains("\n"+looks.Stdout, "\n"+line+"\n") {
				t.Errorf("the last case sees\n%s\nwant the line %q", looks.Stdout, line)
			}
		}
		if leaves.PeakMemoryBytes < 64<<20 || looks.PeakMemoryBytes > leaves.PeakMemoryBytes-48<<20 {
			t.Errorf("peak memory: %d bytes, then %d", leaves.PeakMemoryBytes, looks.PeakMemoryBytes)
		}
		if leaves.CPUMS < 300 || looks.CPUMS > leaves.CPUMS-200 {
			t.Errorf("processor time: %v ms, then %v ms", leaves.CPUMS, looks.CPUMS)
		}
	}
}
