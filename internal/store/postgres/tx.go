package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
)

// tx is one transaction: a store.Tx, which describes its exported methods. Its BEGIN goes with its first statement. Statements whose
// results no decision needs wait in calls until one is sent whose results are needed, or for the commit.
type tx struct {
	relational.Tx
	s *Store
	c *conn
	*scratch
	order

	alone  bool // no other transaction of the store runs at the same time
	begun  bool
	failed error // error of a statement, after which the transaction can do nothing more

	now           time.Time
	nowTrip       int // the round trip in which the clock was read
	nowUnread     bool
	tickets       ticketBlock
	idem          []store.IdempotencyKey // written with the commit
	outcomes      []store.Kept           // for the cache; written with the commit
	emitted       []flow.Signal          // written with the commit
	enforced      []flow.Enforcement     // written with the commit
	switched      []store.Switch         // written with the commit
	trips         int                    // round trips made
	expectedEmpty expectedEmpty
	expected      map[flow.ID]*expected // rows of sessions, with the changes of this transaction
	paused        *paused               // nil: not read
	news          news

	workflowsToRead   []store.KnownWorkflow // with the next Lock
	expectedWorkflows map[flow.ID]*expectedWorkflow
	known             map[flow.ID]bool // locked and not read
}

// scratch is memory that transactions reuse.
type scratch struct {
	calls []call
	a     args
	w     writes
	runs  map[flow.ID]int // the length of the history in each live row that was read or written

	leftOut map[flow.ID]bool // workflows whose payload was too large to be loaded with their lock
}

var scratches = sync.Pool{New: func() any { return &scratch{runs: make(map[flow.ID]int), leftOut: make(map[flow.ID]bool)} }}

// scratchLimit is the largest size of parameters in bytes that the next transaction reuses.
const scratchLimit = 2 << 20

var (
	qBegin    = sql(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	qCommit   = sql(`COMMIT`)
	qRollback = sql(`ROLLBACK`)
	qNow      = sql(`SELECT clock_timestamp()`)
	qBegun    = sql(`SELECT pg_advisory_xact_lock_shared(` + pauseLock + `), clock_timestamp(), nextval('{s}.tickets')`) // most transactions need tickets: they come with the BEGIN
	qAlone    = sql(`SELECT set_config('lock_timeout', $1, true), pg_advisory_xact_lock(` + pauseLock + `), clock_timestamp(), nextval('{s}.tickets')`)
	qSet      = sql(`SELECT set_config(name, value, true) FROM ` + settings.rows() + ` AS v`)
)

func newTx(s *Store, c *conn) *tx {
	t := &tx{s: s, c: c, scratch: scratches.Get().(*scratch)}
	t.Tx = relational.Tx{Writer: t}
	return t
}

// args starts the parameters of a call.
func (t *tx) args() *args {
	t.a.params = make([][]byte, 0, 8)
	return &t.a
}

func (t *tx) add(q *query, a *args, read func(*rows) error) {
	t.begin()
	k := call{q: q, read: read}
	if a != nil {
		k.params = a.params
	}
	t.calls = append(t.calls, k)
}

func (t *tx) begin() {
	if t.begun {
		return
	}
	t.begun, t.nowUnread, t.nowTrip = true, true, t.trips
	t.calls = append(t.calls, call{q: qBegin})
	if t.s.pooled {
		var a args // the transaction's own args already hold the caller's parameters
		t.calls = append(t.calls, call{q: qSet, params: settingArgs(&a, writing()).params})
	}
	begun := call{q: qBegun}
	columns := 1 // columns before the clock
	if t.alone {
		var a args
		begun.q, begun.params = qAlone, a.text(fmt.Sprint(aloneWithin.Milliseconds())).params
		columns++
	}
	begun.read = func(r *rows) error {
		for range columns {
			r.peek()
		}
		t.now = epoch.Add(time.Duration(r.int()) * time.Microsecond)
		t.s.clock.Store(&clockReading{t.now, time.Now()})
		t.tickets = blockOf(r.int())
		return nil
	}
	t.calls = append(t.calls, begun)
}

// pauseLock is the advisory lock that every transaction shares, and that a transaction which changes pauses holds exclusively: "Paus" in
// ASCII, and the schema's name. It is a transaction's first lock, so a transaction that waits for it holds no lock for which others could
// wait.
const pauseLock = `1348564339, hashtext('{s}')`

// aloneWithin is how long a transaction that must run alone waits for the running ones. Then it lets others begin and tries again. No
// transaction begins while it waits, so this is half of the second by which one user's work may delay another's.
const aloneWithin = 500 * time.Millisecond

// epoch is the zero of PostgreSQL's timestamps.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var settings = relation[setting, none]{
	{"name", oidText, func(c *column, s setting) { c.text(s.name) }, nil},
	{"value", oidText, func(c *column, s setting) { c.text(s.value) }, nil},
}

func settingArgs(a *args, all []setting) *args {
	return a.columns(settings.columns(all...))
}

// ask queues a call and runs all queued calls.
func (t *tx) ask(ctx context.Context, q *query, a *args, read func(*rows) error) error {
	t.add(q, a, read)
	return t.flush(ctx)
}

