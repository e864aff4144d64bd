package instance

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/flow"
)

// memory is a worker's file in the state directory, with its session. The file is locked while the process lives. So the next
// process that gets the lock knows that this one is dead, and may resume its session. It implements worker.Memory.
type memory struct {
	file   *os.File
	server string
	Secret func(session flow.ID) string // returns "" if a session needs none
	Was    remembered
}

// remembered is the content of the file; empty if there is no session to resume.
type remembered struct {
	PID     int       `json:"pid"`
	Server  string    `json:"server"` // the server of the session
	Session string    `json:"session"`
	Secret  string    `json:"secret,omitempty"`
	Until   time.Time `json:"until"` // when the lease ends, unless it is renewed
}

const (
	// rememberedSize is the constant size of the file, so that a reader never finds a shorter text.
	rememberedSize = 1024
	// dyingFor is how long a killed process may still hold its lock.
	dyingFor = 2 * time.Second
)

// OpenMemory opens a file for a worker of a server: the latest that a dead worker of that server left, or else a free one. It
// stays locked until it is closed. Several workers may share a state directory, and several hosts (or containers) with equal
// directories may share a container engine, so the name of a file is unique everywhere.
func OpenMemory(ctx context.Context, stateDir, server string) (*memory, error) {
	dir, err := filepath.Abs(filepath.Join(stateDir, "workers"))
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("make a place for the worker's memory: %w; give another with --state-dir", err)
	}
	door, err := os.Open(dir) // one worker searches at a time: two could each skip the file that the other is testing
	if err != nil {
		return nil, fmt.Errorf("open the worker's memory: %w", err)
	}
	defer door.Close()
	if err := unix.Flock(int(door.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look for the memory of dead workers: %w", err)
	}
	best, deadline := &memory{server: server}, time.Now().Add(dyingFor)
	for _, entry := range left {
		path := filepath.Join(dir, entry.Name())
		if filepath.Ext(path) != ".json" {
			continue
		}
		f, err := lockMemory(ctx, path, deadline)
		if errors.Is(err, ErrHeld) || errors.Is(err, fs.ErrPermission) { // a file of another user
			continue
		}
		if err != nil {
			_ = best.file.Close()
			return nil, err
		}
		was, _ := readMemory(path) // an unreadable file has no session
		mine := was.Session != "" && was.Server == server
		switch {
		case mine && (best.Was.Session == "" || was.Until.After(best.Was.Until)): // a file that was left long ago has no live session
			_ = best.file.Close() // releases its lock; a nil file is ignored
			best.file, best.Was = f, was
		case !mine && best.file == nil && time.Now().After(was.Until):
			best.file = f
		default:
			_ = f.Close()
		}
	}
	if best.file == nil {
		if best.file, err = lockMemory(ctx, filepath.Join(dir, strings.ToLower(rand.Text()[:16])+".json"), deadline); err != nil {
			return nil, err
		}
	}
	return best, nil
}

// lockMemory opens a file and locks it, or returns ErrHeld. It waits until the deadline for a process that is dying.
func lockMemory(ctx context.Context, path string, deadline time.Time) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the worker's memory: %w; give another place with --state-dir", err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		was, _ := readMemory(path)
		dying := was.PID > 0 && errors.Is(unix.Kill(was.PID, 0), unix.ESRCH)
		if !errors.Is(err, unix.EWOULDBLOCK) || !dying || time.Now().After(deadline) {
			break
		}
		if err := WaitFor(ctx, 10*time.Millisecond); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, ErrHeld
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

func readMemory(path string) (remembered, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return remembered{}, err
	}
	if !info.Mode().IsRegular() {
		return remembered{}, fmt.Errorf("%s is not a file", path)
	}
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		return remembered{}, err
	}
	var m remembered
	if err := json.Unmarshal(b, &m); err != nil {
		return remembered{}, fmt.Errorf("read %s: %w", path, err)
	}
	return m, nil
}

// mayReturn reports whether a worker, given by the path of its file, may come back to resume its session.
func mayReturn(worker string) bool {
	m, err := readMemory(worker)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || m.Session != "" && time.Now().Before(m.Until)
}

// name is the same for all processes of this worker, and different from that of any other worker of this host.
func (m *memory) name() string {
	if m == nil {
		return ""
	}
	return m.file.Name()
}

func (m *memory) Earlier() (flow.ID, time.Time) {
	id, err := flow.ParseID(flow.SessionPrefix, m.Was.Session)
	if err != nil {
		return flow.ID{}, time.Time{}
	}
	return id, m.Was.Until
}

// Keep implements worker.Memory. The file need not survive a crash of the host, because that ends all runs that could be resumed.
func (m *memory) Keep(session flow.ID, until time.Time) error {
	k := remembered{PID: os.Getpid(), Server: m.server, Session: session.Text(flow.SessionPrefix), Until: until.UTC()}
	if m.Secret != nil {
		k.Secret = m.Secret(session)
	}
	b, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("encode the session: %w", err)
	}
	for len(b) < rememberedSize {
		b = append(b, ' ')
	}
	_, err = m.file.WriteAt(b, 0)
	if err == nil {
		err = m.file.Truncate(int64(len(b)))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", m.file.Name(), err)
	}
	return nil
}

func (m *memory) Forget() error {
	if err := m.file.Truncate(0); err != nil {
		return fmt.Errorf("write %s: %w", m.file.Name(), err)
	}
	return nil
}

// Close unlocks the file for the next process.
func (m *memory) Close() error { return m.file.Close() }
