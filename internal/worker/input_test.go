package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// echo writes its input, and returns all of it.
var echo = task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
	in, out := t.Input(ctx), t.Log("stdout")
	all, err := io.ReadAll(io.TeeReader(in, out))
	if err != nil {
		return nil, err
	}
	return json.Marshal(string(all))
})

func written(g *ledger) string {
	var all []byte
	for _, c := range g.logs {
		all = append(all, c.Data...)
	}
	return string(all)
}

func TestInput(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		defer serve(t, g, worker.Options{Handlers: task.Handlers{"echo": echo}})()
		id := g.submit(flow.Request{Kind: "echo"})
		g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
		for _, line := range []string{"one\n", "two\n", "three"} {
			began := time.Now()
			g.update(func() { g.given += line })
			g.until(t, line, func() bool { return written(g) == g.given })
			if d := time.Since(began); d > 0 {
				t.Errorf("%q was answered after %s", line, d)
			}
			for _, c := range g.logs {
				if !c.Prompt {
					t.Errorf("chunk %d does not say that a program waits for input", c.Seq)
				}
			}
			<-time.After(time.Second)
		}
		g.update(func() { g.deaf = true }) // the engine is away for a while
		<-time.After(5 * time.Second)
		g.update(func() { g.deaf, g.given, g.givenAll = false, g.given+" and the end", true })
		if d := g.ended(t, id); d.Stage != flow.Completed || string(d.Outcome.Output) != `"one\ntwo\nthree and the end"` {
			t.Errorf("%s with %s", d.Stage, d.Outcome.Output)
		}
	})
}

// Output that is written at once is not sent byte by byte, even if a user waits for it.
func TestPromptOutputIsGathered(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		defer serve(t, g, worker.Options{Handlers: task.Handlers{"x": task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
			t.Input(ctx)
			for range 1000 {
				if _, err := io.WriteString(t.Log("stdout"), "x"); err != nil {
					return nil, err
				}
				<-time.After(100 * time.Microsecond)
			}
			return nil, nil
		})}})()
		g.ended(t, g.submit(flow.Request{Kind: "x"}))
		if n := len(written(g)); n != 1000 || len(g.logs) > 30 {
			t.Errorf("%d bytes in %d chunks", n, len(g.logs))
		}
	})
}

// A program that waits for input can still be stopped: by a kill, a timeout and the end of the session.
func TestStopWhileWaitingForInput(t *testing.T) {
	for name, c := range map[string]struct {
		stop  func(g *ledger, id flow.ID)
		stage flow.Stage
	}{
		"killed":   {func(g *ledger, id flow.ID) { g.cancel(id) }, flow.Cancelled},
		"too long": {func(*ledger, flow.ID) {}, flow.TimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *ledger) {
				defer serve(t, g, worker.Options{Handlers: task.Handlers{"echo": echo}})()
				id := g.submit(flow.Request{Kind: "echo", Settings: flow.Settings{Timeout: time.Minute}})
				g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
				synctest.Wait()
				c.stop(g, id)
				if d := g.ended(t, id); d.Stage != c.stage {
					t.Errorf("%s", d.Stage)
				}
			})
		})
	}
}

// An attempt that another session has taken over gets no input; the next attempt reads from the beginning.
func TestInputOfTheNextAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		refused := make(chan error, 1)
		defer serve(t, g, worker.Options{Slots: 2, Handlers: task.Handlers{"x": task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
			if t.Attempt > 1 {
				return echo(ctx, t)
			}
			_, err := io.ReadAll(t.Input(ctx))
			refused <- err
			return nil, err
		})}})()
		id := g.submit(flow.Request{Kind: "x"})
		g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
		g.update(func() { g.given = "again" })
		synctest.Wait()
		g.update(func() { // recovery has taken it back without the worker's knowledge
			d := g.drafts[id]
			if err := errors.Join(d.Lose("lost", time.Now(), 0), d.Schedule(1, time.Now())); err != nil {
				panic(err)
			}
			g.line = append(g.line, id)
		})
		if err := <-refused; !errors.Is(err, handoff.ErrNotHeld) {
			t.Errorf("the first attempt was refused with %v, want %v", err, handoff.ErrNotHeld)
		}
		g.update(func() { g.givenAll = true })
		if d := g.ended(t, id); d.Attempt != 2 || string(d.Outcome.Output) != `"again"` {
			t.Errorf("%s in attempt %d with %s", d.Stage, d.Attempt, d.Outcome.Output)
		}
	})
}

// A session that is over ends the reading of its attempts.
func TestInputOfALostSession(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		defer serve(t, g, worker.Options{Handlers: task.Handlers{"echo": echo}})()
		id := g.submit(flow.Request{Kind: "echo"})
		g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
		g.update(func() { g.loseSession(g.drafts[id].Owner) })
		g.update(func() { g.given, g.givenAll = "in", true })
		if d := g.ended(t, id); d.Stage != flow.Completed || d.Attempt != 2 || string(d.Outcome.Output) != `"in"` {
			t.Errorf("%s in attempt %d with %s", d.Stage, d.Attempt, d.Outcome.Output)
		}
	})
}
