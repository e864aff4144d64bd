package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// A claim checks the pauses in four steps. (1) It locks the row of the claimer's session, which also returns the latest generation of
// pauses. (2) If this process knows another generation, the transaction reads the pauses. (3) It skips paused queues, gives a paused worker
// nothing, and moves executions of paused actions to routing keys of their own. (4) The store changes pauses while no transaction runs
// (store.Pausing): after that commit no server claims paused work.

const (
	// pauseLimit bounds how long something may be paused for.
	pauseLimit = 366 * 24 * time.Hour
)

// pauses is what this process knows about pauses.
type pauses struct {
	latest atomic.Pointer[pauseSet]
	over   moments // when pauses end that keep claimers waiting
}

func newPauses() *pauses {
	p := &pauses{over: newMoments()}
	p.latest.Store(&pauseSet{})
	return p
}

// keep stores a set, unless a later one is known.
func (p *pauses) keep(s *pauseSet) {
	for known := p.latest.Load(); known.generation < s.generation; known = p.latest.Load() {
		if p.latest.CompareAndSwap(known, s) {
			return
		}
	}
}

// keepPauses keeps the pauses that a committed transaction has read.
func (e *Engine) keepPauses(t *transaction) { e.pauses.keep(t.dispatch.pauses) }

// pauseSet is all pauses of a generation. It does not change. The zero value has none.
type pauseSet struct {
	generation int64
	pauses     map[pauseSubject]store.Pause
}

type pauseSubject struct {
	kind store.PauseKind
	name string
}

func newPauseSet(all []store.Pause, generation int64) *pauseSet {
	s := &pauseSet{generation: generation, pauses: make(map[pauseSubject]store.Pause, len(all))}
	for _, p := range all {
		s.pauses[pauseSubject{p.Of, p.Name}] = p
	}
	return s
}

// on is the pause of a subject that is in force at a moment; nil: there is none.
func (s *pauseSet) on(kind store.PauseKind, name string, now time.Time) *store.Pause {
	if len(s.pauses) == 0 {
		return nil
	}
	if p, ok := s.pauses[pauseSubject{kind, name}]; ok && p.Holds(now) {
		return &p
	}
	return nil
}

// onRoutingKey is the pause that keeps executions under a routing key from being claimed.
func (s *pauseSet) onRoutingKey(routingKey string, now time.Time) *store.Pause {
	if len(s.pauses) == 0 {
		return nil
	}
	queue, _ := flow.SplitRoutingKey(routingKey)
	return s.on(store.PausedQueue, queue, now)
}

// learnPauses makes the transaction use the pauses of a generation, and reads them if another generation is loaded.
func (t *transaction) learnPauses(ctx context.Context, generation int64) error {
	t.dispatch.pausesKnown = true
	if t.dispatch.pauses.generation == generation {
		return nil
	}
	all, generation, err := t.tx.Pauses(ctx)
	if err == nil {
		t.dispatch.pauses = newPauseSet(all, generation)
	}
	return err
}

// queuePaused reports whether the queue of a routing key is paused, and notes when the pause ends.
func (t *transaction) queuePaused(routingKey string) bool {
	return t.notePause(t.dispatch.pauses.onRoutingKey(routingKey, t.now))
}

// notePause reports whether there is a pause, and notes when it ends.
func (t *transaction) notePause(p *store.Pause) bool {
	if p != nil && !p.Until.IsZero() && (t.dispatch.resumes.IsZero() || p.Until.Before(t.dispatch.resumes)) {
		t.dispatch.resumes = p.Until
	}
	return p != nil
}

func (t *transaction) notPaused(queues []string) []string {
	if len(t.dispatch.pauses.pauses) == 0 || !slices.ContainsFunc(queues, t.queuePaused) {
		return queues
	}
	return slices.DeleteFunc(slices.Clone(queues), t.queuePaused)
}

// announceResume lets claimers look again when the first pause that a transaction has met ends. It is called when these claimers wait
// again, because the pause may end at once.
func (e *Engine) announceResume(t *transaction) {
	if until := t.dispatch.resumes; !until.IsZero() {
		e.pauses.over.announce(time.Now().Add(until.Sub(t.now)))
	}
}

// watchPauses lets claimers look again when a pause ends, and moves executions of resumed actions back. It also looks
// when watchPending signals it, every 15 s: the database's clock may have been set, or a server that ended a pause may
// have died before it moved anything back.
func (e *Engine) watchPauses(ctx context.Context) {
	for e.moveResumedOrLog(ctx); e.pauses.over.sleepUntil(ctx, time.Now().Add(loop.IdleAtMost)); e.moveResumedOrLog(ctx) {
		if len(e.pauses.latest.Load().pauses) > 0 {
			e.forgetQueues()
		}
	}
}

// PauseOrder is the author and the reason of a pause or resume. Every field may be zero.
type PauseOrder struct {
	By     string
	Reason string
	For    time.Duration // 0: until it is resumed
	Stops  bool          // of an execution: its timers stop
}

