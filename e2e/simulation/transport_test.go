package simulation

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/wire"
)

// serversKey is the key from which the secrets of sessions are derived.
const serversKey = "the key of all servers"

// signedBy is the signature of a worker's message.
func signedBy(secret string, signed []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("worker\n"))
	mac.Write(signed)
	return mac.Sum(nil)
}

// branch is one process's connection to the broker.
type branch struct {
	b     *broker
	who   string
	h     *host           // the worker's host; nil for an engine
	alive context.Context // of the process

	mu      sync.Mutex
	open    map[string]bool // sends under way
	numbers map[string]int  // of messages, by their kinds; of reply queues
	lost    bool            // whether it lost a reply queue, for the planted bug

	// The fields of engines; guarded by the broker's mutex.
	serving context.Context
	takes   map[brokerrpc.Line]func(brokerrpc.Message) error
}

func (b *broker) branch(who string, h *host, alive context.Context) *branch {
	return &branch{b: b, who: who, h: h, alive: alive, open: map[string]bool{}, numbers: map[string]int{},
		takes: map[brokerrpc.Line]func(brokerrpc.Message) error{}}
}

func (o *branch) enter(what string) (key string, leave func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for n := 1; ; n++ {
		if key = fmt.Sprintf("%s/send %s %d", o.who, what, n); !o.open[key] {
			break
		}
	}
	o.open[key] = true
	return key, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.open, key)
	}
}

func (o *branch) number(what string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.numbers[what]++
	return o.numbers[what]
}

// Send implements brokerrpc.Transport.
func (o *branch) Send(ctx context.Context, line brokerrpc.Line, body []byte, _ time.Duration) error {
	b, w := o.b, o.b.w
	ctx, cancel := both(ctx, o.alive)
	defer cancel()
	h, _ := open(body)
	key, leave := o.enter(h.Kind)
	defer leave()
	v := w.park(ctx, &gate{key: key, kind: atSend, at: o.h})
	if v.do == gone {
		return ctx.Err()
	}
	l := &lineMessage{id: h.ID, name: fmt.Sprintf("%s %s %d", o.who, h.Kind, o.number(h.Kind)), line: line, body: body, sent: time.Now()}
	b.mu.Lock()
	away, full := b.isAway(), time.Now().Before(b.full)
	if _, known := b.calls[h.ID]; !known {
		b.calls[h.ID] = call{name: l.name, kind: h.Kind}
	}
	l.side = b.sideOf(o)
	if v.do == fine {
		if b.seen = append(b.seen, body); len(b.seen) > 40 {
			b.seen = b.seen[1:]
		}
	}
	b.mu.Unlock()
	switch {
	case away, o.h.isCut(), v.do == refuse:
		return brokerrpc.ErrUnavailable
	case full, v.do == busy:
		return fmt.Errorf("%w: %w", brokerrpc.ErrUnavailable, brokerrpc.ErrBusy)
	case v.do == lose:
		return nil
	}
	if line == brokerrpc.Tells && w.noise("forge", l.name) < w.plan.Forge {
		if f := b.forge(l); f != nil {
			b.offer(f)
		}
	}
	b.offer(l)
	switch v.do {
	case double:
		b.offer(&lineMessage{id: l.id, name: l.name + " doubled", line: line, body: body, sent: l.sent, side: l.side})
	case unknown:
		return brokerrpc.ErrUnavailable
	}
	return nil
}

// Serve implements brokerrpc.Transport.
func (o *branch) Serve(ctx context.Context, line brokerrpc.Line, _ int, take func(context.Context, brokerrpc.Message) error) {
	var hands sync.WaitGroup
	if bug := o.b.w.bug; bug != nil && bug.post.take != nil {
		take = bug.post.take(line, take)
	}
	o.b.mu.Lock()
	o.serving = ctx
	o.takes[line] = func(l brokerrpc.Message) error {
		hands.Add(1)
		defer hands.Done()
		return take(ctx, l)
	}
	o.b.mu.Unlock()
	<-ctx.Done()
	o.b.mu.Lock()
	delete(o.takes, line)
	o.b.mu.Unlock()
	hands.Wait()
}

// ReplyQueue implements brokerrpc.Transport.
func (o *branch) ReplyQueue(ctx context.Context) (brokerrpc.ReplyQueue, error) {
	b := o.b
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	n := o.number("box")
	bug := b.w.bug
	x := &replyQueue{o: o, name: fmt.Sprintf("%s box %d", o.who, n), made: time.Now(), come: make(chan struct{}, 1)}
	if bug != nil && bug.post.sameBox {
		x.name = o.who + " box"
	}
	b.mu.Lock()
	away := b.isAway() || o.alive.Err() != nil || o.h.isCut()
	again := b.copies[x.name] > 0
	if !away {
		o.mu.Lock()
		x.deaf = bug != nil && bug.post.oldCursor && o.lost
		o.mu.Unlock()
		x.here, x.leave = context.WithCancel(o.alive)
		b.replyQueues[x.name] = x
		b.copies[x.name]++
	}
	b.mu.Unlock()
	if away {
		return nil, brokerrpc.ErrUnavailable
	}
	if again {
		b.w.violate(57, "the reply queue %q was made a second time", x.name)
	}
	return x, nil
}

