package engine

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

// receiverGone reports whether an execution that a rule has started is a webhook whose receiver wants no more of them.
func receiverGone(d *flow.Draft) bool {
	return d.Kind == flow.KindWebhook && d.Ended() && d.Parent.IsZero() && !d.Signal.IsZero() && len(d.Rules) > 0 &&
		d.Outcome != nil && d.Outcome.Error != nil && d.Outcome.Error.Code == flow.CodeGone
}

// pauseGone pauses the rules whose webhooks' receivers have answered 410, in the transaction that records these ends. A rule that was
// resumed, or applied anew, after the webhook was begun goes on: it may have another receiver by now.
func (t *transaction) pauseGone(ctx context.Context, deferred func(*flow.Draft) bool) error {
	for _, d := range t.changes.drafts {
		if deferred(d) || !receiverGone(d) || t.effects.gone[d.ID] {
			continue
		}
		if t.effects.gone == nil {
			t.effects.gone = map[flow.ID]bool{}
		}
		t.effects.gone[d.ID] = true
		name := d.Rules[len(d.Rules)-1]
		found, last, err := t.tx.LatestSwitches(ctx, []string{rulePrefix + name})
		if err != nil {
			return err
		}
		k, there := found[rulePrefix+name]
		if !there || k.Paused || k.At.After(d.CreatedAt) {
			continue
		}
		reason := problem.Clip(fmt.Sprintf("webhook %s: %s", d.ID, d.Outcome.Error.Message), reasonLimit)
		if err := t.steerRule(ctx, name, k, last+1, true, reason); err != nil {
			return err
		}
	}
	return nil
}
