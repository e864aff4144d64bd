package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/inquiries"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// reactions holds what the clients of a world with rules, waits and questions were told. The judge compares it with the rows at the end.
type reactions struct {
	mu      sync.Mutex
	signals map[string]flow.ID            // by key
	values  map[flow.ID]int               // the number in a signal's data
	hooks   map[flow.ID]hooked            // by signal
	answers map[flow.ID]flow.AnswerOutput // by inquiry
	onces   map[string]flow.ID            // the execution found for a subject, as the judge finds it
}

// reacting holds the workflow that rules run, and one that asks questions and waits for signals.
var reacting = sync.OnceValue(func() *document {
	return parsed(`name: reacting
input: {type: object, properties: {about: {type: string}}}
tasks:
  approve:
    action: ask
    with:
      title: Go on?
      form: {type: object, required: [ok], properties: {ok: {type: boolean}}}
      expires: 20s
      on_expiry: default
      default: {ok: false}
  hit: {action: wait, with: {signal: sim.hit, subject: "${{ input.about }}", since: 3s, timeout: 15s, on_timeout: "null"}}
  last: {needs: [approve, hit], action: noop, with: {do: ok, v: 1}}
outputs: {ok: "${{ tasks.approve.output.answer.ok }}", of: "${{ tasks.hit.output }}"}
---
kind: trigger
name: sim.hit
data: {type: object, required: [v], properties: {v: {type: integer}}}
waits: true
---
kind: rule
name: two-of-three
on: [sim.hit]
if: signal.data.v % 3 != 0
run: {action: noop, input: {do: ok, v: "${{ signal.data.v }}"}}
---
kind: rule
name: once-each
on: ["sim.*"]
run: {action: noop, input: {do: slow, v: 7}, once: "${{ signal.subject }}"}
---
kind: rule
name: settled
on: [sim.hit]
debounce: {key: "${{ signal.subject }}", quiet: 2s, at_most: 6s}
run: {action: noop, input: {do: ok, v: 8}}
---
kind: rule
name: gathered
on: [sim.hit]
batch: {key: "${{ signal.subject }}", size: 2, wait: 4s}
run: {action: noop, input: {do: ok, v: 11, of: "${{ signals.map(s, s.id) }}"}}
---
kind: rule
name: afterwards
on: [execution.ended]
if: signal.data.action == "reacting"
run: {action: noop, input: {do: ok, v: 9}}
`)
})

// react starts one more client beside the n-th.
func (l *load) react(n int) {
	w := l.w
	key := fmt.Sprintf("react%d", n)
	var do func(ctx context.Context)
	switch dice := w.noise("reaction", n); {
	case w.plan.beats() && w.noise("hook", n) < 0.4:
		do = func(ctx context.Context) { l.deliver(ctx, key, n) }
	case dice < 0.5:
		do = func(ctx context.Context) { l.emit(ctx, key, n) }
	case dice < 0.75:
		do = func(ctx context.Context) { l.answer(ctx, key) }
	default:
		do = func(ctx context.Context) {
			l.submit(ctx, key, []engine.Submission{{Action: reacting().name(), IdempotencyKey: key, Input: fmt.Appendf(nil, `{"about":"s%d"}`, n%3)}})
		}
	}
	l.waiting[key] = true
	w.note("%s begins", key)
	w.spawn(func() {
		do(w.ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, key)
	})
}

// emit is a client that emits one signal, one to three times; without a key it emits once, whatever the answer.
func (l *load) emit(ctx context.Context, key string, n int) {
	w := l.w
	m := engine.Emission{Trigger: "sim.hit", Data: fmt.Appendf(nil, `{"v":%d}`, n), Subject: fmt.Sprintf("s%d", n%3)}
	times := 1
	if w.noise("keyed", key) < 0.7 {
		m.Key, times = key, 1+int(3*w.noise("redelivered", key))
	}
	for told := 0; told < times && ctx.Err() == nil; {
		var out []engine.Emitted
		err := l.call(ctx, key, func(ctx context.Context, e *engine.Engine) (err error) {
			out, err = e.Emit(ctx, []engine.Emission{m})
			return err
		})
		switch {
		case err == nil && out[0].Err == nil:
			told++
			l.emitted(m.Key, n, out[0].Signal)
		case err == nil && !passes(out[0].Err):
			w.violate(1, "a sound signal was not accepted: %v", out[0].Err)
			return
		case m.Key == "":
			return
		}
		time.Sleep(time.Duration(1 + w.noise("emit again", key, told)*float64(3*time.Second)))
	}
}

