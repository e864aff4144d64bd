package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/store"
)

// catalog resolves names to definitions and remembers what it has decoded. Versions never change, so they are kept;
// which version is the latest is asked again after a while.
type catalog struct {
	store store.Store

	mu       sync.Mutex
	versions map[string]*definition.Definition // "name@version"
	latest   map[string]latest
	queues   map[string]bool
}

type latest struct {
	version int
	asked   time.Time
}

// latestFor is how long a replica may believe that a version is the latest after another replica defined a newer one.
// A caller that defines one may wait that long (Settle), so that every replica runs it once the answer is there.
const latestFor = 250 * time.Millisecond

// catalogLimit bounds the decoded versions in memory; beyond it the memory starts anew.
const catalogLimit = 5000

func newCatalog(s store.Store) *catalog {
	return &catalog{store: s, versions: map[string]*definition.Definition{}, latest: map[string]latest{}, queues: map[string]bool{DefaultQueue: true}}
}

// resolved is a version of a definition that has been looked up.
type resolved struct {
	definition *definition.Definition
	version    int
	latest     bool      // it was asked for as the latest
	asked      time.Time // when; zero: the catalog has it already
}

// definitions is where a version is read that the catalog does not have: the store, or a decision's transaction.
type definitions interface {
	Definition(ctx context.Context, name string, version int) (store.Definition, error)
}

// get loads a version of a definition; 0 is the latest. It returns the version as well.
func (c *catalog) get(ctx context.Context, name string, version int) (*definition.Definition, int, error) {
	r, err := c.resolve(ctx, c.store, name, version)
	if err != nil {
		return nil, 0, err
	}
	c.remember(r)
	return r.definition, r.version, nil
}

// resolve is get, and leaves it to the caller to remember what was read.
func (c *catalog) resolve(ctx context.Context, from definitions, name string, version int) (resolved, error) {
	if strings.ContainsRune(name, ':') { // what else lies among the definitions
		return resolved{}, fmt.Errorf("definition %q: %w", name, store.ErrNotFound)
	}
	latest := version == 0
	c.mu.Lock()
	if l, ok := c.latest[name]; latest && ok && time.Since(l.asked) < latestFor {
		version = l.version
	}
	d := c.versions[versionKey(name, version)]
	c.mu.Unlock()
	if d != nil {
		return resolved{definition: d, version: version}, nil
	}
	r := resolved{latest: latest, asked: time.Now()}
	row, err := from.Definition(ctx, name, version)
	if err != nil {
		return r, err
	}
	if r.definition, err = definition.Decode(row.Document); err != nil {
		return r, fmt.Errorf("decode definition %s@%d: %w", name, row.Version, err)
	}
	r.version = row.Version
	return r, nil
}

// remember keeps what was read from the store. What a transaction has read is remembered once it is committed: it may have
// read a version that it defined itself.
func (c *catalog) remember(r resolved) {
	if r.asked.IsZero() {
		return
	}
	c.put(r.definition, r.version)
	if r.latest {
		c.isLatest(r.definition.Name, r.version, r.asked)
	}
}

// definition is catalog.get within a transaction.
func (t *transaction) definition(ctx context.Context, name string, version int) (*definition.Definition, int, error) {
	key := versionKey(name, version)
	r, have := t.loaded.definitions[key]
	if !have {
		var err error
		if r, err = t.e.catalog.resolve(ctx, t.tx, name, version); err != nil {
			return nil, 0, err
		}
		if t.loaded.definitions == nil {
			t.loaded.definitions = map[string]resolved{}
		}
		t.loaded.definitions[key] = r
	}
	return r.definition, r.version, nil
}

func versionKey(name string, version int) string { return fmt.Sprintf("%s@%d", name, version) }

func (c *catalog) put(d *definition.Definition, version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.versions) >= catalogLimit {
		clear(c.versions)
	}
	c.versions[versionKey(d.Name, version)] = d
}

// isLatest remembers that a version was the latest when the store was asked. Answers may come late: a version never goes back.
func (c *catalog) isLatest(name string, version int, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version >= c.latest[name].version {
		c.latest[name] = latest{version, asked}
	}
}

// DefaultQueue is where executions go that name no queue.
const DefaultQueue = "default"

