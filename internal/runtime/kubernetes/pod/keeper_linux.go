package pod

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// Places are the directories that a keeper uses.
type Places struct{ Shared, Keep string }

func (p Places) in(path string) string {
	for dir, mine := range map[string]string{wire.Shared: p.Shared, wire.Keep: p.Keep} {
		if rest, ok := strings.CutPrefix(path, dir+"/"); ok && mine != "" {
			return filepath.Join(mine, rest)
		}
	}
	return path
}

// keeper holds the output and the state of a run. A worker that reconnects reads on from its last offset.
type keeper struct {
	orphan time.Duration

	mu      sync.Mutex
	changed *sync.Cond
	state   wire.State
	version int // of state
	report  *wire.Report
	init    *os.File // process 1
	alone   bool     // process 1 is gone
	streams [2]stream
	limit   int64 // bytes kept; one more than the program may write, so that the worker sees an excess
	kept    int64
	over    bool
	input   *input
	link    *link // the stream of the current worker
	contact time.Time
	done    bool
}

// stream is one output of the program.
type stream struct {
	file *os.File
	size int64
	open bool
}

// Keep runs the keeper until the pod is told to end or process 1 has been released. orphan is how long a run continues without a worker.
func Keep(places Places, orphan time.Duration, ends <-chan os.Signal) error {
	k := &keeper{orphan: orphan, contact: time.Now(),
		state: wire.State{Version: wire.Version, Epoch: fmt.Sprintf("%d.%d", os.Getpid(), time.Now().UnixNano()), Phase: wire.Waiting}}
	k.changed = sync.NewCond(&k.mu)
	unix.Umask(0)
	workers, err := listen(places.in(wire.Attach))
	if err != nil {
		// The kubelet has restarted this container: what the first keeper held of the run is lost.
		if err := os.Remove(places.in(wire.Attach)); err != nil {
			return err
		}
		k.state.Phase = wire.Broken
		if workers, err = listen(places.in(wire.Attach)); err != nil {
			return err
		}
	}
	defer workers.Close()
	if k.state.Phase == wire.Waiting {
		for i, name := range []string{"out", "err"} {
			file, err := os.OpenFile(places.in(wire.Keep+"/"+name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			defer file.Close()
			k.streams[i].file = file
		}
		first, err := listen(places.in(wire.Socket))
		if err != nil {
			return err
		}
		go k.serveInit(first)
		if err := install(places); err != nil {
			return err
		}
	}
	go k.serveWorkers(workers)
	tick := time.Tick(min(time.Second, max(orphan/4, time.Millisecond)))
	for {
		select {
		case <-ends:
			k.drain()
			return nil
		case <-tick:
			k.mu.Lock()
			if time.Since(k.contact) > k.orphan && !k.done {
				k.finish()
			}
			over := k.done && (k.init == nil || k.alone)
			k.mu.Unlock()
			if over {
				return nil
			}
		}
	}
}

// install copies the helper for the program's container. Its name appears when the copy is complete.
func install(places Places) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	target := places.in(wire.Program)
	part, err := os.OpenFile(target+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err = io.Copy(part, self); err == nil {
		err = part.Close()
	}
	if err == nil {
		err = os.Rename(target+".part", target)
	}
	return err
}

// finish releases process 1, which kills the processes that still run. The caller holds the lock.
func (k *keeper) finish() {
	k.done = true
	if k.init != nil {
		_ = k.init.Close()
	}
	k.changed.Broadcast()
}

// drain waits until a connected worker has got everything: the pod ends, and the kubelet leaves the keeper a grace period.
func (k *keeper) drain() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for !k.done && k.state.Phase != wire.Broken {
		k.changed.Wait()
	}
}

func (k *keeper) change(f func(*wire.State)) {
	f(&k.state)
	k.version++
	k.changed.Broadcast()
}

// serveInit accepts process 1 of the program's container, which connects first: no other process runs there before an
// order. The program's outputs and input come with its greeting.
func (k *keeper) serveInit(l *os.File) {
	conn, err := accept(l)
	_ = os.Remove(l.Name())
	_ = l.Close()
	if err != nil {
		return
	}
	pipes, err := receivePipes(conn)
	if err != nil {
		_ = conn.Close()
		k.mu.Lock()
		k.change(func(s *wire.State) { s.Phase = wire.Lost })
		k.mu.Unlock()
		return
	}
	k.mu.Lock()
	k.init, k.input = conn, newInput(pipes[0], k)
	k.streams[0].open, k.streams[1].open = true, true
	k.change(func(s *wire.State) { s.Phase = wire.Ready })
	if k.done { // nobody came in time
		_ = conn.Close()
	}
	k.mu.Unlock()
	var all sync.WaitGroup
	all.Go(func() { k.read(0, pipes[1]) })
	all.Go(func() { k.read(1, pipes[2]) })
	k.listen(conn)
	// When process 1 is gone its pid namespace is empty, so the outputs end.
	all.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.alone = true
	if k.state.Phase != wire.Exited && k.state.Phase != wire.Refused {
		k.change(func(s *wire.State) { s.Phase = wire.Lost })
	}
}

// receivePipes receives the other ends of the program's stdin, stdout and stderr.
func receivePipes(conn *os.File) ([3]*os.File, error) {
	var pipes [3]*os.File
	var greeting [1]byte
	rights := make([]byte, unix.CmsgSpace(3*4))
	n := 0
	err := receive(conn, func(fd int) (err error) {
		_, n, _, _, err = unix.Recvmsg(fd, greeting[:], rights, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	if err != nil {
		return pipes, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return pipes, fmt.Errorf("process 1 came without its streams: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 3 {
		return pipes, fmt.Errorf("process 1 came with %d streams: %w", len(fds), err)
	}
	for i, fd := range fds {
		if err := unix.SetNonblock(fd, true); err != nil {
			return pipes, err
		}
		pipes[i] = os.NewFile(uintptr(fd), "stream")
	}
	return pipes, nil
}

// read stores one output until its end. Bytes beyond the limit are read and dropped, so that the program is never blocked.
func (k *keeper) read(i int, pipe *os.File) {
	defer pipe.Close()
	s := &k.streams[i]
	buffer := make([]byte, wire.Chunk)
	for {
		n, err := pipe.Read(buffer)
		k.mu.Lock()
		within := min(int64(n), k.limit-k.kept)
		if within < int64(n) && !k.over {
			k.over = true
			_ = wire.Write(k.init, wire.Frame{Kind: wire.Kill})
		}
		if within > 0 {
			if _, werr := s.file.WriteAt(buffer[:within], s.size); werr != nil {
				_ = k.init.Close() // output is lost: the run cannot succeed
				err = werr
			} else {
				s.size += within
				k.kept += within
			}
		}
		if err != nil {
			s.open = false
			k.settle()
		}
		k.changed.Broadcast()
		k.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// settle reports the end once the outputs have ended, too. The caller holds the lock.
func (k *keeper) settle() {
	if k.report == nil || k.streams[0].open || k.streams[1].open || k.state.Phase != wire.Running {
		return
	}
	k.change(func(s *wire.State) {
		s.Phase, s.Report, s.Out, s.Err = wire.Exited, k.report, k.streams[0].size, k.streams[1].size
	})
}

// listen handles the messages of process 1 until it is gone.
func (k *keeper) listen(conn *os.File) {
	defer conn.Close()
	for {
		f, err := wire.Read(conn)
		if err != nil {
			return
		}
		switch f.Kind {
		case wire.Began:
			k.mu.Lock()
			k.change(func(s *wire.State) { s.Phase = wire.Running })
			k.mu.Unlock()
		case wire.Failed:
			var why wire.Failure
			if err := f.Decode(&why); err != nil {
				return
			}
			k.mu.Lock()
			k.change(func(s *wire.State) { s.Phase, s.Failure = wire.Refused, &why })
			k.mu.Unlock()
		case wire.Ended:
			var report wire.Report
			if err := f.Decode(&report); err != nil {
				return
			}
			k.mu.Lock()
			k.report = &report
			k.settle()
			k.mu.Unlock()
		case wire.File, wire.Data, wire.Fetched:
			k.mu.Lock()
			l := k.link
			k.mu.Unlock()
			if l != nil {
				_ = l.send(f) // a worker that has gone asks again
			}
		default:
			return
		}
	}
}

// silence is how long a worker's stream may be silent before the keeper closes it; workers ping several times as often.
const silence = 20 * time.Second

func (k *keeper) serveWorkers(l *os.File) {
	for {
		conn, err := accept(l)
		if err != nil {
			if errors.Is(err, os.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond)
			continue
		}
		go k.serve(&link{conn: conn, keeper: k})
	}
}
