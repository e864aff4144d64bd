package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// Defined is the result for one definition.
type Defined struct {
	Name    string
	Version int
	Kind    string
	Created bool // false: it equals the latest version
	Moved   bool // one of its aliases was moved
	Latest  int  // the version of its name without @; 0: the newest
}

// defined is the result of a transaction that stores definitions.
type defined struct {
	all     []Defined
	aliases []*api.Alias // that it has moved
}

// oneAtATime admits one request of a kind to the committer at a time, so that no transaction has two of them.
type oneAtATime chan struct{}

func newOneAtATime() oneAtATime { return make(oneAtATime, 1) }

func (a oneAtATime) enter(ctx context.Context) error {
	select {
	case a <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a oneAtATime) leave() { <-a }

// inBatchAlone is inBatch for a decision that writes definitions or switches. The next one is enqueued when this one
// has been answered, even if its caller has gone.
func inBatchAlone[T any](ctx context.Context, e *Engine, decide func(context.Context, *transaction) (T, error)) (none T, err error) {
	if err := e.defining.enter(ctx); err != nil {
		return none, err
	}
	r := newRequest(nil, classCall, decide)
	if err := e.enqueue(r); err != nil {
		e.defining.leave()
		return none, err
	}
	select {
	case a := <-r.answer:
		e.defining.leave()
		return a.result, a.err
	case <-ctx.Done():
		go func() {
			<-r.answer
			e.defining.leave()
		}()
		return none, ctx.Err()
	}
}

// byName are the indexes of definitions in the order of their names. Every transaction writes them in this order: otherwise two
// transactions could wait for each other's new versions for ever. For the same reason a transaction has the definitions of one call
// (Engine.defining).
func byName(defs []*definition.Definition) []int {
	at := make([]int, len(defs))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int {
		return cmp.Or(strings.Compare(string(defs[a].Kind), string(defs[b].Kind)), strings.Compare(defs[a].Name, defs[b].Name))
	})
	return at
}

// Define is DefineFor without an order.
func (e *Engine) Define(ctx context.Context, defs []*definition.Definition) ([]Defined, error) {
	return e.DefineFor(ctx, defs, DefineOrder{})
}

