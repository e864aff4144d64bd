package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// ready are rows of one part of a queue, in order.
func ready(where string) string {
	return `SELECT ` + liveColumns + smallOnly(`$3`) + ` FROM {s}.live l` + joinLive + ` WHERE l.place = 3 AND l.queue = $1` + where +
		` ORDER BY l.priority DESC, l.ticket LIMIT $2 FOR UPDATE OF l SKIP LOCKED`
}

// parts are rows of several parts of a queue, one part after the other. A part is read only when those before it have too few
// rows.
func parts(where ...string) string {
	var all []string
	for i, w := range where {
		all = append(all, fmt.Sprintf(`SELECT * FROM (%s) part%d`, ready(w), i))
	}
	return `SELECT * FROM (` + strings.Join(all, ` UNION ALL `) + `) x LIMIT $2`
}

var (
	qTake = sql(ready(``))

	qTakeFrom = sql(parts(` AND l.priority > $4`, ` AND l.priority = $4 AND l.ticket >= $5`, ` AND l.priority < $4`))

	qHeads = sql(`SELECT q.queue, h.priority, h.ticket FROM unnest($1::text[]) AS q(queue) CROSS JOIN LATERAL
		(SELECT l.priority, l.ticket FROM {s}.live l WHERE l.place = 3 AND l.queue = q.queue ORDER BY l.priority DESC, l.ticket LIMIT $2) h
		ORDER BY h.priority DESC, h.ticket LIMIT $2`)

	qFilled = sql(`SELECT q.queue FROM unnest($1::text[]) AS q(queue) CROSS JOIN LATERAL
		(SELECT FROM {s}.live l WHERE l.place = 3 AND l.queue = q.queue LIMIT 1) l`)
)

// qTakeLarge reads the payloads of executions in the order named, and stops after the one that brings them to $2 bytes.
var qTakeLarge = sql(`SELECT x.id, x.input, x.payload FROM (
		SELECT o.n, p.id, p.input, p.payload, coalesce(octet_length(p.input), 0) + coalesce(octet_length(p.payload), 0) AS size,
			sum(coalesce(octet_length(p.input), 0) + coalesce(octet_length(p.payload), 0)) OVER (ORDER BY o.n) AS upto
		FROM unnest($1::uuid[]) WITH ORDINALITY o(id, n)
		CROSS JOIN LATERAL (SELECT * FROM {s}.payloads p WHERE p.id = o.id OFFSET 0) p) x
	WHERE x.upto - x.size < $2::bigint`)

// looked are the queues that a transaction has read in passing, because it expected them to be empty.
type looked struct {
	empty map[string]bool
	trip  int // as in expected: known once this round trip has been made
}

// mostLooked is the most queues for which reading in passing costs less than the round trip that it may save.
const mostLooked = 8

// ExpectEmpty implements store.Expecter.
func (t *tx) ExpectEmpty(queues []string) {
	if len(queues) == 0 || len(queues) > mostLooked || t.s.worn.any(queues) || t.s.worn.resting() {
		return
	}
	t.looked = looked{empty: make(map[string]bool, len(queues)), trip: t.trips}
	for _, q := range queues {
		t.looked.empty[q] = true
	}
	t.add(qFilled, t.args().texts(queues), func(r *rows) error {
		delete(t.looked.empty, r.text())
		return nil
	})
}

// allEmpty reports whether this transaction has read all of the queues in passing and found them empty.
func (t *tx) allEmpty(ctx context.Context, queues []string) (bool, error) {
	if t.looked.empty == nil {
		return false, nil
	}
	if err := t.since(ctx, t.looked.trip); err != nil {
		return false, err
	}
	for _, q := range queues {
		if !t.looked.empty[q] {
			return false, nil
		}
	}
	return true, nil
}

