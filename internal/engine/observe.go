package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Distributions measure durations and batch sizes since the engine started, of this replica alone.
type Distributions struct {
	Commit telemetry.Distribution // seconds of a commit: load, decide, write
	Batch  telemetry.Distribution // requests in a commit
	Claim  telemetry.Distribution // seconds of finding and claiming work, in commits that handed some off
	Lag    telemetry.Distribution // seconds from the due time of a schedule's tick to its execution
	Queue  telemetry.Distribution // seconds from when an attempt joined a queue to its hand-off
}

// distributions are the histograms behind Distributions.
type distributions struct{ commit, batch, claim, queue, lag *telemetry.Histogram }

func newDistributions() distributions {
	return distributions{
		commit: telemetry.NewHistogram(telemetry.Seconds()), batch: telemetry.NewHistogram(telemetry.Sizes()),
		claim: telemetry.NewHistogram(telemetry.Seconds()), queue: telemetry.NewHistogram(telemetry.Waits()), lag: telemetry.NewHistogram(telemetry.Waits()),
	}
}

// Distributions returns the measurements so far.
func (e *Engine) Distributions() Distributions {
	d := &e.distributions
	return Distributions{Commit: d.commit.Read(), Batch: d.batch.Read(), Claim: d.claim.Read(), Queue: d.queue.Read(), Lag: d.lag.Read()}
}

// measureClaims measures the claims of a committed batch.
func (e *Engine) measureClaims(t *transaction) {
	any := false
	for k, xs := range t.dispatch.claimed {
		for _, x := range xs {
			any = true
			e.distributions.queue.Observe(max(0, x.ClaimedAt.Sub(x.QueuedAt)).Seconds())
			if e.opts.Tracer.Wanted(x.Traceparent) {
				e.opts.Tracer.Start(x.Traceparent, telemetry.SpanQueue, x.QueuedAt, slog.String(telemetry.Execution, x.ID.String()),
					slog.Int(telemetry.Attempt, x.Attempt), slog.String(telemetry.Queue, x.Queue), slog.String(telemetry.Worker, k.name)).EndAt(x.ClaimedAt)
			}
		}
	}
	if any {
		e.distributions.claim.Observe(t.dispatch.took.Seconds())
	}
}

// named are the ids of the first few executions of a batch, for a log line.
func named(ops []op) []string {
	const few = 5
	var ids []string
	for _, o := range ops {
		if about := o.executions(); len(about) > 0 {
			ids = append(ids, about[0].String())
		}
		if len(ids) == few {
			break
		}
	}
	return ids
}

// logReceipts logs which reports of a session were turned away, in one line per verdict: a worker that wakes up after its lease has many.
// Of these, only a refused report has a consequence: reject takes the attempt back.
func (e *Engine) logReceipts(session flow.ID, receipts []flow.Receipt) {
	for _, v := range []flow.Verdict{flow.Refused, flow.Fenced, flow.Unknown} {
		const few = 5
		var ids []string
		n, first := 0, -1
		for i := range receipts {
			if receipts[i].Verdict != v {
				continue
			}
			if n++; first < 0 {
				first = i
			}
			if len(ids) < few {
				ids = append(ids, receipts[i].Execution.String())
			}
		}
		if n == 0 {
			continue
		}
		e.opts.Log.Warn("reports turned away", telemetry.Verdict, v, telemetry.Reports, n, telemetry.Executions, ids,
			telemetry.Attempt, receipts[first].Attempt, telemetry.Session, session.Text(flow.SessionPrefix), telemetry.Why, receipts[first].Reason)
	}
}

// recordTakenBack counts and logs the attempts that a committed batch has taken back: from lost workers, from workers that lost their
// history or gave an attempt up, and from reclaimed machines.
func (e *Engine) recordTakenBack(t *transaction) {
	lost, back := t.effects.lost, t.effects.handedBack
	e.counters.lost.Add(int64(len(lost)))
	e.counters.handedBack.Add(int64(len(back)))
	e.counters.gaps.Add(t.effects.gaps)
	e.logTakenBack(slog.LevelWarn, "attempts lost: they are tried again, or have failed as worker_lost", telemetry.Lost, lost)
	e.logTakenBack(slog.LevelInfo, "attempts handed back, by their worker or with the machine or server that they ran on: they are tried again", telemetry.HandedBack, back)
}

// endsAttempt reports whether an event ends an attempt that was taken back: by the engine, or by its host.
func endsAttempt(ev flow.Event) bool { return ev.Type == flow.EvLost || ev.Type == flow.EvFailed }

// logTakenBack logs the attempts that were taken back, the first few by name.
func (e *Engine) logTakenBack(level slog.Level, what, number string, all []flow.Draft) {
	if len(all) == 0 {
		return
	}
	const few = 5
	var ids []string
	for i := range all[:min(few, len(all))] {
		ids = append(ids, all[i].ID.String())
	}
	var why json.RawMessage
	if i := slices.IndexFunc(all[0].Events, endsAttempt); i >= 0 {
		why = all[0].Events[i].Data
	}
	e.opts.Log.Log(context.Background(), level, what, number, len(all), telemetry.Executions, ids, telemetry.Attempt, all[0].Before.Attempt, telemetry.Why, string(why))
}
