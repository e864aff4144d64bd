package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// ledger is a hand-off that keeps everything in memory and decides with package flow: an engine without a database. Tests switch its faults
// on.
type ledger struct {
	mu       sync.Mutex
	sessions map[flow.ID]handoff.Session
	made     int
	drafts   map[flow.ID]*flow.Draft
	history  map[flow.ID]map[int64]flow.Event
	line     []flow.ID
	logs     []flow.LogChunk
	logAt    []time.Time
	reports  [][]flow.Report
	reportAt []time.Time
	changed  chan struct{}
	orders   map[flow.ID][]handoff.Order

	dropReports  int           // how many reports fail after they were applied
	dropTakes    int           // how many answers with work are lost
	dropDeclines int           // how many calls that give work back fail unseen
	slow         time.Duration // of each report and log call
	deaf         bool          // nothing gets through
	lease        time.Duration // that renewals tell
	noLogs       bool          // logs are refused
	closed       []flow.ID
	resumes      [][]flow.AttemptID // what each process in turn has asked for
	given        string             // the input of every execution
	givenAll     bool               // nothing follows it
}

func newLedger() *ledger {
	return &ledger{sessions: map[flow.ID]handoff.Session{}, drafts: map[flow.ID]*flow.Draft{}, changed: make(chan struct{}),
		history: map[flow.ID]map[int64]flow.Event{}, orders: map[flow.ID][]handoff.Order{}}
}

func (g *ledger) signal() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// update runs f under the lock and wakes the waiting goroutines.
func (g *ledger) update(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	g.signal()
}

// until waits for a condition of the ledger.
func (g *ledger) until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Minute) // of the bubble's clock
	for {
		g.mu.Lock()
		ok, changed := cond(), g.changed
		g.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("never came: %s", what)
		}
	}
}

func (g *ledger) submit(r flow.Request) flow.ID {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made++
	id := flow.ID{15: byte(g.made), 14: byte(g.made >> 8), 0: 1}
	r.CreatedAt = time.Now()
	d := flow.Submit(id, r)
	if err := d.Schedule(1, r.CreatedAt); err != nil {
		panic(err)
	}
	g.drafts[id] = d
	g.line = append(g.line, id)
	g.signal()
	return id
}

func (g *ledger) Open(ctx context.Context, s handoff.Session) (flow.ID, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.deaf {
		return flow.ID{}, handoff.ErrUnavailable
	}
	g.made++
	id := flow.ID{15: byte(g.made), 0: 2}
	g.sessions[id] = s
	g.signal()
	return id, nil
}

