// Package worker is the worker's shell: it takes work for its free slots, runs it, numbers its events, carries its logs
// and its reports to the engine, and stops it when told to. It owns an attempt from the moment it was claimed for its
// session until the engine has acknowledged its last event.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Options configures a Worker. Handoff and Handlers are required.
type Options struct {
	Handoff  handoff.Handoff
	Handlers task.Handlers
	Slots    int               // how many attempts run at once; 0: 1
	Queues   []string          // which queues are served; empty: "default"
	Labels   map[string]string // what executions may ask for with their worker_labels; see flow.CheckLabels
	Name     string            // for people; empty: the host's name and the process id
	Log      *slog.Logger
	Tracer   *telemetry.Tracer // records attempts of what was submitted in a trace; nil: none
	// Memory keeps the session for the next process of this worker. nil: what this process held is recovered when its lease runs out.
	Memory Memory
	// Blobs are where files and large logs go. nil: files go through the hand-off where it carries blobs, and logs stay
	// inline.
	Blobs blob.Access
	// InlineLogs keeps large logs inline all the same: where rows and blobs lie in one database, a blob for every chunk
	// gains nothing.
	InlineLogs bool
	Grace      time.Duration  // how long running work may go on after Run was told to end; then it is stopped and let go
	Serving    func()         // called when the engine has accepted the worker for the first time; nil: nothing is
	Random     func() float64 // numbers in [0, 1) for jitter; nil: the global generator
}

// Worker runs attempts. Use New; it is run once.
type Worker struct {
	Options
	kinds []string
	past  *past // nil once it is settled

	lives  context.Context // ends with LetGo, and every life with it
	endAll context.CancelCauseFunc

	mu      sync.Mutex
	free    int
	asked   int       // free slots for which calls of Take are under way
	flood   bool      // the latest call asked for a share of the slots or more, and got work for all of them
	changed sync.Cond // free, asked or flood has changed, or the result of ask's room
}

