package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	enginefault "github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

// The chances that, when a client begins, a client reruns something or moves an alias.
const (
	rerunning = 0.5
	moving    = 0.25
)

// turnsVersions are versions of a workflow whose tasks use its input and reveal its version: the input of d is a thousand times the
// version.
var turnsVersions = sync.OnceValue(func() (all []*document) {
	for version, shift := range []int{0, 0, 50} {
		all = append(all, parsed(fmt.Sprintf(`name: turns
input: {type: object, required: [n, m], properties: {n: {type: integer}, m: {type: integer}}}
tasks:
  a: {action: noop, with: {do: ok, v: "${{ input.n }}"}}
  b: {needs: [a], foreach: [1, 2, 3], concurrency: 2, action: noop, with: {do: flaky, v: "${{ item * 100 + input.m + %d }}"}}
  c: {action: dial@stable}
  d: {needs: [b, c], action: noop, with: {do: flaky, v: %d}, retry: {max_attempts: 2, delay: 200ms}}
  e: {needs: [d], action: input, with: {do: ok, v: "${{ tasks.d.output.v }}"}}
outputs: {b: "${{ tasks.b.output }}"}
`, shift, 1000*(version+1))))
	}
	return all
})

// wrapper is a workflow that mostly completes and has a workflow among its tasks, so that paths lead into it.
var wrapper = sync.OnceValue(func() *document {
	return parsed(`name: wrapper
tasks:
  before: {action: noop, with: {do: ok, v: 1}}
  part: {needs: [before], action: wrapped}
  after: {needs: [part], action: input, with: {do: ok, v: 5}}
---
name: wrapped
kind: workflow
tasks:
  x: {action: noop, with: {do: ok, v: 2}}
  y: {needs: [x], foreach: [1, 2], action: noop, with: {do: flaky, v: "${{ item * 3 }}"}, retry: {max_attempts: 5, delay: 200ms}}
  z: {needs: [y], action: noop, cache: {ttl: 20s}, with: {do: ok, v: 4}}
outputs: {y: "${{ tasks.y.output }}"}
`)
})

// wrapping is the share of wrappers among the workflows of a plan with reruns.
func (p *plan) wrapping() float64 {
	if p.Wraps {
		return 0.9
	}
	return 0.3
}

// dialVersions are versions of the action that a task of turns names by an alias.
var dialVersions = sync.OnceValue(func() (all []*document) {
	for version := range 3 {
		all = append(all, parsed(fmt.Sprintf("name: dial\nkind: action\naction: noop\nwith: {do: ok, v: %d}\n", 10*(version+1))))
	}
	return all
})

const (
	turns    = "turns"
	dialName = "dial"
	stable   = "stable" // the alias of both workflows
)

// order is a client's request for a rerun.
type order struct {
	of   flow.ID
	at   time.Time
	asks engine.RerunOptions
	told flow.ID // the rerun, once the client knows
	// other is a later request under the same key. It is accepted when retention has removed the rerun, and with it the key.
	other *engine.RerunOptions
}

// was describes how an item of a rerun's original ended.
type was struct {
	*row
	of flow.ID // the execution that ran
}

// original holds what a rerun, or a child workflow that runs again in parts, is to reuse, as it was when the rerun was created.
type original struct {
	*order
	from   []orchestration.Item
	within []engine.RerunWithin
	items  map[orchestration.Item]was
}

// leadsInto returns what a rerun named within an item, or nil.
func (o *original) leadsInto(i orchestration.Item) *engine.RerunWithin {
	for n := range o.within {
		if w := &o.within[n]; w.Item.Task == i.Task && max(0, w.Item.Index) == i.Index {
			return w
		}
	}
	return nil
}

// turnsBy draws a submission of turns, by its name or by its alias.
func (l *load) turnsBy(n int) (action string, input json.RawMessage) {
	if action = turns; l.w.noise("by alias", n) < 0.6 {
		action += "@" + stable
	}
	return action, turned(l.w.noise("n", n), l.w.noise("m", n))
}

func turned(n, m float64) json.RawMessage {
	return fmt.Appendf(nil, `{"n":%d,"m":%d}`, int(5*n), int(5*m))
}

// beside runs a client in addition to those that the plan counts.
func (l *load) beside(key string, do func(ctx context.Context)) {
	l.waiting[key] = true
	l.w.note("%s begins", key)
	l.w.spawn(func() {
		do(l.w.ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, key)
	})
}