// flush runs the queued calls.
func (t *tx) flush(ctx context.Context) error {
	if t.failed != nil {
		return t.failed
	}
	if len(t.calls) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	began := time.Now()
	_, err := t.run(t.calls)
	t.calls, t.a.b = t.calls[:0], t.a.b[:0]
	if t.expectedEmpty.queues != nil && t.expectedEmpty.trip == t.trips {
		t.s.bloat.noteTrip(t.expectedEmpty.read, time.Since(began))
	}
	t.trips++
	t.failed = translate(err)
	return t.failed
}

// since ensures that the round trip with this number has been made.
func (t *tx) since(ctx context.Context, trip int) error {
	if t.trips > trip {
		return t.failed
	}
	return t.flush(ctx)
}

// run makes one round trip. It is not interrupted by the end of the request's context, but by a server that stops answering.
func (t *tx) run(calls []call) (int, error) {
	return t.c.within(context.Background(), t.s.writers.Limits().Answer, calls)
}

// commit sends the queued calls followed by a COMMIT. The server executes the COMMIT only if all of them have succeeded.
func (t *tx) commit() error {
	if t.failed != nil {
		return t.failed
	}
	t.insertKeys()
	if err := t.writeLast(context.Background()); err != nil {
		return err
	}
	if !t.begun {
		return nil
	}
	t.calls = append(t.calls, call{q: qCommit})
	done, err := t.run(t.calls)
	switch {
	case err == nil:
		t.begun = false
		t.s.notifier.announce(t.news)
		return nil
	case mayBeCommitted(err, done == len(t.calls)-1):
		t.failed = fmt.Errorf("%w: %w", store.ErrUnknown, err)
	default:
		t.failed = fmt.Errorf("commit: %w", translate(err))
	}
	return t.failed
}

// mayBeCommitted reports whether a transaction whose commit was sent may have been committed although err was returned. An error of a
// statement before the commit means that it was not committed; a missing answer leaves it open.
func mayBeCommitted(err error, atCommit bool) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return true
	}
	return atCommit && !isRetryable(err)
}

// end rolls back a transaction that was not committed, and releases its memory for the next one.
func (t *tx) end() {
	t.rollBack()
	k := t.scratch
	t.scratch = nil
	clear(k.calls)
	clear(k.runs)
	clear(k.leftOut)
	k.calls, k.a = k.calls[:0], args{b: k.a.b[:0]}
	if cap(k.a.b) < scratchLimit {
		scratches.Put(k)
	}
}

func (t *tx) rollBack() {
	if !t.begun || t.c.pg.IsClosed() {
		return
	}
	if t.c.pg.TxStatus() == 'I' {
		return // its statements were never sent
	}
	// If the ROLLBACK is not answered, the pool discards the connection, and the server rolls back.
	_, _ = t.c.within(context.Background(), t.s.writers.Limits().Ping, []call{{q: qRollback}})
}

func (t *tx) Now(ctx context.Context) (time.Time, error) {
	if t.begun && !t.nowUnread {
		t.addNow()
	}
	t.begin()
	if err := t.since(ctx, t.nowTrip); err != nil {
		return time.Time{}, fmt.Errorf("read the clock: %w", err)
	}
	t.nowUnread = false
	return t.now, nil
}

// clockReading is a reading of the server's clock.
type clockReading struct {
	server time.Time
	came   time.Time // when the answer came
}

// clockKept is how long RecentNow uses a reading. In a second, two clocks that differ by 100 ppm drift apart by 0.1 ms.
const clockKept = time.Second

func (t *tx) RecentNow() (time.Time, bool) {
	c := t.s.clock.Load()
	if c == nil || time.Since(c.came) > clockKept {
		return time.Time{}, false
	}
	return c.server.Add(time.Since(c.came).Truncate(time.Microsecond)), true
}

// addNow queues the reading of the clock.
func (t *tx) addNow() {
	t.nowTrip = t.trips
	t.add(qNow, nil, func(r *rows) error {
		t.now = epoch.Add(time.Duration(r.int()) * time.Microsecond)
		return nil
	})
}

// ticketBits is the logarithm of the number of tickets for one number of the sequence (65,536), so that a transaction gets adjacent
// tickets.
const ticketBits = 16

// ticketBlock are the remaining tickets of a block.
type ticketBlock struct{ next, end int64 }

// blockOf returns the tickets for a number of the sequence.
func blockOf(n int64) ticketBlock { return ticketBlock{n << ticketBits, (n + 1) << ticketBits} }

var qTickets = sql(`SELECT nextval('{s}.tickets') FROM generate_series(1, $1::bigint)`)

func (t *tx) Tickets(ctx context.Context, n int) (int64, error) {
	if !t.begun {
		t.begin()
		if err := t.flush(ctx); err != nil {
			return 0, fmt.Errorf("draw tickets: %w", err)
		}
	}
	for t.tickets.next+int64(n) > t.tickets.end {
		// Numbers that other transactions drew may lie between these. Such a block has gaps, and is drawn again.
		want := (int64(n) + 1<<ticketBits - 1) >> ticketBits
		var first, last int64
		err := t.ask(ctx, qTickets, t.args().int(want), func(r *rows) error {
			last = r.int()
			if first == 0 {
				first = last
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("draw tickets: %w", err)
		}
		if last-first == want-1 {
			t.tickets = ticketBlock{blockOf(first).next, blockOf(last).end}
		}
	}
	first := t.tickets.next
	t.tickets.next += int64(n)
	return first, nil
}
