package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// notebook is a session store in memory.
type notebook struct {
	mu      sync.Mutex
	session flow.ID
	until   time.Time
	broken  error
}

func (n *notebook) Earlier() (flow.ID, time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.session, n.until
}

func (n *notebook) Keep(session flow.ID, until time.Time) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.session, n.until = session, until
	return n.broken
}

func (n *notebook) Forget() error { return n.Keep(flow.ID{}, time.Time{}) }

// lasting is a handler whose work the previous process has left.
type lasting struct {
	task.Handler
	left []flow.AttemptID
	err  error
	wait time.Duration // of the search, which ignores its deadline

	mu      sync.Mutex
	settled [][]flow.AttemptID
}

func (l *lasting) Outlived(context.Context) ([]flow.AttemptID, error) {
	time.Sleep(l.wait) // of the bubble
	return l.left, l.err
}

func (l *lasting) Settle(kept []flow.AttemptID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = append(l.settled, kept)
}

// before makes a session that holds executions of some kinds, as a dead process would leave it.
func before(t *testing.T, g *ledger, kinds ...flow.Kind) (session flow.ID, held []handoff.Assignment) {
	t.Helper()
	session, err := g.Open(t.Context(), handoff.Session{Slots: len(kinds)})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		g.submit(flow.Request{Kind: k, Settings: flow.Settings{Timeout: time.Minute}})
	}
	if held, err = g.Take(t.Context(), session, len(kinds)); err != nil || len(held) != len(kinds) {
		t.Fatalf("%d, %v", len(held), err)
	}
	return session, held
}

func saysRunning(t *testing.T, g *ledger, session flow.ID, a handoff.Assignment) {
	t.Helper()
	_, err := g.Report(t.Context(), session, []flow.Report{{Execution: a.Execution, Attempt: a.Attempt, Events: []flow.Event{
		{Seq: a.NextSeq, Attempt: a.Attempt, Type: flow.EvRunning, At: time.Now()}}}})
	if err != nil {
		t.Fatal(err)
	}
}

func named(a handoff.Assignment) flow.AttemptID {
	return flow.AttemptID{Execution: a.Execution, Attempt: a.Attempt}
}

// The work of the previous process continues: events and log follow the record, and the rest is lost at once.
func TestResume(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		session, held := before(t, g, "x", "x", "other")
		saysRunning(t, g, session, held[0])
		if err := g.Log(t.Context(), session, []flow.LogChunk{{Execution: held[0].Execution, Attempt: 1, Seq: 1, Stream: "stdout", Data: []byte("one\ntw"), Size: 6}}); err != nil {
			t.Fatal(err)
		}
		h := &lasting{left: []flow.AttemptID{named(held[0]), named(held[1])}}
		h.Handler = task.Func(func(_ context.Context, t *task.Task) (json.RawMessage, error) {
			if !t.Resumed || t.Attempt != 1 {
				return nil, errors.New("it begins anew")
			}
			for _, s := range []string{"on", "e\ntwo", "\nthree"} {
				_, _ = io.WriteString(t.Log("stdout"), s)
			}
			return json.RawMessage(`7`), nil
		})
		n := &notebook{session: session, until: time.Now().Add(20 * time.Second)}
		stop := serve(t, g, worker.Options{Slots: 4, Memory: n, Handlers: task.Handlers{"x": h, "other": task.Pass{}}})
		began := time.Now()
		for _, a := range held[:2] {
			if d := g.ended(t, a.Execution); d.Stage != flow.Completed || d.Attempt != 1 || string(d.Outcome.Output) != `7` ||
				!slices.Equal(types(d), []string{"requested", "scheduled", "provisioning", "running", "completed"}) {
				t.Errorf("%s in attempt %d, %v, %+v", d.Stage, d.Attempt, types(d), d.Outcome)
			}
		}
		if d := g.ended(t, held[2].Execution); d.Stage != flow.Completed || d.Attempt != 2 || !slices.Contains(types(d), "lost") {
			t.Errorf("%s in attempt %d, %v", d.Stage, d.Attempt, types(d))
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
		var log string
		for _, c := range g.logs {
			if c.Execution != held[0].Execution {
				continue
			}
			if c.Offset != int64(len(log)) || c.Seq != 1 && c.Seq <= 100 {
				t.Errorf("chunk %d at %d of %d", c.Seq, c.Offset, len(log))
			}
			log += string(c.Data)
		}
		if log != "one\ntwo\nthree" {
			t.Errorf("log %q", log)
		}
		if len(h.settled) != 1 || len(h.settled[0]) != 2 {
			t.Errorf("settled %v", h.settled)
		}
		if kept, _ := n.Earlier(); kept.IsZero() || kept == session {
			t.Errorf("remembers %s", kept.Text(flow.SessionPrefix))
		}
		stop()
		if kept, _ := n.Earlier(); !kept.IsZero() {
			t.Errorf("still remembers %s, which is closed", kept.Text(flow.SessionPrefix))
		}
	})
}

