package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
	"github.com/pawl-run/pawl/internal/store/verification"
)

// Signals, enforcements and switches are written last, with the commit. Until then reads in the same transaction find them here.

// writeLast writes the rows that are written with the commit.
func (t *tx) writeLast(ctx context.Context) error {
	err := t.PutKept(ctx, t.outcomes)
	if err == nil {
		err = t.PutSignals(ctx, t.emitted)
	}
	if err == nil {
		err = t.PutEnforcements(ctx, t.enforced)
	}
	if err == nil {
		err = t.AddSwitches(ctx, t.switched)
	}
	return err
}

func (t *tx) applySignals(ctx context.Context, d *store.Delta) error {
	t.emitted = append(t.emitted, d.Signals.New...)
	t.enforced = append(t.enforced, d.Rules.Enforcements...)
	err := t.Match(ctx, d.Signals.Matched)
	if err == nil {
		err = t.RetryEnforcements(ctx, d.Rules.Retried)
	}
	for i := 0; err == nil && i < len(d.Windows.Closed); i++ {
		err = t.closeWindow(ctx, &d.Windows.Closed[i])
	}
	return err
}

// closeWindow closes a window. Signals that this transaction has buffered are not written yet.
func (t *tx) closeWindow(ctx context.Context, k *store.Closing) error {
	written := relational.Written(k)
	for i := range t.enforced {
		e := &t.enforced[i]
		if !bufferedIn(e, k.WindowKey) || k.Signals != nil && !slices.Contains(k.Signals, e.Number) {
			continue
		}
		e.State, e.Execution, e.Reason = relational.StateIn(k, e.Number), k.Execution, k.Reason
		written = slices.DeleteFunc(written, func(n int64) bool { return n == e.Number })
	}
	return t.CloseWindow(ctx, k, written)
}

func bufferedIn(e *flow.Enforcement, key store.WindowKey) bool {
	return e.State == flow.EnforcementBuffered && e.Rule == key.Rule && e.Window == key.Key
}

func (t *tx) BufferedIn(ctx context.Context, key store.WindowKey, n int) ([]store.SignalPlace, error) {
	all, err := t.Tx.BufferedIn(ctx, key, n)
	if err != nil {
		return nil, err
	}
	for i := range t.enforced {
		if e := &t.enforced[i]; bufferedIn(e, key) {
			all = append(all, store.SignalPlace{At: e.At, Number: e.Number})
		}
	}
	slices.SortFunc(all, func(a, b store.SignalPlace) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Number, b.Number)) })
	return all[:min(n, len(all))], nil
}

func (t *tx) Signalled(ctx context.Context, keys []store.SignalKey) (map[store.SignalKey]store.KnownSignal, error) {
	found, err := t.Tx.Signalled(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i := range t.emitted {
		if s := &t.emitted[i]; s.Key != "" {
			found[store.SignalKey{Trigger: s.Trigger, Key: s.Key}] = store.KnownSignal{ID: s.ID, Hash: s.Hash}
		}
	}
	return found, nil
}

func (t *tx) SignalledBodies(ctx context.Context, bodies [][32]byte) (map[[32]byte]time.Time, error) {
	found, err := t.Tx.SignalledBodies(ctx, bodies)
	if err != nil {
		return nil, err
	}
	for i := range t.emitted {
		if s := &t.emitted[i]; s.Body != ([32]byte{}) && s.At.After(found[s.Body]) {
			found[s.Body] = s.At
		}
	}
	return found, nil
}

func (t *tx) LatestSwitches(ctx context.Context, names []string) (map[string]store.Switch, int64, error) {
	found, last, err := t.Tx.LatestSwitches(ctx, names)
	if err != nil {
		return nil, 0, err
	}
	for _, k := range t.switched {
		if slices.Contains(names, k.Name) {
			found[k.Name] = k
		}
		last = max(last, k.Generation)
	}
	return found, last, nil
}

// checkLed compares the executions of a page with the enforcements that started them.
func checkLed(ctx context.Context, s snapshot, f *verification.Findings, all []*checked) error {
	xs := make([]*flow.Execution, len(all))
	for i, k := range all {
		xs[i] = k.x
	}
	return relational.CheckLed(ctx, s, f, xs)
}