// move is a client that moves an alias to one version, or splits it between two.
func (l *load) move(n int) {
	w, key := l.w, fmt.Sprintf("move%d", n)
	name := pick(int(10*w.noise("which alias", n)), turns, dialName)
	to := []api.AliasTarget{{Version: 1 + int(3*w.noise("to", n))}}
	if w.noise("parts", n) < 0.3 {
		to = append(to, api.AliasTarget{Version: to[0].Version%3 + 1, Percent: 50})
	}
	l.beside(key, func(ctx context.Context) {
		err := l.call(ctx, key, func(ctx context.Context, e *engine.Engine) error {
			_, _, err := e.MoveAlias(ctx, name, stable, api.AliasOrder{To: to, By: key})
			return err
		})
		if err != nil && !errors.Is(err, errLost) && !passes(err) {
			w.violate(63, "%s was refused: %v", key, err)
		}
	})
}

// rerun is a client that reruns something that has ended, until it gets the answer that this was done, and then once or twice more.
func (l *load) rerun(n int) {
	w, key := l.w, fmt.Sprintf("rerun%d", n)
	l.beside(key, func(ctx context.Context) {
		workflows := w.noise("rerun of a workflow", n) < 0.75
		target := w.shadow.pick(int(1000*w.noise("rerun of", n)), func(r *row) bool {
			return r.x.Place == flow.Finished && (!workflows || r.x.Kind == flow.KindWorkflow) && r.x.Labels[engine.ScheduleLabel] == ""
		})
		if target == nil || target.x.Timeout == 0 && strings.Contains(string(target.asks.Input), "hang") {
			return // a hanging execution would need another cancel by its client
		}
		o := &order{of: target.id, at: time.Now(), asks: l.rerunOf(key, target)}
		o.asks.IdempotencyKey = key
		w.aside("%s: %s with %+v", key, name(o.of), o.asks)
		l.mu.Lock()
		l.orders[key] = o
		l.mu.Unlock()
		for told, calls := 0, 1+int(3*w.noise("rerun asked", key)); told < calls && ctx.Err() == nil; {
			asks := o.asks
			if bug := w.bug; bug != nil && bug.rerun != nil {
				bug.rerun(target, &asks)
			}
			out, err := l.askRerun(ctx, key, o.of, asks)
			var unsound *enginefault.Invalid
			switch {
			case err == nil:
				told++
				w.shadow.accepted(out)
				l.same(key, out)
				o.told = out
			case errors.As(err, &unsound) && len(o.asks.Within) > 0 && (target.x.Action != wrapper().name() || target.x.Stage != flow.Completed):
				return // a task before the workflow that the path leads into runs again
			case errors.Is(err, store.ErrNotFound):
				return // retention has removed the original, or a part of it
			case errors.As(err, &unsound) || !passes(err) && !errors.Is(err, errLost):
				w.violate(62, "a sound rerun of %s was refused: %+v: %v", name(o.of), o.asks, err)
				return
			}
			time.Sleep(time.Duration(1 + w.noise("rerun again", key, told)*float64(3*time.Second)))
		}
		if w.bug != nil && w.bug.rerun != nil {
			return // the engine and the client have different bodies under the key
		}
		// The same key with another body is refused.
		other := o.asks
		if other.From = nil; len(o.asks.From) == 0 {
			task, index := firstItem(target)
			other.From = []orchestration.Item{{Task: task, Index: index}}
		}
		l.mu.Lock()
		l.orders[key] = &order{of: o.of, at: o.at, asks: o.asks, told: o.told, other: &other}
		l.mu.Unlock()
		if out, err := l.askRerun(ctx, key, o.of, other); err == nil && !w.shadow.isRemoved(o.told) {
			w.violate(25, "the key of rerun %s was accepted for another one, as %s", name(o.told), name(out))
		}
	})
}

func (l *load) askRerun(ctx context.Context, key string, of flow.ID, o engine.RerunOptions) (id flow.ID, err error) {
	err = l.call(ctx, key, func(ctx context.Context, e *engine.Engine) error {
		out, _, err := e.Rerun(ctx, of, o)
		id = out.Execution
		return err
	})
	return id, err
}

func firstItem(r *row) (task string, index int) {
	for _, k := range r.kids {
		if k.x.ParentAttempt == r.x.Attempt {
			return k.x.Task, orchestration.AllItems
		}
	}
	return "none", orchestration.AllItems
}

