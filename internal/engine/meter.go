package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/admission"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// metered reports whether a due draft first needs a slot of its key's rate. It needs one for all its attempts.
func metered(d *flow.Draft) bool { return d.Rate.Key != "" && d.SlotAt.IsZero() }

func meterLock(r *flow.Request) string { return store.MeterLock + r.Rate.Key }

// meters are the times of the next slot per rate key, as the transaction has decided.
type meters map[string]time.Time

// loadMeters reads the meters of due drafts. The locks of their keys are held.
func (t *transaction) loadMeters(ctx context.Context, drafts []*flow.Draft) error {
	var keys []string
	for _, d := range drafts {
		if !metered(d) || !d.Due(t.now) {
			continue
		}
		if known := txn.MadePart[meters](t); known != nil {
			if _, ok := (*known)[d.Rate.Key]; ok {
				continue
			}
		}
		keys = append(keys, d.Rate.Key)
	}
	if len(keys) == 0 {
		return nil
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	found, err := t.tx.Meters(ctx, keys)
	if err != nil {
		return err
	}
	all := txn.Part[meters](t)
	if *all == nil {
		*all = meters{}
	}
	for _, key := range keys {
		(*all)[key] = found[key]
	}
	return nil
}

// meter draws a slot of its key's rate for a due draft. It reports whether the draft may start now: otherwise it waits for its slot, or has
// ended because its request says drop.
func (t *transaction) meter(d *flow.Draft) (goes bool, err error) {
	r := &d.Rate
	all := *txn.Part[meters](t)
	begin, tat := admission.Reserve(all[r.Key], t.now, r.Limit, r.Per, r.Burst)
	if begin.After(t.now) && r.Over == flow.OverDrop {
		return false, d.Finish(flow.Cancelled, flow.Outcome{Error: &flow.Error{
			Code:    flow.CodeRateExceeded,
			Message: fmt.Sprintf("the rate of key %q is used up until %s (%s), and over is drop", r.Key, begin.UTC().Format(time.RFC3339), r.Text()),
		}}, t.now, 0)
	}
	all[r.Key] = tat
	rows := t.changes.add()
	if rows.Meters == nil {
		rows.Meters = map[string]time.Time{}
	}
	rows.Meters[r.Key] = tat
	d.SetSlot(begin, t.now)
	return !begin.After(t.now), nil
}