var queueName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?$`)

// expect makes a queue known to this replica.
func (c *catalog) expect(name string) error {
	if !queueName.MatchString(name) {
		return fmt.Errorf("queue %.100q: a queue's name is 1 to 100 of a-z, 0-9, '.', '_' and '-', beginning and ending with a letter or digit", name)
	}
	c.mu.Lock()
	c.queues[name] = true
	c.mu.Unlock()
	return nil
}

// persist runs a transaction beside the committer's, and again when another replica was faster: replicas that start on an
// empty store declare the same things at the same time.
func persist(ctx context.Context, s store.Store, decide func(context.Context, store.Tx) error) error {
	for n := 1; ; n++ {
		err := s.Update(ctx, decide)
		if !errors.Is(err, store.ErrConflict) || n == maxConflicts {
			return err
		}
	}
}

// persistQueue makes a queue known to every replica, for good.
func (c *catalog) persistQueue(ctx context.Context, name string) error {
	err := persist(ctx, c.store, func(ctx context.Context, tx store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		_, err = tx.AddName(ctx, store.QueueNames, name, now)
		return err
	})
	if err != nil {
		return fmt.Errorf("declare queue %q: %w", name, err)
	}
	return nil
}

// declareQueue does both, once.
func (c *catalog) declareQueue(ctx context.Context, name string) error {
	c.mu.Lock()
	known := c.queues[name]
	c.mu.Unlock()
	if known {
		return nil
	}
	if err := c.expect(name); err != nil {
		return err
	}
	return c.persistQueue(ctx, name)
}

// workerKeyName is the setting that holds the key of WorkerKey.
const workerKeyName = "worker_key"

// WorkerKey is a random key that all replicas on the store share, for the tokens of workers.
func (e *Engine) WorkerKey(ctx context.Context) ([]byte, error) {
	return e.sharedKey(ctx, workerKeyName)
}

// sharedKey is a random key that all replicas on the store share under a name, made by the one that asks first.
func (e *Engine) sharedKey(ctx context.Context, name string) ([]byte, error) {
	doc, err := e.opts.Store.Setting(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		fresh := make([]byte, 32)
		rand.Read(fresh) // never fails on the systems that Go supports
		if doc, err = json.Marshal(fresh); err == nil {
			err = persist(ctx, e.opts.Store, func(ctx context.Context, tx store.Tx) error { return tx.KeepSetting(ctx, name, doc) })
		}
		if err == nil {
			doc, err = e.opts.Store.Setting(ctx, name)
		}
	}
	var key []byte
	if err == nil {
		err = json.Unmarshal(doc, &key)
	}
	if err != nil {
		return nil, fmt.Errorf("load the key %s: %w", name, err)
	}
	return key, nil
}

// knowsQueue reports whether a queue has ever been declared or served.
func (c *catalog) knowsQueue(ctx context.Context, name string) (bool, error) {
	c.mu.Lock()
	known := c.queues[name]
	c.mu.Unlock()
	if known {
		return true, nil
	}
	if known, err := c.store.HasName(ctx, store.QueueNames, name); err != nil || !known {
		return false, err
	}
	c.mu.Lock()
	c.queues[name] = true
	c.mu.Unlock()
	return true, nil
}

// Defined says what became of one definition.
type Defined struct {
	Name    string
	Version int
	Kind    string
	Created bool // false: the latest version was the same already
}

// byName are the places of definitions in the order of their names, in which every transaction writes them: two that wait for each other's
// new versions would do so for ever.
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

// Define stores definitions, all or none. Every action and workflow that they mention must exist, in the store or among
// them; what is wrong comes back as definition.Problems.
func (e *Engine) Define(ctx context.Context, defs []*definition.Definition) ([]Defined, error) {
	if err := e.Check(ctx, defs); err != nil {
		return nil, err
	}
	out, err := ask(ctx, e, nil, func(ctx context.Context, t *transaction) ([]Defined, error) {
		out := make([]Defined, len(defs))
		for _, i := range byName(defs) {
			d := defs[i]
			version, created, err := t.define(ctx, d)
			if err != nil {
				return nil, fmt.Errorf("define %q: %w", d.Name, err)
			}
			if d.Kind == definition.KindSchedule {
				if err := t.beginSchedule(ctx, d, version); err != nil {
					return nil, fmt.Errorf("begin schedule %q: %w", d.Name, err)
				}
			}
			if d.Rule != nil || d.Trigger != nil {
				if err := t.switchTo(ctx, d, version); err != nil {
					return nil, fmt.Errorf("switch to %s %q: %w", d.Kind, d.Name, err)
				}
			}
			out[i] = Defined{Name: d.Name, Version: version, Kind: string(d.Kind), Created: created}
		}
		return out, nil
	})
	if err != nil {
		return nil, err
	}
	rules := false
	for i, d := range defs {
		if d.Kind == definition.KindSchedule {
			e.schedules.changed()
		}
		if d.Kind == definition.KindWebhook {
			e.webhooks.forget(d.Name)
		}
		if d.Rule != nil || d.Trigger != nil {
			rules = true
		}
		if !d.Runnable() {
			continue // other replicas ask the store for it too
		}
		e.catalog.put(d, out[i].Version)
		e.catalog.isLatest(d.Name, out[i].Version, time.Now())
	}
	if rules {
		e.rulesChanged(ctx)
	}
	return out, nil
}

// Settle waits, after Define, until every replica runs what was defined.
func (e *Engine) Settle(ctx context.Context) {
	if e.opts.Exclusive {
		return
	}
	settled := time.NewTimer(latestFor)
	defer settled.Stop()
	select {
	case <-settled.C:
	case <-ctx.Done():
	}
}

// Check says what Define would say of definitions, and stores nothing: definition.Problems when something that they
// mention does not exist.
func (e *Engine) Check(ctx context.Context, defs []*definition.Definition) error {
	among := map[string]*definition.Definition{}
	for _, d := range defs {
		if d.Runnable() {
			among[d.Name] = d
		}
	}
	declared := definition.DeclaredQueues(defs)
	var problems definition.Problems
	for _, d := range defs {
		for _, ref := range d.References() {
			kind := definition.Kind("")
			if known := among[ref.Name]; known != nil && ref.Version == 0 {
				kind = known.Kind
			} else if known, _, err := e.catalog.get(ctx, ref.Name, ref.Version); err == nil {
				kind = known.Kind
			} else if !errors.Is(err, store.ErrNotFound) {
				return err
			}
			what := ref.Name
			if ref.Version > 0 {
				what = versionKey(ref.Name, ref.Version)
			}
			switch {
			case kind == "":
				fix, err := e.nameFix(ctx, ref.Name, ref.Version, slices.Sorted(maps.Keys(among)))
				if err != nil {
					return err
				}
				problems = append(problems, refProblem(ref, fmt.Sprintf("there is no action or workflow %q", what), fix))
			case ref.Kind == definition.KindWorkflow && kind != definition.KindWorkflow:
				problems = append(problems, refProblem(ref, fmt.Sprintf("%q is an action, not a workflow", what), "name it as the task's action instead"))
			}
		}
		for _, q := range d.QueueRefs() {
			if slices.Contains(declared, q.Name) {
				continue
			}
			known, err := e.catalog.knowsQueue(ctx, q.Name)
			if err != nil {
				return err
			}
			if !known {
				problems = append(problems, definition.Problem{File: q.Position.File, Line: q.Position.Line, Column: q.Position.Column, Path: q.Path,
					Message: unknownQueue(q.Name), Fix: queueFix(q.Name)})
			}
		}
	}
	awaited, err := e.checkTriggers(ctx, defs)
	if err != nil {
		return err
	}
	problems = append(problems, awaited...)
	cycles, err := e.checkCycles(ctx, defs, among)
	if err != nil {
		return err
	}
	if problems = append(problems, cycles...); len(problems) > 0 {
		return problems
	}
	return nil
}

// checkTriggers says which triggers definitions wait for that nothing can wait for.
func (e *Engine) checkTriggers(ctx context.Context, defs []*definition.Definition) (problems definition.Problems, err error) {
	here := map[string]bool{}
	for _, d := range defs {
		if d.Trigger != nil {
			here[d.Name] = d.Trigger.Waits
		}
	}
	for _, d := range defs {
		for _, ref := range d.Awaited() {
			waits, declared := here[ref.Trigger]
			if !declared {
				set, err := e.rulesInForce(ctx)
				if err != nil {
					return nil, err
				}
				if k := set.Triggers[ref.Trigger]; k != nil {
					declared, waits = true, k.Waits
				}
			}
			p := definition.Problem{File: ref.Position.File, Line: ref.Position.Line, Column: ref.Position.Column, Path: ref.Path}
			switch {
			case !declared:
				p.Message, p.Fix = fmt.Sprintf("there is no trigger %q", ref.Trigger), fmt.Sprintf("add a document with kind: trigger, name: %s and waits: true", ref.Trigger)
			case !waits:
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

// SplitAction reads "name" or "name@3"; version 0 is the latest.
func SplitAction(action string) (name string, version int, err error) {
	name, text, has := strings.Cut(action, "@")
	if !has {
		return name, 0, nil
	}
	if _, err := fmt.Sscanf(text, "%d", &version); err != nil || version < 1 || fmt.Sprint(version) != text {
		return "", 0, fmt.Errorf("%.100q: after @ comes a version, 1 or more, as in %s@1", action, name)
	}
	return name, version, nil
}