func (g *ledger) Resume(ctx context.Context, s handoff.Session, before flow.ID, keep []flow.AttemptID) (flow.ID, []handoff.Assignment, error) {
	id, err := g.Open(ctx, s)
	if err != nil {
		return id, nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.resumes = append(g.resumes, keep)
	var work []handoff.Assignment
	for _, k := range keep {
		d := g.drafts[k.Execution]
		if d == nil || d.Attempt != k.Attempt || d.Inherit(before, id) != nil {
			continue
		}
		r := &handoff.Resumed{Running: d.Stage == flow.Running, Elapsed: time.Since(d.ClaimedAt), LogSeq: 100, Logs: map[string]int64{}}
		for _, c := range g.logs {
			if c.Execution == d.ID && c.Attempt == d.Attempt {
				r.Logs[c.Stream] += c.Size
			}
		}
		work = append(work, handoff.Assignment{Execution: d.ID, Attempt: d.Attempt, NextSeq: d.NextSeq, Kind: d.Kind,
			Action: d.Action, Payload: d.Payload(), Timeout: d.Timeout, ClaimedAt: d.ClaimedAt, Resumed: r})
	}
	g.orders[id] = g.orders[before]
	g.loseSession(before)
	return id, work, nil
}

func (g *ledger) alive(session flow.ID) error {
	if g.deaf {
		return handoff.ErrUnavailable
	}
	if _, ok := g.sessions[session]; !ok {
		return handoff.ErrSessionLost
	}
	return nil
}

func (g *ledger) Take(ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	for {
		g.mu.Lock()
		if err := g.alive(session); err != nil {
			g.mu.Unlock()
			return nil, err
		}
		var work []handoff.Assignment
		for len(g.line) > 0 && len(work) < n {
			d := g.drafts[g.line[0]]
			g.line = g.line[1:]
			if err := d.Claim(session, "w", time.Now()); err != nil {
				panic(err)
			}
			work = append(work, handoff.Assignment{Execution: d.ID, Attempt: d.Attempt, NextSeq: d.NextSeq, Kind: d.Kind,
				Action: d.Action, Payload: d.Payload(), Timeout: d.Timeout, ClaimedAt: d.ClaimedAt})
		}
		changed := g.changed
		lost := len(work) > 0 && g.dropTakes > 0
		if lost {
			g.dropTakes--
		}
		g.mu.Unlock()
		if lost {
			return nil, handoff.ErrUnavailable
		}
		if len(work) > 0 {
			return work, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (g *ledger) Report(ctx context.Context, session flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
	if g.slow > 0 {
		time.Sleep(g.slow) // the engine's time, in a synctest bubble
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.alive(session); err != nil {
		return nil, err
	}
	g.reports = append(g.reports, reports)
	g.reportAt = append(g.reportAt, time.Now())
	receipts := make([]flow.Receipt, len(reports))
	for i, r := range reports {
		d := g.drafts[r.Execution]
		if d == nil {
			receipts[i] = flow.Receipt{Execution: r.Execution, Attempt: r.Attempt, Verdict: flow.Unknown}
			continue
		}
		before := len(d.Events)
		receipts[i] = d.Report(session, r, g.history[r.Execution], nil, time.Now(), 0)
		if g.history[r.Execution] == nil {
			g.history[r.Execution] = map[int64]flow.Event{}
		}
		for _, e := range d.Events[before:] {
			g.history[r.Execution][e.Seq] = e
		}
	}
	g.signal()
	if g.dropReports > 0 {
		g.dropReports--
		return nil, handoff.ErrUnavailable
	}
	return receipts, nil
}

func (g *ledger) Missed(_ context.Context, session flow.ID, have []flow.AttemptID) (work []handoff.Assignment, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.alive(session); err != nil {
		return nil, err
	}
	for _, d := range g.drafts {
		age := time.Since(d.ClaimedAt)
		if d.Owner == session && d.Stage == flow.Provisioning && age >= time.Second && age < 15*time.Second &&
			!slices.Contains(have, flow.AttemptID{Execution: d.ID, Attempt: d.Attempt}) {
			work = append(work, handoff.Assignment{Execution: d.ID, Attempt: d.Attempt, NextSeq: d.NextSeq, Kind: d.Kind,
				Action: d.Action, Payload: d.Payload(), Timeout: d.Timeout, ClaimedAt: d.ClaimedAt})
		}
	}
	return work, nil
}

func (g *ledger) Decline(_ context.Context, session flow.ID, attempts []flow.AttemptID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.alive(session); err != nil {
		return err
	}
	if g.dropDeclines > 0 {
		g.dropDeclines--
		return handoff.ErrUnavailable
	}
	for _, a := range attempts {
		d := g.drafts[a.Execution]
		if d == nil || d.Owner != session || d.Attempt != a.Attempt || d.Stage != flow.Provisioning {
			continue
		}
		if err := d.Decline("declined", time.Now()); err != nil {
			return err
		}
		time.AfterFunc(time.Until(d.WakeAt), func() {
			g.update(func() {
				if err := d.Schedule(1, time.Now()); err != nil {
					panic(err)
				}
				g.line = append(g.line, d.ID)
			})
		})
	}
	g.signal()
	return nil
}

func (g *ledger) Log(ctx context.Context, session flow.ID, chunks []flow.LogChunk) error {
	if g.slow > 0 {
		time.Sleep(g.slow) // the engine's time, in a synctest bubble
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.alive(session); err != nil {
		return err
	}
	if g.noLogs {
		return handoff.ErrUnavailable
	}
	for range chunks {
		g.logAt = append(g.logAt, time.Now())
	}
	g.logs = append(g.logs, chunks...)
	g.signal()
	return nil
}

func (g *ledger) Input(ctx context.Context, session flow.ID, q handoff.InputQuery) (handoff.Input, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		if err := g.alive(session); err != nil {
			return handoff.Input{}, err
		}
		if d := g.drafts[q.Execution]; d == nil || d.Owner != session || d.Attempt != q.Attempt {
			return handoff.Input{}, handoff.ErrNotHeld
		}
		if all := int64(len(g.given)); all > q.From || g.givenAll {
			return handoff.Input{Data: []byte(g.given[min(q.From, all):]), Last: g.givenAll}, nil
		}
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
			g.mu.Lock()
		case <-ctx.Done():
			g.mu.Lock()
			return handoff.Input{}, ctx.Err()
		}
	}
}

func (g *ledger) Renew(ctx context.Context, session flow.ID) (handoff.Renewal, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return handoff.Renewal{Orders: g.orders[session], Lease: g.lease}, g.alive(session)
}

func (g *ledger) Orders(ctx context.Context, session flow.ID) ([]handoff.Order, error) {
	g.mu.Lock()
	known := len(g.orders[session])
	for {
		if err := g.alive(session); err != nil {
			g.mu.Unlock()
			return nil, err
		}
		if o := g.orders[session]; len(o) > known {
			g.mu.Unlock()
			return o, nil
		}
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		g.mu.Lock()
	}
}

func (g *ledger) Close(ctx context.Context, session flow.ID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = append(g.closed, session)
	g.loseSession(session)
	return nil
}

// loseSession does the work of recovery; the caller holds g.mu.
func (g *ledger) loseSession(session flow.ID) {
	delete(g.sessions, session)
	for _, d := range g.drafts {
		if d.Owner == session {
			if err := d.Lose("the worker is gone", time.Now(), 0); err != nil {
				panic(err)
			}
			if d.Place == flow.Delayed {
				if err := d.Schedule(1, time.Now()); err != nil {
					panic(err)
				}
				g.line = append(g.line, d.ID)
			}
		}
	}
	g.signal()
}

// cancel orders the end of an execution that a session holds.
func (g *ledger) cancel(id flow.ID) {
	g.update(func() {
		d := g.drafts[id]
		if err := d.Cancel(flow.Cancelled, flow.CodeCancelled, "no longer wanted", time.Now()); err != nil {
			panic(err)
		}
		g.orders[d.Owner] = append(g.orders[d.Owner], handoff.Order{Execution: id, Attempt: d.Attempt, As: flow.Cancelled,
			Code: flow.CodeCancelled, Reason: "no longer wanted"})
	})
}

func (g *ledger) ended(t *testing.T, id flow.ID) *flow.Draft {
	t.Helper()
	g.until(t, "the end of "+id.String(), func() bool { return g.drafts[id].Stage.Terminal() })
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.drafts[id]
}

func types(d *flow.Draft) []string {
	var out []string
	for i, e := range d.Events {
		if e.Seq != int64(i+1) {
			panic(fmt.Sprintf("event %d has number %d", i+1, e.Seq))
		}
		out = append(out, string(e.Type))
	}
	return out
}

// serve runs a worker on the ledger in a bubble until the test ends.
func serve(t *testing.T, g *ledger, o worker.Options) (stop func()) {
	t.Helper()
	if o.Handoff == nil {
		o.Handoff = g
	}
	if o.Handlers == nil {
		o.Handlers = task.Passes(nil)
	}
	w, err := worker.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-done
	})
}

func bubble(t *testing.T, f func(t *testing.T, g *ledger)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, newLedger()) })
}

