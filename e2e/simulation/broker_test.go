package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/wire"
)

// broker is a message broker, between the real client and the real server of package brokerrpc. It keeps messages and reply queues in
// memory, and the scheduler decides when each message and each reply arrives, and at which engine.
type broker struct {
	w *world

	mu           sync.Mutex
	lineMessages []*lineMessage // in lines, including those that a server holds
	flying       []*reply
	replyQueues  map[string]*replyQueue
	calls        map[string]call // by the ids of their frames
	copies       map[string]int  // of messages, by name
	seen         [][]byte        // messages read by a process that listens to the broker, the latest last
	done         map[string]bool // what engines have answered, by contents
	away         time.Time       // until when the broker answers nothing
	full         time.Time       // until when no message has room
	faulty       time.Time       // when it was last away
	split        int             // number of the current split into two halves; 0 without one
	splits       int
}

// call is a call as the broker sees it.
type call struct {
	name, kind string
	age        time.Duration // of the message, when it was last delivered
	landed     int           // deliveries
}

// lineMessage is a message in a line.
type lineMessage struct {
	id     string // of its frame
	name   string
	line   brokerrpc.Line
	body   []byte
	sent   time.Time
	side   int
	tries  int
	ended  int // servers that died while they held the message
	forged bool
	here   context.Context // ends when the message is lost or settled
	leave  context.CancelFunc
}

// reply is a message on its way to a reply queue.
type reply struct {
	sent  time.Time
	side  int
	leave context.CancelFunc
}

// reply queue is brokerrpc.ReplyQueue.
type replyQueue struct {
	o     *branch
	name  string
	made  time.Time
	here  context.Context // until the reply queue is lost
	leave context.CancelFunc
	come  chan struct{} // capacity 1
	deaf  bool          // planted: its reader waits for numbers above those of its messages

	messages [][]byte // guarded by the broker's mutex
}

func newBroker(w *world) *broker {
	return &broker{w: w, replyQueues: map[string]*replyQueue{}, calls: map[string]call{}, copies: map[string]int{}, done: map[string]bool{}}
}

// head is the part of a message that the broker can read.
type head struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
}

const macBytes = 32 // before the head

func open(frame []byte) (h head, body []byte) {
	line, body, _ := bytes.Cut(frame[macBytes:], []byte("\n"))
	if err := json.Unmarshal(line, &h); err != nil {
		panic(err)
	}
	return h, body
}

func (b *broker) isAway() bool { return time.Now().Before(b.away) }

// sideOf returns the half of a split broker that a process is connected to.
func (b *broker) sideOf(o *branch) int {
	if b.split > 0 && b.w.noise("side", b.split, o.who) < 0.5 {
		return 1
	}
	return 0
}

// fits reports whether a message can go to a replica: the replica must serve the line, on the same side of a split.
func (b *broker) fits(l *lineMessage, r *replica) bool {
	o := r.transport()
	b.mu.Lock()
	defer b.mu.Unlock()
	return o != nil && o.takes[l.line] != nil && !b.isAway() && (b.split == 0 || b.sideOf(o) == l.side)
}

// offer puts a message into its line.
func (b *broker) offer(l *lineMessage) {
	l.here, l.leave = context.WithCancel(b.w.ctx)
	b.mu.Lock()
	b.lineMessages = append(b.lineMessages, l)
	var trimmed *lineMessage
	if bug := b.w.bug; bug != nil && bug.post.trim && l.line == brokerrpc.Tells {
		for _, old := range b.lineMessages {
			if old.line == l.line && old != l {
				trimmed = old
				break
			}
		}
	}
	b.mu.Unlock()
	if trimmed != nil {
		b.settle(trimmed, "trimmed")
	}
	b.w.spawn(func() { b.carry(l) })
}

