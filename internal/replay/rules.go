package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// due checks whether an execution may continue: its time has come, or it is in the wait list of its key.
func (w *walk) due(e *flow.Event) {
	if w.x.Place == flow.Delayed && w.x.WakeAt.After(e.At) {
		w.find(e.Seq, "not before "+clock(w.x.WakeAt), "at "+clock(e.At), "it was not due yet")
	}
}

// lose lets the rules take an attempt back from its owner, as the next event records.
func (w *walk) lose(d *flow.Draft, e *flow.Event) error {
	reason, n := textOf(e.Data, "reason"), w.next(1)
	if n == nil || n.Type == flow.EvFailed && textOf(n.Data, "code") == flow.CodeWorkerLost {
		return d.Lose(reason, e.At, 0)
	}
	if w.terminal(n) { // an order to end it was outstanding
		o := w.outcome(w.i + 1)
		as, err := flow.ParseStage(string(n.Type))
		if err != nil || o.Error == nil {
			return fmt.Errorf("%q is followed by another attempt, or by the end that had been ordered", e.Type)
		}
		d.State.Cancel = &flow.CancelOrder{As: as, Code: o.Error.Code, Reason: o.Error.Message, At: n.At}
	}
	switch {
	case reason == flow.ReasonShutDown:
		return d.HandBack(reason, e.At)
	case strings.HasSuffix(reason, flow.ReasonDeclined):
		return d.Decline(reason, e.At)
	case strings.HasSuffix(reason, flow.ReasonCrashed):
		return d.LoseWithServer(reason, e.At, 0)
	}
	return d.Lose(reason, e.At, 0)
}

// pause checks whether the next attempt waits as long as the retry policy says, and continues with the recorded time, because the random
// part is only in the record. free means that the attempt before does not count.
func (w *walk) pause(e *flow.Event, free bool) {
	until := notBefore(e.Data)
	if until.IsZero() {
		w.find(e.Seq, "a time before which it does not begin", said(e), "the next attempt says when it may begin")
		return
	}
	pause, longest := until.Sub(e.At), w.x.WakeAt.Sub(e.At)
	shortest := longest
	if longest > 0 && !free {
		shortest = w.x.Retry.Pause(w.x.Spent()-1, 1)
	}
	switch {
	case pause < shortest-time.Microsecond:
		w.find(e.Seq, "a pause of "+span(shortest, longest), "a pause of "+pause.String(), "the retry policy says how long to wait before attempt %d", e.Attempt)
	case pause <= longest+time.Microsecond:
	case w.mayAsk() && pause <= flow.MostAskedPause+time.Microsecond:
		w.unknown(Unknown{Seq: e.Seq, Index: noIndex, What: fmt.Sprintf("the pause of %s is longer than the retry policy says: it follows only if the other side asked for it, which is not kept of an attempt that was tried again", pause)})
	default:
		w.find(e.Seq, "a pause of "+span(shortest, longest), "a pause of "+pause.String(), "the retry policy says how long to wait before attempt %d", e.Attempt)
	}
	until = until.Truncate(time.Microsecond) // as stores keep it
	w.x.WakeAt, w.x.QueuedAt = until, until
}

// mayAsk reports whether the other side of an execution's call may ask for a pause.
func (w *walk) mayAsk() bool {
	if w.x.Kind.ByEngine() || w.x.Kind.RunsCode() || w.x.Kind == flow.KindNoop {
		return false
	}
	n := w.next(-2)
	return n != nil && (n.Type == flow.EvFailed || n.Type == flow.EvTimedOut)
}

func span(from, to time.Duration) string {
	if from == to {
		return to.String()
	}
	return fmt.Sprintf("%s to %s", from, to)
}

func notBefore(data json.RawMessage) time.Time {
	t, err := time.Parse(time.RFC3339Nano, textOf(data, "not_before"))
	if err != nil {
		return time.Time{}
	}
	return t
}

// inTime checks whether an end by a deadline, a limit or a policy can have come at its time.
func (w *walk) inTime(e *flow.Event) {
	x, code := w.x, textOf(e.Data, "code")
	early := func(what string, deadline time.Time, by string) {
		switch {
		case deadline.IsZero():
			w.find(e.Seq, "no end with "+code, said(e), "it has no %s", what)
		case e.At.Before(deadline):
			w.find(e.Seq, "not before "+clock(deadline), "at "+clock(e.At), "its %s, %s, was not over yet", what, by)
		}
	}
	switch {
	case e.Type == flow.EvTimedOut && code == flow.CodeQueueTimeout:
		if x.Place == flow.Held {
			w.find(e.Seq, "no end with "+code, said(e), "a worker had taken the attempt")
			return
		}
		early("queue_timeout", x.QueueDeadline(), x.QueueTimeout.String())
	case e.Type == flow.EvTimedOut && code == flow.CodeTotalTimeout:
		early("total_timeout", x.TotalDeadline(), x.TotalTimeout.String())
	case e.Type == flow.EvTimedOut && code == flow.CodeTimeout && x.Kind.ByEngine() && x.Kind != flow.KindWait:
		early("timeout", x.EngineDeadline(), x.Timeout.String())
	case e.Type == flow.EvCompleted && x.Kind == flow.KindSleep:
		early("sleep", x.SleepsUntil(w.rec.Sleeps), w.rec.Sleeps.String())
	case code == flow.CodeKeyFull && (x.Key == "" || x.WhenFull != flow.WhenFullCancelNew), code == flow.CodeSuperseded && x.Key == "" && x.Parent.IsZero(),
		code == flow.CodeRateExceeded && x.Rate.Key == "":
		if x.Place != flow.Held || x.Owner.IsZero() {
			w.find(e.Seq, "no end with "+code, said(e), "what it was submitted with asks for no such end")
		}
	}
}

// end compares the state that the history leads to with the stored execution.
func (w *walk) end() {
	x, was := w.x, w.rec.Execution
	if len(w.res.Findings) > 0 {
		return // it differs because of a finding
	}
	check := func(what, rules, recorded string) {
		if rules != recorded {
			w.find(0, what+" "+rules, what+" "+recorded, "where its history leads and how it is stored differ")
		}
	}
	number := func(what string, rules, recorded int64) {
		if rules != recorded {
			check(what, fmt.Sprint(rules), fmt.Sprint(recorded))
		}
	}
	moment := func(what string, rules, recorded time.Time) {
		if !rules.Equal(recorded) {
			check(what, clock(rules), clock(recorded))
		}
	}
	check("status", stageText(x.Stage), stageText(was.Stage))
	number("attempt", int64(x.Attempt), int64(was.Attempt))
	number("next event", x.NextSeq, was.NextSeq)
	number("attempts handed back", int64(x.HandedBack), int64(was.HandedBack))
	moment("claimed at", x.ClaimedAt, was.ClaimedAt)
	moment("started at", x.StartedAt, was.StartedAt)
	moment("finished at", x.FinishedAt, was.FinishedAt)
	if !was.Stage.Terminal() {
		return
	}
	last := &w.rec.Events[len(w.rec.Events)-1]
	switch o := was.Outcome; {
	case o == nil:
		w.find(last.Seq, "an outcome", "none", "what has ended has an outcome")
	case was.Stage == flow.Completed && o.Error != nil:
		w.find(last.Seq, "no error", o.Error.Error(), "what has completed has no error")
	case was.Stage != flow.Completed && o.Error == nil:
		w.find(last.Seq, "an error", "none", "what has not completed says why")
	case o.Error != nil:
		if code := textOf(last.Data, "code"); code != "" {
			check("error", code, o.Error.Code)
		}
	}
}
