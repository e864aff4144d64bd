package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Prefixes of the names of rules and triggers among the definitions and the switches.
const (
	rulePrefix    = string(definition.KindRule) + ":"
	triggerPrefix = string(definition.KindTrigger) + ":"
)

const (
	// rulesPoll is how often a replica that shares its store and commits checks whether another one has changed the rules, so that its batches
	// need not: rulesFresh reads before a batch only if the known rules are older than latestFor. For a replica that commits nothing, and a
	// process with a store of its own, the reads of watchPending are enough.
	rulesPoll = 200 * time.Millisecond
	// setsKept is how many past sets of rules are kept, for signals that were stored under them and not matched yet.
	setsKept = 8
)

// errUndecoded means that this server cannot read a document, which may be one of a later version of Pawl.
var errUndecoded = errors.New("this server cannot decode the document")

// rules caches the rules in force.
type rules struct {
	current atomic.Pointer[automation.Set] // nil: not read yet
	asked   atomic.Pointer[time.Time]      // when current was last known to be the latest; nil: never
	used    atomic.Bool                    // a batch of requests has begun since watchRules last looked

	mu        sync.Mutex // of the fields below; held while the store is read
	past      map[int64]*automation.Set
	documents map[string]*definition.Definition // "rule:name@version"

	wake         chan struct{} // capacity 1: there are new signals
	windowOpened chan struct{} // capacity 1: a window has been opened
	reread       chan struct{} // capacity 1: a transaction has paused a rule, or there may be newer rules

	breakers circuitBreakers
	costly   loop.Costly                               // rules
	turns    loop.TurnQueue[flow.ID, string]           // signals, with the last rule that was evaluated
	scanned  loop.Cursor[store.SignalPlace]            // of the new signals
	closes   loop.TurnQueue[store.WindowKey, struct{}] // windows of costly rules
	chains   chains
}

func newRules() *rules {
	return &rules{past: map[int64]*automation.Set{}, documents: map[string]*definition.Definition{}, wake: make(chan struct{}, 1), windowOpened: make(chan struct{}, 1), reread: make(chan struct{}, 1)}
}

// wakeMatching wakes the loop that evaluates rules for new signals.
func (r *rules) wakeMatching() { loop.Wake(r.wake) }

// rulesInForce are the rules as they were at most LatestFor ago.
func (e *Engine) rulesInForce(ctx context.Context) (*automation.Set, error) {
	if s := e.rules.current.Load(); s != nil && e.opts.Exclusive {
		return s, nil // every change is made by this process, which then reads them again
	}
	return e.readRules(ctx, catalog.LatestFor)
}

// readRules reads the rules in force, unless they were read no longer ago than stale.
func (e *Engine) readRules(ctx context.Context, stale time.Duration) (*automation.Set, error) {
	r := e.rules
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.current.Load()
	if s != nil && r.freshFor(stale) {
		return s, nil
	}
	asked := time.Now()
	generation, err := e.opts.Store.Generation(ctx)
	if err != nil {
		return nil, err
	}
	if s == nil || generation > s.Generation {
		if s, err = e.loadRules(ctx, generation); err != nil {
			return nil, err
		}
		if len(s.Rules) > 0 {
			if err := r.chains.loadKey(ctx, e); err != nil {
				return nil, err
			}
		}
		r.current.Store(s)
	}
	r.asked.Store(&asked)
	return s, nil
}

// freshFor reports whether the rules were known to be the latest no longer ago than stale.
func (r *rules) freshFor(stale time.Duration) bool {
	asked := r.asked.Load()
	return asked != nil && time.Since(*asked) < stale
}

// knownAt records and reports that a read of the store has shown the rules in memory to be the latest. On a replica that commits it returns
// false, so that watchRules runs from then on.
func (r *rules) knownAt(f *found) bool {
	s := r.current.Load()
	if f.unknown || s == nil || s.Generation != f.Generation {
		return false
	}
	for asked := r.asked.Load(); asked == nil || asked.Before(f.asked); asked = r.asked.Load() {
		if r.asked.CompareAndSwap(asked, &f.asked) {
			break
		}
	}
	return !r.used.Load()
}

