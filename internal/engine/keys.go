package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// keyLedger counts the holders and the waiting executions of concurrency keys in a transaction: the store's counts, changed by the
// transaction's decisions. An execution may be decided about several times before it is written, and its Before shows only what is written.
// So freed and granted record which of these decisions use.Holders counts already.
type keyLedger struct {
	all       map[string]*keyUse
	freed     map[flow.ID]bool // executions that have returned their slot, and are not written yet
	granted   map[flow.ID]bool // executions that have got a slot, and are not written yet
	postponed []string         // keys whose wait list a later transaction serves

	nextTicket, lastTicket int64 // tickets that have been drawn
}

type keyUse struct {
	counted     bool // use has the store's exact count; otherwise lockKeys asks the store
	use         store.KeyUse
	waitListDue bool // its wait list must be served: a slot was freed, an execution has left the wait list, or a follow-up asks for it
}

func newKeyLedger() keyLedger {
	return keyLedger{all: map[string]*keyUse{}, freed: map[flow.ID]bool{}, granted: map[flow.ID]bool{}}
}

func (l *keyLedger) of(name string) *keyUse {
	k := l.all[name]
	if k == nil {
		k = &keyUse{}
		l.all[name] = k
	}
	return k
}

// changed applies a decision about an execution to the counts of its key.
func (l *keyLedger) changed(d *flow.Draft) {
	if (d.FreedKey() || l.granted[d.ID] && !d.Place.HoldsKey()) && !l.freed[d.ID] {
		l.freed[d.ID] = true
		k := l.of(d.Key)
		k.waitListDue = true
		k.use.Holders--
	}
	if d.Key != "" && d.Before.Place == flow.Waiting && (d.Place == flow.Finished || d.Place == flow.Delayed) {
		// It leaves the wait list. If it was the head, the next one had to wait for it, because a wait list is served in order. The next one may
		// have a higher limit and be admitted at once.
		l.of(d.Key).waitListDue = true
	}
}

// flushed records that an execution is written: from now on its Before shows whether it holds a slot.
func (l *keyLedger) flushed(d *flow.Draft) {
	if d.Key != "" {
		delete(l.freed, d.ID)
		delete(l.granted, d.ID)
	}
}

// lockKeys locks those keys that the transaction does not hold yet.
func (t *transaction) lockKeys(ctx context.Context, wanted []string) error {
	var names []string
	for _, name := range wanted {
		if k := t.keys.of(name); !k.counted {
			names = append(names, name)
			k.counted = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	uses, err := t.useKeys(ctx, names)
	if err != nil {
		return fmt.Errorf("lock keys: %w", err)
	}
	for _, name := range names {
		t.keys.all[name].use = uses[name]
	}
	return nil
}

// useKeys locks keys and returns how full they are. Tickets that the transaction drew in advance are dropped: another replica may have put
// executions with later tickets into these wait lists since. A ticket drawn under the key's lock is later than all tickets in its wait
// list.
func (t *transaction) useKeys(ctx context.Context, names []string) (map[string]store.KeyUse, error) {
	began := time.Now()
	uses, err := t.tx.LockKeys(ctx, names)
	if now := time.Now(); t.e.opts.Committers > 1 {
		t.e.batcher.contention.waited(names, now.Sub(began), now)
	}
	t.keys.nextTicket = t.keys.lastTicket
	return uses, err
}

func (t *transaction) ticket(ctx context.Context) (int64, error) {
	l := &t.keys
	if l.nextTicket == l.lastTicket {
		const block = 256
		first, err := t.tx.Tickets(ctx, block)
		if err != nil {
			return 0, fmt.Errorf("draw tickets: %w", err)
		}
		l.nextTicket, l.lastTicket = first, first+block
	}
	l.nextTicket++
	return l.nextTicket - 1, nil
}
