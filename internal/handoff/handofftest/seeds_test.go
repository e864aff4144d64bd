package handofftest_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
	"github.com/pawl-run/pawl/internal/store/sqlite"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

var seeds = flag.Int("broker.seeds", 20, "how many seeds TestSeeds runs behind a broker in memory that misbehaves")

// planted is a bug between the joined parts, in the form that each of them has.
type planted struct {
	name      string
	transport func(*world, brokerrpc.Transport) brokerrpc.Transport // as servers have it
	link      func(*world, handoff.Handoff) handoff.Handoff         // as the worker sees it
	face      func(*world, handoff.Handoff) handoff.Handoff         // as servers see the engine
}

// world is an engine with two servers of a faulty broker, and a worker behind it. Its time is simulated.
type world struct {
	dice *rand.Rand
	mu   sync.Mutex // of dice, runs and say
	runs map[flow.ID]int
	say  string // the first fault found
	ctx  context.Context
}

func (w *world) roll() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.Float64()
}

func (w *world) wrong(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.say == "" {
		w.say = fmt.Sprintf(format, args...)
	}
}

// fate draws the fate of a message in the broker: most arrive.
func (w *world) fate(string) brokerrpctest.Fate {
	var f brokerrpctest.Fate
	if w.roll() < 0.3 {
		f.Delay = time.Duration(w.roll() * float64(200*time.Millisecond))
	}
	if w.roll() < 0.1 {
		f.Copies = 1
	}
	f.Lost = w.roll() < 0.05
	return f
}

// Run is the handler: it counts its runs, and takes a while.
func (w *world) Run(ctx context.Context, t *task.Task) (json.RawMessage, error) {
	w.mu.Lock()
	w.runs[t.Execution]++
	w.mu.Unlock()
	select {
	case <-time.After(time.Duration(w.roll() * float64(3*time.Second))):
		return t.Payload, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// simulate runs one seed and returns the first fault; "" if there is none.
func simulate(t *testing.T, seed uint64, bug *planted) (wrong string) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		w := &world{dice: rand.New(rand.NewPCG(seed, 3)), runs: map[flow.ID]int{}, ctx: ctx}
		began := time.Now()
		st, err := sqlite.Open(ctx, sqlite.InMemory, sqlite.Options{Now: time.Now, Uptime: func() time.Duration { return time.Since(began) }, Readers: 1})
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(engine.Options{Store: st, Exclusive: true, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() { _ = e.Run(ctx) }) // it is told to end
		m := &brokerrpctest.Model{Fate: w.fate}
		var face handoff.Handoff = e
		var transport brokerrpc.Transport = m
		if bug != nil && bug.face != nil {
			face = bug.face(w, face)
		}
		if bug != nil && bug.transport != nil {
			transport = bug.transport(w, transport)
		}
		serve := func() context.CancelFunc {
			serving, end := context.WithCancel(ctx)
			s := brokerrpc.NewServer(brokerrpc.ServerOptions{Transport: transport, Handoff: face, Key: []byte("shared"),
				Log: slog.New(slog.DiscardHandler)})
			all.Go(func() { _ = s.Run(serving) }) // never fails
			return end
		}
		servers := []context.CancelFunc{serve(), serve()}
		client := brokerrpc.NewClient(m, "")
		var link handoff.Handoff = client
		if bug != nil && bug.link != nil {
			link = bug.link(w, link)
		}
		work, err := worker.New(worker.Options{Handoff: link, Slots: 3, Grace: time.Second, Handlers: task.Passes(task.Handlers{flow.KindNoop: w})})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { _ = work.Run(ctx) }) // it is told to end
		all.Go(func() {                      // disasters, for a minute
			for range 12 {
				select {
				case <-time.After(time.Duration(w.roll() * float64(10*time.Second))):
				case <-ctx.Done():
					return
				}
				switch n := int(w.roll() * 4); n {
				case 0, 1: // a server is replaced during work
					servers[n]()
					servers[n] = serve()
				case 2:
					m.Flush()
				case 3:
					m.Down(true)
					<-time.After(time.Duration(w.roll() * float64(4*time.Second)))
					m.Down(false)
				}
			}
		})
		var ids []flow.ID
		for range 25 {
			out, err := e.Submit(ctx, []engine.Submission{{Action: string(flow.KindNoop), Input: json.RawMessage(`{"a":1}`), Retry: &flow.Retry{MaxAttempts: 1}}})
			if err != nil || out[0].Err != nil {
				t.Fatalf("submit: %v", err)
			}
			ids = append(ids, out[0].Execution)
			<-time.After(time.Duration(w.roll() * float64(2*time.Second)))
		}
		w.judge(e, ids)
		stop()
		client.Stop()
		all.Wait()
		wrong = w.say
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return wrong
}

// judge waits for the ends and checks them.
func (w *world) judge(e *engine.Engine, ids []flow.ID) {
	deadline := time.Now().Add(10 * time.Minute)
	for _, id := range ids {
		for {
			x, err := e.Reader().Get(w.ctx, id)
			if err == nil && x.Stage.Terminal() {
				if x.Stage != flow.Completed || x.Spent() != 1 || string(x.Outcome.Output) != `{"a":1}` {
					w.wrong("%s in attempt %d, of which %d count: %+v", x.Stage, x.Attempt, x.Spent(), x.Outcome.Error)
				}
				break
			}
			if time.Now().After(deadline) {
				w.wrong("%s has not ended", id)
				return
			}
			<-time.After(100 * time.Millisecond)
		}
		w.mu.Lock()
		runs := w.runs[id]
		w.mu.Unlock()
		if runs != 1 {
			w.wrong("%s ran %d times", id, runs)
		}
	}
}

// TestSeeds draws every possible fault of the broker and the servers, in simulated time: each execution runs once, in an attempt that
// counts once, and ends.
func TestSeeds(t *testing.T) {
	for seed := uint64(1); seed <= uint64(*seeds); seed++ {
		if wrong := simulate(t, seed, nil); wrong != "" {
			t.Errorf("seed %d: %s", seed, wrong)
		}
	}
}