// emitted notes that a client got the id of its signal.
func (l *load) emitted(key string, v int, id flow.ID) {
	r := &l.reactions
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.signals[key]; ok && key != "" && old != id {
		l.w.violate(25, "signal key %q gave %s and %s", key, old.Text(flow.SignalPrefix), id.Text(flow.SignalPrefix))
	}
	if key != "" {
		r.signals[key] = id
	}
	r.values[id] = v
}

// answer is a person who answers an open question until it has an answer, and then another person who comes too late.
func (l *load) answer(ctx context.Context, key string) {
	w := l.w
	var id flow.ID
	for n := range 6 {
		value := w.noise("answer", key) < 0.5
		err := l.call(ctx, key, func(ctx context.Context, e *engine.Engine) error {
			if id.IsZero() {
				open, err := e.Reader().Inquiries(ctx, store.InquiryFilter{State: flow.InquiryOpen, Limit: 10})
				if err != nil || len(open) == 0 {
					return err
				}
				id = open[int(w.noise("question", key)*float64(len(open)))].ID
			}
			_, err := e.Inquiries().Answer(ctx, id, inquiries.Reply{By: key, Value: fmt.Appendf(nil, `{"ok":%t}`, value), Via: "api"})
			return err
		})
		if err == nil && !id.IsZero() {
			l.answered(id, flow.AnswerOutput{By: key, Value: fmt.Appendf(nil, `{"ok":%t}`, value)})
			break
		}
		if err != nil && !passes(err) && !errors.Is(err, errLost) {
			return // another person was quicker, or the question had ended
		}
		time.Sleep(time.Duration(1 + w.noise("ask again", key, n)*float64(3*time.Second)))
		if ctx.Err() != nil {
			return
		}
	}
	if id.IsZero() {
		return
	}
	err := l.call(ctx, key, func(ctx context.Context, e *engine.Engine) error {
		_, err := e.Inquiries().Answer(ctx, id, inquiries.Reply{By: "late", Value: json.RawMessage(`{"ok":true}`), Via: "api"})
		return err
	})
	if err == nil {
		l.answered(id, flow.AnswerOutput{By: "late", Value: json.RawMessage(`{"ok":true}`)})
	}
}

// answered notes that a person was told that their answer counts.
func (l *load) answered(id flow.ID, g flow.AnswerOutput) {
	r := &l.reactions
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.answers[id]; ok && old.By != g.By {
		l.w.violate(46, "question %s was answered by %s and by %s", id.Text(flow.InquiryPrefix), old.By, g.By)
	}
	r.answers[id] = g
}

// newSignals returns the signals that no rule has decided yet. Like open executions, they keep a run from ending.
func (w *world) newSignals() []flow.Signal {
	left, err := w.view.NewSignals(w.ctx, time.Now().Add(time.Hour), store.SignalPlace{}, 10) // including deferred ones
	if err != nil {
		w.violate(41, "read the signals that are new: %v", err)
	}
	return left
}

// judgeReactions compares what clients were told about signals and answers with the stored rows.
func (w *world) judgeReactions() {
	r := &w.load.reactions
	for _, id := range sortedIDs(r.values) {
		s, err := w.view.Signal(w.ctx, id)
		if err != nil || s.State != flow.SignalMatched {
			w.violate(41, "signal %s, which was acknowledged, is read as %v: %v", id.Text(flow.SignalPrefix), s.State, err)
			continue
		}
		w.judgeSignal(&s, r.values[id])
	}
	w.judgeEnds()
	for _, s := range w.newSignals() {
		w.violate(41, "no rule was asked about %s", s.ID.Text(flow.SignalPrefix))
	}
	for _, id := range sortedIDs(r.answers) {
		i, err := w.view.Inquiry(w.ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue // retention has removed it with its workflow
		}
		want := r.answers[id]
		if err != nil || i.State != flow.InquiryAnswered || i.Answer == nil || i.Answer.By != want.By || string(i.Answer.Value) != string(want.Value) {
			w.violate(46, "question %s was answered by %s with %s and is read as %+v: %v", id.Text(flow.InquiryPrefix), want.By, want.Value, i, err)
		}
	}
}