// rerunOf draws how a rerun differs from its original.
func (l *load) rerunOf(key string, r *row) (o engine.RerunOptions) {
	w := l.w
	dice, sub := w.noise("rerun how", key), !r.x.Parent.IsZero()
	switch {
	case dice < 0.3:
	case dice < 0.6:
		def := l.definition(r)
		var kids []*row
		for _, k := range r.kids {
			if k.x.ParentAttempt == r.x.Attempt {
				kids = append(kids, k)
			}
		}
		if def == nil || len(kids) == 0 {
			break
		}
		k := kids[int(w.noise("rerun from", key)*float64(len(kids)))]
		if i := slices.IndexFunc(kids, func(k *row) bool { return k.x.Kind == flow.KindWorkflow }); i >= 0 && w.noise("rerun of a part", key) < 0.7 {
			k = kids[i]
		}
		item := orchestration.Item{Task: k.x.Task, Index: orchestration.AllItems}
		if def.Task(item.Task).Foreach != nil && w.noise("rerun item", key) < 0.6 {
			item.Index = k.x.Index
		}
		if w.noise("rerun gives", key) < 0.4 && (item.Index != orchestration.AllItems || def.Task(item.Task).Foreach == nil) {
			o.By, o.Outputs = key, []flow.OutputOverride{{Task: item.Task, Index: item.Index, Output: fmt.Appendf(nil, `{"v":%d,"list":[1,2,3]}`, int(1000*w.noise("gives", key)))}}
			break
		}
		if inner := l.pathInto(key, k); len(inner) > 0 && (item.Index != orchestration.AllItems || def.Task(item.Task).Foreach == nil) {
			o.Within = []engine.RerunWithin{{Item: item, From: inner}}
			break
		}
		o.From = append(o.From, item)
	case sub:
	case dice < 0.8:
		switch {
		case r.x.Action == turns:
			o.Input = turned(w.noise("other n", key), w.noise("other m", key))
		case r.x.Kind == flow.KindNoop && r.x.Action == "noop":
			o.Input = fmt.Appendf(nil, `{"do":"ok","v":%d}`, 200+int(10*w.noise("other v", key)))
		}
	case r.x.Action == turns:
		o.Definition = pick(int(100*w.noise("other definition", key)), engine.DefinitionLatest, engine.DefinitionSame, turns+"@"+stable, turns+"@1", turns+"@2", turns+"@3")
	}
	return o
}

// pathInto draws a path to a task that is a workflow, or nothing when there is no such task.
func (l *load) pathInto(key string, r *row) []orchestration.Item {
	def := l.definition(r)
	if def == nil || l.w.noise("rerun path", key) < 0.3 {
		return nil
	}
	for n := range r.kids {
		k := r.kids[(n+int(l.w.noise("rerun path to", key)*float64(len(r.kids))))%len(r.kids)]
		if t := def.Task(k.x.Task); k.x.ParentAttempt == r.x.Attempt && t != nil && t.Repeat == nil {
			item := orchestration.Item{Task: t.Name, Index: orchestration.AllItems}
			if t.Foreach != nil && l.w.noise("rerun path item", key) < 0.6 {
				item.Index = k.x.Index
			}
			return []orchestration.Item{item}
		}
	}
	return nil
}

func (l *load) ordered(key string) *order {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.orders[key]
}

// reran judges the submission of a rerun, and notes what it must reuse from its original.
func (c *commit) reran(r *row, d *seen) {
	if !d.x.Parent.IsZero() {
		c.reranBeneath(r, d)
		return
	}
	o := c.w.load.ordered(d.x.IdempotencyKey)
	switch {
	case o == nil && d.x.RerunOf.IsZero():
		return
	case o == nil || d.x.RerunOf != o.of:
		c.w.violate(62, "%s is the rerun of %s, and was asked to be one of %+v", name(r.id), name(d.x.RerunOf), o)
		return
	}
	old := c.known(o.of)
	if old == nil || old.x.Place != flow.Finished {
		c.w.violate(62, "%s reruns %s, which has not ended", name(r.id), name(o.of))
		return
	}
	x, asks := &old.asks, &o.asks
	if o.other != nil && c.removed[o.told] {
		asks = o.other
	}
	same := asks.Definition == "" || asks.Definition == engine.DefinitionSame
	input := x.Input
	if asks.Input != nil {
		input = asks.Input
	}
	if d.x.Action != x.Action || d.x.Kind != x.Kind || same && d.x.Version != x.Version || !sameValue(d.x.Input, input) {
		c.w.violate(62, "%s reruns %s as %s@%d with %s: asked for %+v, which had %s@%d with %s", name(r.id), name(o.of), d.x.Action, d.x.Version, d.x.Input,
			*asks, x.Action, x.Version, x.Input)
	}
	r.original = &original{o, asks.From, asks.Within, endsOf(old)}
}

