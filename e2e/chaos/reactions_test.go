package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

// The documents that react: a rule, and a workflow that asks a person and waits for a signal.
const reacting = `
---
kind: trigger
name: chaos.hit
data: {type: object, required: [n], properties: {n: {type: integer}}}
waits: true
---
kind: rule
name: every-other
on: [chaos.hit]
if: signal.data.n % 2 == 0
run: {action: leaf, input: {source: "${{ signal.data.source }}", ledger: "${{ signal.data.ledger }}", tag: hit, nap: "0.01", fails: 0, n: 1}}
---
name: asked
input: {type: object}
tasks:
  approve:
    action: ask
    with: {title: "${{ input.name }}", form: {type: object, required: [ok], properties: {ok: {type: boolean}}}, accept: answer.ok}
  hit: {action: wait, with: {signal: chaos.hit, subject: "${{ input.name }}"}}
  join: {needs: [approve, hit], action: noop, with: {by: "${{ tasks.approve.output.by }}", n: "${{ tasks.hit.output.data.n }}"}}
outputs: {by: "${{ tasks.join.output.by }}", n: "${{ tasks.join.output.n }}"}
`

// reactions holds the signals and answers that servers have acknowledged.
type reactions struct {
	mu      sync.Mutex
	signals map[string]told // by id
	keys    map[string]string
}

// told is a signal as its sender knows it.
type told struct {
	key string
	n   int
}

// emit sends one signal until it is accepted, and then again at any server, as a sender does that got no answer.
func (l *load) emit(key, subject string, n, times int) {
	for i := range times {
		var id string
		ok := l.insist("emit "+key, func(ctx context.Context) error {
			data, err := json.Marshal(map[string]any{"n": n, "source": source, "ledger": l.ledger})
			if err != nil {
				return err
			}
			e, err := l.each[(n+i)%len(l.each)].Emit(ctx, api.Emission{Trigger: "chaos.hit", Key: key, Subject: subject, Data: data})
			if err == nil {
				id = e.Signal
			}
			return err
		})
		if !ok {
			return
		}
		r := &l.reactions
		r.mu.Lock()
		if r.signals == nil {
			r.signals, r.keys = map[string]told{}, map[string]string{}
		}
		if old := r.keys[key]; old != "" && old != id {
			l.complain("invariant 25: signal key %s gave %s and %s", key, old, id)
		}
		r.keys[key], r.signals[id] = id, told{key, n}
		r.mu.Unlock()
	}
}

// ask runs the workflow that asks, answers yes as two persons at once, and sends the signal that it waits for.
func (l *load) ask(i int) {
	name := fmt.Sprintf("asked-%d", i)
	input, err := json.Marshal(map[string]any{"name": name})
	if err != nil {
		panic(err)
	}
	if l.submit(l.any, name, "asked", input, api.Completed) == nil {
		return
	}
	if i%2 == 0 {
		l.emit("for-"+name, name, 1, 2) // before or while the wait begins
	}
	var id string
	if !l.insist("find the question of "+name, func(ctx context.Context) error {
		open, err := l.any.Inquiries(ctx, client.InquiryFilter{Limit: 1000})
		if err != nil {
			return err
		}
		at := slices.IndexFunc(open.Inquiries, func(q api.Inquiry) bool { return q.Title == name })
		if at < 0 {
			return errNotAsked
		}
		id = open.Inquiries[at].ID
		return nil
	}) {
		return
	}
	var both sync.WaitGroup
	for n, by := range []string{"ada", "ben"} {
		both.Go(func() {
			l.insist("answer "+name, func(ctx context.Context) error {
				_, err := l.each[(i+n)%len(l.each)].Answer(ctx, id, api.Reply{By: by, Answer: json.RawMessage(`{"ok":true}`)})
				var p *api.Problem
				if errors.As(err, &p) && (p.Status == http.StatusConflict || p.Status == http.StatusNotFound) {
					return nil // the other person was quicker, and retention may have run since
				}
				return err
			})
		})
	}
	both.Wait()
	if i%2 != 0 {
		l.emit("for-"+name, name, 1, 2)
	}
}

var errNotAsked = errors.New("it has not asked yet")

// reactions: each acknowledged signal exists, was given to the rules, and they acted on it.
func (v *verdicts) reactions(s *postgres.Store, l *load, archive *archive) {
	ctx := v.t.Context()
	for text, k := range l.reactions.signals {
		v.saw(41)
		id, err := flow.ParseID(flow.SignalPrefix, text)
		if err != nil {
			v.t.Fatal(err)
		}
		x, err := s.Signal(ctx, id)
		if err != nil || x.State != flow.SignalMatched {
			v.wrong(41, "signal %s (%s) was acknowledged and is %v: %v", text, k.key, x.State, err)
			continue
		}
		all, err := s.Enforcements(ctx, store.EnforcementFilter{Signal: x.Number, Limit: 10})
		if err != nil {
			v.t.Fatal(err)
		}
		v.saw(40)
		if holds := k.n%2 == 0; len(all) != map[bool]int{true: 1}[holds] {
			v.wrong(40, "signal %s with %d has the enforcements %+v", text, k.n, all)
			continue
		}
		for _, e := range all {
			v.saw(39)
			if ran := e.Execution.String(); e.State != flow.EnforcementRan || archive.lives[ran] == nil && !archive.gone[ran] && l.retention == 0 {
				v.wrong(39, "signal %s: %+v", text, e)
			}
		}
	}
	if left, err := s.NewSignals(ctx, time.Now(), store.SignalPlace{}, 10); err != nil || len(left) > 0 {
		v.wrong(41, "no rule was asked about %d signals: %v", len(left), err)
	}
}
