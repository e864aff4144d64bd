package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/remote"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// host is a place where workers live, one after the other.
type host struct {
	w     *world
	place string
	skew  time.Duration // of its clock

	mu      sync.Mutex
	life    int
	alive   context.Context
	die     context.CancelFunc
	serve   context.CancelFunc
	dead    bool // killed
	over    bool // no worker runs here any more
	frozen  chan struct{}
	thawAt  *time.Timer
	cutOff  time.Time // until when it neither sends nor receives
	unready bool      // was frozen in this life: its timers are unreliable
}

func (h *host) name() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprintf("%s.%d", h.place, h.life)
}

func (h *host) isAlive() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.dead && !h.over
}

func (h *host) isDown() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dead || h.over
}

func (h *host) isFrozen() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.frozen != nil
}

// queues are those beside the default one; the custom kind has a queue of its own. The first host serves all of them, the others alternate
// between all and the default one.
var queues = []string{"gpu", custom}

// custom is a custom kind. The first host runs it beside the built-in kinds; the others alternate between built-in kinds, custom, and both.
const custom = "thumb"

func (h *host) start() {
	w := h.w
	h.mu.Lock()
	h.life++
	p := &process{h: h, name: fmt.Sprintf("%s.%d", h.place, h.life)}
	alive, die := context.WithCancel(w.ctx)
	serve, stop := context.WithCancel(alive)
	h.alive, h.die, h.serve, h.dead, h.over, h.frozen, h.unready = alive, die, stop, false, false, nil, false
	h.mu.Unlock()
	p.alive = alive
	if w.plan.Remote {
		p.web = dial(w)
	}
	if w.broker != nil {
		p.post = brokerrpc.NewClient(w.broker.branch(p.name, h, alive), "")
		p.post.Random(func() float64 { return w.noise(p.name, "pause", time.Since(w.began)) })
		p.mail = p.post
		if w.bug != nil && w.bug.post.mail != nil {
			p.mail = w.bug.post.mail(w, p.mail)
		}
		context.AfterFunc(alive, p.post.Stop)
	}
	l := &link{p: p, open: map[string]bool{}}
	o := worker.Options{
		Handoff: l, Handlers: task.Passes(task.Handlers{flow.KindNoop: p, flow.KindInput: instant{p}, custom: p}),
		Slots: w.plan.Slots, Queues: append([]string{"default"}, queues...), Name: p.name, Grace: 3 * time.Second,
		Random: func() float64 { return w.noise(p.name, time.Since(w.began)) },
	}
	if h.place != "w1" && h.life%2 == 0 {
		o.Queues = o.Queues[:1]
	}
	switch {
	case h.place == "w1":
	case h.life%3 == 1:
		delete(o.Handlers, custom)
	case h.life%3 == 2:
		o.Handlers = task.Handlers{custom: p}
	}
	// The first host has every label that requests select by; the others alternate between all, one and none.
	switch {
	case h.place == "w1" || h.life%3 == 0:
		o.Labels = map[string]string{"zone": "eu", "size": "big"}
	case h.life%3 == 1:
		o.Labels = map[string]string{"zone": "eu"}
	}
	if w.bug != nil && w.bug.link != nil {
		o.Handoff = w.bug.link(w, l)
	}
	if w.bug != nil {
		o.Slots += w.bug.post.slots
	}
	work, err := worker.New(o)
	if err != nil {
		panic(err)
	}
	w.spawn(func() {
		// Run returns only the error that says that the worker was told to end.
		_ = work.Run(serve)
		if p.post != nil {
			p.post.Stop()
		}
		h.mu.Lock()
		if h.alive == alive {
			h.over = true
		}
		h.mu.Unlock()
	})
}

// kill ends the process at once: nothing that it does from now on has an effect outside.
func (h *host) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dead = true
	h.unfreeze()
	h.die()
}

// drain shuts the process down in good order.
func (h *host) drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serve()
}

// freeze stops the process for a while, as SIGSTOP does: it sends, receives and does nothing.
func (h *host) freeze(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.frozen == nil {
		h.frozen, h.unready = make(chan struct{}), true
		h.thawAt = time.AfterFunc(d, h.thaw)
	}
}

func (h *host) thaw() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unfreeze()
}

func (h *host) unfreeze() {
	if h.frozen != nil {
		h.thawAt.Stop()
		close(h.frozen)
		h.frozen = nil
	}
}

// cut takes the host off the network for a while.
func (h *host) cut(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cutOff = time.Now().Add(d)
}

func (h *host) isCut() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Before(h.cutOff)
}