// PauseWork pauses a queue, a worker or an action, until it is resumed or its time is over. When it returns, no server claims from the
// queue, for the worker or of the action. Attempts that have begun continue. A second pause replaces the first. A subject that does not
// exist is *NoSuch.
func (e *Engine) PauseWork(ctx context.Context, kind store.PauseKind, name string, o PauseOrder) (store.Pause, error) {
	if err := o.check(); err != nil {
		return store.Pause{}, err
	}
	if err := e.checkPausable(ctx, kind, name); err != nil {
		return store.Pause{}, err
	}
	p, err := e.changePause(ctx, kind, name, func(now time.Time, _ store.Pause) *store.Pause {
		p := &store.Pause{Paused: true, At: now, By: o.By, Reason: o.Reason}
		if o.For > 0 {
			p.Until = now.Add(o.For)
		}
		return p
	})
	if err == nil {
		e.opts.Log.Info("paused", "subject", fmt.Sprintf("%s %s", kind, name), "by", o.By, telemetry.Why, o.Reason)
	}
	return p, err
}

// ResumeWork ends a pause now. If there is none, it changes and records nothing.
func (e *Engine) ResumeWork(ctx context.Context, kind store.PauseKind, name string, o PauseOrder) (store.Pause, error) {
	if err := o.check(); err != nil {
		return store.Pause{}, err
	}
	p, err := e.changePause(ctx, kind, name, func(now time.Time, last store.Pause) *store.Pause {
		if !last.Holds(now) {
			return nil
		}
		return &store.Pause{At: now, By: o.By, Reason: o.Reason}
	})
	if err == nil && p.Generation == 0 {
		err = e.checkPausable(ctx, kind, name)
		p = store.Pause{Of: kind, Name: name}
	}
	return p, err
}

// check returns what is wrong with an order: *Invalid.
func (o *PauseOrder) check() error {
	if err := fault.CheckText("reason", o.Reason, fault.ReasonLimit, "shorten it"); err != nil {
		return err
	}
	if err := fault.CheckText("by", o.By, fault.AuthorLimit, "give a name"); err != nil {
		return err
	}
	if o.For < 0 || o.For > pauseLimit {
		return fault.New("for", o.For.String(), fmt.Sprintf("it is not between 0s and %s", pauseLimit), "leave it out to pause until it is resumed")
	}
	return nil
}

func (e *Engine) changePause(ctx context.Context, kind store.PauseKind, name string,
	decide func(time.Time, store.Pause) *store.Pause) (p store.Pause, err error) {
	err = store.Repeat(func(int) error {
		p, err = e.opts.Store.ChangePause(ctx, kind, name, decide)
		return err
	})
	if err == nil {
		e.pausesChanged(ctx)
	}
	return p, err
}

// pausesChanged reads the pauses after a change, here or by another server, and lets claimers look again. If reading fails, the next claim
// reads them.
func (e *Engine) pausesChanged(ctx context.Context) {
	if all, generation, err := e.opts.Store.Pauses(ctx); err == nil {
		e.pauses.keep(newPauseSet(all, generation))
	} else if ctx.Err() == nil {
		e.opts.Log.Warn("reading what is paused failed; the next claim reads it", telemetry.Err, err)
	}
	e.forgetQueues()
	e.pauses.over.announce(time.Now())
	e.watch.wakeAll()
}

// checkPausable returns a *NoSuch for a queue, worker or action that does not exist.
func (e *Engine) checkPausable(ctx context.Context, kind store.PauseKind, name string) error {
	switch kind {
	case store.PausedAction:
		if flow.Kind(name).AdHoc() {
			return nil
		}
		_, err := e.catalog.Registered(ctx, name)
		return err
	case store.PausedQueue:
		names, err := e.catalog.Queues(ctx)
		if err != nil || slices.Contains(names, name) {
			return err
		}
		if known, err := e.catalog.KnowsQueue(ctx, name); err != nil || known {
			return err
		}
		fix := cmp.Or(problem.Nearest(name, names), catalog.QueueFix(name))
		return &fault.NoSuch{Say: catalog.UnknownQueue(name), Fix: fix}
	default:
		sessions, err := e.opts.Store.LiveSessions(ctx)
		if err != nil || slices.ContainsFunc(sessions, func(s store.Session) bool { return s.Name == name }) {
			return err
		}
		var names []string
		for _, s := range sessions {
			names = append(names, s.Name)
		}
		fix := cmp.Or(problem.Nearest(name, names), "pawl get workers lists those that are alive")
		return &fault.NoSuch{Say: fmt.Sprintf("no live worker is called %.100q", name), Fix: fix}
	}
}

// Paused are the pauses in force, by subject.
func (e *Engine) Paused(ctx context.Context) ([]store.Pause, error) {
	all, _, err := e.opts.Store.Pauses(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	now, err := e.now(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the database's clock: %w", err)
	}
	return slices.DeleteFunc(all, func(p store.Pause) bool { return !p.Holds(now) }), nil
}