// settle takes a finished message out of its line.
func (b *broker) settle(l *lineMessage, how string) {
	b.mu.Lock()
	i := slices.Index(b.lineMessages, l)
	if i >= 0 {
		b.lineMessages = slices.Delete(b.lineMessages, i, i+1)
	}
	done := l.line == brokerrpc.Asks || l.forged || b.done[contents(l.body)]
	b.mu.Unlock()
	l.leave()
	if i >= 0 && !done {
		b.w.violate(57, "the message %q was %s, and what it says was neither recorded nor refused", l.name, how)
	}
}

// lose deletes the messages and reply queues that a fault has hit.
func (b *broker) lose(lineMessages func(*lineMessage) bool, replies func(*reply) bool, replyQueues func(*replyQueue) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lineMessages = slices.DeleteFunc(b.lineMessages, func(l *lineMessage) bool {
		if lineMessages(l) {
			l.leave()
			return true
		}
		return false
	})
	b.flying = slices.DeleteFunc(b.flying, func(m *reply) bool {
		if replies(m) {
			m.leave()
			return true
		}
		return false
	})
	for name, x := range b.replyQueues {
		if replyQueues(x) {
			x.leave()
			delete(b.replyQueues, name)
		}
	}
}

// carry delivers a message until it is settled.
func (b *broker) carry(l *lineMessage) {
	w := b.w
	late := w.noise("late", l.name) < 0.1
	for l.here.Err() == nil {
		v := w.park(l.here, &gate{key: "broker/" + l.name, kind: atLineMessage, late: late, fits: func(r *replica) bool { return b.fits(l, r) }})
		switch {
		case v.do == gone:
			return
		case v.do == lose:
			b.lose(func(x *lineMessage) bool { return x == l }, func(*reply) bool { return false }, func(*replyQueue) bool { return false })
			return
		case v.do == double:
			b.offer(&lineMessage{id: l.id, name: l.name + " again", line: l.line, body: l.body, sent: l.sent, side: l.side, forged: l.forged})
		}
		if v.to == nil {
			continue
		}
		o := v.to.transport()
		if o == nil {
			continue
		}
		if l.tries++; l.tries > brokerrpc.MostTries {
			b.deadLetter(l, "it was delivered too often")
			return
		}
		age := time.Since(l.sent)
		b.mu.Lock()
		take := o.takes[l.line]
		c := b.calls[l.id]
		c.age = max(c.age, age)
		c.landed++
		b.calls[l.id] = c
		b.mu.Unlock()
		if take == nil {
			continue
		}
		if w.bug != nil && w.bug.post.ageless {
			age = 0
		}
		if l.line == brokerrpc.Asks {
			b.settle(l, "delivered")
		}
		err := take(brokerrpc.Message{ID: l.name, Body: l.body, Tries: l.tries, Age: age})
		if l.line == brokerrpc.Asks || !b.taken(l, o, err) {
			return
		}
	}
}

// taken applies the result of a message's handler and reports whether the broker delivers the message again.
func (b *broker) taken(l *lineMessage, o *branch, err error) bool {
	w := b.w
	buried, ok := err.(*brokerrpc.Unreadable)
	stale := time.Duration((15 + 5*w.noise("stale", l.name, l.tries)) * float64(time.Second))
	switch {
	case o.alive.Err() != nil: // the broker notices the dead server after a while
		l.ended++
		if w.bug != nil && w.bug.post.forgetful {
			b.settle(l, "deleted with the server that had it")
			return false
		}
	case ok:
		b.deadLetter(l, buried.Reason)
		return false
	case err == nil:
		b.settle(l, "settled")
		return false
	default:
		if o.serving.Err() != nil {
			l.ended++
		}
		if w.noise("at once", l.name, l.tries) < 0.5 {
			stale = time.Millisecond
		}
	}
	t := time.NewTimer(stale)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.here.Done():
	}
	return true
}

