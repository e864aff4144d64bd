package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// repeating is a store that runs every decision twice, like a database that finds a conflict at the commit.
type repeating struct {
	store.Store
	defined atomic.Int64 // routing keys declared in committed transactions
}

func (s *repeating) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	err := s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := decide(ctx, tx); err != nil {
			return err
		}
		return store.ErrConflict
	})
	if !errors.Is(err, store.ErrConflict) {
		return err
	}
	var defined int64
	err = s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		defined = 0
		return decide(ctx, declaring{tx, &defined})
	})
	if err == nil {
		s.defined.Add(defined)
	}
	return err
}

type declaring struct {
	store.Tx
	routingKeys *int64
}

func (d declaring) AddName(ctx context.Context, of store.NameKind, name string, at time.Time) (bool, error) {
	if of == store.RoutingKeyNames {
		*d.routingKeys++
	}
	return d.Tx.AddName(ctx, of, name, at)
}

// Counters count commits once, however often they were decided; an attempt that a worker hands back at its shutdown is not lost.
func TestCountersCountCommits(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Store = &repeating{Store: o.Store} })
	stats := func(what string, want Stats) {
		t.Helper()
		s := r.e.Stats()
		got := Stats{Submitted: s.Submitted, Claimed: s.Claimed, Lost: s.Lost, HandedBack: s.HandedBack, LostSessions: s.LostSessions, Gaps: s.Gaps}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	closes, dies := r.worker("first"), r.worker("second")
	for range 3 {
		r.submit(Submission{Action: "noop", Queue: "first"})
		r.submit(Submission{Action: "noop", Queue: "second"})
	}
	closes.take(3)
	for _, a := range dies.take(3) {
		if _, err := r.e.Cancel(r.ctx, a.Execution, "no longer wanted"); err != nil {
			t.Fatal(err)
		}
	}
	stats("at first", Stats{Submitted: 6, Claimed: 6})
	if err := r.e.Close(r.ctx, closes.session); err != nil {
		t.Fatal(err)
	}
	stats("after a worker was shut down", Stats{Submitted: 6, Claimed: 6, HandedBack: 3})
	r.lapse(handoff.Lease)
	if err := r.e.recoverExpired(r.ctx); err != nil {
		t.Fatal(err)
	}
	stats("after a worker was lost", Stats{Submitted: 6, Claimed: 6, HandedBack: 3, Lost: 3, LostSessions: 1})
	h := r.worker("third")
	id := r.submit(Submission{Action: "noop", Queue: "third"})
	a := h.take(1)[0]
	h.report(a, ev(&a, 1, flow.EvCompleted, &flow.Outcome{}))
	r.pass(flow.GapTimeout + time.Second)
	stats("after a gap that did not close", Stats{Submitted: 7, Claimed: 7, HandedBack: 3, Lost: 4, LostSessions: 1, Gaps: 1})
	if x := r.get(id); x.Attempt != 2 {
		t.Errorf("attempt %d", x.Attempt)
	}
}

// A cancelled execution ends when its worker hands it back, and is not lost either.
func TestHandBackOfWhatWasCancelled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	id := r.submit(Submission{Action: "noop"})
	h.take(1)
	if _, err := r.e.Cancel(r.ctx, id, "no longer wanted"); err != nil {
		t.Fatal(err)
	}
	if err := r.e.Close(r.ctx, h.session); err != nil {
		t.Fatal(err)
	}
	if s, x := r.e.Stats(), r.get(id); s.Lost != 0 || s.HandedBack != 1 || x.Stage != flow.Cancelled {
		t.Errorf("%s, %d lost, %d handed back", x.Stage, s.Lost, s.HandedBack)
	}
}

// An attempt that its host ended counts as handed back, and the log has the reason.
func TestTakenByHostIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := newRig(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	h := r.worker()
	id := r.submit(Submission{Action: "noop", Retry: &flow.Retry{MaxAttempts: 1}})
	a := h.take(1)[0]
	h.report(a, ev(&a, 0, flow.EvRunning, nil), ev(&a, 1, flow.EvFailed, &flow.Outcome{Error: &flow.Error{Code: flow.CodeInfraError, Message: "evicted", Details: json.RawMessage(`{"reason":"evicted"}`)}}))
	if s, x := r.e.Stats(), r.get(id); s.Lost != 0 || s.HandedBack != 1 || x.Place != flow.Delayed || x.Attempt != 2 {
		t.Errorf("%s, attempt %d, %d lost, %d handed back", x.Place, x.Attempt, s.Lost, s.HandedBack)
	}
	if !strings.Contains(log.String(), `\"reason\":\"evicted\"`) {
		t.Errorf("logged: %s", log.String())
	}
}

// Submissions that made no execution are not counted as accepted.
func TestAcceptedAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := Submission{Action: "noop", IdempotencyKey: "once"}
	other := s
	other.Input = json.RawMessage(`1`)
	out, err := r.e.Submit(r.ctx, []Submission{s, s, other, {Action: "nothing of the kind"}})
	if err != nil || out[0].Err != nil || !out[1].Existing || out[2].Err == nil || out[3].Err == nil {
		t.Fatalf("%+v, %v", out, err)
	}
	if n := r.e.Stats().Submitted; n != 1 {
		t.Errorf("%d accepted, want 1", n)
	}
}

// The transaction that first uses a routing key declares it, and no later one.
func TestRoutingKeyIsDeclaredOnce(t *testing.T) {
	t.Parallel()
	s := &repeating{}
	r := newRig(t, func(o *Options) {
		s.Store = o.Store
		o.Store = s
	})
	var items []string
	for i := range 50 {
		items = append(items, fmt.Sprint(i))
	}
	r.define(`
name: wide
tasks:
  first: {foreach: [` + strings.Join(items, ",") + `], action: noop, worker_labels: {gpu: a100}}
  second: {needs: first, foreach: [1, 2, 3], action: noop, worker_labels: {gpu: a100}}
`)
	r.workerLabelled("gpu=a100").serve(echo)
	if x := r.ended(r.submit(Submission{Action: "wide"})); x.Stage != flow.Completed {
		t.Fatalf("%s: %+v", x.Stage, x.Outcome)
	}
	if n := s.defined.Load(); n != 1 {
		t.Errorf("the routing key of 53 tasks was declared %d times", n)
	}
}

// A routing key that a transaction declares without committing is not read.
func TestRoutingKeyOfARollBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	routingKey := flow.RoutingKey(flow.DefaultQueue, "gpu=a100")
	err := r.e.do(r.ctx, nil, func(ctx context.Context, turn *transaction) error {
		if err := turn.writeRoutingKey(ctx, routingKey); err != nil {
			return err
		}
		return fmt.Errorf("the data are spoiled")
	})
	if err == nil {
		t.Fatal("committed")
	}
	r.e.routingKeys.mu.Lock()
	defer r.e.routingKeys.mu.Unlock()
	if r.e.routingKeys.stored[routingKey] {
		t.Error("workers look into it")
	}
}
