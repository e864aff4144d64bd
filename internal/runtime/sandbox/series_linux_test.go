package sandbox

import (
	"context"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

// inSeries is a runtime whose runs are all of one series, on a base from the second run on.
type inSeries struct {
	*Runtime
	series   runtime.Series
	starting *sync.RWMutex // read-locked while a run starts: until then the series must not be closed
}

func (r inSeries) Start(ctx context.Context, spec runtime.Spec) (runtime.Run, error) {
	r.starting.RLock()
	defer r.starting.RUnlock()
	return r.series.Start(ctx, spec)
}

func (r inSeries) Close() error {
	err := r.Runtime.Close()
	r.starting.Lock()
	defer r.starting.Unlock()
	r.series.Close()
	return err
}

func seriesOf(t testing.TB, o Options) inSeries {
	t.Helper()
	r := factory(o)(t).(*Runtime)
	if !r.privileged {
		_ = r.Close()
		t.Skip("only root may enter the namespaces of a base")
	}
	return inSeries{r, &series{runtime: r, begun: true}, new(sync.RWMutex)}
}

// TestConformanceOnABase runs the whole suite, with every hostile program, on the same base.
func TestConformanceOnABase(t *testing.T) {
	o := Options{}
	open := func(t testing.TB) runtime.Runtime { return seriesOf(t, o) }
	runtimetest.Exercise(t, open, differing(t, o), runtimetest.Brief())
}

// output runs a program to its end and returns its output.
func (r inSeries) output(t *testing.T, spec runtime.Spec) string {
	t.Helper()
	var out strings.Builder
	spec.Stdout, spec.Stderr, spec.Env = &out, &out, []string{"PATH=/usr/bin:/bin"}
	run, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if result := run.Wait(); result.Verdict != runtime.OK {
		t.Fatalf("%+v\n%s", result, out.String())
	}
	return out.String()
}

func (r inSeries) shell(t *testing.T, script string) string {
	t.Helper()
	return r.output(t, runtime.Spec{Argv: []string{"/bin/sh", "-c", script}})
}

// TestSeriesIsOnOneBase compares what runs of a series see. The root is the same, and so is the network unless they run at the same time;
// everything else differs.
func TestSeriesIsOnOneBase(t *testing.T) {
	r := seriesOf(t, Options{})
	t.Cleanup(func() { _ = r.Close() })
	const script = `stat -c root:%D /etc; readlink /proc/self/ns/net
for ns in mnt pid ipc user uts cgroup; do readlink /proc/self/ns/$ns; done; stat -c proc:%D /proc; stat -c scratch:%D /work`
	before := strings.Fields(r.shell(t, script))
	out := newLines()
	input, feed := io.Pipe()
	// Numbers of namespaces and devices are reused when these have ended, so two runs must exist at once.
	long, err := r.Start(t.Context(), runtime.Spec{Argv: []string{"/bin/sh", "-c", script + "; echo done; read x"},
		Env: []string{"PATH=/usr/bin:/bin"}, Stdin: input, Stdout: out})
	if err != nil {
		t.Fatal(err)
	}
	first := out.until("done")
	second := strings.Fields(r.shell(t, script))
	feed.Close()
	if result := long.Wait(); result.Verdict != runtime.NonzeroExit {
		t.Errorf("%+v", result)
	}
	after := strings.Fields(r.shell(t, script))
	if len(first) != 10 || len(second) != 10 || len(before) != 10 || len(after) != 10 {
		t.Fatalf("%q, %q, %q, %q", before, first, second, after)
	}
	for i := range first {
		if same := first[i] == second[i]; same != (i == 0) {
			t.Errorf("at the same time: %s and %s", first[i], second[i])
		}
		if i < 2 && (before[i] != first[i] || before[i] != after[i]) {
			t.Errorf("one after the other: %s, %s, %s", before[i], first[i], after[i])
		}
	}
}

// lines collects words of an output.
type lines struct{ words chan string }

func newLines() *lines { return &lines{make(chan string, 1000)} }

func (l *lines) Write(p []byte) (int, error) {
	for word := range strings.FieldsSeq(string(p)) {
		l.words <- word
	}
	return len(p), nil
}

// until returns the words before one.
func (l *lines) until(last string) (words []string) {
	for word := range l.words {
		if word == last {
			break
		}
		words = append(words, word)
	}
	return words
}

// TestUsedNetworkIsNotReused has a run change its network namespace. The next run gets another one, in a series and outside of one.
func TestUsedNetworkIsNotReused(t *testing.T) {
	if _, err := os.Stat(pythonPath); err != nil {
		t.Skipf("%s is missing", pythonPath)
	}
	for what, program := range map[string]string{
		"sends a datagram":     "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
		"is refused":           "socket.socket().connect_ex(('127.0.0.1', 9))",
		"connects to no host":  "socket.socket().connect_ex(('192.0.2.1', 9))",
		"connects with IPv6":   "socket.socket(socket.AF_INET6).connect_ex(('::1', 9))",
		"finds no way by IPv6": "socket.socket(socket.AF_INET6).connect_ex(('2001:db8::1', 9))",
		"leaves a closed port": "a = socket.create_server(('127.0.0.1', 0)); b = socket.create_connection(a.getsockname()); " +
			"c = a.accept()[0]; c.close(); b.close()",
		"keeps a flow label": "a = bytes(15) + b'\\1\\0\\0\\x12\\x34\\0\\xff\\1\\0\\x3c\\0\\x3c' + bytes(5); " +
			"socket.socket(socket.AF_INET6).setsockopt(41, 32, a)",
		"makes many sockets":  "for i in range(20_000): socket.socket().close()",
		"is killed meanwhile": "socket.socket().bind(('127.0.0.1', 4711)); os.kill(os.getpid(), 9)",
		"sends a socket itself": "a, b = socket.socketpair(); a.bind('\\0left'); socket.send_fds(a, [b'x'], [a.fileno()]); " +
			"socket.send_fds(b, [b'x'], [b.fileno()]); a.sendall(b'x')",
	} {
		t.Run(what, func(t *testing.T) { usesNetwork(t, what, program, false) })
		t.Run(what+", outside of a series", func(t *testing.T) { usesNetwork(t, what, program, true) })
	}
}

func usesNetwork(t *testing.T, what, program string, alone bool) {
	t.Helper()
	r := seriesOf(t, Options{})
	t.Cleanup(func() { _ = r.Close() })
	if r.networks == nil {
		t.Skip("the kernel loads no BPF program")
	}
	r.series.(*series).alone = alone
	look := "readlink /proc/self/ns/net; cd /proc/net; cat dev snmp snmp6 netstat unix ip6_flowlabel"
	before := r.shell(t, look)
	if again := r.shell(t, look); again != before {
		t.Fatalf("a network that nothing has used is another one:\n%s\n%s", before, again)
	}
	run, err := r.Start(t.Context(), runtime.Spec{Argv: []string{pythonPath, "-c", "import os, socket\n" + program}})
	if err != nil {
		t.Fatal(err)
	}
	if result := run.Wait(); result.Verdict != runtime.OK && what != "is killed meanwhile" {
		t.Errorf("%+v", result)
	}
	name, counters, _ := strings.Cut(before, "\n")
	nameAfter, countersAfter, _ := strings.Cut(r.shell(t, look), "\n")
	if counters != countersAfter {
		t.Errorf("the next run sees\n%s\nwant\n%s", countersAfter, counters)
	}
	if what == "is killed meanwhile" || what == "sends a socket itself" {
		return // these may leave no trace by the time of the end
	}
	if name == nameAfter {
		t.Error("the next run has the same network")
	}
}

// TestNetworksUnderSignals loads the BPF program while signals arrive. The kernel then ends the load with EAGAIN.
func TestNetworksUnderSignals(t *testing.T) {
	r := seriesOf(t, Options{})
	t.Cleanup(func() { _ = r.Close() })
	if r.networks == nil {
		t.Skip("the kernel loads no BPF program")
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	thread, done, ended := unix.Gettid(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
			}
		}
	}()
	defer func() { close(done); <-ended }()
	for i := range 100 {
		n := newNetworks(r.cgroups, true)
		if n == nil {
			t.Fatalf("the BPF program is not loaded the %d. time", i+1)
		}
		n.close()
	}
}

