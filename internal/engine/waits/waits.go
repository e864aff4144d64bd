// Package waits runs the executions of kind "wait", which end with a signal that fits.
package waits

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/crashloop"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// A signal that comes before a wait, while it begins, or after it reaches it, whatever crashes:
//
//	the wait      1. is committed, unscanned        2. the stored signals are then scanned for it
//	the signal    1. is committed, uncorrelated     2. is then compared with the open waits, and is correlated
//
// Where the wait was committed first, the correlation finds it; otherwise the scan finds the signal. Where both find each other the end
// of the wait happens once, since it is conditional on its execution. A process that dies in between leaves the wait unscanned or the
// signal uncorrelated, and every replica goes on with these.

const (
	correlationsAtOnce = 200         // waits, and signals, of one round
	openAtOnce         = 500         // open waits that one read returns
	signalsPerScan     = 100         // signals of one page of a scan
	fittingAtMost      = 50          // signals of which a wait takes the first that is not taken
	retryAfter         = time.Second // after a round that failed
)

// Waits are the executions that wait for signals. Make it with New; it is safe for concurrent use.
type Waits struct {
	Options
	wake         chan struct{} // capacity 1: a wait is unscanned, or a signal uncorrelated
	costly       loop.Costly   // executions that wait, by the texts of their ids
	turns        loop.TurnQueue[correlation, correlationProgress]
	unscanned    loop.Cursor[flow.ID]
	uncorrelated loop.Cursor[int64]
}

// Options are what waits need beside the transaction.
type Options struct {
	Store   store.Store
	Log     *slog.Logger
	Crashes *crashloop.Journal
	Random  func() float64
	Budget  txn.Budget // of one round
	Decide  txn.Decide
	Awaited *definition.Waits // reads payloads, and says which signals fit
	// Rules are those in force as far as this replica knows them; nil: nothing is known yet. FreshRules reads them where that may be old.
	Rules      func() *automation.Set
	FreshRules func(context.Context) (*automation.Set, error)
	// PutAside puts a signal or a wait aside, because a decision about it was refused. The error is one of the store alone.
	PutAside func(ctx context.Context, kind store.AsideKind, id flow.ID, why error) (aside bool, err error)
}

// New prepares waits.
func New(o Options) *Waits { return &Waits{Options: o, wake: make(chan struct{}, 1)} }

// Module is what waits add to each transaction, and their loop.
func (k *Waits) Module() txn.Module {
	return txn.Module{Name: "waits", AtEnd: writeDecided, Committed: k.committed, Loops: []func(context.Context){k.loop}}
}

// Kind is how executions wait.
func (k *Waits) Kind() txn.Kind {
	return txn.Kind{Kind: flow.KindWait, Check: k.check, Begin: k.await, Wake: k.end, Written: wrote}
}

// Wake has the loop look for waits and signals that have not been brought together.
func (k *Waits) Wake() { loop.Wake(k.wake) }

// part is what a transaction has decided about waits. They are written once, at its end.
type part struct {
	put          map[flow.ID]flow.Wait
	drop         []flow.ID
	uncorrelated []int64 // signals that waits are to be asked about
	correlated   []int64
	begun        bool                 // a wait began
	taken        map[takenSignal]bool // by waits in this transaction
}

// takenSignal is a signal that a wait of an attempt of a workflow has taken.
type takenSignal struct {
	workflowAttempt store.WorkflowAttempt
	signal          int64
}

func (p *part) write(w flow.Wait) {
	if p.put == nil {
		p.put = map[flow.ID]flow.Wait{}
	}
	p.put[w.Execution] = w
}

// wrote drops the wait of an execution that waited before, or in this transaction, and does not any more, unless it has taken a signal.
func wrote(t txn.Tx, d *flow.Draft) {
	if d.Place == flow.Held {
		return
	}
	p := txn.Part[part](t)
	w, here := p.put[d.ID]
	if w.Signal != 0 || !here && d.Before.Place != flow.Held {
		return
	}
	delete(p.put, d.ID)
	p.drop = append(p.drop, d.ID)
}

// writeDecided adds what was decided about waits to what is written.
func writeDecided(_ context.Context, t txn.Tx) error {
	p := txn.MadePart[part](t)
	if p == nil || len(p.put)+len(p.drop)+len(p.uncorrelated)+len(p.correlated) == 0 {
		return nil
	}
	if len(p.put)+len(p.drop) > 0 {
		t.Failpoint(failpoint.WaitKept)
	}
	rows := t.Rows()
	rows.Waits = store.WaitRows{Written: slices.Collect(maps.Values(p.put)), Dropped: p.drop}
	rows.Signals.Uncorrelated, rows.Signals.Correlated = p.uncorrelated, p.correlated
	return nil
}

// committed wakes the loop where a committed transaction has waits or signals for it.
func (k *Waits) committed(t txn.Tx) {
	if p := txn.MadePart[part](t); p != nil && (p.begun || len(p.uncorrelated) > 0) {
		k.Wake()
	}
}

// Kept notes that open waits are to be asked about a signal that a transaction keeps, if executions can wait for its trigger.
func (k *Waits) Kept(t txn.Tx, s *flow.Signal) {
	if set := k.Rules(); s.Subject == "" || s.Replayed || set == nil || set.Triggers[s.Trigger] == nil || !set.Triggers[s.Trigger].Waits {
		return
	}
	p := txn.Part[part](t)
	p.uncorrelated = append(p.uncorrelated, s.Number)
}