func TestInstantWorkIsOneReport(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		id := g.submit(flow.Request{Kind: flow.KindNoop, Input: json.RawMessage(`{"a":1}`)})
		defer serve(t, g, worker.Options{})()
		d := g.ended(t, id)
		if got := types(d); !slices.Equal(got, []string{"requested", "scheduled", "provisioning", "running", "completed"}) {
			t.Errorf("history %v", got)
		}
		if len(g.reports) != 1 || string(d.Outcome.Output) != `{"a":1}` {
			t.Errorf("%d reports, output %s", len(g.reports), d.Outcome.Output)
		}
	})
}

func TestReportsGatherWhileOneIsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		g.slow = 10 * time.Millisecond
		var ids []flow.ID
		for range 500 {
			ids = append(ids, g.submit(flow.Request{Kind: flow.KindNoop}))
		}
		defer serve(t, g, worker.Options{Slots: 20})()
		for _, id := range ids {
			g.ended(t, id)
		}
		if len(g.reports) > 20 {
			t.Errorf("500 executions took %d reports", len(g.reports))
		}
	})
}

func TestRunningIsSaidAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		id := g.submit(flow.Request{Kind: "linger"})
		defer serve(t, g, worker.Options{Handlers: task.Handlers{"linger": waitFor(time.Hour, nil)}})()
		began := time.Now()
		g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
		if d := time.Since(began); d > 0 {
			t.Errorf("said after %s", d)
		}
		g.cancel(id)
		g.ended(t, id)
	})
}

