package pod

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// bench is a keeper whose process 1 is played by the test.
type bench struct {
	places Places
	init   *net.UnixConn
	stdin  *os.File
	out    [2]*os.File
	ends   chan os.Signal
	over   chan error
}

func keep(t *testing.T, places Places, orphan time.Duration) *bench {
	t.Helper()
	b := &bench{places: places, ends: make(chan os.Signal, 1), over: make(chan error, 1)}
	go func() { b.over <- Keep(places, orphan, b.ends) }()
	eventually(t, "the keeper is there", func() bool { return Installed(places) })
	return b
}

// eventually polls a condition without a signal.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); !is(); <-tick.C {
		if time.Since(begin) > time.Minute {
			t.Fatalf("it is not so: %s", what)
		}
	}
}

func newBench(t *testing.T, orphan time.Duration) *bench {
	t.Helper()
	b := keep(t, Places{Shared: t.TempDir(), Keep: t.TempDir()}, orphan)
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: b.places.in(wire.Socket), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	b.init = conn
	t.Cleanup(func() { _ = conn.Close() })
	var theirs []int
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		mine, their := w, r
		if i == 0 {
			b.stdin, mine, their = r, r, w
		} else {
			b.out[i-1] = w
		}
		t.Cleanup(func() { _ = mine.Close() })
		defer their.Close()
		theirs = append(theirs, int(their.Fd()))
	}
	if _, _, err := conn.WriteMsgUnix([]byte{1}, unix.UnixRights(theirs...), nil); err != nil {
		t.Fatal(err)
	}
	return b
}

