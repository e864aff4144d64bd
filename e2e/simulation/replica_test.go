package simulation

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/remote"
	"github.com/pawl-run/pawl/internal/store"
)

// replica is a place where engines live, one after the other.
type replica struct {
	w     *world
	place string

	mu     sync.Mutex
	life   int
	engine *engine.Engine // nil while it is down or starts
	web    http.Handler   // its HTTP interface for remote workers
	mail   *branch        // its connection to the broker
	began  time.Time      // this life
	alive  context.Context
	die    context.CancelFunc
	run    context.CancelFunc
	down   bool
}

func (r *replica) name() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%s.%d", r.place, r.life)
}

func (r *replica) isUp() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.down && r.engine != nil
}

func (r *replica) isDown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down
}

// start begins a life. The loops start one after the other, each when the scheduler opens its gate.
func (r *replica) start() {
	w := r.w
	r.mu.Lock()
	r.life++
	life := fmt.Sprintf("%s.%d", r.place, r.life)
	alive, die := context.WithCancel(w.ctx)
	running, run := context.WithCancel(alive)
	r.alive, r.die, r.run, r.engine, r.down, r.began = alive, die, run, nil, false, time.Now()
	r.mu.Unlock()
	var server *brokerrpc.Server
	ready := make(chan struct{}) // closed when server is set
	var late func(context.Context) error
	if w.plan.Broker && (w.bug == nil || !w.bug.post.hasty) {
		late = func(ctx context.Context) error {
			select {
			case <-ready:
				return server.DrainBroker(ctx)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	e, err := engine.New(engine.Options{
		Store: &seam{Store: w.view, r: r, life: life, alive: alive}, Exclusive: w.plan.Solo, Retention: w.plan.Retention,
		Queues: queues, Poll: pollEvery, Committers: w.plan.Committers, Rows: w.plan.Rows, Wide: w.plan.Wide,
		Random: func() float64 { return w.noise(life, time.Since(w.began)) }, NewID: w.id, DrainBroker: late,
	})
	if err != nil {
		panic(err)
	}
	w.spawn(func() {
		for e.Start(running) != nil {
			if running.Err() != nil {
				r.fell(alive)
				return
			}
		}
		var loops sync.WaitGroup
		for _, loop := range e.Loops() {
			if w.park(running, &gate{key: life + "/boot"}).do == gone {
				break
			}
			loops.Go(func() { loop(running) })
		}
		r.mu.Lock()
		if r.alive == alive && !r.down {
			r.engine, r.web = e, remote.Handler(w.facing(e), []byte(serversKey))
			if w.broker != nil {
				r.mail = w.broker.branch(life, nil, alive)
				server = brokerrpc.NewServer(brokerrpc.ServerOptions{Transport: r.mail, Handoff: &witness{w.facing(e), w}, Key: []byte(serversKey)})
				close(ready)
				loops.Go(func() { _ = server.Run(running) }) // never fails
			}
		}
		r.mu.Unlock()
		loops.Wait()
		r.fell(alive)
	})
}

// transport returns the broker connection of the engine that lives here, or nil without one.
func (r *replica) transport() *branch {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.engine == nil {
		return nil
	}
	return r.mail
}

// fell notes that a life has ended, for whatever reason.
func (r *replica) fell(life context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.alive == life {
		r.down, r.engine = true, nil
		r.die()
	}
}

// crash ends the process between two instructions: nothing under way is finished, and no caller gets an answer.
func (r *replica) crash() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down, r.engine = true, nil
	r.die()
	if r.w.plan.Solo {
		for _, h := range r.w.hosts {
			h.kill()
		}
	}
}

// retire shuts the engine down in good order: it commits what is pending.
func (r *replica) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine = nil
	r.run()
}

// visit is a call that has reached an engine.
type visit struct {
	*engine.Engine
	web   http.Handler
	to    *replica
	ctx   context.Context // ends with the call and with the process
	done  context.CancelFunc
	alive context.Context // ends with the process
}

// died reports whether the engine's process is dead, so that its answer is lost.
func (v *visit) died() bool { return v.alive.Err() != nil }

// reach begins a call. It returns nil when no engine is up.
func (r *replica) reach(ctx context.Context) *visit {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.engine == nil {
		return nil
	}
	ctx, cancel := both(ctx, r.alive)
	return &visit{Engine: r.engine, web: r.web, to: r, ctx: ctx, done: cancel, alive: r.alive}
}

// seam is the store of one engine: each transaction waits at a gate, may fail in every way, and is seen by the shadow once it is committed.
type seam struct {
	store.Store
	r     *replica
	life  string
	alive context.Context

	mu    sync.Mutex
	under []bool // transactions under way, by number
}

// begin numbers a transaction. Several committers may begin at once, and a trace must not depend on which of them is first.
func (s *seam) begin() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := slices.Index(s.under, false)
	if n < 0 {
		n = len(s.under)
		s.under = append(s.under, false)
	}
	s.under[n] = true
	return n
}

func (s *seam) end(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under[n] = false
}

func (s *seam) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	w := s.r.w
	n := s.begin()
	defer s.end(n)
	v := w.park(s.alive, &gate{key: fmt.Sprintf("%s/commit %d", s.life, n), kind: atCommit, of: s.r})
	if v.do == gone {
		return store.ErrUnavailable
	}
	var o *observer
	err := s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		o = &observer{Tx: tx, w: w}
		var through store.Tx = o
		if w.bug != nil && w.bug.tx != nil {
			through = w.bug.tx(w, through)
		}
		if err := decide(ctx, through); err != nil {
			return err
		}
		switch v.do {
		case conflict:
			return store.ErrConflict
		case refuse, crashFirst:
			return store.ErrUnavailable
		}
		return nil
	})
	if err == nil {
		w.shadow.commit(s.life, o)
	} else {
		// Only the first line: the stack of a panicked decision has addresses, which differ between two runs of a seed.
		why, _, _ := strings.Cut(err.Error(), "\n")
		w.note("%s: not committed: %s", s.life, why)
	}
	switch v.do {
	case crashFirst, crashAfter:
		s.r.crash()
		return store.ErrUnavailable
	case unknown:
		if err == nil {
			return store.ErrUnknown
		}
	}
	return err
}

// beganAt returns when a life of an engine began, or zero when it has ended.
func (w *world) beganAt(life string) time.Time {
	for _, r := range w.replicas {
		if r.name() == life {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.began
		}
	}
	return time.Time{}
}