// reranBeneath judges the creation of a task: it is a rerun itself exactly when a path leads into it.
func (c *commit) reranBeneath(r *row, d *seen) {
	p := c.rows[d.x.Parent]
	var w *engine.RerunWithin
	item := orchestration.Item{Task: d.x.Task, Index: d.x.Index}
	if p != nil && p.original != nil {
		w = p.original.leadsInto(item)
	}
	switch {
	case w == nil && d.x.RerunOf.IsZero():
		return
	case w == nil:
		c.w.violate(62, "%s, a task, is the rerun of %s, and no path leads into it", name(r.id), name(d.x.RerunOf))
		return
	case d.x.RerunOf.IsZero() || d.x.RerunOf != p.original.items[item].of:
		c.w.violate(62, "%s is the rerun of %s: a path leads into %s[%d], which %s ran", name(r.id), name(d.x.RerunOf), item.Task, item.Index, name(p.original.items[item].of))
		return
	}
	if old := c.known(d.x.RerunOf); old != nil {
		r.original = &original{p.original.order, w.From, w.Within, endsOf(old)}
	}
}

// endsOf returns how the tasks of a workflow's latest attempt ended.
func endsOf(old *row) map[orchestration.Item]was {
	items := map[orchestration.Item]was{}
	for _, k := range old.kids {
		if k.x.ParentAttempt != old.x.Attempt {
			continue
		}
		of := k.x.ReusedOf
		if of.IsZero() {
			of = k.id
		}
		items[orchestration.Item{Task: k.x.Task, Index: k.x.Index}] = was{k, of}
	}
	return items
}

// known returns an execution, even one that has been removed.
func (s *shadow) known(id flow.ID) *row {
	if r := s.rows[id]; r != nil {
		return r
	}
	return s.gone[id]
}

// reused judges whether an item of a workflow runs or reuses an outcome, as it must.
func (c *commit) reused(p, r *row, d *seen) {
	item := orchestration.Item{Task: d.x.Task, Index: d.x.Index}
	if p.x.Action == turns && item.Task == "d" && !sameValue(d.x.Input, fmt.Appendf(nil, `{"do":"flaky","v":%d}`, 1000*p.x.Version)) {
		c.w.violate(63, "%s is version %d, and its task d is given %s", name(p.id), p.x.Version, d.x.Input)
	}
	reuses := !d.x.ReusedOf.IsZero()
	if given := p.asks.OverrideOf(item.Task, item.Index); given != nil || d.x.AsRerun().OverriddenBy != "" {
		if d.x.AsRerun().OverriddenBy != p.asks.AsRerun().OverriddenBy || d.x.Outcome == nil || string(d.x.Outcome.Output) != string(given) ||
			p.original.asks.By != d.x.AsRerun().OverriddenBy {
			c.w.violate(59, "%s (%s[%d] of %s) was given %s by %q, and is %s with %+v by %q", name(r.id), item.Task, item.Index, name(p.id), given,
				p.asks.AsRerun().OverriddenBy,
				d.x.Stage, d.x.Outcome, d.x.AsRerun().OverriddenBy)
		}
		return
	}
	if d.x.Cached() {
		c.cached(p, r, d)
		return
	}
	if p.original == nil {
		if reuses {
			c.w.violate(60, "%s reuses the outcome of %s, and %s is not a rerun", name(r.id), name(d.x.ReusedOf), name(p.id))
		}
		return
	}
	past, had := p.original.items[item]
	why := ""
	switch def := c.w.load.definition(p); {
	case !had:
		why = "the original has no such item"
	case past.x.Stage != flow.Completed:
		why = "it ended as " + past.x.Stage.String()
	case p.original.leadsInto(item) != nil:
		why = "a path leads into it"
	case names(p.original.from, item):
		why = "it was named"
	case !sameWork(&past.asks, &d.x.Request):
		why = "it has other work"
	case def != nil:
		why = c.runsBefore(p, def, def.Task(item.Task), d.x.ParentAttempt)
		if why == "" {
			why = c.roundsBefore(p, def.Task(item.Task), item.Index, d.x.ParentAttempt)
		}
	default:
		why = "?" // without a definition its conditions are unknown
	}
	switch {
	case reuses && why != "" && why != "?":
		c.w.violate(60, "%s (%s[%d] of %s) reuses an outcome although %s", name(r.id), item.Task, item.Index, name(p.id), why)
	case reuses && (d.x.ReusedOf != past.of || string(d.x.Outcome.Output) != string(past.x.Outcome.Output)):
		c.w.violate(59, "%s (%s[%d] of %s) ended with %s of %s, and the original's with %s of %s", name(r.id), item.Task, item.Index, name(p.id),
			d.x.Outcome.Output, name(d.x.ReusedOf), past.x.Outcome.Output, name(past.of))
	case !reuses && why == "" && d.x.ParentAttempt == 1 && !c.dialMoved(p, item.Task):
		c.w.violate(62, "%s (%s[%d] of %s) runs, and can reuse the outcome of %s", name(r.id), item.Task, item.Index, name(p.id), name(past.of))
	}
}