// melt waits until the host is not frozen.
func (h *host) melt(jitter float64) {
	for {
		h.mu.Lock()
		frozen := h.frozen
		h.mu.Unlock()
		if frozen == nil {
			return
		}
		<-frozen
		time.Sleep(time.Duration(1 + jitter*float64(5*time.Millisecond)))
	}
}

// process is one life of a worker, with its scripted runtime.
type process struct {
	h     *host
	name  string
	alive context.Context
	web   *remote.Client    // with a remote plan
	post  *brokerrpc.Client // behind a broker
	mail  handoff.Handoff   // this process, with the planted bug's lies
}

func (p *process) dead() bool { return p.alive.Err() != nil }

// script is what a submission asks the runtime to do.
type script struct {
	Do string `json:"do"`
	V  int    `json:"v"`
}

// errKilled is what a handler of a killed process returns. No caller receives it.
var errKilled = errors.New("killed")

// Run is the scripted runtime. What it does, and for how long, depends only on the script, the execution and the attempt.
func (p *process) Run(ctx context.Context, t *task.Task) (json.RawMessage, error) {
	w := p.h.w
	var s script
	if err := json.Unmarshal(t.Payload, &s); err != nil {
		return nil, task.Errorf("bad_script", "%v", err)
	}
	dice := func(what string) float64 { return w.noise(what, t.Execution, t.Attempt) }
	run := w.ledger.begin(p, t)
	if run == nil {
		return nil, errKilled
	}
	p.say(t, run, "begins")
	length := time.Duration(1 + dice("length")*float64(250*time.Millisecond))
	said := 0
	switch s.Do {
	case "slow":
		length *= time.Duration(w.plan.Slow)
	case "hang":
		length = 24 * time.Hour
	case "chat":
		said = 1 + int(4*dice("said"))
	}
	for i := range said {
		if p.pause(ctx, time.Duration(1+dice(fmt.Sprint("talk", i))*float64(400*time.Millisecond))) != nil {
			break
		}
		p.say(t, run, fmt.Sprint("step ", i))
		if err := t.Progress(ctx, json.RawMessage(fmt.Sprintf(`{"run":%d,"step":%d}`, run.number, i))); err != nil {
			break
		}
	}
	err := p.pause(ctx, length)
	if p.dead() {
		return nil, errKilled
	}
	if err != nil {
		// A task that was told to stop takes a while to end.
		time.Sleep(time.Duration(1 + dice("stopping")*float64(2*time.Second)))
		p.h.melt(dice("melt"))
		if p.dead() {
			return nil, errKilled
		}
		p.say(t, run, "stops")
		w.ledger.end(run, nil, "stopped")
		return nil, err
	}
	p.say(t, run, "ends")
	fails := s.Do == "fail" || s.Do == "flaky" && dice("luck") < 0.5
	if fails {
		w.ledger.end(run, nil, "boom")
		return nil, task.Errorf("boom", "run %d of the script failed", run.number)
	}
	out := json.RawMessage(fmt.Sprintf(`{"v":%d,"run":%d}`, s.V, run.number))
	if s.Do == "list" {
		out = json.RawMessage(fmt.Sprintf(`{"run":%d,"list":[%[1]d,%d,%d]}`, run.number, run.number+1, run.number+2))
	}
	w.ledger.end(run, out, "")
	return out, nil
}

// say writes a line of the run's log.
func (p *process) say(t *task.Task, r *run, what string) {
	if p.dead() {
		return
	}
	line := fmt.Sprintf("run %d %s\n", r.number, what)
	if _, err := io.WriteString(t.Log("stdout"), line); err == nil {
		p.h.w.ledger.wrote(r, line)
	}
}

// pause waits for d, and longer while the host is frozen. It returns an error when the work is to stop.
func (p *process) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	p.h.melt(p.h.w.noise("melt", d))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// instant is work that takes no time.
type instant struct{ p *process }

func (i instant) Instant() {}

func (i instant) Run(_ context.Context, t *task.Task) (json.RawMessage, error) {
	var s script
	if err := json.Unmarshal(t.Payload, &s); err != nil {
		return nil, task.Errorf("bad_script", "%v", err)
	}
	run := i.p.h.w.ledger.begin(i.p, t)
	if run == nil {
		return nil, errKilled
	}
	if s.Do == "fail" {
		i.p.h.w.ledger.end(run, nil, "boom")
		return nil, task.Errorf("boom", "run %d of the script failed", run.number)
	}
	out := json.RawMessage(fmt.Sprintf(`{"v":%d,"run":%d}`, s.V, run.number))
	i.p.h.w.ledger.end(run, out, "")
	return out, nil
}
