package simulation

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// shadow is the state that the database must hold, derived from the commits alone. It judges every commit when it happens.
type shadow struct {
	w *world

	mu       sync.Mutex
	rows     map[flow.ID]*row
	order    []flow.ID
	children map[place]*row
	keys     map[string]map[flow.ID]*row // executions that hold a key or wait for it
	ready    map[string]map[flow.ID]*row // by queue
	idem     map[string]flow.ID
	sessions map[flow.ID]time.Time // expiry
	reaches  map[flow.ID]flow.Reach
	removed  map[flow.ID]bool
	gone     map[flow.ID]*row     // what was removed, as it was
	moved    map[string]time.Time // when the alias of a definition was moved last
	targets  map[string]int       // the version that this alias points to, or the first of two
	arrivals int64
	ticks    map[string]map[int64]store.Tick // by schedule and nominal time
	beaten   map[string]int                  // number of executions created, by the schedule that started them
	pauses   map[pausable]store.Pause        // the latest of each

	commits, created, attempts int
	faults                     map[string]int
}

// row is one execution.
type row struct {
	id     flow.ID
	x      flow.Execution
	asks   flow.Request // as it was created: later drafts may be loaded without payload
	events []flow.Event
	// arrived numbers the moments at which executions entered a line or a queue. The shadow does not use the product's tickets for this.
	arrived   int64
	born      int  // the commit in which it was created
	since     int  // the commit in which it entered its current place
	asked     bool // a client has asked for its cancel, with or without effect
	cancelled bool
	moved     string            // the routing key of its last move while it waited
	order     *flow.CancelOrder // the last one, also after the end
	kids      []*row            // of all attempts
	original  *original         // of a rerun
	pause     *flow.Pause       // by its events
	stood     flow.PausedFor    // in pauses that are over, by its events
	claimed   time.Time         // its attempt, by its events
	lost      map[int]string    // attempt → why its owner was given up
	timedOut  map[int]bool      // attempts of a workflow that its timeout ended with their children, and that another attempt followed
	back      int               // how many of these attempts were handed back and do not count
}

// place is a child's.
type place struct {
	workflow flow.ID
	attempt  int
	task     string
	index    int
}

func newShadow(w *world) *shadow {
	return &shadow{
		w: w, rows: map[flow.ID]*row{}, children: map[place]*row{}, keys: map[string]map[flow.ID]*row{},
		ready: map[string]map[flow.ID]*row{}, idem: map[string]flow.ID{}, sessions: map[flow.ID]time.Time{}, reaches: map[flow.ID]flow.Reach{},
		removed: map[flow.ID]bool{}, gone: map[flow.ID]*row{}, moved: map[string]time.Time{}, targets: map[string]int{}, faults: map[string]int{}, ticks: map[string]map[int64]store.Tick{}, beaten: map[string]int{}, pauses: map[pausable]store.Pause{},
	}
}

// commit applies the writes of a transaction.
func (s *shadow) commit(by string, o *observer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits++
	c := &commit{shadow: s, by: by, now: s.w.now(), touched: map[*row]flow.Place{}, entered: map[flow.ID]int64{}}
	for _, wr := range o.writes {
		switch {
		case wr.draft != nil:
			c.draft(wr.draft)
		case wr.key != nil:
			if old, ok := s.idem[wr.key.Key]; ok && old != wr.key.Execution {
				s.w.violate(25, "idempotency key %q made %s and %s", wr.key.Key, name(old), name(wr.key.Execution))
			}
			s.idem[wr.key.Key] = wr.key.Execution
		case wr.session != nil:
			s.sessions[wr.session.ID] = time.Time{}
			s.reaches[wr.session.ID] = flow.ReachOf(wr.session.Queues, wr.session.Kinds)
		case wr.renewed != nil:
			if _, ok := s.sessions[wr.renewed.id]; !ok {
				s.w.violate(3, "session %s was renewed after it was given up", name(wr.renewed.id))
			}
			s.sessions[wr.renewed.id] = c.now.Add(wr.renewed.lease)
		case !wr.ended.IsZero():
			if _, ok := s.sessions[wr.ended]; ok {
				s.sessions[wr.ended] = time.Time{}
			}
		case !wr.dropped.IsZero():
			delete(s.sessions, wr.dropped)
		case wr.expired:
			for id := range s.sessions {
				s.sessions[id] = c.now
			}
		case wr.moved != nil:
			c.moved[wr.moved.name], c.targets[wr.moved.name] = time.Now(), wr.moved.to
			c.said = append(c.said, fmt.Sprintf("%s@%s is %v", wr.moved.name, stable, wr.moved.to))
		case wr.rerouted != nil:
			c.reroute(wr.rerouted)
		case wr.removed != nil:
			c.remove(wr.removed)
		}
	}
	for _, wr := range o.writes { // a tick may be written before the execution that it starts
		if wr.tick != nil {
			c.ticked(wr.tick)
		}
	}
	c.close()
	if len(c.said) > 0 {
		s.w.note("%s committed: %s", by, strings.Join(c.said, "; "))
	} else {
		s.w.note("%s committed", by)
	}
}

func (s *shadow) inOrder() []*row {
	s.mu.Lock()
	defer s.mu.Unlock()
	rs := make([]*row, 0, len(s.order))
	for _, id := range s.order {
		if r := s.rows[id]; r != nil {
			rs = append(rs, r)
		}
	}
	return rs
}