// DefineFor stores definitions, all or none. Every action and workflow that they mention must exist, in the store or among them; otherwise
// the error is definition.Problems.
func (e *Engine) DefineFor(ctx context.Context, defs []*definition.Definition, o DefineOrder) ([]Defined, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := e.checkFor(ctx, defs, o.Alias); err != nil {
		return nil, err
	}
	asked := time.Now()
	var stored defined
	err := unmoved(ctx, func() error {
		begins, err := e.planBeginnings(ctx, defs)
		if err != nil {
			return err
		}
		stored, err = inBatchAlone(ctx, e, func(ctx context.Context, t *transaction) (out defined, err error) {
			out.all = make([]Defined, len(defs))
			for _, i := range byName(defs) {
				var moved []*api.Alias
				if out.all[i], moved, err = t.defineOne(ctx, defs[i], &o, begins[defs[i].Name]); err != nil {
					return defined{}, err
				}
				out.aliases = append(out.aliases, moved...)
			}
			return out, nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	out := stored.all
	for _, a := range stored.aliases {
		e.catalog.NoteAlias(a, asked)
	}
	rules := false
	for i, d := range defs {
		switch {
		case d.Kind == definition.KindSchedule:
			e.schedules.changed()
		case d.Kind == definition.KindWebhook:
			e.webhooks.forget(d.Name)
		case d.Rule != nil || d.Trigger != nil:
			rules = true
		case d.Runnable(): // other kinds are read from the store, as by other replicas
			e.catalog.Put(d, out[i].Version)
			e.catalog.NoteLatest(d.Name, out[i].Version, time.Now())
		}
	}
	if rules {
		e.rulesChanged(ctx)
	}
	return out, nil
}

// defineOne stores one definition, puts it in force, and returns the aliases that it has moved. begins is the plan for a schedule.
func (t *transaction) defineOne(ctx context.Context, d *definition.Definition, o *DefineOrder, begins *passing) (out Defined, moved []*api.Alias, err error) {
	version, created, err := t.define(ctx, d)
	if err != nil {
		return out, nil, fmt.Errorf("define %q: %w", d.Name, err)
	}
	out = Defined{Name: d.Name, Version: version, Kind: string(d.Kind), Created: created}
	switch {
	case d.Kind == definition.KindSchedule:
		if err := t.beginSchedule(ctx, d, version, begins); err != nil {
			return out, nil, fmt.Errorf("begin schedule %q: %w", d.Name, err)
		}
	case d.Rule != nil || d.Trigger != nil:
		if err := t.switchTo(ctx, d, version); err != nil {
			return out, nil, fmt.Errorf("switch to %s %q: %w", d.Kind, d.Name, err)
		}
	case d.Runnable():
		if moved, out.Latest, err = t.defineAliases(ctx, d.Name, version, created, o); err != nil {
			return out, nil, fmt.Errorf("define %q: %w", d.Name, err)
		}
		out.Moved = len(moved) > 0
	}
	return out, moved, nil
}

// Settle waits, after Define, until every replica runs the new definitions.
func (e *Engine) Settle(ctx context.Context) {
	if e.opts.Exclusive {
		return
	}
	settled := time.NewTimer(catalog.LatestFor)
	defer settled.Stop()
	select {
	case <-settled.C:
	case <-ctx.Done():
	}
}

// Check returns the error that Define would return, and stores nothing: definition.Problems if a definition mentions
// something that does not exist.
func (e *Engine) Check(ctx context.Context, defs []*definition.Definition) error {
	return e.checkFor(ctx, defs, "")
}

// checkFor is Check for definitions that an alias is to get.
func (e *Engine) checkFor(ctx context.Context, defs []*definition.Definition, alias string) error {
	among := runnable(defs)
	problems, err := e.checkMentions(ctx, defs, among, alias)
	if err != nil {
		return err
	}
	queues, err := e.checkDeclared(ctx, defs)
	if err != nil {
		return err
	}
	cycles, err := e.checkCycles(ctx, defs, among)
	if err != nil {
		return err
	}
	if problems = slices.Concat(problems, queues, cycles); len(problems) > 0 {
		return problems
	}
	return nil
}

// mostDeclared is the number of known queues from which on documents cannot declare more. It is twice mostQueues, so that documents still
// can when workers cannot.
const mostDeclared = 2 * mostQueues

// checkDeclared refuses documents that declare too many queues.
func (e *Engine) checkDeclared(ctx context.Context, defs []*definition.Definition) (definition.Problems, error) {
	var added []*definition.Definition
	for _, d := range defs {
		if d.Kind != definition.KindQueue {
			continue
		}
		if known, err := e.catalog.KnowsQueue(ctx, d.Name); err != nil {
			return nil, err
		} else if !known {
			added = append(added, d)
		}
	}
	if len(added) == 0 {
		return nil, nil
	}
	all, err := e.catalog.Queues(ctx)
	if err != nil || len(all)+len(added) <= mostDeclared {
		return nil, err
	}
	at := added[0].Position
	return definition.Problems{{File: at.File, Line: at.Line, Column: at.Column, Path: "name", Fix: "name a queue that exists: pawl get queues lists them",
		Message: fmt.Sprintf("queue %q is new, and with the %d new ones of these documents there would be %d queues, of which there may be %d",
			added[0].Name, len(added), len(all)+len(added), mostDeclared)}}, nil
}

// CheckMentions returns the actions, queues and triggers that definitions mention but that do not exist. The definitions may have problems
// (definition.Examine).
func (e *Engine) CheckMentions(ctx context.Context, defs []*definition.Definition) (definition.Problems, error) {
	return e.checkMentions(ctx, defs, runnable(defs), "")
}

func runnable(defs []*definition.Definition) map[string]*definition.Definition {
	among := map[string]*definition.Definition{}
	for _, d := range defs {
		if d.Runnable() {
			among[d.Name] = d
		}
	}
	return among
}

// mostUnknown is how many unknown names are listed. Each is looked up in the store, and compared with all names for the nearest: a document
// may mention 9,000.
const mostUnknown = 100

func (e *Engine) checkMentions(ctx context.Context, defs []*definition.Definition, among map[string]*definition.Definition,
	alias string,
) (problems definition.Problems, err error) {
	declared := map[string]bool{}
	for _, name := range definition.DeclaredQueues(defs) {
		declared[name] = true
	}
	fixes := e.catalog.Fixes(slices.Sorted(maps.Keys(among)))
	var work definition.Work
	for _, d := range defs {
		for _, ref := range d.References() {
			if ref.Name == "" {
				continue // of a definition in which Examine has found a problem
			}
			if len(problems) >= mostUnknown {
				return append(problems, definition.Problem{File: ref.Position.File, Message: "there are more names of actions, workflows and queues that do not exist; " +
					"the rest is not listed"}), nil
			}
			known, mistaken, err := e.checkReference(ctx, ref, among, alias, fixes)
			if err != nil {
				return nil, err
			}
			if known != nil {
				mistaken = d.Misfits(&ref, known, &work)
			}
			problems = append(problems, mistaken...)
		}
		for _, q := range d.QueueRefs() {
			if len(problems) >= mostUnknown || declared[q.Name] {
				continue
			}
			known, err := e.catalog.KnowsQueue(ctx, q.Name)
			if err != nil {
				return nil, err
			}
			if !known {
				problems = append(problems, definition.Problem{File: q.Position.File, Line: q.Position.Line, Column: q.Position.Column, Path: q.Path,
					Message: catalog.UnknownQueue(q.Name), Fix: catalog.QueueFix(q.Name)})
			}
		}
	}
	awaited, err := e.checkTriggers(ctx, defs, mostUnknown-len(problems))
	return append(problems, awaited...), err
}

// checkReference looks up the action or workflow that a definition names, or says what is wrong with the name. among are the runnable
// definitions that are checked together with it.
func (e *Engine) checkReference(ctx context.Context, ref definition.Ref, among map[string]*definition.Definition, alias string,
	fixes *catalog.Fixes,
) (known *definition.Definition, mistaken definition.Problems, err error) {
	base, label, _ := strings.Cut(ref.Name, "@")
	if known = among[base]; known == nil || ref.Version > 0 || label != "" && label != definition.LatestAlias && label != alias {
		if known, _, err = e.catalog.Get(ctx, ref.Name, ref.Version); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, nil, err
		}
	}
	what := ref.Name
	if ref.Version > 0 {
		what = catalog.VersionKey(ref.Name, ref.Version)
	}
	switch {
	case known == nil:
		fix, err := fixes.Of(ctx, ref.Name, ref.Version)
		if err != nil {
			return nil, nil, err
		}
		return nil, definition.Problems{refProblem(ref, fmt.Sprintf("there is no action or workflow %q", what), fix)}, nil
	case ref.Kind == definition.KindWorkflow && known.Kind != definition.KindWorkflow:
		p := refProblem(ref, fmt.Sprintf("%q is an action, not a workflow", what), "name it as the task's action instead")
		return nil, definition.Problems{p}, nil
	}
	return known, nil, nil
}

// checkTriggers returns triggers that definitions wait for but that cannot be waited for, at most so many.
func (e *Engine) checkTriggers(ctx context.Context, defs []*definition.Definition, most int) (problems definition.Problems, err error) {
	waits := map[string]bool{} // of the triggers among defs
	for _, d := range defs {
		if d.Trigger != nil {
			waits[d.Name] = d.Trigger.Waits
		}
	}
	var inForce bool
	var near *problem.Names
	for _, d := range defs {
		for _, ref := range d.Awaited() {
			if len(problems) >= most {
				return problems, nil
			}
			can, declared := waits[ref.Trigger]
			if !declared && !inForce {
				set, err := e.rulesInForce(ctx)
				if err != nil {
					return nil, err
				}
				for name, k := range set.Triggers {
					if _, here := waits[name]; !here {
						waits[name] = k.Waits
					}
				}
				inForce = true
				can, declared = waits[ref.Trigger]
			}
			p := definition.Problem{File: ref.Position.File, Line: ref.Position.Line, Column: ref.Position.Column, Path: ref.Path}
			switch {
			case !declared:
				p.Message, p.Fix = fmt.Sprintf("there is no trigger %q", ref.Trigger), fmt.Sprintf("add a document with kind: trigger, name: %s and waits: true", ref.Trigger)
				if near == nil {
					near = problem.NamesOf(slices.Sorted(maps.Keys(waits)))
				}
				if fix := near.Nearest(ref.Trigger); fix != "" {
					p.Fix = fix + ", or " + p.Fix
				}
			case !can:
				p.Message, p.Fix = fmt.Sprintf("nothing can wait for the trigger %q", ref.Trigger), "add waits: true to its document"
			default:
				continue
			}
			problems = append(problems, p)
		}
	}
	return problems, nil
}

func refProblem(ref definition.Ref, message, fix string) definition.Problem {
	path := "run.action"
	if ref.Task != "" {
		path = "tasks." + ref.Task + ".action"
	}
	return definition.Problem{File: ref.Position.File, Line: ref.Position.Line, Column: ref.Position.Column, Path: path, Message: message, Fix: fix}
}