// rulesFresh is called before each batch: ends of executions are decided with the rules in memory, which must not be older than LatestFor.
// On a replica that was idle this reads one row of an index. If the read fails, the batch uses the known rules. busy: the batch has
// requests of callers; requests of claimers, sessions and loops, which an idle replica makes too, do not start watchRules.
func (e *Engine) rulesFresh(ctx context.Context, busy bool) {
	if e.opts.Exclusive {
		return
	}
	if busy {
		e.rules.used.Store(true)
	}
	if !e.rules.freshFor(catalog.LatestFor) {
		e.rulesRead(ctx, catalog.LatestFor)
	}
}

// rulesAt are the rules that were in force at a generation.
func (e *Engine) rulesAt(ctx context.Context, generation int64) (*automation.Set, error) {
	if s := e.rules.current.Load(); s != nil && s.Generation == generation {
		return s, nil
	}
	r := e.rules
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.past[generation]; s != nil {
		return s, nil
	}
	s, err := e.loadRules(ctx, generation)
	if err != nil {
		return nil, err
	}
	if len(r.past) >= setsKept {
		clear(r.past)
	}
	r.past[generation] = s
	return s, nil
}

// loadRules reads the rules that are in force at a generation. A rule that cannot be read is left out and logged: the others work. The
// caller holds the mutex of rules.
func (e *Engine) loadRules(ctx context.Context, generation int64) (*automation.Set, error) {
	all, err := e.opts.Store.SwitchesAt(ctx, generation)
	if err != nil {
		return nil, err
	}
	var inForce []*automation.Rule
	triggers := map[string]*definition.Trigger{}
	unread := map[string]bool{}
	for _, k := range all {
		d, err := e.ruleDocument(ctx, k.Name, k.Version)
		if err != nil && !fault.OfBatch(err) {
			return nil, err
		}
		switch {
		case err != nil:
			e.opts.Log.Error("a rule or trigger cannot be read: it is left out", telemetry.Err, err)
			if name, ok := strings.CutPrefix(k.Name, triggerPrefix); ok {
				unread[name] = true
			}
		case d.Rule != nil:
			inForce = append(inForce, &automation.Rule{Name: d.Name, Version: k.Version, Paused: k.Paused, Reason: k.Reason, Since: k.Generation,
				Rule: d.Rule})
		case d.Trigger != nil:
			triggers[d.Name] = d.Trigger
		}
	}
	set := automation.NewSet(generation, inForce, triggers)
	set.Unread = unread
	return set, nil
}

// ruleDocument reads a version of a rule or a trigger, by its name among the definitions. The caller holds the mutex of rules.
func (e *Engine) ruleDocument(ctx context.Context, name string, version int) (*definition.Definition, error) {
	key := catalog.VersionKey(name, version)
	if d := e.rules.documents[key]; d != nil {
		return d, nil
	}
	row, err := e.opts.Store.Definition(ctx, name, version)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", key, err)
	}
	d, err := definition.Decode(row.Document)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", key, errUndecoded, err)
	}
	if len(e.rules.documents) >= catalog.Limit {
		clear(e.rules.documents)
	}
	e.rules.documents[key] = d
	return d, nil
}