// TestSeriesMounts starts runs with toolchains outside of the system's directories, in a series and with others in between.
func TestSeriesMounts(t *testing.T) {
	r := seriesOf(t, Options{})
	t.Cleanup(func() { _ = r.Close() })
	for i, name := range []string{"one", "two", "two", "in /tmp", "one"} {
		parent := "/tmp"
		if !strings.Contains(name, parent) {
			parent = "/var/tmp"
		}
		dir, err := os.MkdirTemp(parent, "pawl-mount-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			script := `cat "$0/file"; ls "$(dirname "$0")" | grep pawl-mount; touch "$0/file" 2>/dev/null && echo written; exit 0`
			got := r.output(t, runtime.Spec{Argv: []string{"/bin/sh", "-c", script, dir}, Mounts: []runtime.Mount{{Path: dir}}})
			if want := name + filepath.Base(dir) + "\n"; got != want {
				t.Errorf("%d: %q, want %q", i, got, want)
			}
		}
	}
}

// TestBaseLeavesNothing counts what is left after a series is closed.
func TestBaseLeavesNothing(t *testing.T) {
	r := seriesOf(t, Options{})
	t.Cleanup(func() { _ = r.Close() })
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	r.shell(t, "true")
	r.series.Close()
	before, processes := count(), descendants(os.Getpid())
	for range 3 {
		s := inSeries{r.Runtime, &series{runtime: r.Runtime, begun: true}, new(sync.RWMutex)}
		s.shell(t, "true")
		s.shell(t, "true")
		s.series.Close()
		s.shell(t, "true") // shares nothing any more
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors, then %d", before, after)
	}
	for _, pid := range descendants(os.Getpid()) {
		if !slices.Contains(processes, pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	if left := runtimetest.Cgroups(os.Getpid()); len(left) > 0 {
		t.Errorf("cgroups are left: %v", left)
	}
}
