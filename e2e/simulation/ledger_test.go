package simulation

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
)

// ledger records what happened outside the database: which process ran which attempt, what it sent and what it received.
type ledger struct {
	w *world

	mu     sync.Mutex
	runs   []*run
	of     map[try]*run
	said   map[try]map[int64]flow.Event
	acked  map[try]int64
	closed map[flow.ID]bool // sessions that their workers closed
	given  map[try]bool     // attempts that their workers gave back before they began
	orders map[try]flow.Stage
}

// try is one attempt at an execution.
type try struct {
	execution flow.ID
	attempt   int
}

// run is one start of the runtime on an attempt.
type run struct {
	number int
	try
	p      *process
	began  time.Time
	ended  bool
	failed string // why it failed; "" when it succeeded
	output json.RawMessage
	log    []byte // what the worker accepted
}

func newLedger(w *world) *ledger {
	return &ledger{w: w, of: map[try]*run{}, said: map[try]map[int64]flow.Event{}, acked: map[try]int64{}, closed: map[flow.ID]bool{}, given: map[try]bool{}, orders: map[try]flow.Stage{}}
}

// begin notes that work begins. It returns nil when the process is dead, so that the work has no effect.
func (l *ledger) begin(p *process, t *task.Task) *run {
	if p.dead() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := try{t.Execution, t.Attempt}
	// The number is derived from the attempt, so that it does not depend on which goroutine gets here first.
	r := &run{number: int(l.w.noise("run", k.execution, k.attempt) * 1e9), try: k, p: p, began: time.Now()}
	if before := l.of[k]; before != nil {
		l.w.violate(3, "attempt %d of %s is run by %s and was run by %s", k.attempt, name(k.execution), p.name, before.p.name)
	}
	for n := k.attempt - 1; n > 0; n-- {
		old := l.of[try{k.execution, n}]
		if old == nil || old.ended || old.p.dead() || old.p.h.wasFrozen() {
			continue
		}
		if l.w.shadow.leaseLost(old.try) {
			l.w.violate(3, "attempt %d of %s begins on %s while attempt %d still runs on %s", k.attempt, name(k.execution), p.name, n, old.p.name)
		}
	}
	l.of[k] = r
	under := 1
	for _, other := range l.runs {
		if other.p == p && !other.ended {
			under++
		}
	}
	if under > l.w.plan.Slots {
		l.w.violate(55, "%s runs %d attempts, and has %d slots", p.name, under, l.w.plan.Slots)
	}
	l.runs = append(l.runs, r)
	return r
}

func (h *host) wasFrozen() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unready
}

// end notes that no part of the work runs any more.
func (l *ledger) end(r *run, output json.RawMessage, failed string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.ended, r.output, r.failed = true, output, failed
}

// wrote notes the part of the run's log that the worker accepted.
func (l *ledger) wrote(r *run, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.log = append(r.log, text...)
}

// running reports whether a living process still works on the attempt.
func (l *ledger) running(k try) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.of[k]
	return r != nil && !r.ended && !r.p.dead()
}

// say notes a worker's report of an attempt, before anything can happen to it on its way.
func (l *ledger) say(p *process, r flow.Report) {
	if p.dead() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := try{r.Execution, r.Attempt}
	if l.said[k] == nil {
		l.said[k] = map[int64]flow.Event{}
	}
	for _, e := range r.Events {
		if old, ok := l.said[k][e.Seq]; ok && (old.Type != e.Type || !bytes.Equal(old.Data, e.Data)) {
			l.w.violate(8, "%s says event %d of %s twice: %s and %s", p.name, e.Seq, name(r.Execution), old.Type, e.Type)
		}
		l.said[k][e.Seq] = e
	}
}

// spoken returns the event that the owner of an attempt sent under a number.
func (l *ledger) spoken(k try, seq int64) (flow.Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.said[k][seq]
	return e, ok
}

// acknowledged notes the receipts of a worker's reports: it does not send these events again.
func (l *ledger) acknowledged(p *process, reports []flow.Report, receipts []flow.Receipt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, rc := range receipts {
		if i >= len(reports) || rc.Execution != reports[i].Execution {
			l.w.violate(31, "receipt %d is for %s and the report was for another execution", i, name(rc.Execution))
			return
		}
		switch rc.Verdict {
		case flow.Applied, flow.Duplicate, flow.Stored:
			k := try{rc.Execution, rc.Attempt}
			l.acked[k] = max(l.acked[k], rc.Next)
			l.w.shadow.promised(k, rc.Next, l.said[k])
		case flow.Refused:
			// A worker sends the same event under the same number, and no event that the lifecycle forbids. Only when an attempt was taken back may
			// the engine's events have its numbers.
			if l.w.shadow.takenBack(try{rc.Execution, rc.Attempt}) {
				continue
			}
			l.w.violate(8, "%s: a report of attempt %d of %s was refused: %s", p.name, rc.Attempt, name(rc.Execution), rc.Reason)
		case flow.Unknown:
			l.w.shadow.unheardOf(rc.Execution)
		}
	}
}

// ordered notes the orders that reached a worker: each must have been committed.
func (l *ledger) ordered(orders []handoff.Order) {
	for _, o := range orders {
		l.w.shadow.ordered(o)
	}
}

func (l *ledger) closing(session flow.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed[session] = true
}

func (l *ledger) wasClosed(session flow.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed[session]
}

// declining notes the attempts that a worker gives back.
func (l *ledger) declining(attempts []flow.AttemptID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range attempts {
		l.given[try{a.Execution, a.Attempt}] = true
	}
}

func (l *ledger) wasDeclined(k try) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.given[k]
}

// wasBegun reports whether any process began work on an attempt.
func (l *ledger) wasBegun(k try) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[k] != nil
}