// waitFor is a handler that runs for d, or until it is stopped.
func waitFor(d time.Duration, err error) task.Func {
	return func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
		select {
		case <-time.After(d):
			return json.RawMessage(`"done"`), err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func TestOrders(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		defer serve(t, g, worker.Options{Slots: 2, Handlers: task.Handlers{"linger": waitFor(time.Hour, nil)}})()
		id := g.submit(flow.Request{Kind: "linger", Retry: flow.Retry{MaxAttempts: 3}})
		g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
		g.cancel(id)
		d := g.ended(t, id)
		if d.Stage != flow.Cancelled || d.Outcome.Error.Code != flow.CodeCancelled || d.Outcome.Error.Message != "no longer wanted" {
			t.Errorf("%s, %v", d.Stage, d.Outcome.Error)
		}
	})
}

// An order that arrives before its attempt still stops it.
func TestOrderBeforeArrival(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		late := &lateTake{ledger: g, hold: make(chan struct{}), held: make(chan struct{})}
		id := g.submit(flow.Request{Kind: "linger"})
		ran := false
		w, err := worker.New(worker.Options{Handoff: late, Handlers: task.Handlers{"linger": task.Func(
			func(context.Context, *task.Task) (json.RawMessage, error) { ran = true; return nil, nil })}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		<-late.held
		synctest.Wait() // it listens for orders
		g.cancel(id)
		synctest.Wait()
		close(late.hold)
		if d := g.ended(t, id); d.Stage != flow.Cancelled || ran {
			t.Errorf("%s, ran: %v", d.Stage, ran)
		}
		cancel()
		<-done
	})
}

type lateTake struct {
	*ledger
	once       sync.Once
	held, hold chan struct{}
}

func (l *lateTake) Take(ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	work, err := l.ledger.Take(ctx, session, n)
	l.once.Do(func() {
		close(l.held)
		<-l.hold
	})
	return work, err
}

func TestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		began := time.Now()
		id := g.submit(flow.Request{Kind: "linger", Settings: flow.Settings{Timeout: 3 * time.Second}})
		defer serve(t, g, worker.Options{Handlers: task.Handlers{"linger": waitFor(time.Hour, nil)}})()
		d := g.ended(t, id)
		if d.Stage != flow.TimedOut || d.Outcome.Error.Code != flow.CodeTimeout || time.Since(began) != 3*time.Second {
			t.Errorf("%s %v after %s", d.Stage, d.Outcome.Error, time.Since(began))
		}
	})
}

func TestEnds(t *testing.T) {
	type end struct {
		name    string
		handler task.Func
		stage   flow.Stage
		code    string
		say     string
	}
	for _, e := range []end{
		{"panic", func(context.Context, *task.Task) (json.RawMessage, error) { panic("ouch") }, flow.Failed, flow.CodeHandlerError, "ouch"},
		{"error", waitFor(1, errors.New("no luck")), flow.Failed, flow.CodeHandlerError, "no luck"},
		{"typed", waitFor(1, fmt.Errorf("wrapped: %w", &task.Error{As: flow.TimedOut, Code: "slow", Message: "m"})), flow.TimedOut, "slow", "m"},
		{"not JSON", func(context.Context, *task.Task) (json.RawMessage, error) { return json.RawMessage("{"), nil }, flow.Failed, flow.CodeHandlerError, "not JSON"},
		{"not JSON beside an error", waitFor(1, &task.Error{Code: "x", Message: "m", Details: json.RawMessage("{")}), flow.Failed, flow.CodeHandlerError, "not JSON"},
		{"too deep", waitFor(1, &task.Error{Code: "x", Message: "m", Output: json.RawMessage(strings.Repeat("[", 2000) + strings.Repeat("]", 2000))}), flow.Failed, flow.CodeHandlerError, "nested deeper"},
	} {
		t.Run(e.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *ledger) {
				defer serve(t, g, worker.Options{Handlers: task.Handlers{"other": task.Pass{}, "x": e.handler}})()
				d := g.ended(t, g.submit(flow.Request{Kind: "x"}))
				if d.Stage != e.stage || d.Outcome.Error.Code != e.code || !strings.Contains(d.Outcome.Error.Message, e.say) {
					t.Errorf("%s, %v", d.Stage, d.Outcome.Error)
				}
				if next := g.ended(t, g.submit(flow.Request{Kind: "other"})); next.Stage != flow.Completed {
					t.Errorf("the next one: %s", next.Stage)
				}
			})
		})
	}
}