// hear reads the keeper's next frame to process 1.
func (b *bench) hear(t *testing.T) wire.Frame {
	t.Helper()
	_ = b.init.SetReadDeadline(time.Now().Add(20 * time.Second))
	f, err := wire.Read(b.init)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write sends a frame, with a message unless that is nil.
func write(to io.Writer, kind wire.Kind, message wire.Message) error {
	if message == nil {
		return wire.Write(to, wire.Frame{Kind: kind})
	}
	return wire.WriteMessage(to, kind, message)
}

func (b *bench) say(t *testing.T, kind wire.Kind, message wire.Message) {
	t.Helper()
	if err := write(b.init, kind, message); err != nil {
		t.Fatal(err)
	}
}

// reader is a worker's stream.
type reader struct {
	t     *testing.T
	conn  *net.UnixConn
	out   [2]bytes.Buffer
	at    [2]int64
	state wire.State
}

func (b *bench) attach(t *testing.T, out, errs int64) *reader {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: b.places.in(wire.Attach), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	r := &reader{t: t, conn: conn, at: [2]int64{out, errs}}
	r.send(wire.Hello, &wire.Greeting{Version: wire.Version, Out: out, Err: errs})
	return r
}

func (r *reader) send(kind wire.Kind, message wire.Message) {
	r.t.Helper()
	if err := write(r.conn, kind, message); err != nil {
		r.t.Fatal(err)
	}
}

// until reads frames until done returns true.
func (r *reader) until(done func() bool) {
	r.t.Helper()
	for !done() {
		_ = r.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		f, err := wire.Read(r.conn)
		if err != nil {
			r.t.Fatalf("%v; the state is %+v, the output %q", err, r.state, r.out[0].String())
		}
		switch f.Kind {
		case wire.Out, wire.Err:
			i := strings.IndexByte("12", byte(f.Kind))
			if f.Offset != r.at[i] {
				r.t.Fatalf("output at offset %d, expected at %d", f.Offset, r.at[i])
			}
			r.at[i] += int64(len(f.Data))
			r.out[i].Write(f.Data)
		case wire.Status:
			if err := f.Decode(&r.state); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

func (r *reader) phase(p wire.Phase) {
	r.t.Helper()
	r.until(func() bool { return r.state.Phase == p })
}

// begin sends an order and makes process 1 report that the program runs.
func (b *bench) begin(t *testing.T, r *reader, c wire.Command) {
	t.Helper()
	r.phase(wire.Ready)
	r.send(wire.Order, &c)
	r.send(wire.Go, nil)
	for _, want := range []wire.Kind{wire.Order, wire.Go} {
		if f := b.hear(t); f.Kind != want {
			t.Fatalf("process 1 was told %q, want %q", f.Kind, want)
		}
	}
	b.say(t, wire.Began, nil)
	r.phase(wire.Running)
}

// A worker that reconnects gets the missing output without repetition; the end is sent after all output.
func TestOutputByOffset(t *testing.T) {
	b := newBench(t, time.Minute)
	r := b.attach(t, 0, 0)
	b.begin(t, r, wire.Command{Output: 1 << 20, Stdin: true})
	fmt.Fprint(b.out[0], "one\r\n\x00")
	fmt.Fprint(b.out[1], "bad")
	r.until(func() bool { return r.out[0].Len() == 6 && r.out[1].Len() == 3 })
	_ = r.conn.Close()
	fmt.Fprint(b.out[0], "two")
	r = b.attach(t, 6, 1)
	r.until(func() bool { return r.out[0].String() == "two" && r.out[1].String() == "ad" })

	// Input is confirmed, and input that is sent twice arrives once.
	for _, f := range []wire.Frame{{Kind: wire.Stdin, Data: []byte("abc")}, {Kind: wire.Stdin, Data: []byte("abcdef")}, {Kind: wire.Stdin, Offset: 6}} {
		if err := wire.Write(r.conn, f); err != nil {
			t.Fatal(err)
		}
	}
	input := make([]byte, 7)
	n, _ := b.stdin.Read(input)
	for n < 6 {
		more, err := b.stdin.Read(input[n:])
		if n += more; err != nil {
			break
		}
	}
	if end, err := b.stdin.Read(input[6:]); string(input[:6]) != "abcdef" || end != 0 || err == nil {
		t.Errorf("the program read %q, %v", input, err)
	}
	r.until(func() bool { return r.state.Stdin == 6 })

	b.say(t, wire.Ended, &wire.Report{Code: 3})
	fmt.Fprint(b.out[0], "late")
	_, _ = b.out[0].Close(), b.out[1].Close()
	r.phase(wire.Exited)
	if s := r.state; r.out[0].String() != "twolate" || s.Out != 13 || s.Err != 3 || s.Report.Code != 3 {
		t.Errorf("%q, %+v", r.out[0].String(), s)
	}
	again := b.attach(t, 0, 0)
	again.phase(wire.Exited)
	if again.out[0].String() != "one\r\n\x00twolate" || again.out[1].String() != "bad" {
		t.Errorf("from the beginning: %q %q", again.out[0].String(), again.out[1].String())
	}
	again.send(wire.Done, nil)
	if _, err := wire.Read(b.init); err == nil {
		t.Error("process 1 is not let go")
	}
	b.ends <- syscall.SIGTERM
	if err := <-b.over; err != nil {
		t.Error(err)
	}
}

// One byte more than the limit is kept, and the program is ended; its output is read to the end all the same.
func TestOutputLimit(t *testing.T) {
	b := newBench(t, time.Minute)
	r := b.attach(t, 0, 0)
	b.begin(t, r, wire.Command{Output: 10})
	fmt.Fprint(b.out[0], strings.Repeat("x", 100_000)) // more than a pipe can hold
	if f := b.hear(t); f.Kind != wire.Kill {
		t.Errorf("process 1 was told %q", f.Kind)
	}
	b.say(t, wire.Ended, &wire.Report{Ending: wire.ByKill})
	_, _ = b.out[0].Close(), b.out[1].Close()
	r.phase(wire.Exited)
	if r.out[0].Len() != 11 {
		t.Errorf("kept %d bytes", r.out[0].Len())
	}
}

// A worker that does not read for a while, but pings, is alive: the run continues, and nothing is lost.
func TestSlowReader(t *testing.T) {
	const orphan = 700 * time.Millisecond
	b := newBench(t, orphan)
	r := b.attach(t, 0, 0)
	b.begin(t, r, wire.Command{Output: 1 << 30})
	over := make(chan struct{})
	var pings sync.WaitGroup
	pings.Go(func() { // until the end: a busy machine takes time to read
		ping := time.NewTicker(orphan / 20)
		defer ping.Stop()
		for {
			_ = wire.Write(r.conn, wire.Frame{Kind: wire.Ping})
			select {
			case <-over:
				return
			case <-ping.C:
			}
		}
	})
	defer pings.Wait()
	defer close(over)
	written := make(chan error, 1)
	all := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // more than the sockets can hold
	go func() { _, err := b.out[0].Write(all); written <- err }()
	<-time.After(3 * orphan) // nothing is read meanwhile
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	b.say(t, wire.Ended, &wire.Report{})
	_, _ = b.out[0].Close(), b.out[1].Close()
	r.phase(wire.Exited)
	if !bytes.Equal(r.out[0].Bytes(), all) {
		t.Errorf("%d bytes came", r.out[0].Len())
	}
}

// Waiting input is bounded in bytes, and takes no more memory than them.
func TestInputIsBounded(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	k := &keeper{}
	k.changed = sync.NewCond(&k.mu)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	in := newInput(w, k)
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("an empty input takes %d bytes", after.TotalAlloc-before.TotalAlloc)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	defer in.end()
	for _, c := range []struct {
		size  int
		taken bool
	}{{Window - 1, true}, {1, true}, {1, false}} {
		if err := in.take(wire.Frame{Offset: in.next, Data: make([]byte, c.size)}); (err == nil) != c.taken {
			t.Errorf("%d bytes after %d: %v", c.size, in.next, err)
		}
	}
}

// That the program runs is reported before the existing output, however much that is.
func TestRunsBeforeItsOutput(t *testing.T) {
	b := newBench(t, time.Minute)
	r := b.attach(t, 0, 0)
	r.phase(wire.Ready)
	r.send(wire.Order, &wire.Command{Output: 1 << 30})
	r.send(wire.Go, nil)
	for range 2 {
		b.hear(t)
	}
	all := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // more than the sockets can hold
	if _, err := b.out[0].Write(all); err != nil {
		t.Fatal(err)
	}
	b.say(t, wire.Began, nil)
	eventually(t, "the keeper knows that the program runs", func() bool {
		looks := b.look(t)
		looks.until(func() bool { return looks.state.Phase != "" })
		return looks.state.Phase == wire.Running
	})
	r.phase(wire.Running)
	if r.out[0].Len() == len(all) {
		t.Error("all of the output came first")
	}
	again := b.attach(t, 0, 0)
	again.phase(wire.Running)
	if again.out[0].Len() > 0 {
		t.Errorf("%d bytes came before the state of a program that runs", again.out[0].Len())
	}
	again.until(func() bool { return again.out[0].Len() == len(all) })
	if !bytes.Equal(again.out[0].Bytes(), all) {
		t.Error("the output is not what was written")
	}
}

// look attaches a worker with Greeting.Look.
func (b *bench) look(t *testing.T) *reader {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: b.places.in(wire.Attach), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	r := &reader{t: t, conn: conn}
	r.send(wire.Hello, &wire.Greeting{Version: wire.Version, Look: true})
	return r
}

// Without a report the run is lost.
func TestLost(t *testing.T) {
	b := newBench(t, time.Minute)
	r := b.attach(t, 0, 0)
	b.begin(t, r, wire.Command{Output: 100})
	fmt.Fprint(b.out[0], "last words")
	_, _, _ = b.init.Close(), b.out[0].Close(), b.out[1].Close()
	r.phase(wire.Lost)
	if r.out[0].String() != "last words" {
		t.Errorf("%q", r.out[0].String())
	}
}

// Half an order runs nothing, for this worker or another, and neither does a second order.
func TestHalfAnOrder(t *testing.T) {
	b := newBench(t, time.Minute)
	r := b.attach(t, 0, 0)
	r.phase(wire.Ready)
	r.send(wire.Order, &wire.Command{Output: 100})
	r.phase(wire.Ordered)
	_ = r.conn.Close()
	if f := b.hear(t); f.Kind != wire.Order {
		t.Errorf("%q", f.Kind)
	}
	if f, err := wire.Read(b.init); err == nil {
		t.Errorf("process 1 was told %q", f.Kind)
	}
	r = b.attach(t, 0, 0)
	r.until(func() bool { return r.state.Phase == wire.Broken || r.state.Phase == wire.Lost })
	r.send(wire.Order, &wire.Command{})
	if f, err := wire.Read(b.init); err == nil {
		t.Errorf("process 1 was told %q", f.Kind)
	}
}

// A newer stream replaces an older one, whose worker may be cut off without knowing it.
func TestNewerReader(t *testing.T) {
	b := newBench(t, time.Minute)
	old := b.attach(t, 0, 0)
	b.begin(t, old, wire.Command{Output: 100})
	newer := b.attach(t, 0, 0)
	newer.phase(wire.Running)
	_ = write(old.conn, wire.Kill, nil)
	newer.send(wire.Kill, nil)
	if f := b.hear(t); f.Kind != wire.Kill {
		t.Errorf("%q", f.Kind)
	}
	_ = b.init.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if f, err := wire.Read(b.init); err == nil {
		t.Errorf("the older stream reached process 1: %q", f.Kind)
	}
}

// A run without its worker continues only for a limited time, whether it has started or not.
func TestOrphan(t *testing.T) {
	for _, begun := range []bool{false, true} {
		b := newBench(t, 100*time.Millisecond)
		if begun {
			r := b.attach(t, 0, 0)
			b.begin(t, r, wire.Command{Output: 100})
			_ = r.conn.Close()
		}
		_ = b.init.SetReadDeadline(time.Now().Add(20 * time.Second))
		if f, err := wire.Read(b.init); err == nil || os.IsTimeout(err) {
			t.Errorf("process 1 was not let go: %q, %v", f.Kind, err)
		}
		// The pod ends when process 1 is gone, and not only when it is deleted.
		for _, pipe := range []*os.File{b.out[0], b.out[1]} {
			_ = pipe.Close()
		}
		_ = b.init.Close()
		select {
		case err := <-b.over:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Error("the keeper stays")
		}
	}
}

// A restarted keeper reports that what it held is lost.
func TestKeeperAgain(t *testing.T) {
	b := newBench(t, time.Minute)
	r := b.attach(t, 0, 0)
	r.phase(wire.Ready)
	second := keep(t, b.places, time.Minute)
	eventually(t, "the keeper says that it was started again", func() bool {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: b.places.in(wire.Attach), Net: "unix"})
		if err != nil {
			return false
		}
		defer conn.Close()
		again := &reader{t: t, conn: conn}
		again.send(wire.Hello, &wire.Greeting{Version: wire.Version})
		again.until(func() bool { return again.state.Phase != "" })
		return again.state.Phase == wire.Broken && again.state.Epoch != r.state.Epoch
	})
	second.ends <- syscall.SIGTERM
	if err := <-second.over; err != nil {
		t.Error(err)
	}
}

// A worker of another version gets the keeper's version, whatever else its messages contain.
func TestAnotherVersion(t *testing.T) {
	b := newBench(t, time.Minute)
	for name, hello := range map[string]wire.Frame{
		"version 1": wire.Pack(wire.Hello, 0, &wire.Greeting{Version: 1}),
		"a later":   {Kind: wire.Hello, Data: append(wire.Pack(wire.Hello, 0, &wire.Greeting{Version: 77}).Data, "and what this one does not know"...)},
	} {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: b.places.in(wire.Attach), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		if err := wire.Write(conn, hello); err != nil {
			t.Fatal(err)
		}
		f, err := wire.Read(conn)
		var told wire.State
		if err != nil || f.Kind != wire.Status || f.Decode(&told) != nil || told.Version != wire.Version {
			t.Errorf("%s was told %q %q, %v", name, f.Kind, f.Data, err)
		}
	}
	b.attach(t, 0, 0).phase(wire.Ready)
}

// A worker with Greeting.Look gets the state of the run, and the current worker continues to be served.
func TestLook(t *testing.T) {
	b := newBench(t, time.Minute)
	served := b.attach(t, 0, 0)
	b.begin(t, served, wire.Command{Output: 1000})
	b.look(t).phase(wire.Running)
	if _, err := b.out[0].WriteString("more"); err != nil {
		t.Fatal(err)
	}
	served.until(func() bool { return served.out[0].String() == "more" })
}
