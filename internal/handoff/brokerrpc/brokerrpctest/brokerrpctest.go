package brokerrpctest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// Rig is a new, empty broker, whose messages are stale after about a second.
type Rig struct {
	// Transport returns another process's connection to the broker.
	Transport func(t *testing.T) brokerrpc.Transport
	// Full returns one whose lines hold fewer than 200 messages of 100 KB.
	Full func(t *testing.T) brokerrpc.Transport
	// Flush empties the broker.
	Flush func(t *testing.T)
	// Replace puts things of another kind in the places of all that the broker keeps for Pawl, as another program might. Nil: servers leave
	// such things alone and say what to do.
	Replace func(t *testing.T, replyQueues ...string)
	// Tries is how often a message is delivered before it is dead-lettered; 0: brokerrpc.MostTries.
	Tries int
	// Blind is a broker that reports only how many messages of a line no server has got.
	Blind bool
}

const patience = 30 * time.Second

var rows = map[string]func(*testing.T, *Rig){
	"Delivered":         delivered,
	"ManyServers":       manyServers,
	"Repeated":          repeated,
	"ServerGone":        serverGone,
	"InHand":            inHand,
	"DeadLettered":      deadLettered,
	"Dropped":           dropped,
	"DeadLetteredAgain": deadLetteredAgain,
	"AskDeadLettered":   askDeadLettered,
	"Unsettled":         unsettled,
	"AskedOnce":         askedOnce,
	"AskedLate":         askedLate,
	"LargeLetter":       largeMessage,
	"Busy":              busy,
	"ReplyQueue":        replyQueue,
	"NoReplyQueue":      noReplyQueue,
	"Rehearsed":         rehearsed,
	"LargeMessage":      largeAnswer,
	"Backlog":           backlog,
	"Flushed":           flushed,
	"FlushedInHand":     flushedInHand,
	"Replaced":          replaced,
}

// Exercise runs the suite; build makes a fresh Rig, which ends with its test.
func Exercise(t *testing.T, build func(t *testing.T) *Rig) {
	for name, f := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, build(t))
		})
	}
}

// Row runs rows of the suite that need only a transport, one after another.
func Row(t *testing.T, r *Rig, names ...string) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) { rows[name](t, r) })
	}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func send(t *testing.T, o brokerrpc.Transport, line brokerrpc.Line, bodies ...string) {
	t.Helper()
	for _, b := range bodies {
		if err := o.Send(within(t), line, []byte(b), 0); err != nil {
			t.Fatalf("send: %v", err)
		}
	}
}

// sendAgain retries a send while a broker's lines are being made again: it may refuse messages at that moment.
func sendAgain(t *testing.T, o brokerrpc.Transport, line brokerrpc.Line, body string) {
	t.Helper()
	for ctx := within(t); ; {
		err := o.Send(ctx, line, []byte(body), 0)
		if err == nil {
			return
		}
		if !errors.Is(err, brokerrpc.ErrUnavailable) {
			t.Fatalf("send: %v", err)
		}
	}
}