// deadLetter removes a message that no server can read: a forged one, or one that servers died on again and again.
func (b *broker) deadLetter(l *lineMessage, why string) {
	if !l.forged && l.ended < brokerrpc.MostTries && l.line != brokerrpc.Asks {
		b.w.violate(57, "the message %q was buried: %s", l.name, why)
	}
	b.lose(func(x *lineMessage) bool { return x == l }, func(*reply) bool { return false }, func(*replyQueue) bool { return false })
}

// handled notes what an engine has answered, so that messages with these contents may be settled.
func (b *broker) handled(in wire.Asked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done[said(in)] = true
}

// contents returns the reports and log chunks of a message, for comparison.
func contents(frame []byte) string {
	var in wire.Asked
	_, body := open(frame)
	if json.Unmarshal(body, &in) != nil {
		return ""
	}
	return said(in)
}

func said(in wire.Asked) string {
	var s []byte
	for _, r := range in.Reports {
		s = fmt.Appendf(s, "%s/%d:", r.Execution, r.Attempt)
		for _, e := range r.Events {
			s = fmt.Appendf(s, "%d,", e.Seq)
		}
	}
	for _, c := range in.Chunks {
		s = fmt.Appendf(s, "%s/%d/%d,", c.Execution, c.Attempt, c.Seq)
	}
	return string(s)
}

// recovered is called when an engine takes an attempt back because its worker is gone. Messages that lay in the broker before that engine
// began must be recorded first.
func (b *broker) recovered(k try, next int64, began time.Time) {
	if began.IsZero() || time.Since(began) > 25*time.Second { // an engine waits for no longer than a lease
		return
	}
	b.mu.Lock()
	say := ""
	for _, l := range b.lineMessages {
		if l.line != brokerrpc.Tells || l.forged || l.sent.After(began) || b.faulty.After(began) || b.split > 0 || b.isAway() {
			continue
		}
		var in wire.Asked
		_, body := open(l.body)
		if json.Unmarshal(body, &in) != nil {
			continue
		}
		for _, r := range in.Reports {
			if (try{r.Execution, r.Attempt}) == k && len(r.Events) > 0 && r.Events[len(r.Events)-1].Seq >= next {
				say = l.name
			}
		}
	}
	b.mu.Unlock()
	if say != "" {
		b.w.violate(56, "attempt %d of %s was taken back %s after the engine began, and %q, which lay in the broker before, is not recorded",
			k.attempt, name(k.execution), time.Since(began), say)
	}
}

// disaster lets one fault happen to the broker.
func (b *broker) disaster() {
	w := b.w
	d := time.Duration(w.rng.Float64() * w.rng.Float64() * float64(30*time.Second))
	all := func(*lineMessage) bool { return true }
	switch w.rng.IntN(8) {
	case 0:
		w.happen("the broker is emptied")
		b.lose(all, func(*reply) bool { return true }, func(*replyQueue) bool { return true })
	case 1:
		tail := time.Now().Add(-d / 10)
		w.happen("the broker starts again without what came in the last %s", d/10)
		b.lose(func(l *lineMessage) bool { return l.sent.After(tail) }, func(m *reply) bool { return m.sent.After(tail) },
			func(x *replyQueue) bool { return x.made.After(tail) })
		b.beAway(d / 20)
	case 2:
		w.happen("the broker goes away for %s", d)
		b.beAway(d)
	case 3:
		w.happen("the broker evicts half of what it has")
		n := w.serial.Add(1)
		b.lose(func(l *lineMessage) bool { return w.noise("evict", n, l.name) < 0.5 }, func(*reply) bool { return false },
			func(x *replyQueue) bool { return w.noise("evict", n, x.name) < 0.5 })
	case 4:
		b.expire(w.rng.Float64())
	case 5:
		b.beSplit(d)
	case 6:
		w.happen("the broker is full for %s", d)
		b.mu.Lock()
		b.full = time.Now().Add(d)
		b.mu.Unlock()
	case 7:
		b.replay(w.rng.Float64())
	}
}