// An attempt that was ordered to end meanwhile is resumed in order to end; its time ran on without a worker.
func TestResumeToEnd(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		session, held := before(t, g, "x", "x")
		saysRunning(t, g, session, held[0])
		saysRunning(t, g, session, held[1])
		g.cancel(held[0].Execution)
		h := &lasting{left: []flow.AttemptID{named(held[0]), named(held[1])}}
		h.Handler = task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
			<-ctx.Done()
			s, _ := task.Stopped(ctx)
			return nil, s
		})
		time.Sleep(15 * time.Second) // of the bubble
		began := time.Now()
		n := &notebook{session: session, until: time.Now().Add(5 * time.Second)}
		defer serve(t, g, worker.Options{Slots: 1, Memory: n, Handlers: task.Handlers{"x": h}})()
		if d := g.ended(t, held[0].Execution); d.Stage != flow.Cancelled || time.Since(began) > time.Second {
			t.Errorf("%s after %s", d.Stage, time.Since(began))
		}
		if d := g.ended(t, held[1].Execution); d.Stage != flow.TimedOut || time.Since(began) < 44*time.Second || time.Since(began) > 46*time.Second {
			t.Errorf("%s after %s", d.Stage, time.Since(began))
		}
	})
}

// An inherited attempt with too little of the lease left is resumed in order to end: it would not end otherwise.
func TestResumeTakesTooLong(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		session, held := before(t, g, "x")
		saysRunning(t, g, session, held[0])
		h := &lasting{left: []flow.AttemptID{named(held[0])}, wait: 25 * time.Second}
		ended := make(chan error, 1)
		h.Handler = task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
			if !t.Resumed {
				return nil, nil
			}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			s, _ := task.Stopped(ctx)
			return nil, s
		})
		n := &notebook{session: session, until: time.Now().Add(5 * time.Second)}
		defer serve(t, g, worker.Options{Slots: 1, Memory: n, Handlers: task.Handlers{"x": h}})()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Error("what the process before has left goes on, and nobody ends it")
		}
	})
}

// If the lease has expired and the engine cannot be reached, the inherited attempts are given up.
func TestResumeNobodyAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		h := &lasting{Handler: task.Pass{}}
		n := &notebook{session: flow.ID{9, 9}, until: time.Now().Add(20 * time.Second)}
		g.deaf = true
		defer serve(t, g, worker.Options{Memory: n, Handlers: task.Handlers{"x": h}})()
		for want, wait := range []time.Duration{15 * time.Second, 15 * time.Second} {
			time.Sleep(wait) // of the bubble
			synctest.Wait()
			h.mu.Lock()
			if len(h.settled) != want {
				t.Errorf("after %d times 15 s: settled %v", want+1, h.settled)
			}
			h.mu.Unlock()
		}
	})
}

// Without a session to resume, or after its end, handlers are told once that nothing is kept.
func TestNothingToResume(t *testing.T) {
	for name, c := range map[string]struct {
		session flow.ID
		fails   error // to look
	}{
		"no session":      {},
		"a lost session":  {session: flow.ID{9, 9}},
		"nowhere to look": {session: flow.ID{9, 9}, fails: errors.New("no engine")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *ledger) {
				h := &lasting{Handler: task.Pass{}, err: c.fails}
				n := &notebook{session: c.session, until: time.Now().Add(time.Hour), broken: errors.New("the disk is full")}
				id := g.submit(flow.Request{Kind: "x"})
				defer serve(t, g, worker.Options{Memory: n, Handlers: task.Handlers{"x": h}})()
				if d := g.ended(t, id); d.Stage != flow.Completed {
					t.Errorf("%s", d.Stage)
				}
				g.update(func() { g.sessions = map[flow.ID]handoff.Session{} })
				time.Sleep(time.Minute) // of the bubble: another session is opened
				synctest.Wait()
				h.mu.Lock()
				defer h.mu.Unlock()
				if len(h.settled) != 1 || len(h.settled[0]) != 0 {
					t.Errorf("settled %v", h.settled)
				}
			})
		})
	}
}

// An abandoned worker reports nothing any more, however its attempts end.
func TestAbandon(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		id := g.submit(flow.Request{Kind: "x"})
		running, killed := make(chan struct{}), make(chan struct{})
		h := task.Func(func(context.Context, *task.Task) (json.RawMessage, error) {
			close(running)
			<-killed
			return nil, &task.Error{As: flow.Cancelled, Code: "killed", Message: "by the process, on its way out"}
		})
		w, err := worker.New(worker.Options{Handoff: g, Handlers: task.Handlers{"x": h}, Grace: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		ctx, drain := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- w.Run(ctx) }()
		<-running
		drain()
		synctest.Wait()
		w.Abandon()
		close(killed)
		if err := <-over; err != nil {
			t.Error(err)
		}
		g.update(func() {
			if d := g.drafts[id]; d.Stage != flow.Running || d.Attempt != 1 || len(g.sessions) != 1 {
				t.Errorf("%s in attempt %d; %d sessions", d.Stage, d.Attempt, len(g.sessions))
			}
		})
	})
}
