package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

// When different batches with one idempotency key reach two replicas at once, one is accepted as a whole and nothing of the others is
// stored. The same batch gives the same executions at either replica.
func TestBatchesWithOneKey(t *testing.T) {
	dsn := shared(t).named(t)
	running, halt := context.WithCancel(context.Background())
	var engines []*engine.Engine
	var stores []*postgres.Store
	var over sync.WaitGroup
	for range 2 {
		s, err := postgres.Open(t.Context(), dsn, postgres.Options{Writers: 6})
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(engine.Options{Store: s, Committers: 4, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		stores, engines = append(stores, s), append(engines, e)
		over.Go(func() {
			if err := e.Run(running); err != nil {
				t.Errorf("engine: %v", err)
			}
		})
	}
	const rounds, requests, bodies, size = 20, 12, 3, 100
	for round := range rounds {
		var mu sync.Mutex
		var accepted [][]flow.ID
		var all sync.WaitGroup
		for i := range requests {
			all.Go(func() {
				ids, err := oneBatch(t.Context(), engines[i%2], fmt.Sprint("key-", round), i%bodies, size)
				if errors.Is(err, engine.ErrIdempotencyMismatch) {
					return
				}
				if err != nil {
					t.Errorf("submit: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				accepted = append(accepted, ids)
			})
		}
		all.Wait()
		if len(accepted) != requests/bodies {
			t.Fatalf("%d of %d requests with %d bodies were accepted", len(accepted), requests, bodies)
		}
		for _, ids := range accepted {
			if !slices.Equal(ids, accepted[0]) {
				t.Fatal("the same batch gave different executions")
			}
		}
		have, err := store.List(t.Context(), stores[0], store.Filter{Labels: map[string]string{"key": fmt.Sprint("key-", round)}, Limit: requests * size})
		if err != nil || len(have) != size-skipped(accepted[0]) {
			t.Fatalf("%d executions are stored for a batch of %d: %v", len(have), size, err)
		}
	}
	halt()
	over.Wait()
	for _, s := range stores {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func skipped(ids []flow.ID) (n int) {
	for _, id := range ids {
		if id.IsZero() {
			n++
		}
	}
	return n
}

// oneBatch submits a batch. In body 1 the first item is refused, so that the first accepted item is another one.
func oneBatch(ctx context.Context, e *engine.Engine, key string, body, size int) ([]flow.ID, error) {
	subs := make([]engine.Submission, size)
	for i := range subs {
		subs[i] = engine.Submission{Action: "noop", Input: json.RawMessage(fmt.Sprint(i)), Labels: map[string]string{"key": key}}
	}
	subs[size-1].Input = json.RawMessage(fmt.Sprint(-body))
	if body == 1 {
		subs[0].Action = "no-such-action"
	}
	out, err := e.SubmitBatch(ctx, key, subs)
	var ids []flow.ID
	for i, v := range out {
		if v.Err != nil && (body != 1 || i != 0) {
			return nil, fmt.Errorf("item %d: %w", i, v.Err)
		}
		ids = append(ids, v.Execution)
	}
	return ids, err
}