// Take implements store.Lines.
func (t *tx) Take(ctx context.Context, queues []string, n int) ([]*flow.Execution, error) {
	if len(queues) == 0 || n <= 0 {
		return nil, t.flush(ctx)
	}
	if none, err := t.allEmpty(ctx, queues); none || err != nil {
		return nil, err
	}
	queues = unique(queues)
	share := map[string]int{queues[0]: n}
	long := t.s.worn.any(queues) // reading one of them took too long when it was last read
	if len(queues) > 1 && !long {
		// First read, without locks, the priority and ticket of the next n rows of each queue: only rows that are taken
		// may be locked.
		clear(share)
		began := time.Now()
		err := t.ask(ctx, qHeads, t.args().texts(queues).int(t.s.limit(n)), func(r *rows) error {
			share[r.text()]++
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("look into the queues: %w", err)
		}
		if tooSlow(time.Since(began), 0) {
			for _, q := range queues {
				t.s.worn.note(q, nil, time.Since(began))
			}
		}
		if len(share) == 0 {
			return nil, nil // all of them are empty
		}
	} else if long {
		clear(share)
	}
	var all []*flow.Execution
	size := store.TakeBytes
	for _, q := range queues {
		want := share[q]
		if long {
			want = n - len(all) // in order of name instead of priority and ticket, an approximation for as long as reading all queues is too slow
		}
		if want <= 0 || size <= 0 {
			continue
		}
		got, err := t.takeFrom(ctx, q, want, size)
		if err != nil {
			return nil, fmt.Errorf("take from queue %q: %w", q, err)
		}
		for _, x := range got {
			size -= x.PayloadSize()
		}
		all = append(all, got...)
	}
	if err := t.flush(ctx); err != nil {
		return nil, fmt.Errorf("take: %w", err)
	}
	if len(queues) > 1 {
		slices.SortFunc(all, byTurn)
	}
	return all[:min(n, len(all))], nil
}

// takeFrom takes from one queue; size is the bound on the bytes of payloads.
func (t *tx) takeFrom(ctx context.Context, queue string, n, size int) ([]*flow.Execution, error) {
	all := make([]*flow.Execution, 0, min(n, 1000))
	a := t.args().text(queue).int(t.s.limit(n)).int(store.SmallPayload)
	large := make(map[flow.ID]*flow.Execution)
	read := t.collectSmall(&all, func(x *flow.Execution) { large[x.ID] = x })
	if from, ok := t.s.worn.from(queue); ok {
		err := t.ask(ctx, qTakeFrom, a.int(from.priority).int(from.ticket), read)
		all = all[:min(n, len(all))]
		if err == nil {
			all, err = t.within(ctx, all, large, size)
		}
		t.s.worn.took(queue, len(all))
		t.s.worn.moved(queue, all)
		return all, err
	}
	if t.begun {
		if err := t.flush(ctx); err != nil { // so that statements that wait are not part of the measured time
			return nil, err
		}
	}
	began := time.Now()
	err := t.ask(ctx, qTake, a, read)
	took := time.Since(began)
	all = all[:min(n, len(all))]
	t.s.worn.took(queue, len(all))
	if err == nil && tooSlow(took, len(all)) {
		t.s.worn.note(queue, all, took)
	}
	if err != nil {
		return nil, err
	}
	return t.within(ctx, all, large, size)
}

// within reads the large payloads of executions that were taken, and leaves out those behind the execution with which the
// payloads reach size bytes. The ones left out stay locked until the transaction ends.
func (t *tx) within(ctx context.Context, all []*flow.Execution, large map[flow.ID]*flow.Execution, size int) ([]*flow.Execution, error) {
	if len(large) > 0 {
		ids := make([]flow.ID, 0, len(large))
		for _, x := range all {
			if large[x.ID] != nil {
				ids = append(ids, x.ID)
			}
		}
		err := t.ask(ctx, qTakeLarge, t.args().ids(ids).int(int64(size)), func(r *rows) error {
			id := r.id()
			large[id].Input, large[id].With = r.bytes(), r.bytes()
			delete(large, id)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read payloads: %w", err)
		}
	}
	for i, x := range all {
		if size <= 0 || large[x.ID] != nil {
			return all[:i], nil
		}
		size -= x.PayloadSize()
	}
	return all, nil
}

// byTurn orders executions as they leave a queue: by priority, then by ticket.
func byTurn(a, b *flow.Execution) int {
	switch {
	case a.Priority != b.Priority:
		return b.Priority - a.Priority
	case a.Ticket < b.Ticket:
		return -1
	case a.Ticket > b.Ticket:
		return 1
	}
	return 0
}

// tooSlow reports whether reading the front of a queue took longer than the rows found explain.
func tooSlow(took time.Duration, found int) bool {
	return took > 5*time.Millisecond+time.Duration(found)*30*time.Microsecond
}

// rests is the pause after a slow read of a queue's front, as a multiple of the read's duration: after one of 20 ms the next
// starts no earlier than 1 s later.
const rests = 50

// worn remembers where to read queues whose front is full of dead rows. Vacuum cannot remove them while an old transaction
// could still see them. Such a queue is read from where the last executions were found, and only now and then from the front.
// An execution with a low ticket that was committed late waits until then.
type worn struct {
	mu     sync.Mutex
	queues map[string]*front
	taken  map[string]int
	rest   time.Time // until then no transaction reads queues in passing
}

// looked notes the duration of a round trip that read queues in passing. The whole round trip counts, since reading takes
// nearly all of it when the fronts are full of dead rows.
func (w *worn) looked(took time.Duration) {
	if !tooSlow(took, 0) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = time.Now().Add(rests * took)
}

func (w *worn) resting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.rest)
}

// wornAfter is how many executions this process must have taken from a queue before a slow read can mean that the queue is
// worn. Fewer dead rows are read in a few milliseconds, so a read that was slow all the same had another reason, such as a busy
// machine.
const wornAfter = 10_000

// took counts executions taken from a queue.
func (w *worn) took(queue string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taken == nil {
		w.taken = make(map[string]int)
	}
	w.taken[queue] += n
}

type front struct {
	turn
	last  turn // just behind the last execution found
	until time.Time
}

// turn is a place in a queue.
type turn struct{ priority, ticket int64 }

func turnOf(x *flow.Execution) turn { return turn{int64(x.Priority), x.Ticket} }

// note remembers where a slow read from the front found executions.
func (w *worn) note(queue string, found []*flow.Execution, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taken[queue] < wornAfter {
		return
	}
	if w.queues == nil {
		w.queues = make(map[string]*front)
	}
	f := w.queues[queue]
	if f == nil {
		if len(found) == 0 {
			return // it is not known where else to read
		}
		f = &front{}
		w.queues[queue] = f
	}
	f.until = time.Now().Add(rests * took)
	f.found(found)
}

// found moves to the first execution found, or behind the last one ever found if there was none.
func (f *front) found(all []*flow.Execution) {
	if len(all) == 0 {
		f.turn = f.last
		return
	}
	f.turn = turnOf(all[0])
	f.last = turnOf(all[len(all)-1])
	f.last.ticket++
}

func (w *worn) moved(queue string, found []*flow.Execution) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.queues[queue]; f != nil {
		f.found(found)
	}
}

// from is the place from which to read a queue; false means the front.
func (w *worn) from(queue string) (turn, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.queues[queue]
	if f == nil || time.Now().After(f.until) {
		return turn{}, false
	}
	return f.turn, true
}

// any reports whether one of the queues is read from elsewhere than its front.
func (w *worn) any(queues []string) bool {
	return slices.ContainsFunc(queues, func(q string) bool {
		_, is := w.from(q)
		return is
	})
}
