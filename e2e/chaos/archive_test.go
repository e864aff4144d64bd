package chaos

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

// archive reads executions that have ended before retention removes them, for the judgement at the end of the run, and checks that
// retention removes none too early.
type archive struct {
	w         *watcher
	retention time.Duration

	mu    sync.Mutex
	lives map[string]*life // by execution: those that have ended, and at the end the others too
	seen  map[flow.ID]*glimpse
	gone  map[string]bool // executions that were removed
	looks [][2]time.Time  // for each look that succeeded, when it began and when it had listed everything
}

// glimpse is what the last look saw of an execution.
type glimpse struct {
	parent   flow.ID
	finished time.Time // zero: it had not ended
	at       time.Time // when that look began
}

// life is an execution with what its history shows.
type life struct {
	x        *flow.Execution
	over     map[int]time.Time // attempt → when no worker held it any more
	waited   bool              // the first attempt stood in a line
	admitted time.Time         // when the first attempt was scheduled
	lost     int
	ordered  time.Time // when the last attempt began
	children []store.Child
}

const (
	archiveEvery = 300 * time.Millisecond
	// archiveReaders is how many histories are read at once. With one reader, on a machine with ten times the work of its processors,
	// retention removed 1,047 of 3,934 histories before they were read.
	archiveReaders = 4
	// clockSlack bounds the difference between the test's clock and the database's.
	clockSlack = 100 * time.Millisecond
	// retentionBound is how long after its time retention may leave an execution. With the retentions of these tests a sweep runs every
	// second, but its server may be down, or its database away.
	retentionBound = 15 * time.Second
)

func newArchive(w *watcher) *archive {
	return &archive{w: w, retention: w.l.retention, lives: map[string]*life{}, seen: map[flow.ID]*glimpse{}, gone: map[string]bool{}}
}