// An attempt that its host ended is followed by the next one, although the policy allows only one: the reason reaches
// the rule.
func TestTakenByHost(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		lost := &task.Error{Code: flow.CodeInfraError, Message: "the node was lost", Details: json.RawMessage(`{"reason":"node_lost"}`)}
		defer serve(t, g, worker.Options{Handlers: task.Handlers{"x": waitFor(1, lost)}})()
		id := g.submit(flow.Request{Kind: "x", Retry: flow.Retry{MaxAttempts: 1}})
		g.until(t, "the end of its first attempt", func() bool { return g.drafts[id].Attempt == 2 || g.drafts[id].Stage.Terminal() })
		g.update(func() {
			if d := g.drafts[id]; d.Place != flow.Delayed || d.HandedBack != 1 {
				t.Errorf("%s, %d handed back", d.Stage, d.HandedBack)
			}
		})
	})
}

// Work without a handler is given back and never fails, however long the engine takes to notice; the rest of the call's work is run
// meanwhile.
func TestNoHandler(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		g.dropDeclines = 3
		strange := g.submit(flow.Request{Kind: "x", Retry: flow.Retry{MaxAttempts: 1}})
		other := g.submit(flow.Request{Kind: "other"})
		stop := serve(t, g, worker.Options{Slots: 2, Handlers: task.Handlers{"other": task.Pass{}}})
		if d := g.ended(t, other); d.Stage != flow.Completed {
			t.Errorf("what came with it: %s", d.Stage)
		}
		g.until(t, "the second time that it is given back", func() bool { return g.drafts[strange].Attempt >= 3 })
		g.update(func() {
			if d := g.drafts[strange]; d.Stage.Terminal() || d.Spent() != 1 {
				t.Errorf("%s, %d attempts count", d.Stage, d.Spent())
			}
		})
		stop()
		defer serve(t, g, worker.Options{Handlers: task.Handlers{"x": task.Pass{}}})()
		if d := g.ended(t, strange); d.Stage != flow.Completed {
			t.Errorf("by a worker with the handler: %s, %+v", d.Stage, d.Outcome)
		}
	})
}

// A worker that runs only some of the built-in kinds could get an execution of the others.
func TestHalfAWorker(t *testing.T) {
	_, err := worker.New(worker.Options{Handoff: newLedger(), Handlers: task.Handlers{flow.KindNoop: task.Pass{}, "x": task.Pass{}}})
	if err == nil || !strings.Contains(err.Error(), "runs noop but not code, http, llm, webhook, input, output") {
		t.Errorf("%v", err)
	}
}

// An output that not every store can keep becomes a failure with that reason; a failure keeps its output, with U+FFFD in place of bad
// characters.
func TestOutputsThatCannotBeStored(t *testing.T) {
	for in, want := range map[string]string{
		"\"a\xffb\"":           "\"a\uFFFDb\"",
		`"a\u0000b"`:           "\"a\uFFFDb\"",
		`"a\\u0000b"`:          `"a\\u0000b"`,
		`{"\\\u0000":"\"é\n"}`: "{\"\\\\\uFFFD\":\"\\\"é\\n\"}",
	} {
		t.Run(want, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *ledger) {
				defer serve(t, g, worker.Options{Handlers: task.Handlers{
					"x": task.Func(func(context.Context, *task.Task) (json.RawMessage, error) { return json.RawMessage(in), nil }),
					"bad": task.Func(func(context.Context, *task.Task) (json.RawMessage, error) {
						return nil, &task.Error{As: flow.Failed, Code: "bad", Output: json.RawMessage(in)}
					}),
				}})()
				d := g.ended(t, g.submit(flow.Request{Kind: "x"}))
				kept := d.Stage == flow.Completed && string(d.Outcome.Output) == in
				refused := d.Stage == flow.Failed && d.Outcome.Error.Code == flow.CodeHandlerError && strings.Contains(d.Outcome.Error.Message, "base64")
				if in == want && !kept || in != want && !refused {
					t.Errorf("%s with output %q %+v", d.Stage, d.Outcome.Output, d.Outcome.Error)
				}
				if d := g.ended(t, g.submit(flow.Request{Kind: "bad"})); d.Stage != flow.Failed || string(d.Outcome.Output) != want {
					t.Errorf("%s with output %q", d.Stage, d.Outcome.Output)
				}
			})
		})
	}
}