// watchRules keeps the rules of a replica up to date while it commits, so that its batches need not read them first.
func (e *Engine) watchRules(ctx context.Context) {
	for {
		e.rulesRead(ctx, rulesPoll/2)
		var again <-chan time.Time
		if e.rules.used.Swap(false) {
			again = time.After(e.jittered(rulesPoll))
		}
		select {
		case <-again:
		case <-e.rules.reread:
			e.rulesChanged(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// switchTo puts a version of a rule or a trigger in force. A paused rule stays paused.
func (t *transaction) switchTo(ctx context.Context, d *definition.Definition, version int) error {
	name := string(d.Kind) + ":" + d.Name
	found, last, err := t.tx.LatestSwitches(ctx, []string{name})
	if err != nil {
		return err
	}
	k := found[name]
	if k.Version == version {
		return nil
	}
	t.putSwitch(store.Switch{Generation: last + 1, Name: name, Version: version, Paused: k.Paused, At: t.now, Reason: k.Reason})
	return nil
}

func (t *transaction) putSwitch(k store.Switch) {
	rows := t.changes.add()
	rows.Rules.Switches = append(rows.Rules.Switches, k)
}

// PauseRule makes a rule start nothing until it is resumed: signals are kept meanwhile, and pawl rules replay starts what it missed. A rule
// that is paused already keeps its reason.
func (e *Engine) PauseRule(ctx context.Context, name, reason string) error {
	if err := fault.CheckText("reason", reason, fault.ReasonLimit, "shorten it"); err != nil {
		return err
	}
	return e.steerRule(ctx, name, true, reason)
}

// ResumeRule lets a rule start executions again, for signals from now on.
func (e *Engine) ResumeRule(ctx context.Context, name string) error {
	return e.steerRule(ctx, name, false, "")
}

func (e *Engine) steerRule(ctx context.Context, name string, pause bool, reason string) error {
	if fault.BadText(name, 100) != "" {
		return fmt.Errorf("rule %.100q: %w", name, store.ErrNotFound)
	}
	there, err := inBatchAlone(ctx, e, func(ctx context.Context, t *transaction) (there bool, err error) {
		found, last, err := t.tx.LatestSwitches(ctx, []string{rulePrefix + name})
		if err != nil {
			return false, err
		}
		k, there := found[rulePrefix+name]
		if !there || k.Paused == pause {
			return there, nil
		}
		return true, t.steerRule(ctx, name, k, last+1, pause, reason)
	})
	if err == nil && !there {
		err = fmt.Errorf("rule %q: %w", name, store.ErrNotFound)
	}
	if err == nil {
		e.rulesChanged(ctx)
	}
	return err
}

// steerRule pauses or resumes a rule as of a generation. k is its latest switch.
func (t *transaction) steerRule(ctx context.Context, name string, k store.Switch, generation int64, pause bool, reason string) error {
	k.Generation, k.Paused, k.Reason, k.At = generation, pause, reason, t.now
	if t.putSwitch(k); !pause {
		return nil
	}
	return t.recordPaused(ctx, name, reason)
}

// rulesChanged reads the rules again after a change was committed. If that fails, watchRules does it soon.
func (e *Engine) rulesChanged(ctx context.Context) { e.rulesRead(ctx, 0) }

// rulesRead is readRules for callers that can continue without.
func (e *Engine) rulesRead(ctx context.Context, stale time.Duration) {
	if _, err := e.readRules(ctx, stale); err != nil && ctx.Err() == nil {
		e.opts.Log.Warn("reading the rules failed; it will be tried again", telemetry.Err, err)
	}
}

// Rules are the rules in force, by name.
func (e *Engine) Rules(ctx context.Context) ([]*automation.Rule, error) {
	s, err := e.readRules(ctx, 0)
	if err != nil {
		return nil, err
	}
	return s.Rules, nil
}

// Rule is the rule with a name, and its document; ErrNotFound if none is in force.
func (e *Engine) Rule(ctx context.Context, name string) (*automation.Rule, *definition.Definition, error) {
	s, err := e.readRules(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	r := s.Rule(name)
	if r == nil {
		return nil, nil, fmt.Errorf("rule %.100q: %w", name, store.ErrNotFound)
	}
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	d, err := e.ruleDocument(ctx, rulePrefix+name, r.Version)
	return r, d, err
}

// checkCycles returns which of the new rules would make rules start one another without end.
func (e *Engine) checkCycles(ctx context.Context, defs []*definition.Definition, among map[string]*definition.Definition) (problems definition.Problems, err error) {
	added := map[string]*definition.Definition{}
	for _, d := range defs {
		if d.Rule != nil {
			added[d.Name] = d
		}
	}
	if len(added) == 0 {
		return nil, nil
	}
	in, err := e.readRules(ctx, 0)
	if err != nil {
		return nil, err
	}
	var all []*automation.Rule
	for _, r := range in.Rules {
		if added[r.Name] == nil {
			all = append(all, r)
		}
	}
	for _, d := range added {
		all = append(all, &automation.Rule{Name: d.Name, Rule: d.Rule})
	}
	labels := func(action string, version int) map[string]string {
		if d := among[action]; d != nil && version == 0 {
			return d.Settings.Labels
		}
		d, _, err := e.catalog.Get(ctx, action, version)
		if err != nil {
			return nil // a missing one is a separate problem
		}
		return d.Settings.Labels
	}
	for _, names := range automation.Cycles(all, labels) {
		for _, name := range names {
			if d := added[name]; d != nil {
				problems = append(problems, definition.Problem{File: d.Rule.OnAt.File, Line: d.Rule.OnAt.Line, Column: d.Rule.OnAt.Column, Path: "on",
					Message: fmt.Sprintf("the rules lead to one another without end: %s → %s", strings.Join(names, " → "), names[0]),
					Fix:     "name other actions in `if`, or write reentry: allow where it ends by itself"})
				break
			}
		}
	}
	return problems, nil
}