// judgeSignal checks what the rules did with one signal.
func (w *world) judgeSignal(s *flow.Signal, v int) {
	all, err := w.view.Enforcements(w.ctx, store.EnforcementFilter{Signal: s.Number, Limit: 10})
	if err != nil {
		w.violate(39, "read the enforcements of %s: %v", s.ID.Text(flow.SignalPrefix), err)
		return
	}
	of := map[string]flow.Enforcement{}
	for _, e := range all {
		of[e.Rule] = e
	}
	ran, holds := of["two-of-three"]
	switch {
	case holds != (v%3 != 0):
		w.violate(40, "signal %s with %d: rule two-of-three holds: %t", s.ID.Text(flow.SignalPrefix), v, holds)
	case holds && (ran.State != flow.EnforcementRan || !w.shadow.hasBeen(ran.Execution)):
		w.violate(39, "signal %s with %d: rule two-of-three has %+v", s.ID.Text(flow.SignalPrefix), v, ran)
	}
	for _, rule := range []string{"once-each", "settled", "gathered"} {
		e, holds := of[rule]
		if !holds || e.State != flow.EnforcementRan && e.State != flow.EnforcementFolded || !w.shadow.hasBeen(e.Execution) {
			w.violate(39, "signal %s: rule %s has %+v", s.ID.Text(flow.SignalPrefix), rule, e)
		}
	}
	w.judgeBatch(s, of["gathered"].Execution)
	if w.plan.Retention > 0 {
		return // the execution for a subject may have been removed
	}
	if old, ok := w.load.reactions.onces[s.Subject]; ok && old != of["once-each"].Execution {
		w.violate(39, "rule once-each has %s and %s for subject %s", name(old), name(of["once-each"].Execution), s.Subject)
	}
	w.load.reactions.onces[s.Subject] = of["once-each"].Execution
}

// judgeBatch looks for a signal in the input of a batch's execution: once, and with no more other signals than the rule allows.
func (w *world) judgeBatch(s *flow.Signal, execution flow.ID) {
	x, err := w.view.Get(w.ctx, execution)
	if errors.Is(err, store.ErrNotFound) {
		return // retention has removed it, or its id is wrong, which was judged before
	}
	var input struct {
		Of []string `json:"of"`
	}
	if err == nil {
		err = json.Unmarshal(x.Input, &input)
	}
	id, times := s.ID.Text(flow.SignalPrefix), 0
	for _, other := range input.Of {
		if other == id {
			times++
		}
	}
	if err != nil || times != 1 || len(input.Of) > 2 {
		w.violate(39, "signal %s is %d times among the %d of its batch %s: %v", id, times, len(input.Of), name(execution), err)
	}
}

// judgeEnds looks for the signal of each end that a rule matches, and for what the rule did with it.
func (w *world) judgeEnds() {
	if !w.plan.Reacts {
		return
	}
	for _, r := range w.shadow.inOrder() {
		if r.x.Action != reacting().name() || r.x.Place != flow.Finished {
			continue
		}
		has, err := w.view.HasSignal(w.ctx, store.SignalKey{Trigger: flow.TriggerEnded, Key: r.id.String()})
		if err != nil || !has {
			w.violate(41, "the end of %s is not said: %v", name(r.id), err)
		}
	}
}

// windowsClosed reports whether no rule still holds a signal.
func (w *world) windowsClosed() bool {
	if !w.plan.Reacts {
		return true
	}
	open, later, err := w.base.DueWindows(w.ctx, w.now(), 1)
	return err == nil && len(open) == 0 && later.IsZero()
}

// hasBeen reports whether an execution was ever created, even if it has been removed.
func (s *shadow) hasBeen(id flow.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[id] != nil || s.removed[id]
}

func sortedIDs[V any](m map[flow.ID]V) []flow.ID {
	var all []flow.ID
	for id := range m {
		all = append(all, id)
	}
	slices.SortFunc(all, func(a, b flow.ID) int { return bytes.Compare(a[:], b[:]) })
	return all
}
