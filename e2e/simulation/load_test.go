package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	enginefault "github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// load runs the simulated clients.
type load struct {
	w    *world
	docs []*document

	mu      sync.Mutex
	left    int
	begun   int
	waiting map[string]bool // clients without an answer
	keys    map[string]flow.ID

	redriven  []redriven
	orders    map[string]*order // of reruns, by key
	reactions reactions
}

func newLoad(w *world) *load {
	l := &load{w: w, left: w.plan.Ops, waiting: map[string]bool{}, keys: map[string]flow.ID{}, orders: map[string]*order{},
		reactions: reactions{signals: map[string]flow.ID{}, values: map[flow.ID]int{}, hooks: map[flow.ID]hooked{}, answers: map[flow.ID]flow.AnswerOutput{}, onces: map[string]flow.ID{}}}
	first := w.rng.IntN(len(documents()))
	for i := range 2 {
		l.docs = append(l.docs, documents()[(first+i*7)%len(documents())])
	}
	return l
}

// define stores the definitions while no faults happen.
func (l *load) define() {
	w := l.w
	for w.replicas[0].isDown() || !w.replicas[0].isUp() {
		for _, g := range w.waiting() {
			w.release(g, verdict{to: w.anyReplica(g)})
			break
		}
	}
	synctest.Wait()
	done := make(chan error, 1)
	to := w.replicas[0].reach(w.ctx)
	defer to.done()
	w.spawn(func() {
		var all []*definition.Definition
		for _, d := range l.docs {
			all = append(all, d.defs...)
		}
		if w.plan.Reacts {
			all = append(all, reacting().defs...)
		}
		if w.plan.beats() {
			all = append(all, beating()[w.plan.Beat-1].defs...)
		}
		_, err := to.Define(to.ctx, slices.Concat(all, leaf().defs, thumb().defs, lister().defs, rounder().defs, cacher().defs, wrapper().defs))
		if err == nil && w.plan.Reruns {
			err = defineTurns(to.ctx, to.Engine)
		}
		done <- err
	})
	for {
		gs := w.waiting()
		select {
		case err := <-done:
			if err != nil {
				panic(fmt.Sprintf("define: %v", err))
			}
			return
		default:
		}
		i := slices.IndexFunc(gs, func(g *gate) bool { return g.of == w.replicas[0] && g.kind == atCommit })
		if i < 0 {
			time.Sleep(50 * time.Millisecond) // the answer waits until every replica knows
			continue
		}
		w.release(gs[i], verdict{})
	}
}

// defineTurns stores the versions between which aliases are moved.
func defineTurns(ctx context.Context, e *engine.Engine) error {
	for _, d := range slices.Concat(dialVersions(), turnsVersions()) {
		_, err := e.Define(ctx, d.defs)
		if err == nil && d.name() == dialName { // which turns names
			_, _, err = e.MoveAlias(ctx, dialName, stable, api.AliasOrder{To: []api.AliasTarget{{Version: 1}}})
		}
		if err != nil {
			return err
		}
	}
	_, _, err := e.MoveAlias(ctx, turns, stable, api.AliasOrder{To: []api.AliasTarget{{Version: 2}}})
	return err
}

// definition returns the definition that a workflow execution runs, and nil for other executions.
func (l *load) definition(r *row) *definition.Workflow {
	if r.x.Action == turns && r.x.Kind == flow.KindWorkflow {
		return turnsVersions()[r.x.Version-1].defs[0].Workflow
	}
	for _, d := range append([]*document{leaf(), lister(), rounder(), cacher(), wrapper()}, l.docs...) {
		for _, def := range d.defs {
			if def.Name == r.x.Action && r.x.Kind == flow.KindWorkflow {
				return def.Workflow
			}
		}
	}
	return nil
}

// items returns how many children a task has when it runs.
func (l *load) items(t *definition.Task) int {
	if t.Foreach == nil {
		return 1
	}
	items, err := t.Items(&definition.Vars{})
	if err != nil { // the document does not write the list out
		return listed
	}
	return len(items)
}

// quiet reports whether every client has its answer and no more clients will begin.
func (l *load) quiet() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left == 0 && len(l.waiting) == 0
}

