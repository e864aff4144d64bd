// Package worker is the worker: it claims work for its free slots, runs it, numbers its events, sends its logs and reports to
// the engine, and stops it on an order. It owns an attempt from the claim for its session until the engine has acknowledged the
// attempt's last event.
package worker

import (
	"cmp"
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
	Slots    int               // attempts that run at once; 0: 1
	Queues   []string          // queues to serve; empty: "default"
	Labels   map[string]string // labels that executions may require with worker_labels; see flow.CheckLabels
	Name     string            // shown to people; empty: the host's name and the process id
	Log      *slog.Logger
	Tracer   *telemetry.Tracer // records attempts of executions that were submitted within a trace; nil: none
	// Memory keeps the session for the next process of this worker. nil: the engine recovers this process's attempts when
	// the lease runs out.
	Memory SessionStore
	// Blobs is the store of files and large logs. nil: files go through the hand-off if it carries blobs, and logs stay
	// inline.
	Blobs blob.Access
	// InlineLogs keeps large logs inline. If rows and blobs are in one database, a blob for every chunk gains nothing.
	InlineLogs bool
	Grace      time.Duration  // how long running work may continue after ctx has ended; then it is stopped and given up
	Serving    func()         // called when the engine has accepted the worker for the first time; may be nil
	Random     func() float64 // numbers in [0, 1) for jitter; nil: the global generator
}

// Worker runs attempts. It is made by New and run once.
type Worker struct {
	Options
	kinds    []string
	instant  []flow.Kind      // those of the handlers that never wait
	previous *previousSession // nil once the handlers know which attempts are resumed

	sessions context.Context // ends with Abandon, and ends every session
	endAll   context.CancelCauseFunc

	mu        sync.Mutex
	free      int
	requested int       // free slots for which calls of Take are under way
	saturated bool      // the latest call asked for at least its share of the slots, and got work for all of them
	changed   sync.Cond // signals a change of free, requested, saturated or the result of awaitSlots' room
}

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
	o.Slots = cmp.Or(o.Slots, 1)
	if len(o.Queues) == 0 {
		o.Queues = []string{"default"}
	}
	if o.Name == "" {
		host, _ := os.Hostname() // the name is only for display; without the host's name the process id is enough
		o.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Random == nil {
		o.Random = rand.Float64
	}
	w := &Worker{Options: o, kinds: append(flow.OfferLabels(o.Labels), kinds...), free: o.Slots, previous: &previousSession{}}
	w.changed.L = &w.mu
	w.sessions, w.endAll = context.WithCancelCause(context.Background())
	if o.Memory != nil {
		w.previous.session, w.previous.until = o.Memory.Earlier()
	}
	for kind, h := range o.Handlers {
		if a, ok := h.(task.Advertiser); ok {
			w.kinds = append(w.kinds, a.Offers()...)
		}
		if _, ok := h.(task.Instant); ok {
			w.instant = append(w.instant, kind)
		}
	}
	return w, nil
}

// Run serves until ctx ends, and opens a new session whenever one is lost. After that it claims no more work, lets running attempts
// continue for the grace, and stops and gives up the rest, so that the engine recovers them at once. It returns when every handler has
// returned and every possible report has been made. It returns an error only if the engine refuses the worker.
func (w *Worker) Run(ctx context.Context) error {
	var tries backoff
	var away outage
	for ctx.Err() == nil && w.sessions.Err() == nil {
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
			tries.wait(ctx, w.Random)
			continue
		}
		tries, away = backoff{}, outage{}
		if w.Serving != nil {
			w.Serving()
			w.Serving = nil
		}
		if err := newSession(w, id, began, work).run(ctx); err != nil && w.sessions.Err() == nil {
			w.Log.Warn("session lost: opening a new one", telemetry.Worker, w.Name, telemetry.Session, id.Text(flow.SessionPrefix), telemetry.Err, err)
			pause(ctx, portion(reopenWithin, w.Random))
		}
	}
	w.allFree()
	return nil
}

// reopenWithin is the longest pause before a lost session is replaced. It is random, because an outage ends the sessions of all
// workers at the same moment.
const reopenWithin = time.Second

// sayAwayAgain is how often an outage is logged while its cause is the same.
const sayAwayAgain = time.Minute

// outage is a time during which the engine cannot be reached.
type outage struct {
	reason string
	said   time.Time
}

// worthSaying reports whether a failure must be logged: the first one, one with another reason, and one every minute.
func (o *outage) worthSaying(err error, now time.Time) bool {
	if err.Error() == o.reason && now.Sub(o.said) < sayAwayAgain {
		return false
	}
	o.reason, o.said = err.Error(), now
	return true
}

// Abandon ends the worker at once, for a process that is about to end. It reports nothing more to the engine, not even the end of an
// attempt that completes meanwhile, and the engine recovers all attempts. Run returns when every handler has returned.
func (w *Worker) Abandon() { w.endAll(errAbandoned) }

// awaitSlots waits for free slots that no call of Take has requested yet, and returns how many of them the caller must request. Each
// goroutine that takes has a share of the slots, such as 8 of 32. While the queue has more work than a share, the first goroutine requests
// all free slots, because one call for many executions costs less than many calls. It returns 0 once ctx has ended and wakeWaiting was
// called.
func (w *Worker) awaitSlots(ctx context.Context, first bool, share int, room func() bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; ctx.Err() == nil; w.changed.Wait() {
		n := w.free - w.requested
		switch {
		case !w.saturated:
			n = min(n, share)
		case !first:
			n = 0
		}
		if n > 0 && room() {
			w.saturated = w.saturated && n >= share
			w.requested += n
			return n
		}
	}
	return 0
}

// takeReturned ends a call for n slots. Its executions occupy their slots already.
func (w *Worker) takeReturned(n, given, share int) {
	w.mu.Lock()
	w.requested -= n
	w.saturated = given == n && n >= share && n > 1
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

// wakeWaiting wakes the goroutines that wait in awaitSlots, after a change that mu does not guard.
func (w *Worker) wakeWaiting() {
	w.mu.Lock() // a goroutine that has just found no slot is waiting by the time that this lock is held
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

// backoff is the pause between tries. It doubles up to a cap and has full jitter, so that many workers do not return at the
// same moment.
type backoff struct{ next time.Duration }

const (
	backoffFirst = 50 * time.Millisecond
	backoffMost  = 5 * time.Second
)

func (b *backoff) wait(ctx context.Context, random func() float64) {
	b.next = min(max(2*b.next, backoffFirst), backoffMost)
	pause(ctx, portion(b.next, random)+time.Millisecond)
}

func portion(d time.Duration, random func() float64) time.Duration {
	return time.Duration(float64(d) * random())
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
