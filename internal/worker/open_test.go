package worker_test

import (
	"context"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// slowly is a hand-off whose Open answers only after the worker has been stopped, and fails if its context has ended by then.
type slowly struct {
	*ledger
	asked, answer chan struct{}
}

func (s *slowly) Open(ctx context.Context, session handoff.Session) (flow.ID, error) {
	close(s.asked)
	<-s.answer
	if ctx.Err() != nil {
		return flow.ID{}, ctx.Err()
	}
	return s.ledger.Open(ctx, session)
}

// A worker that is stopped while its session is being opened closes that session: the engine has nothing to recover.
func TestSessionOpenedWhileStoppingIsClosed(t *testing.T) {
	t.Parallel()
	s := &slowly{newLedger(), make(chan struct{}), make(chan struct{})}
	w, err := worker.New(worker.Options{Handoff: s, Slots: 1, Handlers: task.Handlers{"work": task.Pass{}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	<-s.asked
	stop()
	close(s.answer)
	if err := <-over; err != nil {
		t.Errorf("run: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made != 1 || len(s.sessions) != 0 {
		t.Errorf("%d sessions were opened, %d are left open", s.made, len(s.sessions))
	}
}