func (l *load) unanswered() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for k := range l.waiting {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// next lets a client begin. It returns false when all have begun.
func (l *load) next() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == 0 {
		return false
	}
	l.left--
	l.begun++
	r, key := l.w.rng, fmt.Sprintf("client%d", l.begun)
	l.waiting[key] = true
	var do func(ctx context.Context)
	if n := r.IntN(1000); l.begun > 2 && r.IntN(6) == 0 {
		do = func(ctx context.Context) { l.cancel(ctx, key, n) }
	} else if l.begun > 3 && r.IntN(8) == 0 {
		do = func(ctx context.Context) { l.redrive(ctx, key, n) }
	} else {
		subs := []engine.Submission{l.submission()}
		for subs[0].IdempotencyKey != "" && r.IntN(3) == 0 || subs[0].Key != "" && len(subs) < 5 && r.IntN(3) > 0 {
			s := subs[0]
			if s.IdempotencyKey == "" {
				s.Input = json.RawMessage(fmt.Sprintf(`{"do":"ok","v":%d}`, 100+len(subs)))
			}
			subs = append(subs, s)
		}
		do = func(ctx context.Context) { l.submit(ctx, key, subs) }
	}
	if l.w.plan.Reacts {
		l.react(l.begun)
	}
	if l.w.noise("pauses", l.begun) < pausing {
		l.pause(l.begun)
	}
	if l.w.noise("workflow pauses", l.begun) < pausing {
		l.pauseWorkflow(l.begun)
	}
	if l.w.plan.Reruns {
		if l.w.noise("reruns", l.begun) < rerunning {
			l.rerun(l.begun)
		}
		if l.w.noise("moves", l.begun) < moving {
			l.move(l.begun)
		}
	}
	l.w.note("%s begins", key)
	l.w.spawn(func() {
		do(l.w.ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, key)
	})
	return true
}

// submission draws a submission.
func (l *load) submission() engine.Submission {
	r := l.w.rng
	is := func(percent int) bool { return r.IntN(100) < percent }
	s := engine.Submission{Action: "noop", Input: json.RawMessage(fmt.Sprintf(`{"do":%q,"v":%d}`,
		pick(r.IntN(100), "ok", "ok", "chat", "chat", "slow", "flaky", "fail"), r.IntN(100)))}
	switch {
	case is(30):
		s.Action, s.Input = l.docs[r.IntN(len(l.docs))].name(), nil
		if is(15) {
			s.TotalTimeout = time.Duration(2+r.IntN(20)) * time.Second
		}
		if is(20) {
			s.Retry = &flow.Retry{MaxAttempts: 2, Delay: time.Second}
		}
		switch dice := l.w.noise("workflow", l.begun); {
		case l.w.plan.Reruns && l.w.noise("wraps", l.begun) < l.w.plan.wrapping():
			s.Action = wrapper().name()
		case l.w.plan.Reruns && l.w.noise("turns", l.begun) < 0.6:
			s.Action, s.Input = l.turnsBy(l.begun)
		case l.w.noise("rounds", l.begun) < l.w.plan.rounding():
			s.Action = rounder().name()
		case l.w.noise("caches", l.begun) < l.w.plan.caching():
			s.Action, s.Input = cacher().name(), fmt.Appendf(nil, `{"n":%d}`, int(2*l.w.noise("cached", l.begun)))
			s.NoCache = l.w.noise("no cache", l.begun) < 0.2
		case dice < 0.2:
			s.Action = lister().name()
		case dice < 0.4 && s.TotalTimeout == 0:
			s.Timeout, s.Retry = time.Duration(2+20*(dice-0.2))*time.Second, &flow.Retry{MaxAttempts: 3, Delay: 500 * time.Millisecond}
		}
	case is(10):
		n := 1 + r.IntN(10)
		s.Action, s.Input = "sleep", json.RawMessage(fmt.Sprintf(`{"for":%d}`, n))
		if l.w.noise("sleep's timeout", l.begun) < 0.4 {
			s.Timeout = time.Duration(n+1) * time.Second // long enough, however late the engine looks
		}
	case is(12):
		s.Action, s.Input = "input", json.RawMessage(fmt.Sprintf(`{"do":"ok","v":%d}`, r.IntN(100)))
	case is(6):
		// Only its cancel ends it.
		return engine.Submission{Action: "noop", Input: json.RawMessage(`{"do":"hang"}`), IdempotencyKey: fmt.Sprintf("hangs-%d", l.begun)}
	case is(10):
		s.Input = json.RawMessage(`{"do":"hang"}`)
		s.Timeout = time.Duration(1+r.IntN(8)) * time.Second
	}
	if s.Retry == nil && is(40) {
		s.Retry = &flow.Retry{MaxAttempts: 1 + r.IntN(4), Delay: time.Duration(r.IntN(3000)) * time.Millisecond, Jitter: 0.5}
	}
	if is(40) {
		n := r.IntN(3)
		if s.Key, s.KeyLimit = fmt.Sprintf("k%d", n), n+1; n == 2 {
			s.KeyLimit = 1 + r.IntN(3) // its limit differs from submission to submission
		}
		s.WhenFull = flow.WhenFull(pick(r.IntN(100), "queue", "queue", "queue", "cancel_new", "cancel_oldest"))
	}
	if is(25) {
		p := r.IntN(3) * 10
		s.Priority = &p
	}
	if is(15) {
		s.QueueTimeout = time.Duration(1+r.IntN(20)) * time.Second
	}
	if is(10) && s.TotalTimeout == 0 {
		s.TotalTimeout = time.Duration(1+r.IntN(40)) * time.Second
	}
	if is(10) {
		s.NotBefore = l.w.now().Add(time.Duration(r.IntN(10)) * time.Second)
	}
	if is(15) && s.Action == "noop" {
		s.Queue = "gpu"
	}
	if s.Action == "noop" && s.NotBefore.IsZero() && l.w.noise("cache", l.begun) < l.w.plan.caching()/2 {
		s.Input = fmt.Appendf(nil, `{"do":"ok","v":%d}`, 200+int(3*l.w.noise("cached", l.begun)))
		s.Cache, s.NoCache = &engine.Cache{TTL: 20 * time.Second}, l.w.noise("no cache", l.begun) < 0.2
	}
	if s.Action == "noop" && l.w.noise("custom", l.begun) < 0.25 {
		s.Action = thumb().name()
	}
	if (s.Action == "noop" || s.Action == thumb().name()) && is(20) {
		s.WorkerLabels = []map[string]string{{"zone": "eu"}, {"size": "big"}, {"zone": "eu", "size": "big"}}[r.IntN(3)]
	}
	if is(45) {
		s.IdempotencyKey = fmt.Sprintf("idem-%d", l.begun)
	}
	return s
}

