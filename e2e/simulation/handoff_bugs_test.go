package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// carrier is a hand-off that misbehaves.
type carrier struct {
	handoff.Handoff
	w *world

	report func(*carrier, context.Context, flow.ID, []flow.Report) ([]flow.Receipt, error)
	take   func(*carrier, context.Context, flow.ID, int) ([]handoff.Assignment, error)
	renew  func(handoff.Renewal, error) (handoff.Renewal, error)
	log    func(*carrier, context.Context, flow.ID, []flow.LogChunk) error
}

func carried(pattern carrier) func(*world, handoff.Handoff) handoff.Handoff {
	return func(w *world, h handoff.Handoff) handoff.Handoff {
		c := pattern
		c.Handoff, c.w = h, w
		return &c
	}
}

func (c *carrier) Report(ctx context.Context, session flow.ID, rs []flow.Report) ([]flow.Receipt, error) {
	if c.report != nil {
		return c.report(c, ctx, session, rs)
	}
	return c.Handoff.Report(ctx, session, rs)
}

func (c *carrier) Take(ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	if c.take != nil {
		return c.take(c, ctx, session, n)
	}
	return c.Handoff.Take(ctx, session, n)
}

func (c *carrier) Renew(ctx context.Context, session flow.ID) (handoff.Renewal, error) {
	r, err := c.Handoff.Renew(ctx, session)
	if c.renew != nil {
		return c.renew(r, err)
	}
	return r, err
}

func (c *carrier) Log(ctx context.Context, session flow.ID, chunks []flow.LogChunk) error {
	if c.log != nil {
		return c.log(c, ctx, session, chunks)
	}
	return c.Handoff.Log(ctx, session, chunks)
}

// logLate accepts logs and stores them later, when their attempt may have ended.
func logLate(c *carrier, _ context.Context, session flow.ID, chunks []flow.LogChunk) error {
	c.w.spawn(func() {
		select {
		case <-time.After(time.Duration(1 + c.w.noise("late log", session, time.Since(c.w.began))*float64(time.Second))):
			_ = c.Handoff.Log(c.w.ctx, session, chunks) // nobody listens any more
		case <-c.w.ctx.Done():
		}
	})
	return nil
}

// receipts acknowledges every event of the reports.
func receipts(rs []flow.Report) []flow.Receipt {
	all := make([]flow.Receipt, len(rs))
	for i, r := range rs {
		all[i] = flow.Receipt{Execution: r.Execution, Attempt: r.Attempt, Verdict: flow.Applied}
		if n := len(r.Events); n > 0 {
			all[i].Next = r.Events[n-1].Seq + 1
		}
	}
	return all
}

// reportEarly answers reports before they are committed.
func reportEarly(c *carrier, ctx context.Context, session flow.ID, rs []flow.Report) ([]flow.Receipt, error) {
	// The real outcome of the reports is ignored.
	c.w.spawn(func() { _, _ = c.Handoff.Report(ctx, session, rs) })
	return receipts(rs), nil
}

// reportByArrival treats a report as known when the same number of events has arrived before.
func reportByArrival(c *carrier, ctx context.Context, session flow.ID, rs []flow.Report) ([]flow.Receipt, error) {
	all := receipts(rs)
	var fresh []flow.Report
	var at []int
	c.w.mu.Lock()
	for i, r := range rs {
		k := try{r.Execution, r.Attempt}
		if c.w.memory.seen[k] < len(r.Events) || len(r.Events) == 1 && r.Events[0].Outcome == nil {
			fresh, at = append(fresh, r), append(at, i)
		}
		c.w.memory.seen[k] += len(r.Events)
	}
	c.w.mu.Unlock()
	got, err := c.Handoff.Report(ctx, session, fresh)
	for i := range got {
		all[at[i]] = got[i]
	}
	return all, err
}

// reportUnfenced applies reports of old attempts to the current one.
func reportUnfenced(c *carrier, ctx context.Context, session flow.ID, rs []flow.Report) ([]flow.Receipt, error) {
	for _, r := range rs {
		x, err := c.w.base.Get(ctx, r.Execution)
		if err != nil || x.Place != flow.Held || x.Attempt <= r.Attempt || x.Owner.IsZero() {
			continue
		}
		forged := flow.Report{Execution: r.Execution, Attempt: x.Attempt}
		for i, e := range r.Events {
			e.Seq, e.Attempt = x.NextSeq+int64(i), x.Attempt
			forged.Events = append(forged.Events, e)
		}
		if _, err := c.Handoff.Report(ctx, x.Owner, []flow.Report{forged}); err != nil {
			return nil, err
		}
	}
	return c.Handoff.Report(ctx, session, rs)
}

