package brokerrpc_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
)

// generous is an engine with work for every call.
type generous struct {
	engine
	takes int
}

func (g *generous) Take(context.Context, flow.ID, int) ([]handoff.Assignment, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takes++
	return []handoff.Assignment{{Execution: flow.ID{byte(g.takes)}, Attempt: 1}}, nil
}

// A repeated call for work claims nothing on the server that has answered it, nor does one older than the latest. On another server, which
// cannot recognise it, it does, and the worker gets that work as well.
func TestCallForWorkComesAgain(t *testing.T) {
	t.Parallel()
	o, e := &tapped{Model: &brokerrpctest.Model{}}, &generous{}
	_, stop := server(t, o, e)
	c := dial(t, o, "sesame")
	id := open(t, c)
	take := func() []byte { // its message
		t.Helper()
		if work, err := c.Take(within(t), id, 1); err != nil || len(work) != 1 {
			t.Fatalf("%d executions, %v", len(work), err)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.messages[len(o.messages)-1]
	}
	first, second := take(), take()
	for _, message := range [][]byte{first, second} {
		if err := o.Model.Send(t.Context(), brokerrpc.Asks, message, 0); err != nil {
			t.Fatal(err)
		}
	}
	lines := map[brokerrpc.Line]brokerrpc.Depth{brokerrpc.Asks: {Unread: 1}}
	for ; lines[brokerrpc.Asks].Unread > 0; <-time.After(time.Millisecond) {
		var err error
		if lines, err = o.Backlog(within(t)); err != nil { // else the next server reads them
			t.Fatal(err)
		}
	}
	stop() // after its messages in hand
	if e.takes != 2 {
		t.Errorf("%d calls have claimed work, of 2", e.takes)
	}
	server(t, o, e)
	if err := o.Model.Send(t.Context(), brokerrpc.Asks, second, 0); err != nil {
		t.Fatal(err)
	}
	select {
	case s := <-c.Strays():
		if s.Session != id || len(s.Work) != 1 || s.Work[0].Execution != (flow.ID{3}) {
			t.Errorf("%+v", s)
		}
	case <-within(t).Done():
		t.Fatal("the work that another server has claimed for the call has not come")
	}
}

// Log chunks that no store accepts get an explicit refusal: their worker would repeat them for ever.
func TestRefusedLogs(t *testing.T) {
	t.Parallel()
	m := &brokerrpctest.Model{}
	server(t, m, &engine{})
	c := dial(t, m, "sesame")
	err := c.Log(within(t), open(t, c), []flow.LogChunk{{Execution: flow.ID{1}, Attempt: 1, Seq: 1}}) // of no stream
	if !errors.Is(err, handoff.ErrBadCall) || !errors.Is(err, handoff.ErrUnavailable) {
		t.Errorf("a chunk of no stream: %v", err)
	}
}

// aged is a broker in which messages wait for a while.
type aged struct {
	*brokerrpctest.Model
	age atomic.Int64
}

func (o *aged) Serve(ctx context.Context, line brokerrpc.Line, most int, take func(context.Context, brokerrpc.Message) error) {
	o.Model.Serve(ctx, line, most, func(ctx context.Context, l brokerrpc.Message) error {
		l.Age += time.Duration(o.age.Load())
		return take(ctx, l)
	})
}

// A server that is behind with its work opens no sessions that their workers would never learn of.
func TestLateOpening(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, e := &aged{Model: &brokerrpctest.Model{}}, &engine{}
		_, stop := server(t, o, e)
		c := brokerrpc.NewClient(o, "sesame")
		o.age.Store(int64(12 * time.Second))
		if _, err := c.Open(t.Context(), session); !errors.Is(err, handoff.ErrUnavailable) || e.opened != 0 {
			t.Errorf("%d sessions, %v", e.opened, err)
		}
		o.age.Store(int64(5 * time.Second))
		if _, err := c.Open(t.Context(), session); err != nil || e.opened != 1 {
			t.Errorf("%d sessions, %v", e.opened, err)
		}
		c.Stop()
		stop()
	})
}

// hung is an engine whose first session is opened long after the call, as when the database hangs.
type hung struct {
	engine
	takes  time.Duration
	closed []flow.ID
}

func (h *hung) Open(ctx context.Context, s handoff.Session) (flow.ID, error) {
	id, err := h.engine.Open(ctx, s)
	if id == (flow.ID{7, 1}) {
		<-time.After(h.takes)
	}
	return id, err
}

func (h *hung) Resume(ctx context.Context, s handoff.Session, _ flow.ID, _ []flow.AttemptID) (flow.ID, []handoff.Assignment, error) {
	id, err := h.Open(ctx, s)
	return id, nil, err
}

func (h *hung) Close(_ context.Context, id flow.ID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = append(h.closed, id)
	return nil
}

// mute is a broker without ages, in which messages wait for a while.
type mute struct {
	*brokerrpctest.Model
	lie time.Duration
}

func (o *mute) Serve(ctx context.Context, line brokerrpc.Line, most int, take func(context.Context, brokerrpc.Message) error) {
	o.Model.Serve(ctx, line, most, func(ctx context.Context, l brokerrpc.Message) error {
		<-time.After(o.lie)
		l.Age = 0
		return take(ctx, l)
	})
}

// A session that was opened after its worker has given up is closed: its worker does not know it, and opens another.
func TestOpenedTooLate(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		takes     time.Duration
		resume    bool
		transport brokerrpc.Transport
	}{
		"opened":         {40 * time.Second, false, &brokerrpctest.Model{}},
		"resumed":        {40 * time.Second, true, &brokerrpctest.Model{}},
		"of unknown age": {10 * time.Second, false, &mute{&brokerrpctest.Model{}, 9 * time.Second}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &hung{takes: c.takes}
				_, stop := server(t, c.transport, e)
				w := brokerrpc.NewClient(c.transport, "sesame")
				ask := func() (flow.ID, error) {
					if c.resume {
						before := flow.ID{9}
						w.Recall(before, brokerrpc.SecretOf("shared", before))
						id, _, err := w.Resume(t.Context(), session, before, nil)
						return id, err
					}
					return w.Open(t.Context(), session)
				}
				if _, err := ask(); !errors.Is(err, handoff.ErrUnavailable) {
					t.Errorf("opened too late: %v", err)
				}
				if id, err := ask(); err != nil || id != (flow.ID{7, 2}) {
					t.Errorf("%v, %v", id, err)
				}
				<-time.After(time.Minute)
				e.mu.Lock()
				if len(e.closed) != 1 || e.closed[0] != (flow.ID{7, 1}) {
					t.Errorf("closed %v", e.closed)
				}
				e.mu.Unlock()
				w.Stop()
				stop()
			})
		})
	}
}

// homeless is a broker that loses a reply queue while a session is opened for its owner.
type homeless struct{ *brokerrpctest.Model }

func (homeless) Put(context.Context, string, []byte) error { return brokerrpc.ErrNoReplyQueue }

// A session whose worker has lost its reply queue is closed.
func TestOpenedForNoReplyQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, e := homeless{&brokerrpctest.Model{}}, &hung{}
		_, stop := server(t, o, e)
		w := brokerrpc.NewClient(o, "sesame")
		if _, err := w.Open(t.Context(), session); !errors.Is(err, handoff.ErrUnavailable) {
			t.Errorf("opened without an answer: %v", err)
		}
		e.mu.Lock()
		if len(e.closed) != 1 {
			t.Errorf("closed %v", e.closed)
		}
		e.mu.Unlock()
		w.Stop()
		stop()
	})
}