func pick(n int, from ...string) string { return from[n%len(from)] }

// submit is a client that submits, and submits again when it got no answer and a second submission is safe.
func (l *load) submit(ctx context.Context, key string, subs []engine.Submission) {
	w := l.w
	batch := "" // the idempotency key of all of them
	if len(subs) > 1 && subs[0].IdempotencyKey == "" && w.noise("batch", key) < 0.6 {
		batch = "batch-" + key
	}
	for n := 1; ; n++ {
		var out []engine.Submitted
		err := l.call(ctx, key, func(ctx context.Context, e *engine.Engine) (err error) {
			if batch != "" {
				out, err = e.SubmitBatch(ctx, batch, subs)
			} else {
				out, err = e.Submit(ctx, subs)
			}
			return err
		})
		again := err != nil
		for i := range out {
			if err != nil {
				break
			}
			if out[i].Err != nil {
				w.aside("%s: submission %d: %v", key, i, out[i].Err)
				if unsound := (*enginefault.Invalid)(nil); !passes(out[i].Err) && !errors.As(out[i].Err, &unsound) {
					w.violate(1, "a sound submission was not accepted: %v", out[i].Err)
				}
				again = again || passes(out[i].Err)
				continue
			}
			w.shadow.accepted(out[i].Execution)
			l.same(subs[i].IdempotencyKey, out[i].Execution)
			if batch != "" {
				l.same(fmt.Sprintf("%s[%d]", batch, i), out[i].Execution)
			}
		}
		// A client that got no answer submits a batch once more.
		if !again && (batch == "" || n > 1) || subs[0].IdempotencyKey == "" && batch == "" {
			break
		}
		time.Sleep(time.Duration(1 + w.noise("again", key, n)*float64(3*time.Second)))
		if ctx.Err() != nil {
			return
		}
	}
	if subs[0].IdempotencyKey == "" {
		return
	}
	if strings.HasPrefix(subs[0].IdempotencyKey, "hangs") {
		l.cancelID(ctx, key, l.known(subs[0].IdempotencyKey))
		return
	}
	// The same key with another body is refused.
	other := subs[0]
	other.Input = json.RawMessage(`{"do":"ok","v":-1}`)
	if other.Action == "sleep" {
		other.Input = json.RawMessage(`{"for": 11}`)
	}
	var out []engine.Submitted
	err := l.call(ctx, key, func(ctx context.Context, e *engine.Engine) (err error) {
		out, err = e.Submit(ctx, []engine.Submission{other})
		return err
	})
	if err == nil && out[0].Err == nil && !w.shadow.isRemoved(l.known(other.IdempotencyKey)) {
		w.violate(25, "idempotency key %q was accepted with another body, as %s", other.IdempotencyKey, name(out[0].Execution))
	}
}

