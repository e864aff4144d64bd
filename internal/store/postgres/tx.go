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
)

// tx is one transaction. It begins with its first statement; what needs no answer waits in calls until something does,
// or for the commit.
type tx struct {
	s *Store
	c *conn
	*scratch
	order

	alone  bool // no other transaction of the store is under way
	begun  bool
	failed error // of a statement: nothing more can be done in this transaction

	now       time.Time
	nowUnread bool
	tickets   ticketBlock
	idem      []store.IdempotencyKey // written with the commit
	kept      []store.Kept           // likewise
	emitted   []flow.Signal          // as well
	enforced  []flow.Enforcement     // as well
	switched  []store.Switch         // as well
	trips     int                    // round trips so far
	looked    looked
	expected  map[flow.ID]*expected // rows of sessions, as this transaction has left them
	paused    *paused               // nil: not asked for
	news      news
}

// scratch is what a transaction fills and the next one fills again.
type scratch struct {
	calls []call
	a     args
	w     writes
	runs  map[flow.ID]run

	leftOut map[flow.ID]bool // workflows whose payload was too large to come with their lock
}

var scratches = sync.Pool{New: func() any { return &scratch{runs: make(map[flow.ID]run), leftOut: make(map[flow.ID]bool)} }}

// mostKept is how many bytes of parameters are kept for the next transaction.
const mostKept = 2 << 20

// run is how much history a live row carries.
type run struct{ size int }

var (
	qBegin    = sql(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	qCommit   = sql(`COMMIT`)
	qRollback = sql(`ROLLBACK`)
	qNow      = sql(`SELECT clock_timestamp()`)
	qBegun    = sql(`SELECT pg_advisory_xact_lock_shared(` + pauseLock + `), clock_timestamp(), nextval('{s}.tickets')`) // most transactions need tickets, and no round trip for them
	qAlone    = sql(`SELECT set_config('lock_timeout', $1, true), pg_advisory_xact_lock(` + pauseLock + `), clock_timestamp(), nextval('{s}.tickets')`)
	qSet      = sql(`SELECT set_config(name, value, true) FROM ` + settings.rows() + ` AS v`)
)

func newTx(s *Store, c *conn) *tx { return &tx{s: s, c: c, scratch: scratches.Get().(*scratch)} }

// args begins the parameters of a call.
func (t *tx) args() *args {
	t.a.params = make([][]byte, 0, 8)
	return &t.a
}

// add puts a call in line.
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
	t.begun, t.nowUnread = true, true
	t.calls = append(t.calls, call{q: qBegin})
	if t.s.pooled {
		var a args // the caller's are under way
		t.calls = append(t.calls, call{q: qSet, params: settingArgs(&a, writing()).params})
	}
	begun := call{q: qBegun}
	columns := 1 // before the clock
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
		t.tickets = blockOf(r.int())
		return nil
	}
	t.calls = append(t.calls, begun)
}

// pauseLock is the advisory lock that every transaction shares, and that one which changes pauses has alone: "Paus" in ASCII, beside the
// schema's name. It is the first lock of a transaction, so a transaction that waits for it holds no lock that others wait for.
const pauseLock = `1348564339, hashtext('{s}')`

// aloneWithin is how long a transaction that wants to be alone waits for those under way before it lets others begin and tries
// again: no other transaction begins meanwhile, so it is half of the second that work of one user may be late because of another's.
const aloneWithin = 500 * time.Millisecond

// epoch is where PostgreSQL's own times begin.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var settings = relation[setting, none]{
	{"name", oidText, func(c *column, s setting) { c.text(s.name) }, nil},
	{"value", oidText, func(c *column, s setting) { c.text(s.value) }, nil},
}

func settingArgs(a *args, all []setting) *args {
	return a.columns(settings.columns(all...))
}

// ask puts a call in line and runs everything that is there.
func (t *tx) ask(ctx context.Context, q *query, a *args, read func(*rows) error) error {
	t.add(q, a, read)
	return t.flush(ctx)
}

// flush runs what is in line.
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
	if t.looked.empty != nil && t.looked.trip == t.trips {
		t.s.worn.looked(time.Since(began))
	}
	t.trips++
	t.failed = translate(err)
	return t.failed
}

// since makes sure that the round trip is over that was the next one at a moment.
func (t *tx) since(ctx context.Context, trip int) error {
	if t.trips > trip {
		return t.failed
	}
	return t.flush(ctx)
}

// run makes one round trip. The end of the request's context does not interrupt it, only the connection's silence does.
func (t *tx) run(calls []call) (int, error) {
	return t.c.within(context.Background(), t.s.writers.Limits().Answer, calls)
}

// commit sends what is in line with a COMMIT behind it: the server reaches that only when all else has succeeded.
func (t *tx) commit() error {
	if t.failed != nil {
		return t.failed
	}
	t.insertKeys()
	t.insertKept()
	t.insertSignals()
	t.insertEnforcements()
	t.insertSwitches()
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
	case unsure(err, done == len(t.calls)-1):
		t.failed = fmt.Errorf("%w: %w", store.ErrUnknown, err)
	default:
		t.failed = fmt.Errorf("commit: %w", translate(err))
	}
	return t.failed
}

// unsure reports whether a transaction whose commit was sent may have been committed though err came back. What the
// server says about a statement before the commit is certain; silence is not.
func unsure(err error, atCommit bool) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return true
	}
	return atCommit && !again(err)
}

// end takes back a transaction that was not committed.
func (t *tx) end() {
	t.rollBack()
	k := t.scratch
	t.scratch = nil
	clear(k.calls)
	clear(k.runs)
	clear(k.leftOut)
	k.calls, k.a = k.calls[:0], args{b: k.a.b[:0]}
	if cap(k.a.b) < mostKept {
		scratches.Put(k)
	}
}

func (t *tx) rollBack() {
	if !t.begun || t.c.pg.IsClosed() {
		return
	}
	if t.c.pg.TxStatus() == 'I' {
		return // its statements never went out
	}
	// A ROLLBACK is no work. When its answer does not come, the pool discards the connection, and the server rolls back.
	_, _ = t.c.within(context.Background(), t.s.writers.Limits().Ping, []call{{q: qRollback}})
}

// Now implements store.Tx.
func (t *tx) Now(ctx context.Context) (time.Time, error) {
	if t.begun && !t.nowUnread {
		t.add(qNow, nil, func(r *rows) error {
			t.now = epoch.Add(time.Duration(r.int()) * time.Microsecond)
			return nil
		})
	}
	t.begin()
	if err := t.flush(ctx); err != nil {
		return time.Time{}, fmt.Errorf("read the clock: %w", err)
	}
	t.nowUnread = false
	return t.now, nil
}

// ticketBits is how many tickets one number of the sequence stands for: a transaction that needs more than one draws them
// all at once, next to each other.
const ticketBits = 16

// ticketBlock is what is left of the numbers drawn.
type ticketBlock struct{ next, end int64 }

// blockOf is the tickets that a number of the sequence stands for.
func blockOf(n int64) ticketBlock { return ticketBlock{n << ticketBits, (n + 1) << ticketBits} }

var qTickets = sql(`SELECT nextval('{s}.tickets') FROM generate_series(1, $1::bigint)`)

// Tickets implements store.Executions.
func (t *tx) Tickets(ctx context.Context, n int) (int64, error) {
	if !t.begun {
		t.begin()
		if err := t.flush(ctx); err != nil {
			return 0, fmt.Errorf("draw tickets: %w", err)
		}
	}
	for t.tickets.next+int64(n) > t.tickets.end {
		// Numbers of another transaction may lie between those drawn here; then they do not stand next to each other.
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
