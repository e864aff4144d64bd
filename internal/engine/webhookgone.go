package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

// receiverGone reports whether an execution that a rule has started is a webhook whose receiver has answered 410.
func receiverGone(d *flow.Draft) bool {
	return d.Kind == flow.KindWebhook && d.Ended() && d.Parent.IsZero() && !d.Signal.IsZero() && len(d.Rules) > 0 &&
		d.Outcome != nil && d.Outcome.Error != nil && d.Outcome.Error.Code == flow.CodeGone
}

// goneReceivers are the webhooks in a transaction whose receivers have answered 410.
type goneReceivers map[flow.ID]bool

// pauseGone pauses the rules whose webhooks' receivers have answered 410, in the transaction that records these ends. A rule that was
// resumed or applied again after the webhook began is not paused: its receiver may have changed.
func (t *transaction) pauseGone(ctx context.Context) error {
	var hooks []*flow.Draft
	var names []string
	for _, d := range t.changes.drafts {
		if t.deferred(d) || !receiverGone(d) {
			continue
		}
		gone := txn.Part[goneReceivers](t)
		if (*gone)[d.ID] {
			continue
		}
		if *gone == nil {
			*gone = goneReceivers{}
		}
		(*gone)[d.ID] = true
		hooks = append(hooks, d)
		names = append(names, rulePrefix+d.Rules[len(d.Rules)-1])
	}
	if len(hooks) == 0 {
		return nil
	}
	slices.Sort(names)
	found, last, err := t.tx.LatestSwitches(ctx, slices.Compact(names))
	if err != nil {
		return err
	}
	for _, d := range hooks {
		name := d.Rules[len(d.Rules)-1]
		k, there := found[rulePrefix+name]
		if !there || k.Paused || k.At.After(d.CreatedAt) {
			continue
		}
		reason := problem.Clip(fmt.Sprintf("webhook %s: %s", d.ID, d.Outcome.Error.Message), fault.ReasonLimit)
		last++
		if err := t.steerRule(ctx, name, k, last, true, reason); err != nil {
			return err
		}
		k.Paused = true
		found[rulePrefix+name] = k
	}
	return nil
}

// rereadPaused makes the rules be read again if a committed transaction may have paused some.
func (e *Engine) rereadPaused(t *transaction) {
	if txn.MadePart[goneReceivers](t) != nil {
		loop.Wake(e.rules.reread)
	}
}
