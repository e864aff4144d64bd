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

// A wait and a signal find each other in either order, and after a crash at any point:
//
//	the wait      1. is committed, unscanned        2. the stored signals are then scanned for it
//	the signal    1. is committed, uncorrelated     2. is then compared with the open waits, and is correlated
//
// If the wait was committed first, the correlation finds it; otherwise the scan finds the signal. If both find each other, the wait still
// ends once, because its end is conditional on its execution. If a process dies in between, the wait stays unscanned or the signal
// uncorrelated, and every replica continues with these.

const (
	correlationsAtOnce = 200         // waits, and signals, of one round
	openAtOnce         = 500         // open waits that one read returns
	signalsPerScan     = 100         // signals of one page of a scan
	fittingAtMost      = 50          // a wait takes the first of this many signals that is not taken
	retryAfter         = time.Second // after a failed round
)

// Waits are the executions that wait for signals. Make it with New; it is safe for concurrent use.
type Waits struct {
	Options
	wake         chan struct{} // capacity 1: a wait is unscanned, or a signal uncorrelated
	costly       loop.Costly   // waiting executions, by the texts of their ids
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
	Awaited *definition.Waits // reads payloads, and decides which signals fit
	// Rules are the rules in force as far as this replica knows them; nil: none are known yet. FreshRules reads them if those may be old.
	Rules      func() *automation.Set
	FreshRules func(context.Context) (*automation.Set, error)
	// PutAside puts a signal or a wait aside, because a decision about it was refused. The error is one of the store alone.
	PutAside func(ctx context.Context, kind store.AsideKind, id flow.ID, why error) (aside bool, err error)
}

// New prepares waits.
func New(o Options) *Waits { return &Waits{Options: o, wake: make(chan struct{}, 1)} }

// Module is the part of waits in each transaction, and their loop.
func (k *Waits) Module() txn.Module {
	return txn.Module{Name: "waits", AtEnd: writeDecided, Committed: k.committed, Loops: []func(context.Context){k.loop}}
}

// Kind defines how executions wait.
func (k *Waits) Kind() txn.Kind {
	return txn.Kind{Kind: flow.KindWait, Check: k.check, Begin: k.await, Wake: k.end, Written: wrote}
}

// Wake makes the loop look for uncorrelated waits and signals.
func (k *Waits) Wake() { loop.Wake(k.wake) }

// part is the decisions of a transaction about waits. They are written once, at its end.
type part struct {
	put          map[flow.ID]flow.Wait
	drop         []flow.ID
	uncorrelated []int64 // signals that must be compared with waits
	correlated   []int64
	begun        bool                 // a wait began
	taken        map[takenSignal]bool // by waits in this transaction
}

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

// wrote drops the wait of an execution that has waited and does not any more, unless it has taken a signal.
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

// writeDecided adds the decisions about waits to the rows to write.
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

// committed wakes the loop if a committed transaction has waits or signals for it.
func (k *Waits) committed(t txn.Tx) {
	if p := txn.MadePart[part](t); p != nil && (p.begun || len(p.uncorrelated) > 0) {
		k.Wake()
	}
}

// Kept records that a stored signal must be compared with open waits, if executions can wait for its trigger.
func (k *Waits) Kept(t txn.Tx, s *flow.Signal) {
	if set := k.Rules(); s.Subject == "" || s.Replayed || set == nil || set.Triggers[s.Trigger] == nil || !set.Triggers[s.Trigger].Waits {
		return
	}
	p := txn.Part[part](t)
	p.uncorrelated = append(p.uncorrelated, s.Number)
}