// A report whose answer is lost is repeated with all newer events, and changes nothing the second time.
func TestLostReceipts(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		g.dropReports = 5
		defer serve(t, g, worker.Options{Slots: 4, Handlers: task.Handlers{"linger": waitFor(time.Second, nil)}})()
		var ids []flow.ID
		for range 10 {
			ids = append(ids, g.submit(flow.Request{Kind: "linger"}))
		}
		for _, id := range ids {
			if got := types(g.ended(t, id)); !slices.Equal(got[3:], []string{"running", "completed"}) {
				t.Errorf("history %v", got)
			}
		}
	})
}

func TestProgressIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		g.slow = time.Millisecond
		defer serve(t, g, worker.Options{Handlers: task.Handlers{"x": task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
			for i := range 1000 {
				if err := t.Progress(ctx, json.RawMessage(fmt.Sprint(i))); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})}})()
		d := g.ended(t, g.submit(flow.Request{Kind: "x"}))
		if len(d.Events) != 1005 || d.Stage != flow.Completed {
			t.Errorf("%s with %d events", d.Stage, len(d.Events))
		}
		for _, rs := range g.reports {
			if n := len(rs[0].Events); n > 66 {
				t.Fatalf("a report of %d events", n)
			}
		}
	})
}

// A fenced attempt is stopped and reports nothing more.
func TestFenced(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		stopped := make(chan string, 1)
		defer serve(t, g, worker.Options{Handlers: task.Handlers{"x": task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
			if t.Attempt > 1 {
				return nil, nil
			}
			for ctx.Err() == nil {
				if t.Progress(ctx, nil) != nil {
					break
				}
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
			}
			<-ctx.Done()
			stopped <- context.Cause(ctx).Error()
			return nil, ctx.Err()
		})}})()
		id := g.submit(flow.Request{Kind: "x"})
		g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
		g.update(func() { // recovery has taken it back without the worker's knowledge
			d := g.drafts[id]
			if err := d.Lose("lost", time.Now(), 0); err != nil {
				panic(err)
			}
			if err := d.Schedule(1, time.Now()); err != nil {
				panic(err)
			}
			g.line = append(g.line, id)
		})
		if why := <-stopped; !strings.Contains(why, "no longer") {
			t.Errorf("stopped because %q", why)
		}
		if d := g.ended(t, id); d.Stage != flow.Completed || d.Attempt != 2 {
			t.Errorf("%s in attempt %d", d.Stage, d.Attempt)
		}
	})
}

// A lost session stops everything; the worker opens a new one and does the work again.
func TestSessionLost(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		defer serve(t, g, worker.Options{Slots: 3, Handlers: task.Handlers{"linger": waitFor(30*time.Second, nil)}})()
		var ids []flow.ID
		for range 3 {
			ids = append(ids, g.submit(flow.Request{Kind: "linger"}))
		}
		g.until(t, "running", func() bool { return g.drafts[ids[2]].Stage == flow.Running })
		g.update(func() { g.loseSession(g.drafts[ids[0]].Owner) })
		for _, id := range ids {
			if d := g.ended(t, id); d.Stage != flow.Completed || d.Attempt != 2 {
				t.Errorf("%s in attempt %d", d.Stage, d.Attempt)
			}
		}
	})
}

// A stopping attempt learns that the worker has lost it, or that it must end at once.
func TestHurriedWhileStopping(t *testing.T) {
	for name, hurry := range map[string]func(*ledger, flow.ID){
		"the session is lost": func(g *ledger, id flow.ID) { g.loseSession(g.drafts[id].Owner) },
		"told so": func(g *ledger, id flow.ID) {
			owner := g.drafts[id].Owner
			g.orders[owner] = []handoff.Order{{Execution: id, Attempt: 1, As: flow.Cancelled, Code: flow.CodeCancelled, Reason: "now", AtOnce: true}}
		},
	} {
		t.Run(name, func(t *testing.T) { hurried(t, hurry) })
	}
}

