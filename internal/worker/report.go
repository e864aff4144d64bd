package worker

import (
	"context"
	"errors"
	"sync"

	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// reporter sends events to the engine. A single event is sent at once. While as many reports are under way as the hand-off
// allows, further events wait and go together in the next report. At most one report of an attempt is under way.
type reporter struct {
	session *session
	mu      sync.Mutex
	line    []*attempt
	signal  chan struct{} // capacity 1: the line is not empty
}

// The most attempts in a report, and about the most bytes, so that calls stay bounded.
const (
	reportMost      = 1000
	reportMostBytes = 4 << 20
)

func (r *reporter) init(s *session) {
	r.session, r.signal = s, make(chan struct{}, 1)
}

// add queues attempts with events to report.
func (r *reporter) add(as ...*attempt) {
	if len(as) == 0 {
		return
	}
	r.mu.Lock()
	for _, a := range as {
		if !a.queued && !a.sending {
			r.line = append(r.line, a)
		}
		a.queued = true
	}
	r.mu.Unlock()
	r.wake()
}

// sent queues attempts that have got more events while their reports were under way.
func (r *reporter) sent(as []*attempt) {
	r.mu.Lock()
	for _, a := range as {
		a.sending = false
		if a.queued {
			r.line = append(r.line, a)
		}
	}
	more := len(r.line) > 0
	r.mu.Unlock()
	if more {
		r.wake()
	}
}

func (r *reporter) wake() { signal(r.signal) }

// run reports until ctx ends or the session is lost. After the session has expired, because it could not be renewed in
// time, the ends of its attempts are still reported, until none is held: an end that arrives before the engine has
// recovered the attempt saves a repetition. The output of such an attempt is sent first, because the uploader of logs
// has ended with the session.
func (r *reporter) run(ctx context.Context, expired bool) {
	var tries backoff
	for ctx.Err() == nil {
		as, reports := r.gather()
		if len(as) == 0 {
			var emptied <-chan struct{} // nil, which is never ready, while the session takes work
			if expired {
				emptied = r.session.emptied()
			}
			select {
			case <-r.signal:
				continue
			case <-emptied:
			case <-ctx.Done():
			}
			return
		}
		if expired && !r.session.logs.sendUnsent(ctx, as) {
			return
		}
		failpoint.Hit(failpoint.BeforeReport)
		receipts, err := r.session.w.Handoff.Report(ctx, r.session.id, reports)
		failpoint.Hit(failpoint.AfterReport)
		if errors.Is(err, handoff.ErrSessionLost) {
			r.sent(as)
			r.session.end(err)
			return
		}
		again := as
		if err == nil && len(receipts) == len(reports) {
			again = r.readReceipts(as, reports, receipts)
		} else {
			r.session.w.Log.Warn("report: trying again", telemetry.Err, err, telemetry.Reports, len(reports), "receipts", len(receipts), telemetry.Execution, reports[0].Execution)
		}
		r.sent(as)
		if len(again) == 0 {
			tries = backoff{}
			continue
		}
		tries.wait(ctx, r.session.w.Random)
		r.add(again...)
	}
}

// gather takes attempts from the front of the queue, and their events.
func (r *reporter) gather() ([]*attempt, []flow.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.line), reportMost)
	as, reports := make([]*attempt, 0, n), make([]flow.Report, 0, n)
	size, taken := 0, 0
	for _, a := range r.line {
		if len(reports) == reportMost || size > reportMostBytes {
			break
		}
		taken++
		a.queued = false
		report, ok := a.report()
		if !ok {
			continue
		}
		for _, e := range report.Events {
			size += len(e.Data)
			if e.Outcome != nil {
				size += len(e.Outcome.Output)
			}
		}
		a.sending = true
		as, reports = append(as, a), append(reports, report)
	}
	if r.line = r.line[taken:]; len(r.line) == 0 {
		r.line = nil
	} else {
		r.wake() // so that another goroutine sends the rest
	}
	return as, reports
}

// readReceipts reads the receipts and returns the attempts whose events must be sent again.
func (r *reporter) readReceipts(as []*attempt, reports []flow.Report, receipts []flow.Receipt) []*attempt {
	var again, ended []*attempt
	for i, a := range as {
		rc := receipts[i]
		switch rc.Verdict {
		case flow.Applied, flow.Duplicate, flow.Stored:
			done, left := a.acknowledge(rc.Next)
			sent := reports[i].Events
			switch {
			case done:
				ended = append(ended, a)
			case left > 0 && rc.Next <= sent[len(sent)-1].Seq:
				again = append(again, a)
			}
		default:
			r.session.w.Log.Warn("the engine refused a report: stopping the attempt", telemetry.Execution, a.task.Execution, telemetry.Attempt, a.task.Attempt, telemetry.Verdict, rc.Verdict, telemetry.Why, rc.Reason)
			a.discard("the attempt is no longer this worker's: " + rc.Reason)
		}
	}
	r.session.forget(ended...)
	return again
}
