package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/pawl-run/pawl/internal/store/sqlite"
)

// asked is a running call of inBatchAlone.
type asked struct {
	give context.CancelFunc
	err  chan error
}

// Decisions that write definitions are enqueued one at a time: the next one waits for the answer to the one before, even if the caller of
// that one has gone.
func TestAskAlone(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(t.Context(), ":memory:", sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{Store: s}) // no committer runs: the test answers instead
		if err != nil {
			t.Fatal(err)
		}
		call := func() *asked {
			ctx, cancel := context.WithCancel(context.Background())
			a := &asked{cancel, make(chan error, 1)}
			go func() {
				_, err := inBatchAlone(ctx, e, func(context.Context, *transaction) (int, error) { return 0, nil })
				a.err <- err
			}()
			synctest.Wait()
			return a
		}
		committer := func() int {
			synctest.Wait()
			return e.Stats().Pending
		}
		answer := func(with error) {
			e.mu.Lock()
			all := e.batcher.clear()
			e.mu.Unlock()
			for _, o := range all {
				o.done(with)
			}
		}
		first, second, third := call(), call(), call()
		if n := committer(); n != 1 {
			t.Fatalf("the committer has %d requests of three calls", n)
		}

		first.give()
		if err := <-first.err; !errors.Is(err, context.Canceled) {
			t.Errorf("the first caller gave up: %v", err)
		}
		if n := committer(); n != 1 {
			t.Errorf("the committer has %d requests while that of a caller that gave up is not answered", n)
		}

		third.give()
		if err := <-third.err; !errors.Is(err, context.Canceled) {
			t.Errorf("the third caller gave up before its turn: %v", err)
		}

		answer(nil)
		if n := committer(); n != 1 || len(second.err) > 0 {
			t.Fatalf("after the first answer the committer has %d requests, and the second caller has %d answers", n, len(second.err))
		}
		refused := errors.New("refused")
		answer(refused)
		if err := <-second.err; !errors.Is(err, refused) {
			t.Errorf("the second caller got %v", err)
		}

		e.refuseAll(errors.New("the engine stops"))
		last := call()
		if err := <-last.err; !errors.Is(err, ErrClosed) {
			t.Errorf("a caller of an engine that has stopped: %v", err)
		}
		if last = call(); len(last.err) != 1 {
			t.Error("the call before has kept others out")
		}
		last.give()
	})
}