func hurried(t *testing.T, hurry func(*ledger, flow.ID)) {
	bubble(t, func(t *testing.T, g *ledger) {
		stopped, given := make(chan struct{}), make(chan struct{})
		defer serve(t, g, worker.Options{Handlers: task.Handlers{"x": task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
			if t.Attempt == 1 {
				<-ctx.Done()
				close(stopped)
				<-t.AtOnce
				close(given)
			}
			return nil, ctx.Err()
		})}})()
		id := g.submit(flow.Request{Kind: "x", Settings: flow.Settings{Timeout: time.Second}})
		<-stopped
		g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
		select {
		case <-given:
			t.Error("hurried for nothing")
		default:
		}
		g.update(func() { hurry(g, id) })
		<-given
	})
}

// An engine that cannot be reached for 20 s ends the session, by the worker's clock.
func TestStopsWithoutRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		stopped := make(chan time.Time, 1)
		defer serve(t, g, worker.Options{Handlers: task.Handlers{"x": task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
			if t.Attempt == 1 {
				<-ctx.Done()
				stopped <- time.Now()
			}
			return nil, ctx.Err()
		})}})()
		id := g.submit(flow.Request{Kind: "x"})
		g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
		began := time.Now()
		g.update(func() { g.deaf = true })
		if d := (<-stopped).Sub(began); d > handoff.StopAfter || d < handoff.StopAfter-handoff.RenewEvery {
			t.Errorf("stopped after %s", d)
		}
		g.update(func() {
			g.deaf = false
			g.loseSession(g.drafts[id].Owner)
		})
		if d := g.ended(t, id); d.Stage != flow.Completed || d.Attempt != 2 {
			t.Errorf("%s in attempt %d", d.Stage, d.Attempt)
		}
	})
}

// Attempts that ended while the engine was away for longer than a lease are reported when it is back, and not repeated.
func TestReportsAfterTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		defer serve(t, g, worker.Options{Handlers: task.Handlers{"x": waitFor(5*time.Second, nil)}})()
		id := g.submit(flow.Request{Kind: "x"})
		g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
		g.update(func() { g.deaf = true })
		<-time.After(2 * handoff.Lease)
		g.update(func() { g.deaf = false })
		if d := g.ended(t, id); d.Stage != flow.Completed || d.Attempt != 1 {
			t.Errorf("%s in attempt %d", d.Stage, d.Attempt)
		}
	})
}

// A failure whose log could not be sent before the session ended is reported as well.
func TestReportsFailuresAfterTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		const n = 16 // the ends of the session and of each wait for its log come in any order
		defer serve(t, g, worker.Options{Slots: n, Handlers: task.Handlers{"x": task.Func(func(_ context.Context, t *task.Task) (json.RawMessage, error) {
			<-time.After(5 * time.Second)
			fmt.Fprintln(t.Log("stdout"), "no")
			return nil, task.Errorf("boom", "it failed")
		})}})()
		var ids []flow.ID
		for range n {
			ids = append(ids, g.submit(flow.Request{Kind: "x"}))
		}
		g.until(t, "running", func() bool {
			return !slices.ContainsFunc(ids, func(id flow.ID) bool { return g.drafts[id].Stage != flow.Running })
		})
		g.update(func() { g.deaf = true })
		<-time.After(2 * handoff.Lease)
		g.update(func() { g.deaf = false })
		for _, id := range ids {
			if d := g.ended(t, id); d.Stage != flow.Failed || d.Attempt != 1 || d.Outcome.Error.Code != "boom" {
				t.Errorf("%s in attempt %d: %+v", d.Stage, d.Attempt, d.Outcome.Error)
			}
		}
	})
}

// A session lasts as long as the engine's lease.
func TestLeaseOfTheEngine(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		g.lease = 3 * time.Second
		stopped := make(chan time.Time, 1)
		defer serve(t, g, worker.Options{Handlers: task.Handlers{"x": task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
			if t.Attempt == 1 {
				<-ctx.Done()
				stopped <- time.Now()
			}
			return nil, ctx.Err()
		})}})()
		id := g.submit(flow.Request{Kind: "x"})
		g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
		<-time.After(time.Minute) // renewed all the time
		began := time.Now()
		g.update(func() { g.deaf = true })
		if d := (<-stopped).Sub(began); d > 2*time.Second || d < time.Second {
			t.Errorf("stopped after %s", d)
		}
		g.update(func() {
			g.deaf = false
			g.loseSession(g.drafts[id].Owner)
		})
		g.ended(t, id)
	})
}