func (b *broker) beAway(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = time.Now().Add(d)
	b.faulty = b.away
}

// expire deletes one reply queue.
func (b *broker) expire(which float64) {
	b.mu.Lock()
	var names []string
	for n := range b.replyQueues {
		names = append(names, n)
	}
	b.mu.Unlock()
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	gone := names[int(which*float64(len(names)))]
	b.w.happen("the reply queue %s expires", gone)
	b.lose(func(*lineMessage) bool { return false }, func(*reply) bool { return false }, func(x *replyQueue) bool { return x.name == gone })
}

// beSplit splits the broker in two for a while, each half with some of the processes. The messages of the second half are lost when the
// split ends.
func (b *broker) beSplit(d time.Duration) {
	b.mu.Lock()
	if b.split > 0 {
		b.mu.Unlock()
		return
	}
	b.splits++
	n := b.splits
	b.split = n
	b.mu.Unlock()
	b.w.happen("the broker is split for %s", d)
	time.AfterFunc(d, func() { b.join(n) })
}

func (b *broker) join(n int) {
	b.mu.Lock()
	is := n > 0 && b.split == n
	if is {
		b.split, b.faulty = 0, time.Now()
	}
	b.mu.Unlock()
	if is {
		b.lose(func(l *lineMessage) bool { return l.side == 1 }, func(m *reply) bool { return m.side == 1 },
			func(x *replyQueue) bool { return b.w.noise("side", n, x.o.who) < 0.5 })
	}
}

// replay lets a process that listens to the broker send a message again.
func (b *broker) replay(which float64) {
	b.mu.Lock()
	n := len(b.seen)
	if n == 0 {
		b.mu.Unlock()
		return
	}
	body := b.seen[int(which*float64(n))]
	h, _ := open(body)
	c := b.calls[h.ID]
	b.copies["replay"]++
	l := &lineMessage{id: h.ID, name: fmt.Sprintf("%s replayed %d", c.name, b.copies["replay"]), line: lineOf(h.Kind), body: body,
		sent: time.Now()}
	b.mu.Unlock()
	b.w.happen("%q is replayed", c.name)
	b.offer(l)
}

func lineOf(kind string) brokerrpc.Line {
	switch kind {
	case wire.Report:
		return brokerrpc.Tells
	case wire.Log:
		return brokerrpc.Logs
	}
	return brokerrpc.Asks
}

// heal ends the faults.
func (b *broker) heal() {
	b.mu.Lock()
	b.away, b.full = time.Time{}, time.Time{}
	n := b.split
	b.mu.Unlock()
	b.join(n)
}

var _ brokerrpc.Transport = (*branch)(nil)

// forge is a message made by a process without the session's secret from one that it has read: the same events with another outcome.
func (b *broker) forge(l *lineMessage) *lineMessage {
	var in wire.Asked
	line, body, _ := bytes.Cut(l.body[macBytes:], []byte("\n"))
	if json.Unmarshal(body, &in) != nil {
		return nil
	}
	for _, r := range in.Reports {
		for i := range r.Events {
			if e := &r.Events[i]; e.Outcome != nil && e.Type == flow.EvCompleted {
				e.Outcome.Output = json.RawMessage(`"forged"`)
			}
		}
	}
	body, err := wire.Encode(in)
	if err != nil {
		panic(err)
	}
	signed := slices.Concat(line, []byte("\n"), body)
	secret := "a guess"
	if b.w.bug != nil && b.w.bug.post.unchecked { // a server without checks believes that it is the worker's
		session, err := flow.ParseID(flow.SessionPrefix, in.Session)
		if err != nil {
			panic(err)
		}
		secret = wire.NewServer(nil, []byte(serversKey), wire.Holds{}).Secret(session)
	}
	return &lineMessage{id: l.id, name: l.name + " forged", line: l.line, body: slices.Concat(signedBy(secret, signed), signed), sent: l.sent,
		side: l.side, forged: true}
}
