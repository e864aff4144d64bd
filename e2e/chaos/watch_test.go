package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// watcher looks at the database and reads through the servers while faults happen: some promises hold after every commit and not only at
// the end.
type watcher struct {
	l    *load
	dsn  string
	ctx  context.Context
	stop context.CancelFunc
	all  sync.WaitGroup

	mu     sync.Mutex
	looked map[int]int
	broken []breach
	seen   map[string]*sighting

	archive *archive
}

// breach is a broken promise.
type breach struct {
	invariant int
	say       string
}

// sighting is what a reader has seen of an execution.
type sighting struct {
	events []api.Event
	end    *api.Execution // nil: it had not ended
}

func watch(t *testing.T, dsn string, l *load) *watcher {
	t.Helper()
	w := newWatcher(dsn, l)
	w.all.Go(w.holders)
	w.all.Go(w.readers)
	w.all.Go(w.archive.run)
	t.Cleanup(w.stop)
	return w
}

func newWatcher(dsn string, l *load) *watcher {
	w := &watcher{l: l, dsn: dsn, looked: map[int]int{}, seen: map[string]*sighting{}}
	w.archive = newArchive(w)
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// end stops the watcher and returns it for what it has seen.
func (w *watcher) end() *watcher {
	w.stop()
	w.all.Wait()
	return w
}

func (w *watcher) saw(invariant int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked[invariant]++
}

func (w *watcher) wrong(invariant int, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, breach{invariant, fmt.Sprintf(format, args...)})
}

// holders counts the holders of keys, again and again, over a connection that only the end of PostgreSQL itself breaks.
func (w *watcher) holders() {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var c *pgx.Conn
	for {
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			if c != nil {
				_ = c.Close(context.Background())
			}
			return
		}
		if c == nil || c.IsClosed() {
			c, _ = pgx.Connect(w.ctx, w.dsn) // nil while the database is away
			continue
		}
		rows, err := c.Query(w.ctx, `SELECT key, count(*) FROM pawl.live WHERE key IS NOT NULL AND place IN (3, 4) GROUP BY key`)
		if err != nil {
			continue
		}
		for rows.Next() {
			var key string
			var n int
			if rows.Scan(&key, &n) != nil {
				break
			}
			w.saw(12)
			if limit, limited := limits[key]; limited && n > limit {
				w.wrong(12, "key %q had %d holders at %s, at most %d may be", key, n, time.Now().Format(time.StampMicro), limit)
			}
		}
		rows.Close()
	}
}

// readers read the same executions again and again, each time at another server.
func (w *watcher) readers() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			return
		}
		w.l.mu.Lock()
		var a *accepted
		if n := len(w.l.all); n > 0 {
			a = w.l.all[max(0, n-1-rand.IntN(60))]
		}
		w.l.mu.Unlock()
		if a != nil {
			w.read(a, w.l.each[rand.IntN(len(w.l.each))])
		}
	}
}

type reader interface {
	Get(ctx context.Context, id string) (*api.Execution, error)
	Events(ctx context.Context, id string, after int64, limit int) (*api.EventPage, error)
}

func (w *watcher) read(a *accepted, at reader) {
	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
	defer cancel()
	id := a.id
	x, err := at.Get(ctx, id)
	if client.IsNotFound(err) && !w.l.mayBeGone(a) {
		w.wrong(31, "%s was accepted and cannot be read: %v", id, err)
	}
	if err != nil {
		return // its server is down
	}
	page, err := at.Events(ctx, id, 0, 1000)
	if err != nil {
		return
	}
	s := w.seen[id]
	if s == nil {
		s = &sighting{}
		w.seen[id] = s
	}
	w.saw(7)
	for i, e := range page.Events {
		if e.Seq != int64(i+1) {
			w.wrong(7, "%s was read with event %d in place %d", id, e.Seq, i+1)
		}
		if i < len(s.events) && (e.Type != s.events[i].Type || e.Attempt != s.events[i].Attempt || !e.At.Equal(s.events[i].At)) {
			w.wrong(7, "%s: event %d was %+v and is %+v", id, e.Seq, s.events[i], e)
		}
	}
	if len(page.Events) < len(s.events) {
		if _, err := at.Get(ctx, id); client.IsNotFound(err) && w.l.mayBeGone(a) {
			return // retention removed it between the two calls
		}
		w.wrong(7, "%s had %d events and has %d", id, len(s.events), len(page.Events))
	}
	s.events = page.Events
	if s.end != nil {
		w.saw(2)
		if s.end.Status != x.Status || !s.end.FinishedAt.Equal(x.FinishedAt) || string(s.end.Output) != string(x.Output) {
			w.wrong(2, "%s had ended as %s %s at %s and is %s %s at %s", id, s.end.Status, s.end.Output, s.end.FinishedAt, x.Status, x.Output, x.FinishedAt)
		}
	} else if x.Status.Terminal() {
		s.end = x
	}
}