func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		stop := serve(t, g, worker.Options{Slots: 2, Grace: 10 * time.Second, Handlers: task.Handlers{
			"short": waitFor(5*time.Second, nil), "long": waitFor(time.Hour, nil)}})
		short, long := g.submit(flow.Request{Kind: "short"}), g.submit(flow.Request{Kind: "long"})
		g.until(t, "running", func() bool {
			return g.drafts[short].Stage == flow.Running && g.drafts[long].Stage == flow.Running
		})
		began := time.Now()
		stop()
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("drained in %s", d)
		}
		if d := g.drafts[short]; d.Stage != flow.Completed || d.Attempt != 1 {
			t.Errorf("short: %s in attempt %d", d.Stage, d.Attempt)
		}
		if d := g.drafts[long]; d.Stage != flow.Scheduled || d.Attempt != 2 {
			t.Errorf("long: %s in attempt %d", d.Stage, d.Attempt)
		}
		if len(g.closed) != 1 {
			t.Errorf("%d sessions closed", len(g.closed))
		}
	})
}

// sudden is an instant handler whose runs can be observed.
type sudden struct{ task.Func }

func (sudden) Instant() {}

// Instant work takes slots like other work, also beside slow work.
func TestSlotsBoundInstants(t *testing.T) {
	for _, slots := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			bubble(t, func(t *testing.T, g *ledger) {
				now, most := atomic.Int32{}, atomic.Int32{}
				count := func(d time.Duration) task.Func {
					return func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
						n := now.Add(1)
						defer now.Add(-1)
						for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
						}
						return waitFor(d, nil)(ctx, t)
					}
				}
				defer serve(t, g, worker.Options{Slots: slots, Handlers: task.Handlers{"slow": count(time.Second), "instant": sudden{count(100 * time.Millisecond)}}})()
				var ids []flow.ID
				for i := range 60 {
					ids = append(ids, g.submit(flow.Request{Kind: []flow.Kind{"instant", "slow", "instant"}[i%3]}))
				}
				for _, id := range ids {
					g.ended(t, id)
				}
				if int(most.Load()) != slots {
					t.Errorf("%d at once in %d slots", most.Load(), slots)
				}
			})
		})
	}
}

func TestSlotsBoundWhatRuns(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		var mu sync.Mutex
		now, most := 0, 0
		defer serve(t, g, worker.Options{Slots: 3, Handlers: task.Handlers{"x": task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			_, _ = waitFor(time.Second, nil)(ctx, t)
			mu.Lock()
			now--
			mu.Unlock()
			return nil, nil
		})}})()
		began := time.Now()
		var ids []flow.ID
		for range 9 {
			ids = append(ids, g.submit(flow.Request{Kind: "x"}))
		}
		for _, id := range ids {
			g.ended(t, id)
		}
		if most != 3 || time.Since(began) != 3*time.Second {
			t.Errorf("%d at once, %s in all", most, time.Since(began))
		}
	})
}

// A worker that the engine refuses ends with the reason: another try would fail as well. A worker that cannot reach it continues.
func TestRefusedWorkerEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		door := &refusing{answers: []error{handoff.ErrUnavailable, handoff.ErrUnavailable, fmt.Errorf("%w: the token is not known", handoff.ErrRefused)}}
		w, err := worker.New(worker.Options{Handoff: door, Handlers: task.Passes(nil)})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(t.Context()); !errors.Is(err, handoff.ErrRefused) || !strings.Contains(err.Error(), "the token is not known") || len(door.answers) > 0 {
			t.Errorf("%v, %d answers later", err, len(door.answers))
		}
	})
}

// refusing is a hand-off whose Open returns a series of errors.
type refusing struct {
	handoff.Handoff
	answers []error
}

func (d *refusing) Open(context.Context, handoff.Session) (flow.ID, error) {
	err := d.answers[0]
	d.answers = d.answers[1:]
	return flow.ID{}, err
}
