package app

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/cli/instance"
)

// join connects to the engine of the process that holds the state directory. It returns nil if that process does not serve
// the mode m yet, or is about to end.
func join(ctx context.Context, dir string, m mode) (*Session, error) {
	using, err := instance.LockJoin(dir, unix.LOCK_SH)
	if errors.Is(err, instance.ErrHeld) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o := instance.ReadOwner(dir)
	if o.Address != "" && (m != Working || o.Works) {
		if c, err := o.Client(Version()); err == nil && c.Ready(ctx) == nil {
			s := newSession(c, nil)
			s.joined, s.using, s.Key = true, using, rand.Text()
			return s, nil
		}
	}
	_ = using.Close()
	return nil, nil
}

// Leave lets the process with the engine end before this command does.
func (s *Session) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.using != nil {
		_ = s.using.Close() // closing releases the file's lock
		s.using = nil
	}
}

// sayStaying is how long a command that has finished its own work waits for others before it says so.
const sayStaying = time.Second

// stayForOthers keeps the engine of this process running until no other command uses it: otherwise their programs would
// start again in another process. An interruption ends the wait.
func (a *App) stayForOthers(ctx context.Context, s *Session) {
	s.mu.Lock()
	r := s.here
	s.mu.Unlock()
	if r == nil {
		return
	}
	presses := Interruptions(ctx)
	say := time.After(sayStaying)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		var err error
		if err = r.CloseToOthers(); !errors.Is(err, instance.ErrHeld) {
			return // without the lock it is unknown who uses the engine
		}
		select {
		case <-again.C:
		case <-say:
			a.Say("pawl: other commands on %s use the engine of this process, which stays until they have ended; Ctrl-C ends it now, and their programs begin again in one of them", a.Config.Text("state_dir"))
		case <-presses.Pressed:
			return
		case <-r.Ended():
			return
		}
	}
}
