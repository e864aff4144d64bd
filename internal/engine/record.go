package engine

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

type reportOp struct {
	session flow.ID
	report  flow.Report
	parent  store.WorkflowAttempt // the workflow of a task that the report ends; zero: none, or it is not known
	known   *flow.Execution       // as it was handed to the worker; nil after a transaction has used it, or if it is not known
	receipt flow.Receipt
	group   *group
	err     error
}

// Report implements handoff.Handoff.
func (e *Engine) Report(ctx context.Context, session flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
	if len(reports) == 0 {
		return nil, nil
	}
	g := newGroup(len(reports))
	all := make([]reportOp, len(reports))
	ops := make([]op, len(reports))
	for i, r := range reports {
		all[i] = reportOp{session: session, report: r, group: g}
		if saysEnd(r) {
			all[i].parent, all[i].known = e.handed.ended(session, r)
		}
		ops[i] = &all[i]
	}
	if err := e.enqueue(ops...); err != nil {
		return nil, fmt.Errorf("%w: %w", handoff.ErrUnavailable, err)
	}
	if err := g.wait(ctx); err != nil {
		return nil, err
	}
	receipts := make([]flow.Receipt, len(all))
	for i := range all {
		o := &all[i]
		switch {
		case o.err == nil:
		case !fault.OfBatch(o.err), errors.Is(o.err, store.ErrConflict):
			// It may still be recorded, or when it is repeated.
			return nil, fmt.Errorf("%w: %w", handoff.ErrUnavailable, o.err)
		default:
			// The data of this report cannot be stored. The worker must not repeat it for ever.
			o.receipt = flow.Receipt{Execution: o.report.Execution, Attempt: o.report.Attempt, Verdict: flow.Refused, Reason: o.err.Error()}
			if err := e.rejectUnstored(ctx, o); err != nil {
				return nil, fmt.Errorf("%w: %w", handoff.ErrUnavailable, err)
			}
		}
		receipts[i] = o.receipt
	}
	if e.counters.receipts(receipts) {
		e.logReceipts(session, receipts)
	}
	return receipts, nil
}

// saysEnd reports whether the last event of a report ends the attempt.
func saysEnd(r flow.Report) bool {
	if len(r.Events) == 0 {
		return false
	}
	switch r.Events[len(r.Events)-1].Type {
	case flow.EvCompleted, flow.EvFailed, flow.EvCancelled, flow.EvTimedOut:
		return true
	default:
		return false
	}
}

func (o *reportOp) want(t *transaction) {
	if o.known != nil {
		t.wants.known, o.known = append(t.wants.known, o.known), nil // if the row differs, the transaction is repeated, and reads it
	} else {
		t.wants.executions = append(t.wants.executions, o.report.Execution)
	}
	if !o.parent.ID.IsZero() {
		t.wants.workflows = append(t.wants.workflows, o.parent)
	}
}

func (o *reportOp) size() (n int) {
	for i := range o.report.Events {
		e := &o.report.Events[i]
		if n += len(e.Data); e.Outcome != nil {
			n += len(e.Outcome.Output)
		}
	}
	return n
}

func (o *reportOp) class() class { return classCall }

func (o *reportOp) executions() []flow.ID { return []flow.ID{o.report.Execution} }

func (o *reportOp) done(err error) {
	o.err = err
	o.group.done()
}

func (o *reportOp) decide(ctx context.Context, t *transaction) error {
	r := o.report
	d := t.Draft(r.Execution)
	if d == nil {
		o.receipt = flow.Receipt{Execution: r.Execution, Attempt: r.Attempt, Verdict: flow.Unknown, Reason: "there is no such execution"}
		return nil
	}
	if reason := invalidReport(r); reason != "" {
		o.receipt = flow.Receipt{Execution: r.Execution, Attempt: r.Attempt, Verdict: flow.Refused, Next: d.NextSeq, Reason: reason}
		return o.reject(t, d)
	}
	past, inbox, err := o.history(ctx, t, d)
	if err != nil {
		return err
	}
	o.receipt = d.Report(o.session, r, past, inbox, t.now, t.e.opts.Random())
	if o.receipt.Verdict == flow.Refused {
		return o.reject(t, d)
	}
	if d.Changed() {
		t.Changed(d)
	}
	return nil
}

// reject takes an attempt back from the owner whose report was refused. That worker stops the attempt and reports no
// end, so the attempt would otherwise run until the session ends. Reports of other sessions change nothing.
func (o *reportOp) reject(t *transaction, d *flow.Draft) error {
	if d.Place == flow.Held && d.Owner == o.session && d.Attempt == o.report.Attempt {
		if err := d.Lose("a report of its worker was refused: "+flow.Clipped(o.receipt.Reason, flow.AsideLimit), t.now, t.e.opts.Random()); err != nil {
			return err
		}
	}
	if d.Changed() {
		t.Changed(d)
	}
	return nil
}

// rejectUnstored takes back the attempt of a report that the store refused. If that is refused too, the attempt stays with its session
// until the session ends. After an error the worker must repeat the report.
func (e *Engine) rejectUnstored(ctx context.Context, o *reportOp) error {
	id := o.report.Execution
	err := e.do(ctx, []flow.ID{id}, func(_ context.Context, t *transaction) error {
		if d := t.Draft(id); d != nil {
			return o.reject(t, d)
		}
		return nil
	})
	if err != nil && fault.Lasting(err) {
		e.opts.Log.Error("an attempt whose report cannot be stored cannot be taken back", telemetry.Execution, id, telemetry.Err, err)
		return nil
	}
	return err
}

// history loads the events that the report repeats and those that were kept ahead of a gap; both are rare.
func (o *reportOp) history(ctx context.Context, t *transaction, d *flow.Draft) (map[int64]flow.Event, []flow.Event, error) {
	var past map[int64]flow.Event
	if n := len(o.report.Events); n > 0 && o.report.Events[0].Seq < d.NextSeq {
		old, err := t.tx.Applied(ctx, d.ID, o.report.Events[0].Seq-1, min(o.report.Events[n-1].Seq+1, d.NextSeq))
		if err != nil {
			return nil, nil, fmt.Errorf("load repeated events: %w", err)
		}
		past = make(map[int64]flow.Event, len(old))
		for _, e := range old {
			past[e.Seq] = e
		}
	}
	var inbox []flow.Event
	if d.Inbox > 0 {
		var err error
		if inbox, err = t.tx.Inbox(ctx, d.ID); err != nil {
			return nil, nil, fmt.Errorf("load kept events: %w", err)
		}
	}
	return past, inbox, nil
}

// invalidReport is the reason why a report cannot be stored; "" if it can.
func invalidReport(r flow.Report) string {
	for _, e := range r.Events {
		if reason := fault.BadJSON(e.Data, flow.MostData); reason != "" {
			return fmt.Sprintf("event %d: data %s", e.Seq, reason)
		}
		if e.Outcome == nil {
			continue
		}
		if reason := fault.BadJSON(e.Outcome.Output, flow.MostOutput); reason != "" {
			return fmt.Sprintf("event %d: output %s", e.Seq, reason)
		}
		if x := e.Outcome.Error; x != nil {
			if reason := fault.BadJSON(x.Details, flow.MostData); reason != "" {
				return fmt.Sprintf("event %d: error details %s", e.Seq, reason)
			}
			if !utf8.ValidString(x.Message) || !utf8.ValidString(x.Code) {
				return fmt.Sprintf("event %d: the error's code or message is not UTF-8", e.Seq)
			}
		}
	}
	return ""
}
