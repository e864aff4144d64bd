package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// mode says what a command wants an engine for.
type mode int

const (
	reading mode = iota // to look and to steer: no workers are needed
	working             // to run work
)

// session is a connection to an engine: in this process, in another one on the same state directory, or at a server.
type session struct {
	*client.Client
	embedded bool // the engine is in this process
	joined   bool // the engine is in another process on the same state directory, and may end with it

	// key is for what is submitted by way of another process, which may end before it answers: the submission is then repeated
	// with the next engine on the same database. Empty elsewhere.
	key string

	mu    sync.Mutex
	room  *room
	using *os.File // holds, while it is open, the engine of another process in existence; nil when nothing is joined

	lost context.Context // ends when the engine in this process has ended by itself; its cause says why
	lose context.CancelCauseFunc
}

// newSession makes a connection of a client. r holds the engine when that is in this process; else it is nil.
func newSession(c *client.Client, r *room) *session {
	s := &session{Client: c, embedded: r != nil, room: r}
	s.lost, s.lose = context.WithCancelCause(context.Background())
	if r != nil {
		context.AfterFunc(r.parts.ended, func() { s.lose(r.parts.failure()) })
	}
	return s
}

// within gives a context that ends also when the engine in this process has ended: no call would be answered any more.
func (s *session) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.lost, func() { cancel(context.Cause(s.lost)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Close ends the connection, and the engine when it is in this process.
func (s *session) Close() {
	s.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.room != nil {
		s.room.close()
	}
}

// take makes s the connection that next is.
func (s *session) take(next *session) {
	s.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Client, s.embedded, s.joined, s.room, s.using = next.Client, next.embedded, next.joined, next.room, next.using
	context.AfterFunc(next.lost, func() { s.lose(context.Cause(next.lost)) })
}

// connect finds the engine to work with: the server that was named, the process that works on the state directory, or one
// of its own.
func (a *app) connect(ctx context.Context, m mode) (*session, error) {
	if url := a.config.text("server"); url != "" {
		c, err := client.New(url, client.WithToken(a.config.text("token")), client.WithUserAgent("pawl/"+version()))
		if err != nil {
			return nil, usage("%v", err)
		}
		if err := reached(ctx, c); err != nil {
			return nil, err
		}
		return newSession(c, nil), nil
	}
	dir := a.config.text("state_dir")
	var waits owner
	var deadline time.Time
	for {
		lock, err := lockState(dir)
		if err == nil {
			r, err := a.openRoom(ctx, lock, roomOptions{works: m == working, drains: time.Second})
			if err != nil {
				return nil, err
			}
			return newSession(r.client(), r), nil
		}
		if !errors.Is(err, errHeld) {
			return nil, err
		}
		if s, err := join(ctx, dir, m); s != nil || err != nil {
			return s, err
		}
		switch o := readOwner(dir); {
		case deadline.IsZero() || o.PID != waits.PID:
			waits, deadline = o, time.Now().Add(patience)
		case time.Now().After(deadline):
			return nil, fmt.Errorf("the state directory %s is held by %s, which does not answer: stop it, or use another with --state-dir", dir, o)
		}
		if err := waitFor(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// patience is how long a command waits for one process that holds the state directory and cannot be joined: one that is just
// starting or ending, or a command that is just reading.
const patience = 30 * time.Second

// reached checks that a server is there at all: a person who named a wrong one wants to know now, and not when the client has tried for
// as long as a server may take to start again.
func reached(ctx context.Context, c *client.Client) error {
	const within = time.Second
	for begun := time.Now(); ; {
		err := c.Ready(ctx)
		var answer *api.Problem
		if err == nil || errors.As(err, &answer) {
			return nil
		}
		if time.Since(begun) > within {
			return err
		}
		if err := waitFor(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// following runs do, again on a new connection when the process that had the engine is gone: perhaps this process then
// has to have one.
func (a *app) following(ctx context.Context, s *session, do func() error) error {
	for {
		err := do()
		var refused *api.Problem
		if err == nil || !s.joined || ctx.Err() != nil || errors.As(err, &refused) && refused.Status != http.StatusServiceUnavailable {
			return err
		}
		a.logger().Debug("the engine's process is gone", "err", err)
		next, err := a.connect(ctx, working)
		if err != nil {
			return err
		}
		s.take(next)
	}
}

// lookFor is how long a server waits for a command that only looks at its state directory.
const lookFor = 10 * time.Second

// awaitState is lockState for a server: a command such as pawl get, which holds the directory for a moment, must not keep
// it from starting. Whoever works there does.
func awaitState(ctx context.Context, dir string) (*os.File, error) {
	deadline := time.Now().Add(lookFor)
	for {
		lock, err := lockState(dir)
		if !errors.Is(err, errHeld) || readOwner(dir).Works || time.Now().After(deadline) {
			return lock, err
		}
		if err := waitFor(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// errHeld means that another process works on the state directory.
var errHeld = errors.New("held by another process")

const (
	lockName   = "pawl.lock"
	socketName = "pawl.sock"
)

// lockState makes the state directory and takes it; the system gives it back when this process ends, however it ends.
func lockState(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the state directory: %w; give another with --state-dir", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the state directory: %w; give another with --state-dir", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errHeld
		}
		return nil, fmt.Errorf("lock %s: %w", filepath.Join(dir, lockName), err)
	}
	return f, nil
}

// owner is what the process that works on a state directory says about itself in the lock file, which only its user can
// read.
type owner struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
	Works   bool      `json:"works"`             // it has workers
	Address string    `json:"address,omitempty"` // of its socket
	Token   string    `json:"token,omitempty"`
	Page    string    `json:"page,omitempty"` // address of its web page
}

func (o owner) String() string {
	if o.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d (%s)", o.PID, o.Command)
}

func readOwner(dir string) owner {
	var o owner
	b, err := os.ReadFile(filepath.Join(dir, lockName))
	if err != nil || json.Unmarshal(b, &o) != nil {
		return owner{} // it has not written it yet
	}
	return o
}

// write puts the owner into its lock file.
func (o owner) write(lock *os.File) error {
	b, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode owner: %w", err)
	}
	if err := lock.Truncate(0); err != nil {
		return fmt.Errorf("write %s: %w", lock.Name(), err)
	}
	if _, err := lock.WriteAt(b, 0); err != nil {
		return fmt.Errorf("write %s: %w", lock.Name(), err)
	}
	return nil
}

func (o owner) client() (*client.Client, error) {
	transport := &http.Transport{
		MaxIdleConnsPerHost:   16,
		ExpectContinueTimeout: 5 * time.Second,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", o.Address)
		},
	}
	return client.New("http://localhost", client.WithHTTPClient(&http.Client{Transport: transport}),
		client.WithToken(o.Token), client.WithPatience(100*time.Millisecond), client.WithUserAgent("pawl/"+version()))
}

// listenState opens the socket by which other commands reach the engine of this process: in the state directory, or, as
// such a path may only be short, in a private directory elsewhere, which remove then removes.
func listenState(dir string) (l net.Listener, remove func(), err error) {
	path, remove := filepath.Join(dir, socketName), func() {}
	const longest = 100 // bytes of a socket's path that every system takes
	if len(path) > longest {
		private, err := os.MkdirTemp("", "pawl-")
		if err != nil {
			return nil, nil, fmt.Errorf("make a place for the socket: %w", err)
		}
		path, remove = filepath.Join(private, socketName), func() { _ = os.RemoveAll(private) }
	}
	// Who holds the lock may remove what a process that was killed has left.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("remove the socket of an earlier process: %w", err)
	}
	l, err = net.Listen("unix", path)
	if err != nil {
		remove()
		return nil, nil, fmt.Errorf("open the state directory's socket: %w", err)
	}
	return l, remove, nil
}