// Put implements brokerrpc.Transport.
func (o *branch) Put(ctx context.Context, box string, frame []byte) error {
	b, w := o.b, o.b.w
	if ctx.Err() != nil {
		return ctx.Err()
	}
	h, body := open(frame)
	b.mu.Lock()
	if b.isAway() || o.alive.Err() != nil {
		b.mu.Unlock()
		return brokerrpc.ErrUnavailable
	}
	x := b.replyQueues[box]
	c := b.calls[h.ID]
	say := ""
	if c.kind == wire.Take && handsOver(body) && c.landed == 1 && c.age >= voidTake {
		say = fmt.Sprintf("the call %q was obeyed %s after it was sent", c.name, c.age)
	}
	if x == nil {
		b.mu.Unlock()
		return brokerrpc.ErrNoReplyQueue
	}
	m := &reply{sent: time.Now(), side: b.sideOf(x.o)}
	apart := b.split > 0 && b.sideOf(o) != m.side
	name := fmt.Sprintf("to %s", c.name)
	b.copies[name]++
	name = fmt.Sprintf("%s: %d", name, b.copies[name])
	var here context.Context
	here, m.leave = context.WithCancel(x.here)
	if !apart {
		b.flying = append(b.flying, m)
	}
	b.mu.Unlock()
	if say != "" {
		w.violate(57, "%s", say)
	}
	if apart { // into the half that is lost, or that the queue's owner does not read
		m.leave()
		return nil
	}
	w.spawn(func() {
		defer m.leave()
		v := w.park(here, &gate{key: "broker/" + name, kind: atReply, at: x.o.h, late: w.noise("late", name) < 0.1})
		if v.do == gone || v.do == lose {
			return
		}
		b.mu.Lock()
		x.messages = append(x.messages, frame)
		if v.do == again {
			x.messages = append(x.messages, frame)
		}
		b.mu.Unlock()
		select {
		case x.come <- struct{}{}:
		default: // its reader will look
		}
	})
	return nil
}

// voidTake is slightly more than the age from which a call for work is useless.
const voidTake = 3*time.Second + 10*time.Millisecond

// handsOver reports whether an answer assigns work.
func handsOver(body []byte) bool { return len(body) > 8 && string(body[:8]) == `{"work":` }

func (x *replyQueue) Name() string { return x.name }

// Next implements brokerrpc.Box.
func (x *replyQueue) Next(ctx context.Context) ([]byte, error) {
	b := x.o.b
	for {
		b.mu.Lock()
		wait := time.Until(b.away)
		if len(x.messages) > 0 && wait <= 0 && !x.deaf {
			m := x.messages[0]
			x.messages = x.messages[1:]
			b.mu.Unlock()
			return m, nil
		}
		b.mu.Unlock()
		if wait <= 0 {
			wait = time.Hour
		}
		t := time.NewTimer(wait)
		select {
		case <-x.come:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		case <-x.here.Done(): // the queue's owner notices that after a while
			t.Stop()
			t = time.NewTimer(time.Duration(1 + b.w.noise("lost", x.name)*float64(2*time.Second)))
			defer t.Stop()
			select {
			case <-t.C:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			x.o.mu.Lock()
			x.o.lost = true
			x.o.mu.Unlock()
			return nil, brokerrpc.ErrNoReplyQueue
		}
		t.Stop()
	}
}

// Close implements brokerrpc.Box.
func (x *replyQueue) Close() {
	if x.o.alive.Err() != nil {
		return // a dead process deletes nothing
	}
	b := x.o.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.replyQueues[x.name] == x {
		delete(b.replyQueues, x.name)
	}
	x.leave()
}

// Backlog implements brokerrpc.Transport.
func (o *branch) Backlog(context.Context) (map[brokerrpc.Line]brokerrpc.Depth, error) {
	b := o.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isAway() || o.alive.Err() != nil {
		return nil, brokerrpc.ErrUnavailable
	}
	all := map[brokerrpc.Line]brokerrpc.Depth{}
	for _, l := range b.lineMessages {
		d := all[l.line]
		d.Messages++
		d.Bytes += int64(len(l.body))
		d.Oldest = max(d.Oldest, time.Since(l.sent))
		all[l.line] = d
	}
	return all, nil
}

// Dead implements brokerrpc.Transport. The simulation runs no `pawl broker dead`, so it is never called.
func (*branch) Dead(context.Context, brokerrpc.DeadAction) ([]brokerrpc.DeadLetter, error) {
	return nil, nil
}

// witness is the engine that a broker's server calls. It notes what the engine has answered.
type witness struct {
	handoff.Handoff
	w *world
}

func (t *witness) Take(ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	work, err := t.Handoff.Take(ctx, session, n)
	if err == nil {
		t.w.shadow.handedOver(session, work)
	}
	return work, err
}

func (t *witness) Missed(ctx context.Context, session flow.ID, have []flow.AttemptID) ([]handoff.Assignment, error) {
	work, err := t.Handoff.Missed(ctx, session, have)
	if err == nil {
		t.w.shadow.handedOver(session, work)
	}
	return work, err
}

func (t *witness) Report(ctx context.Context, session flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
	receipts, err := t.Handoff.Report(ctx, session, reports)
	if final(err) {
		t.w.broker.handled(wire.Asked{Reports: reports})
	}
	return receipts, err
}

func (t *witness) Log(ctx context.Context, session flow.ID, chunks []flow.LogChunk) error {
	err := t.Handoff.Log(ctx, session, chunks)
	if final(err) {
		t.w.broker.handled(wire.Asked{Chunks: chunks})
	}
	return err
}

func final(err error) bool {
	return err == nil || errors.Is(err, handoff.ErrSessionLost)
}
