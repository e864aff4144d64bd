package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// joinName is the file that commands lock while they use the engine of another process on the same state directory: each of
// them shares the lock. The process with the engine takes the whole lock before it ends, and so neither ends while another
// command needs it, nor is joined while it ends. The system gives locks back when a process ends, however it ends.
const joinName = "pawl.join"

// lockJoin locks a state directory's joinName, or returns errHeld.
func lockJoin(dir string, how int) (*os.File, error) {
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
		return nil, errHeld
	}
	return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
}

// join connects to the engine of the process that holds the state directory. It returns nil when that process has no engine
// for m yet, or is about to end.
func join(ctx context.Context, dir string, m mode) (*session, error) {
	using, err := lockJoin(dir, unix.LOCK_SH)
	if errors.Is(err, errHeld) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o := readOwner(dir)
	if o.Address != "" && (m != working || o.Works) {
		if c, err := o.client(); err == nil && c.Ready(ctx) == nil {
			s := newSession(c, nil)
			s.joined, s.using, s.key = true, using, rand.Text()
			return s, nil
		}
	}
	_ = using.Close()
	return nil, nil
}

// leave lets the process with the engine end before this command does, which only follows something there.
func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.using != nil {
		_ = s.using.Close() // only its lock matters
		s.using = nil
	}
}

// sayStaying is how long a command whose own work has ended stays for others without saying so.
const sayStaying = time.Second

// stayForOthers keeps the engine of this process until no other command uses it: their programs would begin again in another
// process. An interruption ends that.
func (a *app) stayForOthers(ctx context.Context, s *session) {
	s.mu.Lock()
	r := s.room
	s.mu.Unlock()
	if r == nil {
		return
	}
	presses := interruptions(ctx)
	say := time.After(sayStaying)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		var err error
		if r.alone, err = lockJoin(a.config.text("state_dir"), unix.LOCK_EX); !errors.Is(err, errHeld) {
			return // what cannot be locked cannot be waited for
		}
		select {
		case <-again.C:
		case <-say:
			a.say("pawl: other commands on %s use the engine of this process, which stays until they have ended; Ctrl-C ends it now, and their programs begin again in one of them", a.config.text("state_dir"))
		case <-presses.pressed:
			return
		case <-r.parts.ended.Done():
			return
		}
	}
}
