package engine

import (
	"context"

	"github.com/pawl-run/pawl/internal/admission"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// waitListShares are the shares of wait lists that a transaction has read or decided. The locks of the keys are held.
type waitListShares struct {
	read    map[shareKey]int64
	written map[shareKey]bool
	emptied map[string]bool // keys without a waiting execution: their rows are deleted before the written ones are written
}

// shareKey is a store.Share without its tag.
type shareKey struct {
	key      string
	priority int
	clock    bool
	by       string
}

func clockOf(x *flow.Execution) shareKey { return shareKey{x.Key, x.Priority, true, ""} }

func shareOf(x *flow.Execution) shareKey { return shareKey{x.Key, x.Priority, false, x.Fair.By} }

func (s *waitListShares) put(k shareKey, tag int64) {
	if s.read == nil {
		s.read, s.written = map[shareKey]int64{}, map[shareKey]bool{}
	}
	s.read[k], s.written[k] = tag, true
}

// empty drops the shares of a key whose wait list is empty: the next execution begins a new order of turns.
func (s *waitListShares) empty(key string) {
	for k := range s.read {
		if k.key == key {
			delete(s.read, k)
			delete(s.written, k)
		}
	}
	if s.emptied == nil {
		s.emptied = map[string]bool{}
	}
	s.emptied[key] = true
}

// readShares reads the clock of an execution's wait list, and the last turn of its share.
func (t *transaction) readShares(ctx context.Context, x *flow.Execution) (clock, last int64, err error) {
	s := txn.Part[waitListShares](t)
	clock, haveClock := s.read[clockOf(x)]
	last, haveLast := s.read[shareOf(x)]
	if haveClock && haveLast || s.emptied[x.Key] {
		return clock, last, nil
	}
	storedClock, storedLast, err := t.tx.Shares(ctx, x.Key, x.Priority, x.Fair.By)
	if err != nil {
		return 0, 0, err
	}
	if !haveClock {
		clock = storedClock
	}
	if !haveLast {
		last = storedLast
	}
	return clock, last, nil
}

// waitListTicket draws the ticket with which a draft waits for its key: by turns if its document has fair_by, else by arrival.
func (t *transaction) waitListTicket(ctx context.Context, d *flow.Draft, waiting int) (int64, error) {
	arrival, err := t.ticket(ctx)
	if err != nil || d.Fair.Weight == 0 {
		return arrival, err
	}
	if waiting == 0 {
		txn.Part[waitListShares](t).empty(d.Key)
	}
	clock, last, err := t.readShares(ctx, d.Execution)
	if err != nil {
		return 0, err
	}
	tag, next := admission.Tag(clock, last, d.Fair.Weight)
	txn.Part[waitListShares](t).put(shareOf(d.Execution), next)
	return admission.FairTicket(tag, arrival), nil
}

// tookTurn advances the clock of a wait list to an execution that is admitted from it.
func (t *transaction) tookTurn(ctx context.Context, x *flow.Execution, waiting int) error {
	if x.Fair.Weight == 0 {
		return nil
	}
	if waiting == 0 {
		txn.Part[waitListShares](t).empty(x.Key)
		return nil
	}
	clock, _, err := t.readShares(ctx, x)
	if err != nil {
		return err
	}
	if tag := admission.TagOf(x.Ticket); tag > clock {
		txn.Part[waitListShares](t).put(clockOf(x), tag)
	}
	return nil
}

// writeShares adds the changed shares to the rows to write.
func (t *transaction) writeShares(context.Context) error {
	s := txn.MadePart[waitListShares](t)
	if s == nil || len(s.written)+len(s.emptied) == 0 {
		return nil
	}
	rows := t.changes.add()
	for key := range s.emptied {
		rows.Shares.Dropped = append(rows.Shares.Dropped, key)
	}
	for k := range s.written {
		rows.Shares.Written = append(rows.Shares.Written, store.Share{Key: k.key, Priority: k.priority, Clock: k.clock, By: k.by, Tag: s.read[k], At: t.now})
	}
	clear(s.written)
	clear(s.emptied)
	return nil
}
