package sqlite

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// TestInterruptedReads interrupts reads at every moment, and checks that their connections stay usable.
func TestInterruptedReads(t *testing.T) {
	t.Parallel()
	x := newBench(t)
	x.run(2 * batch)
	interrupted := 0
	for i := range 100 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i*20)*time.Microsecond)
		all, err := store.List(ctx, x.s, store.Filter{Stages: []flow.Stage{flow.Completed}, Limit: 2 * batch})
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			interrupted++
		case err != nil:
			t.Fatalf("after %d µs: %v", i*20, err)
		case len(all) != 2*batch:
			t.Fatalf("after %d µs: %d executions and no error, want %d", i*20, len(all), 2*batch)
		}
	}
	if interrupted == 0 {
		t.Error("no read was interrupted: the test shows nothing")
	}
	if _, err := x.s.Survey(context.Background()); err != nil {
		t.Errorf("a read after the interrupted ones: %v", err)
	}
}

// TestLongRead checks that a read without an end ends with its caller's context.
func TestLongRead(t *testing.T) {
	t.Parallel()
	x := newBench(t)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := x.s.read(ctx, func(c *conn) error {
		_, err := c.queryInt("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n WHERE i < 0")
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an endless read: %v, want the deadline", err)
	}
}
