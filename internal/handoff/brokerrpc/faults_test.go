package brokerrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
)

// server is serve, and returns the server, too.
func server(t *testing.T, m brokerrpc.Transport, e handoff.Handoff) (s *brokerrpc.Server, stop func()) {
	t.Helper()
	s = brokerrpc.NewServer(brokerrpc.ServerOptions{Transport: m, Handoff: e, Key: []byte("shared"), Tokens: []string{"sesame"},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = s.Run(ctx) // never fails
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-over
	})
	t.Cleanup(stop)
	return s, stop
}

var heavy = json.RawMessage(`"` + strings.Repeat("x", 2*brokerrpc.MaxMessage) + `"`)

func (e *engine) offer(payload json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.work = []handoff.Assignment{{Execution: flow.ID{1}, Attempt: 1, Payload: payload}}
}

// Work whose answer finds no free transfer is kept for the next call; blobs leave some transfers to such answers.
func TestTransfersRunOut(t *testing.T) {
	t.Parallel()
	m, h := &brokerrpctest.Model{}, &shelf{blobs: map[string][]byte{"b": []byte("x")}}
	s, _ := server(t, m, h)
	c := dial(t, m, "sesame")
	id := open(t, c)
	h.offer(heavy)
	s.Occupy(brokerrpc.MostTransfers)
	if work, err := c.Take(within(t), id, 1); !errors.Is(err, handoff.ErrUnavailable) {
		t.Fatalf("%d executions over a transfer too many, %v", len(work), err)
	}
	s.Occupy(brokerrpc.MostTransfers - brokerrpc.KeptTransfers)
	if _, err := c.GetBlob(within(t), id, handoff.BlobQuery{Name: "b"}); !errors.Is(err, handoff.ErrUnavailable) {
		t.Errorf("a blob over a transfer that is kept for work: %v", err)
	}
	if work, err := c.Take(within(t), id, 1); err != nil || len(work) != 1 || !bytes.Equal(work[0].Payload, heavy) {
		t.Errorf("%d executions, %v", len(work), err)
	}
}

// A reader that stops reading a blob does not hold a transfer.
func TestStopReading(t *testing.T) {
	t.Parallel()
	m, h := &brokerrpctest.Model{}, &shelf{blobs: map[string][]byte{"b": bytes.Repeat([]byte("x"), 8<<20)}}
	s, _ := server(t, m, h)
	c := dial(t, m, "sesame")
	id := open(t, c)
	ctx, cancel := context.WithCancel(within(t))
	r, err := c.GetBlob(ctx, id, handoff.BlobQuery{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = r.Close() // never fails
	for began := time.Now(); s.Transfers() > 0; <-time.After(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("the transfer is under way still")
		}
	}
}

// resuming is an engine that hands a heavy attempt to the session that takes over.
type resuming struct{ engine }

func (*resuming) Resume(context.Context, handoff.Session, flow.ID, []flow.AttemptID) (flow.ID, []handoff.Assignment, error) {
	return flow.ID{8}, []handoff.Assignment{{Execution: flow.ID{1}, Attempt: 1, Payload: heavy}}, nil
}

// Messages to a reply queue have a bounded size, however much work a resuming worker gets.
func TestResumeHeavyWork(t *testing.T) {
	t.Parallel()
	o := &tapped{Model: &brokerrpctest.Model{}}
	o.change = func(m []byte) []byte {
		if len(m) > brokerrpc.MaxMessage+1024 {
			t.Errorf("a message of %d bytes", len(m))
		}
		return m
	}
	server(t, o, &resuming{})
	c := dial(t, o, "sesame")
	before := open(t, c)
	id, work, err := c.Resume(within(t), session, before, nil)
	if err != nil || id != (flow.ID{8}) || len(work) != 1 || !bytes.Equal(work[0].Payload, heavy) {
		t.Errorf("%d executions, %v", len(work), err)
	}
}

// last is an engine that claims work at the moment its server ends.
type last struct {
	engine
	waits chan struct{}
	work  []handoff.Assignment
}

func (l *last) Take(ctx context.Context, _ flow.ID, _ int) ([]handoff.Assignment, error) {
	close(l.waits)
	<-ctx.Done()
	if l.work != nil {
		return l.work, nil
	}
	return nil, ctx.Err()
}

// A server that ends answers the waiting calls, with the work claimed for them.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	for _, work := range [][]handoff.Assignment{nil, {{Execution: flow.ID{1}, Attempt: 1}}} {
		m, e := &brokerrpctest.Model{}, &last{waits: make(chan struct{}), work: work}
		_, stop := server(t, m, e)
		c := dial(t, m, "sesame")
		id := open(t, c)
		go func() {
			<-e.waits
			stop()
		}()
		began := time.Now()
		got, err := c.Take(within(t), id, 1)
		if len(got) != len(work) || work == nil && !errors.Is(err, handoff.ErrUnavailable) || time.Since(began) > 45*time.Second {
			t.Errorf("after %s: %d executions of %d, %v", time.Since(began), len(got), len(work), err)
		}
	}
}