// New checks the options.
func New(o Options) (*Worker, error) {
	if o.Handoff == nil || len(o.Handlers) == 0 {
		return nil, errors.New("new worker: a hand-off and at least one handler are required")
	}
	if o.Slots < 0 {
		return nil, fmt.Errorf("new worker: %d slots: give at least 1", o.Slots)
	}
	if err := flow.CheckLabels(o.Labels); err != nil {
		return nil, fmt.Errorf("new worker: %w", err)
	}
	var kinds []string
	for kind := range o.Handlers {
		kinds = append(kinds, string(kind))
	}
	if err := flow.CheckKinds(kinds); err != nil {
		return nil, fmt.Errorf("new worker: %w", err)
	}
	if o.Slots == 0 {
		o.Slots = 1
	}
	if len(o.Queues) == 0 {
		o.Queues = []string{"default"}
	}
	if o.Name == "" {
		host, _ := os.Hostname() // a name for people: without one the process id must do
		o.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	w := &Worker{Options: o, kinds: append(flow.OfferLabels(o.Labels), kinds...), free: o.Slots, past: &past{}}
	w.changed.L = &w.mu
	w.lives, w.endAll = context.WithCancelCause(context.Background())
	if o.Memory != nil {
		w.past.session, w.past.until = o.Memory.Earlier()
	}
	for _, h := range o.Handlers {
		if a, ok := h.(task.Advertiser); ok {
			w.kinds = append(w.kinds, a.Offers()...)
		}
	}
	return w, nil
}

// Run serves until ctx ends, and opens a new session whenever one is lost. When ctx has ended it takes no more work, gives what is running
// its grace, stops what is left and gives that up, so that the engine recovers it at once. It returns when every handler has returned and
// everything that could be reported has been. It returns an error only where the engine refuses the worker.
func (w *Worker) Run(ctx context.Context) error {
	var pause backoff
	var away outage
	for ctx.Err() == nil && w.lives.Err() == nil {
		began := time.Now()
		id, work, err := w.open(ctx)
		if errors.Is(err, handoff.ErrRefused) {
			w.allFree()
			return fmt.Errorf("serve as %s: %w", w.Name, err)
		}
		if err != nil {
			if ctx.Err() == nil && away.worthSaying(err, time.Now()) {
				w.Log.Warn("the engine cannot be reached; trying again until it can", telemetry.Worker, w.Name, telemetry.Err, err)
			}
			pause.wait(ctx, w.Random)
			continue
		}
		pause, away = backoff{}, outage{}
		if w.Serving != nil {
			w.Serving()
			w.Serving = nil
		}
		if err := newLife(w, id, began, work).run(ctx); err != nil && w.lives.Err() == nil {
			w.Log.Warn("session lost: opening a new one", telemetry.Worker, w.Name, telemetry.Session, id.Text(flow.SessionPrefix), telemetry.Err, err)
		}
	}
	w.allFree()
	return nil
}

// sayAwayAgain is how often an outage is logged while its reason stays the same.
const sayAwayAgain = time.Minute

// outage is a time in which the engine cannot be reached.
type outage struct {
	reason string
	said   time.Time
}

// worthSaying reports whether a failure is to be logged: the first, one for another reason, and one in every minute.
func (o *outage) worthSaying(err error, now time.Time) bool {
	if err.Error() == o.reason && now.Sub(o.said) < sayAwayAgain {
		return false
	}
	o.reason, o.said = err.Error(), now
	return true
}

// LetGo ends the worker at once, for a process that is about to end. It reports nothing more to the engine, not even the end of an attempt
// that completes meanwhile: the engine recovers all of them. Run returns when every handler has.
func (w *Worker) LetGo() { w.endAll(errLetGo) }

// ask waits for free slots that no call of Take asks for yet, and returns for how many the caller is to ask. Each of the goroutines that
// take has a share of the slots, as 8 of 32. While the queue has more work than a share, the first one asks for all free slots: one call for
// many executions costs less than many calls. ask returns 0 once ctx has ended and tell was called.
func (w *Worker) ask(ctx context.Context, first bool, share int, room func() bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; ctx.Err() == nil; w.changed.Wait() {
		n := w.free - w.asked
		switch {
		case !w.flood:
			n = min(n, share)
		case !first:
			n = 0
		}
		if n > 0 && room() {
			w.flood = w.flood && n >= share
			w.asked += n
			return n
		}
	}
	return 0
}

// answered ends a call for n slots. The executions that it brought have occupied their slots by now.
func (w *Worker) answered(n, given, share int) {
	w.mu.Lock()
	w.asked -= n
	w.flood = given == n && n >= share && n > 1
	w.mu.Unlock()
	w.changed.Broadcast()
}

func (w *Worker) occupy() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free--
}

// occupyFree occupies a slot if one is free, and reports whether it did.
func (w *Worker) occupyFree() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.free < 1 {
		return false
	}
	w.free--
	return true
}

func (w *Worker) release() {
	w.mu.Lock()
	w.free++
	w.mu.Unlock()
	w.changed.Broadcast()
}

// tell wakes the goroutines that wait in ask, after a change that mu does not guard.
func (w *Worker) tell() {
	w.mu.Lock() // a goroutine that has just found no slot waits by now
	defer w.mu.Unlock()
	w.changed.Broadcast()
}

// allFree waits until every handler has returned.
func (w *Worker) allFree() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.free < w.Slots {
		w.changed.Wait()
	}
}

// backoff is the pause between tries: it doubles up to its cap, with full jitter, so that many workers do not come back
// in step.
type backoff struct{ next time.Duration }

const (
	backoffFirst = 50 * time.Millisecond
	backoffMost  = 5 * time.Second
)

func (b *backoff) wait(ctx context.Context, random func() float64) {
	b.next = min(max(2*b.next, backoffFirst), backoffMost)
	pause(ctx, portion(b.next, random)+time.Millisecond)
}

// portion is a random part of d.
func portion(d time.Duration, random func() float64) time.Duration {
	return time.Duration(float64(d) * random())
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
