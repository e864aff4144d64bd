package handofftest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

func sessionLost(t *testing.T, b *bench) {
	session, a := b.held(t)
	b.report(t, session, said(a, 0, flow.EvRunning))
	if _, err := b.Handoff.Renew(b.ctx(t), session); err != nil {
		t.Fatalf("renew: %v", err)
	}
	b.Pass(handoff.Lease + time.Second)
	if _, err := b.Handoff.Renew(b.ctx(t), session); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("renew after the lease: %v", err)
	}
	next := b.take(t, b.open(t))
	if next.Execution != a.Execution || next.Attempt != 2 || next.NextSeq <= a.NextSeq {
		t.Errorf("recovered as %+v", next)
	}
	if _, err := b.Handoff.Report(b.ctx(t), session, []flow.Report{said(a, 1, flow.EvCompleted)}); err == nil {
		if x := b.get(t, a.Execution); x.Stage != flow.Provisioning || x.Attempt != 2 {
			t.Errorf("a late report made it %s in attempt %d", x.Stage, x.Attempt)
		}
	} else if !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("report of a lost session: %v", err)
	}
	if h := b.history(t, a.Execution); !slices.Contains(h, flow.EvLost) {
		t.Errorf("history %v", h)
	}
}

func closed(t *testing.T, b *bench) {
	session, a := b.held(t)
	if err := b.Handoff.Close(b.ctx(t), session); err != nil {
		t.Fatalf("close: %v", err)
	}
	if x := b.get(t, a.Execution); x.Attempt != 2 || !x.Owner.IsZero() {
		t.Errorf("not recovered at once: %s in attempt %d", x.Stage, x.Attempt)
	}
	if _, err := b.Handoff.Take(b.ctx(t), session, 1); !errors.Is(err, handoff.ErrSessionLost) {
		t.Errorf("take after close: %v", err)
	}
}

// A session that was never opened can do nothing.
func unknownSession(t *testing.T, b *bench) {
	_, a := b.held(t)
	ghost := flow.ID{9, 9, 9}
	ctx := b.ctx(t)
	_, take := b.Handoff.Take(ctx, ghost, 1)
	_, report := b.Handoff.Report(ctx, ghost, []flow.Report{said(a, 0, flow.EvRunning)})
	_, renew := b.Handoff.Renew(ctx, ghost)
	_, ords := b.Handoff.Orders(ctx, ghost)
	log := b.Handoff.Log(ctx, ghost, []flow.LogChunk{{Execution: a.Execution, Attempt: 1, Seq: 1, Stream: "stdout", Data: []byte("x"), Size: 1}})
	for call, err := range map[string]error{"take": take, "renew": renew, "orders": ords, "log": log} {
		if !errors.Is(err, handoff.ErrSessionLost) {
			t.Errorf("%s: %v", call, err)
		}
	}
	if report != nil && !errors.Is(report, handoff.ErrSessionLost) {
		t.Errorf("report: %v", report)
	}
	if x := b.get(t, a.Execution); x.Stage != flow.Provisioning {
		t.Errorf("%s", x.Stage)
	}
}