// serve serves a line until the test ends or stop is called, which waits.
func serve(t *testing.T, o brokerrpc.Transport, line brokerrpc.Line, most int, take func(context.Context,
	brokerrpc.Message) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.Serve(ctx, line, most, take)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

// collect serves a line and returns its messages.
func collect(t *testing.T, o brokerrpc.Transport, line brokerrpc.Line) <-chan brokerrpc.Message {
	got := make(chan brokerrpc.Message, 1000)
	serve(t, o, line, 10, func(_ context.Context, l brokerrpc.Message) error {
		got <- l
		return nil
	})
	return got
}

func receive(t *testing.T, got <-chan brokerrpc.Message) brokerrpc.Message {
	t.Helper()
	select {
	case l := <-got:
		return l
	case <-within(t).Done():
		t.Fatal("no message has come")
		return brokerrpc.Message{}
	}
}

// eventually waits for a condition of the lines.
func eventually(t *testing.T, o brokerrpc.Transport, what string, cond func(map[brokerrpc.Line]brokerrpc.Depth) bool) {
	t.Helper()
	for ctx := within(t); ; {
		lines, err := o.Backlog(ctx)
		if err == nil && cond(lines) {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("never came: %s: %+v, %v", what, lines, err)
		}
	}
}

func empty(line brokerrpc.Line) func(map[brokerrpc.Line]brokerrpc.Depth) bool {
	return func(lines map[brokerrpc.Line]brokerrpc.Depth) bool {
		d := lines[line]
		return d.Messages == 0 && d.Bytes == 0 && d.Unread == 0 && d.Oldest == 0
	}
}

// Sent messages are delivered, even if they were sent before there was a server; settled ones are gone.
func delivered(t *testing.T, r *Rig) {
	for _, line := range brokerrpc.Lines() {
		o := r.Transport(t)
		send(t, o, line, "early")
		got := collect(t, r.Transport(t), line)
		if l := receive(t, got); string(l.Body) != "early" || l.Tries != 1 || l.ID == "" || l.Age < 0 || l.Age > patience {
			t.Errorf("%s: %+v", line, l)
		}
		send(t, o, line, "a\x00\xff\r\n")
		if l := receive(t, got); string(l.Body) != "a\x00\xff\r\n" {
			t.Errorf("%s: %q", line, l.Body)
		}
		eventually(t, o, string(line)+" is empty", empty(line))
	}
}

// A message goes to one of the servers, and all of them get a share.
func manyServers(t *testing.T, r *Rig) {
	o := r.Transport(t)
	var mu sync.Mutex
	times, shares := map[string]int{}, make([]int, 3)
	for i := range shares {
		serve(t, r.Transport(t), brokerrpc.Tells, 2, func(_ context.Context, l brokerrpc.Message) error {
			mu.Lock()
			defer mu.Unlock()
			times[string(l.Body)]++
			shares[i]++
			return nil
		})
	}
	for i := range 150 {
		send(t, o, brokerrpc.Tells, fmt.Sprint(i))
	}
	eventually(t, o, "the line is empty, and all have come", func(lines map[brokerrpc.Line]brokerrpc.Depth) bool {
		mu.Lock()
		defer mu.Unlock()
		return empty(brokerrpc.Tells)(lines) && len(times) == 150
	})
	mu.Lock()
	defer mu.Unlock()
	for i := range 150 {
		if n := times[fmt.Sprint(i)]; n != 1 {
			t.Errorf("message %d came %d times", i, n)
		}
	}
}

var errNotNow = errors.New("not now")

// A message that a server could not handle is delivered again.
func repeated(t *testing.T, r *Rig) {
	o := r.Transport(t)
	got := make(chan brokerrpc.Message, 10)
	serve(t, o, brokerrpc.Tells, 10, func(_ context.Context, l brokerrpc.Message) error {
		got <- l
		if l.Tries < 3 {
			return errNotNow
		}
		return nil
	})
	send(t, o, brokerrpc.Tells, "again")
	for want := 1; want <= 3; want++ {
		if l := receive(t, got); l.Tries != want || string(l.Body) != "again" {
			t.Errorf("delivery %d: %+v", want, l)
		}
	}
	eventually(t, o, "the line is empty", empty(brokerrpc.Tells))
}

// The messages of a dead server are delivered to another.
func serverGone(t *testing.T, r *Rig) {
	o := r.Transport(t)
	entered := make(chan struct{}, 10)
	stop := serve(t, r.Transport(t), brokerrpc.Tells, 10, func(ctx context.Context, _ brokerrpc.Message) error {
		entered <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	send(t, o, brokerrpc.Tells, "one", "two")
	<-entered
	<-entered
	stop()
	got := collect(t, r.Transport(t), brokerrpc.Tells)
	bodies := []string{string(receive(t, got).Body), string(receive(t, got).Body)}
	if slices.Sort(bodies); !slices.Equal(bodies, []string{"one", "two"}) {
		t.Errorf("%q", bodies)
	}
	eventually(t, o, "the line is empty", empty(brokerrpc.Tells))
}

// A message that a server handles for a long time goes to no other server.
func inHand(t *testing.T, r *Rig) {
	o := r.Transport(t)
	entered, goOn := make(chan struct{}), make(chan struct{})
	serve(t, r.Transport(t), brokerrpc.Tells, 10, func(context.Context, brokerrpc.Message) error {
		close(entered) // twice is a panic
		<-goOn
		return nil
	})
	send(t, o, brokerrpc.Tells, "long")
	<-entered
	others := collect(t, r.Transport(t), brokerrpc.Tells)
	select {
	case l := <-others:
		t.Errorf("another server was given it: %+v", l)
	case <-time.After(3 * time.Second): // three times as long as a message may be silent here
	}
	close(goOn)
	eventually(t, o, "the line is empty", empty(brokerrpc.Tells))
}

// A call is delivered once, whatever its handler returns.
func askedOnce(t *testing.T, r *Rig) {
	o := r.Transport(t)
	got := make(chan brokerrpc.Message, 10)
	serve(t, o, brokerrpc.Asks, 10, func(_ context.Context, l brokerrpc.Message) error {
		got <- l
		return errNotNow
	})
	send(t, o, brokerrpc.Asks, "once")
	receive(t, got)
	eventually(t, o, "the line is empty", empty(brokerrpc.Asks))
	select {
	case l := <-got:
		t.Errorf("it came again: %+v", l)
	case <-time.After(2 * time.Second): // twice as long as a message may be silent here
	}
}

// A call that no server got while it was valid is not delivered, or its age shows that.
func askedLate(t *testing.T, r *Rig) {
	o := r.Transport(t)
	const valid = 200 * time.Millisecond
	if err := o.Send(within(t), brokerrpc.Asks, []byte("late"), valid); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * valid)
	got := collect(t, o, brokerrpc.Asks)
	if err := o.Send(within(t), brokerrpc.Asks, []byte("fresh"), patience); err != nil {
		t.Fatal(err)
	}
	l := receive(t, got)
	if string(l.Body) == "late" {
		if l.Age < valid {
			t.Errorf("it was delivered late: %+v", l)
		}
		l = receive(t, got)
	}
	if string(l.Body) != "fresh" || l.Age > valid {
		t.Errorf("%+v", l)
	}
}

func largeMessage(t *testing.T, r *Rig) {
	o := r.Transport(t)
	body := bytes.Repeat([]byte{0, 'x', 0xff, '\n'}, brokerrpc.MaxMessage/4)
	got := collect(t, r.Transport(t), brokerrpc.Logs)
	if err := o.Send(within(t), brokerrpc.Logs, body, 0); err != nil {
		t.Fatal(err)
	}
	if l := receive(t, got); !bytes.Equal(l.Body, body) {
		t.Errorf("%d bytes of %d", len(l.Body), len(body))
	}
}

// A full line accepts no more messages until servers have taken some out.
func busy(t *testing.T, r *Rig) {
	o := r.Full(t)
	body := bytes.Repeat([]byte("x"), 100<<10)
	sent := 0
	var err error
	for ; err == nil; sent++ {
		if sent > 200 {
			t.Fatal("the line is never full")
		}
		err = o.Send(within(t), brokerrpc.Tells, body, 0)
	}
	if !errors.Is(err, brokerrpc.ErrBusy) || !errors.Is(err, brokerrpc.ErrUnavailable) {
		t.Errorf("a full line: %v", err)
	}
	if err := o.Send(within(t), brokerrpc.Asks, []byte("renew"), 0); err != nil {
		t.Errorf("another line beside a full one: %v", err)
	}
	got := collect(t, r.Full(t), brokerrpc.Tells)
	for range sent - 1 {
		receive(t, got)
	}
	eventually(t, o, "the line is empty", empty(brokerrpc.Tells))
	if err := o.Send(within(t), brokerrpc.Tells, body, 0); err != nil {
		t.Errorf("a line that was full: %v", err)
	}
}

func backlog(t *testing.T, r *Rig) {
	o := r.Transport(t)
	send(t, o, brokerrpc.Tells, "12345", "123")
	entered, goOn := make(chan struct{}, 10), make(chan struct{})
	eventually(t, o, "two messages", func(lines map[brokerrpc.Line]brokerrpc.Depth) bool {
		d := lines[brokerrpc.Tells]
		return d.Messages == 2 && (d.Bytes == 8 || r.Blind && d.Bytes == -1) && d.Unread == 2 && d.Oldest > 0 &&
			lines[brokerrpc.Logs] == brokerrpc.Depth{}
	})
	serve(t, o, brokerrpc.Tells, 1, func(context.Context, brokerrpc.Message) error {
		entered <- struct{}{}
		<-goOn
		return nil
	})
	<-entered
	eventually(t, o, "one of them in hand", func(lines map[brokerrpc.Line]brokerrpc.Depth) bool {
		return lines[brokerrpc.Tells].Messages == 2 && lines[brokerrpc.Tells].Unread == 1
	})
	close(goOn)
	eventually(t, o, "the line is empty", empty(brokerrpc.Tells))
}
