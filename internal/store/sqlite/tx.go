package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
	"github.com/pawl-run/pawl/internal/store/row"
)

// tx is the write transaction, of which there is one at a time: a store.Tx, which describes its exported methods.
type tx struct {
	relational.Tx
	s       *Store
	c       *conn
	last    time.Time            // the latest result of Now
	numbers map[flow.ID]int64    // of the executions that this transaction has read or written
	met     map[flow.ID]struct{} // used by Lock
	delta   store.Delta          // the argument of the running Apply
}

// encoder is a buffer for encodings: each encoding overwrites the previous one.
type encoder []byte

func (b *encoder) request(r *flow.Request) []byte {
	*b = row.AppendRequest((*b)[:0], r)
	return *b
}

func (b *encoder) state(s *flow.State, created int64, ended bool) []byte {
	*b = row.AppendState((*b)[:0], s, created, ended)
	return *b
}

func (b *encoder) failure(e *flow.Error) []byte {
	*b = row.AppendError((*b)[:0], e)
	return *b
}

func (b *encoder) kept(e *flow.Event) []byte {
	*b = row.AppendKept((*b)[:0], e)
	return *b
}

// Now implements store.Tx. The clock is that of this process. If it is set back, Now stands still until the clock has caught up.
func (t *tx) Now(context.Context) (time.Time, error) {
	if now := t.s.now(); now.After(t.last) {
		t.last = now
	}
	return t.last, nil
}

// number finds the number of an execution and stores it.
func (t *tx) number(id flow.ID) (int64, bool, error) {
	if n, ok := t.numbers[id]; ok {
		return n, true, nil
	}
	n, ok, err := t.c.number(id)
	if ok {
		t.numbers[id] = n
	}
	return n, ok, err
}

// mustNumber is number for an execution that the caller has read or is writing. If it does not exist, the caller has an error or retention
// has removed it; trying again does not help.
func (t *tx) mustNumber(id flow.ID) (int64, error) {
	n, ok, err := t.number(id)
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, fmt.Errorf("there is no execution %s", id)
	}
	return n, nil
}

// counter hands out increasing numbers. It reserves them in the database in blocks, within the transaction that needs them: a crash skips
// at most a block, and no number is handed out twice.
type counter struct {
	name           string
	next, reserved int64
	pending        bool // reserved by the open transaction
}

// block is how many numbers are reserved at once.
const block = 4096

var (
	qCounter = sql(`SELECT next FROM counters WHERE name = ?`)
	qReserve = sql(`UPDATE counters SET next = ? WHERE name = ?`)
)

func (k *counter) load(c *conn) error {
	s := c.use(qCounter).text(k.name)
	found := s.next()
	if found {
		k.next = s.getInt()
		k.reserved = k.next
	}
	if err := s.done(); err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("counter %q is missing", k.name)
	}
	return nil
}

// draw returns the first of n consecutive numbers.
func (k *counter) draw(c *conn, n int64) (int64, error) {
	if k.next+n > k.reserved {
		to := k.next + n + block
		if err := c.use(qReserve).int(to).text(k.name).run(); err != nil {
			return 0, err
		}
		k.reserved, k.pending = to, true
	}
	first := k.next
	k.next += n
	return first, nil
}

// settled must be called with the result of the transaction. A block that was rolled back is reserved again.
func (k *counter) settled(committed bool) {
	if k.pending && !committed {
		k.reserved = k.next
	}
	k.pending = false
}
