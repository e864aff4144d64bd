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

// lookFor is how long a server waits for a command that only reads its state directory.
const lookFor = 10 * time.Second

// AwaitState is LockState for a server. It waits a moment for a command such as pawl get, which must not prevent its start; it
// does not wait for a process that works there.
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

// LockState creates the state directory and locks it. The operating system releases the lock when this process ends, also after kill -9.
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

// Owner describes the process that works on a state directory; it is the content of the lock file, which only its user can read.
type Owner struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
	Works   bool      `json:"works"`             // it has workers
	Address string    `json:"address,omitempty"` // of its socket
	Token   string    `json:"token,omitempty"`
	Page    string    `json:"page,omitempty"` // address of its web page
}

func (o Owner) String() string {
	if o.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d (%s)", o.PID, o.Command)
}

// ReadOwner reads the owner of a state directory. It is zero if there is none, or if the process has not written the file yet.
func ReadOwner(dir string) Owner {
	var o Owner
	b, err := os.ReadFile(filepath.Join(dir, LockName))
	if err != nil || json.Unmarshal(b, &o) != nil {
		return Owner{} // not written yet
	}
	return o
}

// Write writes the owner into its lock file.
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

// Client returns a client for the engine of that process, through its socket.
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

// ListenState opens the socket through which other commands reach the engine of this process. It is in the state
// directory or, if that path is too long for a socket, in a private directory elsewhere, which remove deletes.
func ListenState(dir string) (l net.Listener, remove func(), err error) {
	path, remove := filepath.Join(dir, socketName), func() {}
	const longest = 100 // bytes of a socket's path that every system allows
	if len(path) > longest {
		private, err := os.MkdirTemp("", "pawl-")
		if err != nil {
			return nil, nil, fmt.Errorf("make a place for the socket: %w", err)
		}
		path, remove = filepath.Join(private, socketName), func() { _ = os.RemoveAll(private) }
	}
	// The holder of the lock may delete files of killed processes.
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

// joinName is the file that commands lock, shared, while they use the engine of another process on the same state directory.
// The process with the engine takes the exclusive lock before it ends: so it does not end while another command needs it, and
// no command joins while it ends. The operating system releases locks when a process ends, also after kill -9.
const joinName = "pawl.join"

// LockJoin locks a state directory's joinName, or returns ErrHeld.
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

// WaitFor waits for d. It returns the cause if ctx ends first.
func WaitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
