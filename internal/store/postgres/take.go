package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// ready selects rows of one part of a queue, in order.
func ready(where string) string {
	return `SELECT ` + liveColumns + smallOnly(`$3`) + ` FROM {s}.live l` + joinLive + ` WHERE l.place = 3 AND l.queue = $1` + where +
		` ORDER BY l.priority DESC, l.ticket LIMIT $2 FOR UPDATE OF l SKIP LOCKED`
}

// parts selects rows of several parts of a queue, one part after the other. A part is read only if those before it have too few rows.
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

// qTakeLarge reads the payloads of executions in the given order, and stops after the one with which they reach $2 bytes.
var qTakeLarge = sql(`SELECT x.id, x.input, x.payload FROM (
		SELECT o.n, p.id, p.input, p.payload, coalesce(octet_length(p.input), 0) + coalesce(octet_length(p.payload), 0) AS size,
			sum(coalesce(octet_length(p.input), 0) + coalesce(octet_length(p.payload), 0)) OVER (ORDER BY o.n) AS upto
		FROM unnest($1::uuid[]) WITH ORDINALITY o(id, n)
		CROSS JOIN LATERAL (SELECT * FROM {s}.payloads p WHERE p.id = o.id OFFSET 0) p) x
	WHERE x.upto - x.size < $2::bigint`)

// expectedEmpty are the queues that a transaction has read together with other statements, because they are probably empty.
type expectedEmpty struct {
	queues map[string]bool
	read   []string // all queues that were read
	trip   int      // as in expected: known after this round trip
}

// mostExpected is the largest number of queues for which the read that ExpectEmpty adds costs less than the round trip that it may save.
const mostExpected = 8

func (t *tx) ExpectEmpty(queues []string) {
	if len(queues) == 0 || len(queues) > mostExpected || t.s.bloat.any(queues) || t.s.bloat.resting() {
		return
	}
	t.expectedEmpty = expectedEmpty{queues: make(map[string]bool, len(queues)), read: queues, trip: t.trips}
	for _, q := range queues {
		t.expectedEmpty.queues[q] = true
	}
	t.add(qFilled, t.args().texts(queues), func(r *rows) error {
		delete(t.expectedEmpty.queues, r.text())
		return nil
	})
}

// allEmpty reports whether ExpectEmpty has read all of the queues and found them empty.
func (t *tx) allEmpty(ctx context.Context, queues []string) (bool, error) {
	if t.expectedEmpty.queues == nil {
		return false, nil
	}
	if err := t.since(ctx, t.expectedEmpty.trip); err != nil {
		return false, err
	}
	for _, q := range queues {
		if !t.expectedEmpty.queues[q] {
			return false, nil
		}
	}
	return true, nil
}

func (t *tx) Take(ctx context.Context, queues []string, n int) ([]*flow.Execution, error) {
	if len(queues) == 0 || n <= 0 {
		return nil, t.flush(ctx)
	}
	if none, err := t.allEmpty(ctx, queues); none || err != nil {
		return nil, err
	}
	queues = unique(queues)
	share := map[string]int{queues[0]: n}
	long := t.s.bloat.any(queues) // the last read of one of them took too long
	if len(queues) > 1 && !long {
		// First it reads, without locks, the priority and ticket of the next n rows of each queue, because only rows that are taken may be
		// locked.
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
				t.s.bloat.noteSlow(q, nil, time.Since(began))
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
			want = n - len(all) // in order of name instead of priority and ticket, as an approximation while reading all queues is too slow
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
		slices.SortFunc(all, byPlace)
	}
	return all[:min(n, len(all))], nil
}

// takeFrom takes from one queue; size limits the bytes of payloads.
func (t *tx) takeFrom(ctx context.Context, queue string, n, size int) ([]*flow.Execution, error) {
	all := make([]*flow.Execution, 0, min(n, 1000))
	a := t.args().text(queue).int(t.s.limit(n)).int(store.SmallPayload)
	large := make(map[flow.ID]*flow.Execution)
	read := t.collectSmall(&all, func(x *flow.Execution) { large[x.ID] = x })
	if from, ok := t.s.bloat.position(queue); ok {
		err := t.ask(ctx, qTakeFrom, a.int(from.priority).int(from.ticket), read)
		all = all[:min(n, len(all))]
		if err == nil {
			all, err = t.boundPayloads(ctx, all, large, size)
		}
		t.s.bloat.countTaken(queue, len(all))
		t.s.bloat.advance(queue, all)
		return all, err
	}
	if t.begun {
		if err := t.flush(ctx); err != nil { // so that waiting statements are not part of the measured time
			return nil, err
		}
	}
	began := time.Now()
	err := t.ask(ctx, qTake, a, read)
	took := time.Since(began)
	all = all[:min(n, len(all))]
	t.s.bloat.countTaken(queue, len(all))
	if err == nil && tooSlow(took, len(all)) {
		t.s.bloat.noteSlow(queue, all, took)
	}
	if err != nil {
		return nil, err
	}
	return t.boundPayloads(ctx, all, large, size)
}