// run looks at the database again and again until the watcher ends. A failed look is repeated, because the database may be away.
func (a *archive) run() {
	tick := time.NewTicker(archiveEvery)
	defer tick.Stop()
	var s *postgres.Store
	defer func() {
		if s != nil {
			_ = s.Close()
		}
	}()
	for {
		select {
		case <-tick.C:
		case <-a.w.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(a.w.ctx, 5*time.Second)
		if s == nil {
			s, _ = postgres.Open(ctx, a.w.dsn, postgres.Options{AsIs: true, Writers: 1, Readers: archiveReaders})
		}
		if s != nil {
			_ = a.look(ctx, s, false)
		}
		cancel()
	}
}

// look reads all executions, and the history of those that have ended since the last look. The last look also reads the histories of the
// others.
func (a *archive) look(ctx context.Context, s *postgres.Store, last bool) error {
	began := time.Now()
	var all []*flow.Execution
	for before := (flow.ID{}); ; {
		page, err := store.List(ctx, s, store.Filter{Before: before, Limit: 1000})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		all, before = append(all, page...), page[len(page)-1].ID
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looks = append(a.looks, [2]time.Time{began, time.Now()})
	here := make(map[flow.ID]bool, len(all))
	for _, x := range all {
		here[x.ID] = true
		a.seen[x.ID] = &glimpse{x.Parent, x.FinishedAt, began}
	}
	for id := range a.seen {
		if !here[id] && !a.gone[id.String()] {
			a.removed(id, time.Now())
		}
	}
	var reads errgroup.Group
	reads.SetLimit(archiveReaders)
	var found sync.Mutex // of lives
	for _, x := range all {
		found.Lock()
		known := a.lives[x.ID.String()]
		found.Unlock()
		if known != nil && known.x.Stage.Terminal() {
			a.w.saw(2)
			if x.Stage != known.x.Stage || x.NextSeq != known.x.NextSeq || !x.FinishedAt.Equal(known.x.FinishedAt) {
				a.w.wrong(2, "%s had ended as %s at %s and is %s at %s", x.ID, known.x.Stage, known.x.FinishedAt, x.Stage, x.FinishedAt)
			}
			continue
		}
		if !x.Stage.Terminal() && !last {
			continue
		}
		reads.Go(func() error {
			k, err := a.w.readLife(ctx, s, x.ID)
			if err != nil || k == nil {
				return err
			}
			at := time.Now()
			found.Lock()
			defer found.Unlock()
			if a.retention == 0 || at.Before(a.until(x.ID)) { // otherwise a part of it may be gone by now
				a.lives[x.ID.String()] = k
			}
			return nil
		})
	}
	return reads.Wait()
}

// until returns the earliest moment at which retention may remove an execution: the top of its tree must have ended one retention earlier.
func (a *archive) until(id flow.ID) time.Time {
	g := a.seen[id]
	for a.seen[g.parent] != nil {
		g = a.seen[g.parent]
	}
	if g.finished.IsZero() {
		// Its end was recorded after that look, but may be earlier: the report holds the time of the end, and a report held up by a silent
		// connection is recorded up to worksAgain later.
		return g.at.Add(a.retention - worksAgain)
	}
	return g.finished.Add(a.retention)
}

// removed judges that an execution is gone at a moment.
func (a *archive) removed(id flow.ID, at time.Time) {
	a.w.saw(31)
	a.gone[id.String()] = true
	if until := a.until(id); a.retention == 0 || at.Add(clockSlack).Before(until) {
		a.w.wrong(31, "%s is gone %s before the retention of %s allows it", id, until.Sub(at), a.retention)
	}
}

// listed reports whether a look has listed an execution. Its history is unknown when retention removed it before it was read. It is also
// unknown when the execution was still there after its retention: its history may then have been read in part, and is not judged.
func (a *archive) listed(execution string) bool {
	id, err := flow.ParseID(flow.ExecutionPrefix, execution)
	return err == nil && a.seen[id] != nil
}

// unseen reports whether an execution with an attempt that began at that moment may have been removed between two looks: the database may
// have been away for longer than the retention.
func (a *archive) unseen(began time.Time) bool {
	return a.retention > 0 && !slices.ContainsFunc(a.looks, func(l [2]time.Time) bool {
		return l[0].After(began.Add(clockSlack)) && l[1].Add(clockSlack).Before(began.Add(a.retention))
	})
}

// forgotten reports whether retention removed an execution with its idempotency key before another was submitted under that key.
func (a *archive) forgotten(id, by string) bool {
	old, next := a.lives[id], a.lives[by]
	if old == nil {
		return a.gone[id]
	}
	return a.gone[id] && (next == nil || !next.x.CreatedAt.Add(clockSlack).Before(old.x.FinishedAt.Add(a.retention)))
}

// missed counts the executions that were removed before they were read.
func (a *archive) missed() (n int) {
	for id := range a.gone {
		if a.lives[id] == nil {
			n++
		}
	}
	return n
}

// await waits until retention has removed what it may remove, and fails the test if it removed nothing.
func (a *archive) await(t *testing.T) {
	t.Helper()
	late := func() (late []flow.ID) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for id, g := range a.seen {
			if !a.gone[id.String()] && !g.finished.IsZero() && time.Since(a.until(id)) > retentionBound {
				late = append(late, id)
			}
		}
		return late
	}
	until(t, "retention removes what is old", func() bool { return len(late()) == 0 })
	until(t, "something has been removed", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.gone) > 0
	})
}

// readLife reads an execution, its history and its tasks. It returns nil when the execution is gone.
func (w *watcher) readLife(ctx context.Context, s *postgres.Store, id flow.ID) (*life, error) {
	x, err := s.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l := &life{x: x, over: map[int]time.Time{}}
	events, err := s.Events(ctx, id, 0, 1_000_000)
	if err == nil && x.Kind == flow.KindWorkflow {
		l.children, err = s.Children(ctx, store.WorkflowAttempt{ID: x.ID, Attempt: x.Attempt}, "", -1, 1000)
	}
	if err != nil {
		return nil, err
	}
	for _, n := range []int{1, 2, 4, 6, 13, 16, 22, 33} { // Check replays it
		w.saw(n)
	}
	if x.Stage == flow.TimedOut {
		w.saw(24)
	}
	attempt := 1
	end := func(at time.Time) {
		if _, known := l.over[attempt]; !known {
			l.over[attempt] = at
		}
	}
	for i, e := range events {
		if e.Seq != int64(i+1) {
			w.wrong(6, "%s: event %d has number %d", id, i+1, e.Seq)
			return l, nil
		}
		if e.Attempt > attempt {
			end(e.At)
			attempt, l.ordered = e.Attempt, e.At
		}
		switch e.Type {
		case flow.EvWaiting:
			l.waited = l.waited || e.Attempt == 1
		case flow.EvScheduled:
			if e.Attempt == 1 {
				l.admitted = e.At
			}
		case flow.EvLost:
			l.lost++
			end(e.At)
		case flow.EvCompleted, flow.EvFailed, flow.EvCancelled, flow.EvTimedOut:
			end(e.At)
		}
	}
	return l, nil
}
