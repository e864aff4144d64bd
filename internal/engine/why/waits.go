package why

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// asking explains whose answer an execution waits for.
func (e *Explainer) asking(ctx context.Context, x *flow.Execution, w *answer) error {
	i, err := e.Store.InquiryOf(ctx, x.ID)
	if errors.Is(err, store.ErrNotFound) {
		w.Summary = "waiting for an answer: the question has gone on to another execution meanwhile"
		return nil
	}
	if err != nil {
		return err
	}
	id, whom := i.ID.Text(flow.InquiryPrefix), "anybody"
	if len(i.Assignees) > 0 {
		whom = strings.Join(i.Assignees, ", ")
	}
	w.Until, w.Inquiry = i.Due, id
	w.Summary = fmt.Sprintf("%s is unanswered, for %s", id, whom)
	if !i.Due.IsZero() {
		w.Summary += ", due " + Clock(i.Due)
	}
	w.Facts = append(w.Facts, fmt.Sprintf("the question is %q, asked at %s", i.Title, Clock(i.AskedAt)))
	if len(i.Exclude) > 0 {
		w.Facts = append(w.Facts, "must not answer: "+strings.Join(i.Exclude, ", "))
	}
	switch {
	case i.Due.IsZero():
	case i.Default != nil:
		w.Facts = append(w.Facts, fmt.Sprintf("at %s it is answered by its default, %.200s", Clock(i.Due), i.Default))
	default:
		w.Facts = append(w.Facts, "it times out at "+Clock(i.Due))
	}
	w.Unblock = append(w.Unblock, api.Advice{Text: "it is answered", Do: "answer", Kind: "question", Name: id, Command: "pawl answer " + id + " -i"})
	return nil
}

// awaiting explains which signal an execution waits for, and how near the last one was.
func (e *Explainer) awaiting(ctx context.Context, x *flow.Execution, w *answer) error {
	w.Until = x.WakeAt
	k, err := e.Store.Wait(ctx, x.ID)
	if errors.Is(err, store.ErrNotFound) {
		w.Summary = "waiting for a signal: it has ended meanwhile"
		return nil
	}
	if err != nil {
		return err
	}
	aside, err := store.AsideAt(ctx, e.Store, store.AsideScan, x.ID, time.Now())
	if err != nil {
		return err
	}
	if aside != nil {
		w.Facts = append(w.Facts, fmt.Sprintf("the engine could not look for its signal (%s): it is put aside until %s", aside.Reason, Clock(aside.Until)))
	}
	w.Summary = fmt.Sprintf("waits for a signal %s about %s", k.Trigger, k.Subject)
	if !x.WakeAt.IsZero() {
		w.Summary += ", until " + Clock(x.WakeAt)
	}
	seen, err := e.Store.SignalsAbout(ctx, k.Trigger, k.Subject, store.SignalPlace{At: k.Since}, countedSignals)
	if err != nil {
		return err
	}
	switch n := len(seen); {
	case n == 0:
		w.Facts = append(w.Facts, fmt.Sprintf("none has come since %s", Clock(k.Since)))
		f := store.SignalFilter{Trigger: k.Trigger, Subject: k.Subject, Before: store.SignalPlace{At: k.Since}, Limit: 1}
		earlier, err := e.Store.Signals(ctx, f)
		if err != nil {
			return err
		}
		for _, s := range earlier {
			w.Facts = append(w.Facts, fmt.Sprintf("the last before that, %s at %s, came too early: this wait takes those from %s on",
				s.ID.Text(flow.SignalPrefix), Clock(s.At), Clock(k.Since)))
		}
	default:
		say := fmt.Sprintf("%d since %s", n, Clock(k.Since))
		if n == countedSignals {
			say = fmt.Sprintf("%d or more since %s", n, Clock(k.Since))
		}
		w.Facts = append(w.Facts, fmt.Sprintf("%s; of these the last, %s at %s, %s", say, seen[n-1].ID.Text(flow.SignalPrefix), Clock(seen[n-1].At), e.Waits.Differs(&k, &seen[n-1])))
	}
	emit := fmt.Sprintf("pawl emit %s --subject %s", k.Trigger, k.Subject)
	if k.Subject == k.Workflow.String() {
		emit = fmt.Sprintf("pawl emit %s --to %s", k.Trigger, k.Subject)
	}
	w.Unblock = append(w.Unblock, api.Advice{Text: "the signal is emitted", Command: emit})
	if !x.WakeAt.IsZero() && k.Null {
		w.Facts = append(w.Facts, fmt.Sprintf("at %s it completes with null", Clock(x.WakeAt)))
	}
	return nil
}

// countedSignals is the number up to which an answer counts signals.
const countedSignals = 100