// passes reports whether an error says nothing about the request itself, so that the client may send it again.
func passes(err error) bool {
	for _, passing := range []error{store.ErrUnavailable, store.ErrUnknown, store.ErrConflict, engine.ErrClosed, engine.ErrOverloaded, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// same checks that one idempotency key leads to one execution.
func (l *load) same(key string, id flow.ID) {
	if key == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.keys[key]; ok && old != id && !l.w.shadow.isRemoved(old) {
		l.w.violate(25, "idempotency key %q gave %s and %s", key, name(old), name(id))
	}
	l.keys[key] = id
}

func (l *load) known(key string) flow.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys[key]
}

// cancel is a client that cancels an execution, until it gets the answer that this was done.
func (l *load) cancel(ctx context.Context, key string, n int) {
	if target := l.w.shadow.pick(n, func(r *row) bool { return r.x.Place != flow.Finished }); target != nil {
		l.cancelID(ctx, key, target.id)
	}
}

func (l *load) cancelID(ctx context.Context, key string, id flow.ID) {
	w := l.w
	for n := 1; ctx.Err() == nil; n++ {
		w.shadow.cancelAsked(id)
		err := l.call(ctx, key, func(ctx context.Context, e *engine.Engine) error {
			_, err := e.Cancel(ctx, id, "")
			return err
		})
		switch {
		case err == nil:
			w.shadow.cancelTold(id)
			return
		case errors.Is(err, flow.ErrFinished), errors.Is(err, store.ErrNotFound):
			return
		}
		time.Sleep(time.Duration(1 + w.noise("cancel", key, n)*float64(3*time.Second)))
	}
}

// redrive is a client that retries an execution that has not completed. Without an answer the retry may exist all the same.
func (l *load) redrive(ctx context.Context, key string, n int) {
	target := l.w.shadow.pick(n, func(r *row) bool { // the schedule would count a retry of its execution as its own
		return r.x.Place == flow.Finished && r.x.Stage != flow.Completed && r.x.Labels[engine.ScheduleLabel] == ""
	})
	if target == nil {
		return
	}
	if x, err := l.w.base.Get(ctx, target.id); err != nil || x.Timeout == 0 && bytes.Contains(x.Input, []byte("hang")) {
		return // it hangs again, and only another cancel would end it
	}
	var id flow.ID
	err := l.call(ctx, key, func(ctx context.Context, e *engine.Engine) error {
		again, err := e.Retry(ctx, target.id, "")
		id = again.Execution
		return err
	})
	if err == nil {
		l.w.shadow.accepted(id)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.redriven = append(l.redriven, redriven{target.id, id})
	}
}

// redriven is an execution and its retry.
type redriven struct{ old, again flow.ID }

// call sends a client's request to some engine and brings the answer back.
func (l *load) call(ctx context.Context, key string, do func(context.Context, *engine.Engine) error) error {
	sent := l.w.park(ctx, &gate{key: key + " request", kind: atRequest})
	if sent.do == gone || sent.do == lose || sent.to == nil {
		return errLost
	}
	to := sent.to.reach(ctx)
	if to == nil {
		return errLost
	}
	defer to.done()
	err := do(to.ctx, to.Engine)
	if to.died() {
		return errLost
	}
	back := l.w.park(ctx, &gate{key: key + " answer", kind: atAnswer})
	if back.do == gone || back.do == lose {
		return errLost
	}
	return err
}

// peek lets a reader read one history: it must be all that is committed, from 1 on and without gaps.
func (w *world) peek() {
	r := w.shadow.pick(w.rng.IntN(1000), func(*row) bool { return true })
	if r == nil {
		return
	}
	got, err := w.view.Events(w.ctx, r.id, 0, 1000)
	if err != nil {
		w.violate(7, "read the events of %s: %v", name(r.id), err)
		return
	}
	if say := w.shadow.prefix(r.id, got); say != "" {
		w.violate(7, "%s: %s", name(r.id), say)
	}
	x, err := w.view.Get(w.ctx, r.id)
	if err != nil {
		w.violate(31, "read %s: %v", name(r.id), err)
		return
	}
	w.shadow.compare(x)
	if w.plan.Reacts { // waits that are open now have ended by the end of the run
		w.checkStore()
	}
}