// reportLate lets events after the end change the end that readers see.
func reportLate(c *carrier, ctx context.Context, session flow.ID, rs []flow.Report) ([]flow.Receipt, error) {
	for _, r := range rs {
		if x, err := c.w.base.Get(ctx, r.Execution); err == nil && x.Place == flow.Finished {
			c.w.mu.Lock()
			c.w.memory.late[x.ID] = flow.Running
			c.w.mu.Unlock()
		}
	}
	return c.Handoff.Report(ctx, session, rs)
}

// takeAgain hands out an old answer a second time, after more time than a worker remembers finished attempts.
func takeAgain(c *carrier, ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	c.w.mu.Lock()
	old := c.w.memory.answers[session]
	due := len(old) > 0 && time.Since(c.w.memory.answered[session]) > 2*handoff.Lease
	if due {
		delete(c.w.memory.answers, session)
	}
	c.w.mu.Unlock()
	if due {
		return old[:1], nil
	}
	work, err := c.Handoff.Take(ctx, session, n)
	c.w.mu.Lock()
	if len(work) > 0 && len(c.w.memory.answers[session]) == 0 {
		c.w.memory.answers[session], c.w.memory.answered[session] = work, time.Now()
	}
	c.w.mu.Unlock()
	return work, err
}

// renewBlindly treats a failed renewal as a successful one.
func renewBlindly(r handoff.Renewal, err error) (handoff.Renewal, error) {
	if errors.Is(err, handoff.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, handoff.ErrSessionLost) {
		return handoff.Renewal{}, nil
	}
	return r, err
}

// crooked is a database that misbehaves.
type crooked struct {
	store.Store
	w *world

	update   func(*crooked, context.Context, func(context.Context, store.Tx) error) error
	events   func([]flow.Event) []flow.Event
	late     bool // late events overwrite executions that have ended
	bare     bool // executions that have ended have lost their input
	finished time.Duration
	reruns   bool // the oldest rerun is not listed
}

func bent(pattern crooked) func(*world, store.Store) store.Store {
	return func(w *world, s store.Store) store.Store {
		c := pattern
		c.Store, c.w = s, w
		return &c
	}
}

func (c *crooked) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	if c.update != nil {
		return c.update(c, ctx, decide)
	}
	return c.Store.Update(ctx, decide)
}

func (c *crooked) Events(ctx context.Context, id flow.ID, after int64, n int) ([]flow.Event, error) {
	es, err := c.Store.Events(ctx, id, after, n)
	if err == nil && c.events != nil {
		es = c.events(es)
	}
	return es, err
}

func (c *crooked) Get(ctx context.Context, id flow.ID) (*flow.Execution, error) {
	x, err := c.Store.Get(ctx, id)
	if err == nil && c.bare && x.Stage.Terminal() {
		x.Input = nil
	}
	if err != nil || !c.late {
		return x, err
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if s, ok := c.w.memory.late[id]; ok {
		x.Stage = s
	}
	return x, nil
}

func (c *crooked) Search(ctx context.Context, f store.Filter) (store.Found, error) {
	found, err := c.Store.Search(ctx, f)
	if n := len(found.Executions); err == nil && c.reruns && !f.RerunOf.IsZero() && n > 0 {
		found.Executions = found.Executions[:n-1]
	}
	return found, err
}

func (c *crooked) Removable(ctx context.Context, q store.RemovableQuery) (store.Removable, error) {
	q.Before = q.Before.Add(c.finished)
	return c.Store.Removable(ctx, q)
}

// outage reports a row that the database refuses as a database that does not answer, so the engine retries the same row for ever.
func outage(c *crooked, ctx context.Context, decide func(context.Context, store.Tx) error) error {
	err := c.Store.Update(ctx, decide)
	if errors.Is(err, errRefused) {
		return store.ErrUnavailable
	}
	return err
}

var errSwallowed = errors.New("the commit failed")

// swallow tells an engine now and then that a failed commit succeeded.
func swallow(c *crooked, ctx context.Context, decide func(context.Context, store.Tx) error) error {
	fail := c.w.noise("swallow", time.Since(c.w.began)) < 0.03
	err := c.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := decide(ctx, tx); err != nil || !fail {
			return err
		}
		return errSwallowed
	})
	if errors.Is(err, errSwallowed) {
		return nil
	}
	return err
}