// open counts the executions that have not ended.
func (s *shadow) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.rows {
		if r.x.Place != flow.Finished {
			n++
		}
	}
	return n
}

// accepted is called when a client is told that its submission created the execution.
func (s *shadow) accepted(id flow.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows[id] == nil && !s.removed[id] {
		s.w.violate(10, "a client was told that %s is accepted, and nothing of it is committed", name(id))
	}
}

// cancelAsked is called before a client asks for a cancel.
func (s *shadow) cancelAsked(id flow.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.rows[id]; r != nil {
		r.asked = true
	}
}

// superseded reports whether the transaction that ended an execution created another one that takes its slot. The order to end in such a
// transaction is obeyed before it is committed.
func (s *shadow) superseded(r *row) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.rows {
		if o.born == r.since && r.x.Key != "" && o.x.Key == r.x.Key && o.x.WhenFull == flow.WhenFullCancelOldest {
			return true
		}
	}
	return false
}

// cancelTold is called when a client is told that an execution is being cancelled.
func (s *shadow) cancelTold(id flow.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[id]
	if r == nil {
		return
	}
	r.cancelled = true
	if r.x.Place != flow.Finished && r.x.Cancel == nil {
		s.w.violate(10, "a client was told that %s is cancelled, and no order is committed", name(id))
	}
}

// handedOver is called when an engine answers a take.
func (s *shadow) handedOver(session flow.ID, work []handoff.Assignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range work {
		r := s.rows[a.Execution]
		switch {
		case s.removed[a.Execution]:
		case r == nil || r.x.Attempt < a.Attempt || r.x.Attempt == a.Attempt && r.x.Stage < flow.Provisioning:
			s.w.violate(10, "attempt %d of %s was handed over before its claim was committed", a.Attempt, name(a.Execution))
		case r.x.Attempt == a.Attempt && r.x.Place == flow.Held && r.x.Owner != session:
			s.w.violate(3, "attempt %d of %s was handed over to %s and is held by %s", a.Attempt, name(a.Execution), name(session), name(r.x.Owner))
		}
	}
}

// declined is called when a worker is told that attempts are given back.
func (s *shadow) declined(session flow.ID, attempts []flow.AttemptID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range attempts {
		r := s.rows[a.Execution]
		if r != nil && r.x.Attempt == a.Attempt && r.x.Place == flow.Held && r.x.Stage == flow.Provisioning && r.x.Owner == session && r.x.Cancel == nil {
			s.w.violate(31, "attempt %d of %s was given back, and %s still holds it", a.Attempt, name(a.Execution), name(session))
		}
	}
}

// promised is called when a worker is told that all events below next are recorded.
func (s *shadow) promised(k try, next int64, said map[int64]flow.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[k.execution]
	if r == nil {
		if !s.removed[k.execution] {
			s.w.violate(31, "events of %s were acknowledged, and there is no such execution", name(k.execution))
		}
		return
	}
	for seq, e := range said {
		if seq >= next {
			continue
		}
		if seq > int64(len(r.events)) {
			s.w.violate(31, "event %d of %s was acknowledged and is not recorded", seq, name(k.execution))
			return
		}
		if got := r.events[seq-1]; got.Type != e.Type || got.Attempt != k.attempt {
			s.w.violate(31, "event %d of %s was acknowledged as %s and is recorded as %s", seq, name(k.execution), e.Type, got.Type)
			return
		}
	}
}

// unheardOf is called when a worker is told that its execution does not exist.
func (s *shadow) unheardOf(id flow.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows[id] != nil {
		s.w.violate(31, "%s is called unknown", name(id))
	}
}

// ordered is called when an order reaches a worker.
func (s *shadow) ordered(o handoff.Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[o.Execution]
	if r != nil && r.order == nil {
		s.w.violate(10, "%s was ordered to end, and no order is committed", name(o.Execution))
	}
}

// leaseLost reports whether an attempt was recovered because its worker's lease ran out or was given back. The caller may
// hold the ledger's lock, so this takes only its own.
func (s *shadow) leaseLost(k try) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[k.execution]
	return r != nil && strings.Contains(r.lost[k.attempt], "worker")
}

// takenBack reports whether an attempt was recovered, for any reason.
func (s *shadow) takenBack(k try) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[k.execution]
	return r == nil || r.lost[k.attempt] != ""
}

// prefix compares a history as a reader sees it with the committed one.
func (s *shadow) prefix(id flow.ID, got []flow.Event) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[id]
	if r == nil {
		return ""
	}
	if len(got) != len(r.events) {
		return fmt.Sprintf("%d events are read, %d are committed", len(got), len(r.events))
	}
	for i, e := range got {
		c := r.events[i]
		if e.Seq != int64(i+1) || e.Type != c.Type || e.Attempt != c.Attempt {
			return fmt.Sprintf("event %d is read as %d %s of attempt %d, committed as %s of attempt %d", i+1, e.Seq, e.Type, e.Attempt, c.Type, c.Attempt)
		}
	}
	return ""
}

// pick returns the n-th execution that satisfies f, modulo their number, and nil when none does.
func (s *shadow) pick(n int, f func(*row) bool) *row {
	rs := slices.DeleteFunc(s.inOrder(), func(r *row) bool { return !f(r) })
	if len(rs) == 0 {
		return nil
	}
	return rs[n%len(rs)]
}