// boundPayloads reads the large payloads of executions that were taken, and leaves out those after the execution with which the payloads
// reach size bytes. These stay locked until the transaction ends.
func (t *tx) boundPayloads(ctx context.Context, all []*flow.Execution, large map[flow.ID]*flow.Execution, size int) ([]*flow.Execution, error) {
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

// byPlace orders executions as they leave a queue: by priority, then by ticket.
func byPlace(a, b *flow.Execution) int {
	return cmp.Or(b.Priority-a.Priority, cmp.Compare(a.Ticket, b.Ticket))
}

// tooSlow reports whether reading the front of a queue took longer than the number of rows explains.
func tooSlow(took time.Duration, found int) bool {
	return took > 5*time.Millisecond+time.Duration(found)*30*time.Microsecond
}

// pauseFactor is the pause after a slow read of a queue's front, as a multiple of the read's duration: after one of 20 ms the next
// starts no earlier than 1 s later.
const pauseFactor = 50

// bloat stores where to read queues whose front is full of dead rows, which vacuum cannot remove while an old transaction could still see
// them:
//
//	front ── dead rows ── position: where the last read found its first row ── rows ── last: behind the last row found ── …
//
// Such a queue is read from its position, and only occasionally from the front. An execution with a low ticket that was committed late
// waits until then.
type bloat struct {
	mu     sync.Mutex
	queues map[string]*bloatedQueue
	taken  map[string]int
	rest   time.Time // until then ExpectEmpty reads nothing
}

// noteTrip records the duration of a round trip in which ExpectEmpty read queues. The whole round trip counts, because reading takes nearly
// all of it when the fronts are full of dead rows.
func (b *bloat) noteTrip(queues []string, took time.Duration) {
	if !tooSlow(took, 0) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.ContainsFunc(queues, func(q string) bool { return b.taken[q] >= bloatAfter }) {
		return
	}
	b.rest = time.Now().Add(pauseFactor * took)
}

func (b *bloat) resting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.rest)
}

// bloatAfter is how many executions this process must have taken from a queue before a slow read can mean that the queue is bloated. Fewer
// dead rows are read in a few milliseconds, so a slow read then had another reason, such as a busy machine.
const bloatAfter = 10_000

func (b *bloat) countTaken(queue string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken == nil {
		b.taken = make(map[string]int)
	}
	b.taken[queue] += n
}

type bloatedQueue struct {
	at    queuePlace // the position
	last  queuePlace // just after the last execution ever found
	until time.Time  // when it is read from its front again
}

type queuePlace struct{ priority, ticket int64 }

func placeOf(x *flow.Execution) queuePlace { return queuePlace{int64(x.Priority), x.Ticket} }

// noteSlow records where a slow read from the front found executions.
func (b *bloat) noteSlow(queue string, found []*flow.Execution, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken[queue] < bloatAfter {
		return
	}
	if b.queues == nil {
		b.queues = make(map[string]*bloatedQueue)
	}
	f := b.queues[queue]
	if f == nil {
		if len(found) == 0 {
			return // there is no other known place to read from
		}
		f = &bloatedQueue{}
		b.queues[queue] = f
	}
	f.until = time.Now().Add(pauseFactor * took)
	f.moveTo(found)
}

// moveTo moves the position to the first execution found, or after the last one ever found if there was none.
func (f *bloatedQueue) moveTo(all []*flow.Execution) {
	if len(all) == 0 {
		f.at = f.last
		return
	}
	f.at = placeOf(all[0])
	f.last = placeOf(all[len(all)-1])
	f.last.ticket++
}

func (b *bloat) advance(queue string, found []*flow.Execution) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.queues[queue]; f != nil {
		f.moveTo(found)
	}
}

// position returns the place from which to read a queue; false means the front.
func (b *bloat) position(queue string) (queuePlace, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.queues[queue]
	if f == nil || time.Now().After(f.until) {
		return queuePlace{}, false
	}
	return f.at, true
}

// any reports whether one of the queues is read from a position instead of its front.
func (b *bloat) any(queues []string) bool {
	return slices.ContainsFunc(queues, func(q string) bool {
		_, ok := b.position(q)
		return ok
	})
}