// names reports whether an item is named itself or belongs to a task that is named as a whole.
func names(from []orchestration.Item, i orchestration.Item) bool {
	return slices.ContainsFunc(from, func(f orchestration.Item) bool {
		return f.Task == i.Task && (f.Index == orchestration.AllItems || f.Index == i.Index)
	})
}

// runsBefore returns which task before t has not reused all that it could.
func (c *commit) runsBefore(p *row, def *definition.Workflow, t *definition.Task, attempt int) string {
	for _, before := range def.Upstream(t) {
		n := 0
		if last := lastRound(p, def.Task(before), attempt); last != nil && last.x.Index > 0 {
			if !last.reached() || last.x.ReusedOf.IsZero() && last.x.AsRerun().OverriddenBy == "" {
				return before + ", before it, ran"
			}
			continue
		}
		for _, k := range p.kids {
			if k.x.Task == before && k.x.ParentAttempt == attempt && (!k.x.ReusedOf.IsZero() || k.x.AsRerun().OverriddenBy != "") {
				n++
			}
		}
		if n < c.w.load.items(def.Task(before)) {
			return before + ", before it, ran or did not start"
		}
	}
	return ""
}

// dialMoved reports whether the action of a task, or of one before it, may have changed its version and changed back while the rerun was
// planned. Such a task runs.
func (c *commit) dialMoved(p *row, task string) bool {
	return p.x.Action == turns && task != "a" && task != "b" && c.moved[dialName].After(p.original.at.Add(-knownEverywhere))
}

// knownEverywhere is longer than it takes until every engine knows of a move.
const knownEverywhere = 30 * time.Second

func sameWork(a, b *flow.Request) bool {
	return a.Kind == b.Kind && sameValue(a.Input, b.Input) && sameValue(a.With, b.With) &&
		(a.Kind != flow.KindWorkflow || a.Action == b.Action && a.Version == b.Version && reflect.DeepEqual(a.Labels, b.Labels))
}

func sameValue(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// judgeReused compares an execution that reused an outcome with what really ran.
func (w *world) judgeReused(r *row, x *flow.Execution) {
	for n := 1; n <= r.x.Attempt; n++ {
		if w.ledger.of[try{r.id, n}] != nil {
			w.violate(60, "%s reuses an outcome, and was run", name(r.id))
		}
	}
	if x.Kind.ByEngine() {
		return
	}
	of := w.shadow.known(x.ReusedOf)
	if of == nil {
		w.violate(59, "%s reuses the outcome of %s, which never was", name(r.id), name(x.ReusedOf))
		return
	}
	if of.x.AsRerun().OverriddenBy != "" && sameOutcome(x.Outcome, of.x.Outcome) {
		return
	}
	if run := w.ledger.of[try{of.id, of.x.Attempt}]; run == nil || run.failed != "" || string(run.output) != string(x.Outcome.Output) {
		w.violate(59, "%s ended with %s of %s, which really did %+v", name(r.id), x.Outcome.Output, name(of.id), run)
	}
}

// judgeReruns checks that reruns and their originals name one another for readers.
func (w *world) judgeReruns() {
	of := map[flow.ID][]flow.ID{}
	for _, r := range w.shadow.inOrder() {
		if r.original == nil {
			continue
		}
		again := r.asks.RerunOf
		of[again] = append(of[again], r.id)
		if x, err := w.view.Get(w.ctx, r.id); err != nil || x.RerunOf != again {
			w.violate(62, "%s is a rerun of %s and is read as %+v: %v", name(r.id), name(again), x, err)
		}
	}
	for _, id := range sortedIDs(of) {
		all, err := store.List(w.ctx, w.view, store.Filter{RerunOf: id, Limit: 100})
		var got []flow.ID
		for _, x := range all {
			got = append(got, x.ID)
		}
		slices.SortFunc(of[id], byID)
		if slices.SortFunc(got, byID); err != nil || !slices.Equal(got, of[id]) {
			w.violate(62, "%s has %d reruns, and these %d are listed: %v: %v", name(id), len(of[id]), len(got), got, err)
		}
	}
}

func byID(a, b flow.ID) int { return slices.Compare(a[:], b[:]) }
