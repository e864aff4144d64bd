package worker_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// mill hands out n executions and acknowledges every report: only the worker is measured.
type mill struct {
	left, open int
	done       chan struct{}
}

func (m *mill) Open(context.Context, handoff.Session) (flow.ID, error) { return flow.ID{1}, nil }

func (m *mill) Take(ctx context.Context, _ flow.ID, n int) ([]handoff.Assignment, error) {
	if n = min(n, m.left); n == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	work := make([]handoff.Assignment, n)
	for i := range work {
		work[i] = handoff.Assignment{Execution: flow.ID{1, byte(m.left >> 16), byte(m.left >> 8), byte(m.left)}, Attempt: 1, NextSeq: 4,
			Kind: flow.KindNoop, Payload: json.RawMessage(`{"a":1}`), ClaimedAt: time.Now()}
		m.left--
	}
	return work, nil
}

func (m *mill) Resume(ctx context.Context, s handoff.Session, _ flow.ID, _ []flow.AttemptID) (flow.ID, []handoff.Assignment, error) {
	id, err := m.Open(ctx, s)
	return id, nil, err
}

func (m *mill) Report(_ context.Context, _ flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
	out := make([]flow.Receipt, len(reports))
	for i, r := range reports {
		last := r.Events[len(r.Events)-1]
		out[i] = flow.Receipt{Execution: r.Execution, Attempt: r.Attempt, Verdict: flow.Applied, Next: last.Seq + 1}
		if last.Type == flow.EvCompleted {
			if m.open--; m.open == 0 {
				close(m.done)
			}
		}
	}
	return out, nil
}

func (m *mill) Log(context.Context, flow.ID, []flow.LogChunk) error { return nil }

func (m *mill) Input(ctx context.Context, _ flow.ID, _ handoff.InputQuery) (handoff.Input, error) {
	<-ctx.Done()
	return handoff.Input{}, ctx.Err()
}

func (m *mill) Renew(context.Context, flow.ID) (handoff.Renewal, error) {
	return handoff.Renewal{}, nil
}

func (m *mill) Orders(ctx context.Context, _ flow.ID) ([]handoff.Order, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (m *mill) Missed(context.Context, flow.ID, []flow.AttemptID) ([]handoff.Assignment, error) {
	return nil, nil
}

func (m *mill) Decline(context.Context, flow.ID, []flow.AttemptID) error { return nil }

func (m *mill) Close(context.Context, flow.ID) error { return nil }

func benchmark(b *testing.B, h task.Handler) {
	m := &mill{left: b.N, open: b.N, done: make(chan struct{})}
	w, err := worker.New(worker.Options{Handoff: m, Slots: 64, Handlers: task.Passes(task.Handlers{flow.KindNoop: h})})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	b.ReportAllocs()
	b.ResetTimer()
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	<-m.done
	b.StopTimer()
	stop()
	if err := <-over; err != nil {
		b.Fatal(err)
	}
}

func BenchmarkInstant(b *testing.B) { benchmark(b, task.Pass{}) }

func BenchmarkFunc(b *testing.B) { benchmark(b, task.Func(task.Pass{}.Run)) }
