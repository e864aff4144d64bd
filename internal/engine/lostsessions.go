package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const (
	lostKept = 100            // sessions that are remembered
	lostFor  = 24 * time.Hour // for how long
)

// LostSession is a session with an expired lease.
type LostSession struct {
	store.Session
	LostAt   time.Time // when its recovery ended, by this process's clock
	Attempts int       // attempts that were taken back from it
}

// lostSessions are the sessions that this engine has recovered. They are in memory only, like the counters.
type lostSessions struct {
	mu  sync.Mutex
	all []LostSession // the latest last
}

// note remembers a lost session. Attempts that a later round takes back from it are added.
func (l *lostSessions) note(s store.Session, attempts int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.all, func(o LostSession) bool { return o.ID == s.ID }); i >= 0 {
		l.all[i].Attempts += attempts
		return
	}
	l.all = append(l.all[max(0, len(l.all)-lostKept+1):], LostSession{s, now, attempts})
}

// LostSessions are the sessions that this engine has lost within a day, the latest first, at most 100.
func (e *Engine) LostSessions() []LostSession {
	l := &e.lostSessions
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.all)
	slices.Reverse(all)
	since := time.Now().Add(-lostFor)
	return slices.DeleteFunc(all, func(s LostSession) bool { return s.LostAt.Before(since) })
}

// losing takes attempts back from the lost session of a worker, and adds them to taken: its transaction may be repeated. crashed means that
// the worker was part of a server process that died during an evaluation.
func (e *Engine) losing(worker, how string, crashed bool, taken map[flow.ID]struct{}) func(*flow.Draft, time.Time) error {
	return func(d *flow.Draft, now time.Time) error {
		taken[d.ID] = struct{}{}
		if crashed {
			return d.LoseWithServer("worker "+worker+flow.ReasonCrashed, now, e.opts.Random())
		}
		return d.Lose("worker "+worker+how, now, e.opts.Random())
	}
}