// An answer that comes after its call was given up hands over its work once. Other unrequested messages do not.
func TestStrays(t *testing.T) {
	t.Parallel()
	o := &tapped{Model: &brokerrpctest.Model{}}
	e := &engine{came: make(chan struct{})}
	server(t, o, e)
	c := dial(t, o, "sesame")
	id := open(t, c)
	var mu sync.Mutex
	var handed [][]byte
	o.mu.Lock()
	o.change = func(m []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		if bytes.Contains(m, []byte(`"work"`)) {
			handed = append(handed, m)
		}
		return m
	}
	o.mu.Unlock()
	e.offer(nil)
	if work, err := c.Take(within(t), id, 1); err != nil || len(work) != 1 {
		t.Fatalf("%d executions, %v", len(work), err)
	}
	mu.Lock()
	answered := handed[0]
	mu.Unlock()
	c.StrayIn(answered)
	if len(c.Strays()) > 0 {
		t.Error("an answer that was received was obeyed again")
	}
	asking, leave := context.WithCancel(within(t))
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = c.Take(asking, id, 1) // there is no work
	}()
	e.came <- struct{}{} // the engine has the call, looks and finds nothing
	leave()
	<-left
	e.offer(nil)
	e.came <- struct{}{}
	select {
	case s := <-c.Strays():
		if s.Session != id || len(s.Work) != 1 {
			t.Errorf("%+v", s)
		}
	case <-within(t).Done():
		t.Fatal("no stray has come")
	}
	mu.Lock()
	late := handed[len(handed)-1]
	mu.Unlock()
	c.StrayIn(late)
	if len(c.Strays()) > 0 {
		t.Error("a late answer was obeyed twice")
	}
	unknown := flow.ID{99}.Text(flow.SessionPrefix)
	c.StrayIn(brokerrpc.Forged("", unknown, `{"work":[{"attempt":1}]}`))
	if len(c.Strays()) > 0 {
		t.Error("an answer for a session that is not known was obeyed")
	}
}

// slow is a broker whose reply queues repeatedly fail to be read in time.
type slow struct {
	*brokerrpctest.Model
	mu    sync.Mutex
	fails int
}

type slowBox struct {
	brokerrpc.ReplyQueue
	o *slow
}

func (o *slow) ReplyQueue(ctx context.Context) (brokerrpc.ReplyQueue, error) {
	b, err := o.Model.ReplyQueue(ctx)
	return slowBox{b, o}, err
}

func (b slowBox) Next(ctx context.Context) ([]byte, error) {
	b.o.mu.Lock()
	b.o.fails++
	fail := b.o.fails%2 == 1
	b.o.mu.Unlock()
	if fail {
		return nil, brokerrpc.ErrUnavailable
	}
	return b.ReplyQueue.Next(ctx)
}

// A reply queue that could not be read once is read again: its messages are not lost.
func TestReplyQueueReadAgain(t *testing.T) {
	t.Parallel()
	o := &slow{Model: &brokerrpctest.Model{}}
	server(t, o, &engine{})
	c := dial(t, o, "sesame")
	id := open(t, c)
	for range 3 {
		if _, err := c.Renew(within(t), id); err != nil {
			t.Fatal(err)
		}
	}
	if n := o.ReplyQueues(); n != 1 {
		t.Errorf("%d reply queues were made", n)
	}
}

// late is an engine whose first report takes too long.
type late struct {
	engine
	calls int
}

func (l *late) Report(ctx context.Context, id flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
	l.mu.Lock()
	l.calls++
	first := l.calls == 1
	l.mu.Unlock()
	if first {
		return nil, context.DeadlineExceeded
	}
	return l.engine.Report(ctx, id, reports)
}

// A report that the store did not take in time stays in hand until it does.
func TestReportTakesTooLong(t *testing.T) {
	t.Parallel()
	m, e := &brokerrpctest.Model{}, &late{}
	server(t, m, e)
	c := dial(t, m, "sesame")
	if _, err := c.Report(within(t), open(t, c), []flow.Report{{Execution: flow.ID{1}, Attempt: 1}}); err != nil {
		t.Error(err)
	}
}

// otherVersion is a worker's connection whose messages have another version.
type otherVersion struct{ *brokerrpctest.Model }

func (o otherVersion) Send(ctx context.Context, line brokerrpc.Line, body []byte, valid time.Duration) error {
	return o.Model.Send(ctx, line, bytes.Replace(body, []byte(`"v":1,`), []byte(`"v":2,`), 1), valid)
}

// A worker of another version is refused, with the remedy; its message is dead-lettered.
func TestWorkerOfAnotherVersion(t *testing.T) {
	t.Parallel()
	m := &brokerrpctest.Model{}
	server(t, m, &shelf{})
	_, err := dial(t, otherVersion{m}, "sesame").Open(within(t), session)
	if !errors.Is(err, handoff.ErrRefused) || !strings.Contains(err.Error(), "the worker speaks version 2 to the broker and the server 1: run the same version of Pawl on both sides") {
		t.Errorf("%v", err)
	}
	brokerrpctest.Await(t, 20*time.Second, func() error {
		dead, err := m.Dead(within(t), brokerrpc.ListDead)
		if err == nil && (len(dead) != 1 || !strings.Contains(dead[0].Reason, "version 2 of the messages")) {
			err = fmt.Errorf("dead letters: %+v", dead)
		}
		return err
	})
}
