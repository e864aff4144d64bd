package instance

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
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/client"
)

// lookFor is how long a server waits for a command that only looks at its state directory.
const lookFor = 10 * time.Second

// AwaitState is lockState for a server: a command such as pawl get, which holds the directory for a moment, must not keep
// it from starting. The process that works there does.
func AwaitState(ctx context.Context, dir string) (*os.File, error) {
	deadline := time.Now().Add(lookFor)
	for {
		lock, err := LockState(dir)
		if !errors.Is(err, ErrHeld) || ReadOwner(dir).Works || time.Now().After(deadline) {
			return lock, err
		}
		if err := WaitFor(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// ErrHeld means that another process works on the state directory.
var ErrHeld = errors.New("held by another process")

const (
	LockName   = "pawl.lock"
	socketName = "pawl.sock"
)

// LockState makes the state directory and takes it; the system gives it back when this process ends, however it ends.
func LockState(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the state directory: %w; give another with --state-dir", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, LockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the state directory: %w; give another with --state-dir", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrHeld
		}
		return nil, fmt.Errorf("lock %s: %w", filepath.Join(dir, LockName), err)
	}
	return f, nil
}

// Owner is what the process that works on a state directory says about itself in the lock file, which only its user can
// read.
type Owner struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
	Works   bool      `json:"works"`             // it has workers
	Address string    `json:"address,omitempty"` // of its socket
	Token   string    `json:"token,omitempty"`
	Page    string    `json:"page,omitempty"` // address of its web page
}

// String names the process for people.
func (o Owner) String() string {
	if o.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d (%s)", o.PID, o.Command)
}

// ReadOwner reads which process works on a state directory; the zero Owner when none does, or has not written it down yet.
func ReadOwner(dir string) Owner {
	var o Owner
	b, err := os.ReadFile(filepath.Join(dir, LockName))
	if err != nil || json.Unmarshal(b, &o) != nil {
		return Owner{} // it has not written it yet
	}
	return o
}

// Write puts the owner into its lock file.
func (o Owner) Write(lock *os.File) error {
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

// Client speaks to the engine of the process over its socket.
func (o Owner) Client(version string) (*client.Client, error) {
	transport := &http.Transport{
		MaxIdleConnsPerHost:   16,
		ExpectContinueTimeout: 5 * time.Second,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", o.Address)
		},
	}
	return client.New("http://localhost", client.WithHTTPClient(&http.Client{Transport: transport}),
		client.WithToken(o.Token), client.WithPatience(100*time.Millisecond), client.WithUserAgent("pawl/"+version))
}

// ListenState opens the socket by which other commands reach the engine of this process: in the state directory, or, as
// such a path may only be short, in a private directory elsewhere, which remove then removes.
func ListenState(dir string) (l net.Listener, remove func(), err error) {
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

// joinName is the file that commands lock while they use the engine of another process on the same state directory: each of
// them shares the lock. The process with the engine takes the whole lock before it ends, and so neither ends while another
// command needs it, nor is joined while it ends. The system gives locks back when a process ends, however it ends.
const joinName = "pawl.join"

// LockJoin locks a state directory's joinName, or returns errHeld.
func LockJoin(dir string, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, joinName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the state directory: %w; give another with --state-dir", err)
	}
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, ErrHeld
	}
	return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
}

// WaitFor waits, or returns why ctx ended.
func WaitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
