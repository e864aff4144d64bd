package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
	"github.com/pawl-run/pawl/internal/store/verification"
)

// enforced are the columns of what a rule has done about a signal, and enforcements those with the signal and the rule.
var (
	enforced = relation[*flow.Enforcement, *flow.Enforcement]{
		{"version", func(s *stmt, x *flow.Enforcement) { s.int(int64(x.Version)) }, func(s *stmt, x *flow.Enforcement) { x.Version = int(s.getInt()) }},
		{"state", func(s *stmt, x *flow.Enforcement) { s.int(int64(x.State)) }, func(s *stmt, x *flow.Enforcement) { x.State = flow.EnforcementState(s.getInt()) }},
		{"at", func(s *stmt, x *flow.Enforcement) { s.time(x.At) }, func(s *stmt, x *flow.Enforcement) { x.At = s.getTime() }},
		{"execution", func(s *stmt, x *flow.Enforcement) { s.id(x.Execution) }, func(s *stmt, x *flow.Enforcement) { x.Execution = s.getID() }},
		{"reason", func(s *stmt, x *flow.Enforcement) { s.textOrNull(row.Reason(&x.Reason)) }, func(s *stmt, x *flow.Enforcement) { s.failed(row.DecodeReason(&x.Reason, s.peekBlob())) }},
		{"held_in", putWindowOf, func(s *stmt, x *flow.Enforcement) { x.Window = s.getText() }},
	}
	enforcements = relation[*flow.Enforcement, *flow.Enforcement]{
		{"signal", func(s *stmt, x *flow.Enforcement) { s.int(x.Number) }, func(s *stmt, x *flow.Enforcement) { x.Number = s.getInt() }},
		{"rule", func(s *stmt, x *flow.Enforcement) { s.text(x.Rule) }, func(s *stmt, x *flow.Enforcement) { x.Rule = s.getText() }},
	}.with(enforced...)
)

// switches are the columns of which version of a rule or trigger is in force from a generation on.
var switches = relation[*store.Switch, *store.Switch]{
	{"generation", func(s *stmt, x *store.Switch) { s.int(x.Generation) }, func(s *stmt, x *store.Switch) { x.Generation = s.getInt() }},
	{"name", func(s *stmt, x *store.Switch) { s.text(x.Name) }, func(s *stmt, x *store.Switch) { x.Name = s.getText() }},
	{"version", func(s *stmt, x *store.Switch) { s.int(int64(x.Version)) }, func(s *stmt, x *store.Switch) { x.Version = int(s.getInt()) }},
	{"paused", func(s *stmt, x *store.Switch) { s.int(truth(x.Paused)) }, func(s *stmt, x *store.Switch) { x.Paused = s.getInt() == 1 }},
	{"at", func(s *stmt, x *store.Switch) { s.time(x.At) }, func(s *stmt, x *store.Switch) { x.At = s.getTime() }},
	{"reason", func(s *stmt, x *store.Switch) { s.text(x.Reason) }, func(s *stmt, x *store.Switch) { x.Reason = s.getText() }},
}

var (
	qInsertEnforcement = sql(enforcements.insert("enforcements"))
	qRetryEnforcement  = sql(`UPDATE enforcements SET ` + enforced.sets() + ` WHERE signal = ? AND rule = ? AND state > 3`)
	qEnforcement       = sql(`SELECT ` + enforcements.names("") + ` FROM enforcements WHERE signal = ? AND rule = ?`)
	qEnforced          = sql(`SELECT rule FROM enforcements WHERE signal = ? ORDER BY rule`)
	qSignalThere       = sql(`SELECT 1 FROM signals WHERE n = ?`)
	qLedBy             = sql(`SELECT e.rule, s.id FROM enforcements e LEFT JOIN signals s ON s.n = e.signal WHERE e.execution = ? AND e.state = 1`)
	qIsMatched         = sql(`SELECT 1 FROM signals WHERE id = ? AND state = 2`)
	qMatch             = sql(`UPDATE signals SET state = 2 WHERE n = ? AND state = 1`)

	qGeneration   = sql(`SELECT coalesce(max(generation), 0) FROM switches`)
	qLatestSwitch = sql(`SELECT ` + switches.names("") + ` FROM switches WHERE name = ? ORDER BY generation DESC LIMIT 1`)
	qAddSwitch    = sql(switches.insert("switches"))
	qSwitchesAt   = sql(`SELECT ` + switches.names("") + ` FROM switches WHERE generation IN (SELECT max(generation) FROM switches WHERE generation <= ? GROUP BY name) ORDER BY name`)
)

func (t *tx) putEnforcement(e *flow.Enforcement) error {
	return taken(enforcements.bind(t.c.use(qInsertEnforcement), e).run())
}

func (t *tx) retryEnforcement(e *flow.Enforcement) error {
	err := enforced.bind(t.c.use(qRetryEnforcement), e).int(e.Number).text(e.Rule).run()
	if err == nil && t.c.changes() == 0 {
		err = fmt.Errorf("%w: it has neither failed nor been refused", store.ErrConflict)
	}
	return taken(err)
}

// LockEnforcement implements store.Enforcements. There is one transaction at a time, so it is locked by reading it.
func (t *tx) LockEnforcement(_ context.Context, number int64, rule string) (e flow.Enforcement, err error) {
	found, err := rowsOf(t.c.use(qEnforcement).int(number).text(rule), enforcements)
	if err == nil && len(found) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return e, fmt.Errorf("enforcement of rule %q: %w", rule, err)
	}
	return found[0], nil
}

// putWindowOf binds the key of an enforcement's window, which may be empty; NULL where it was never held.
func putWindowOf(s *stmt, e *flow.Enforcement) {
	if e.State != flow.EnforcementHeld {
		s.textOrNull(e.Window)
		return
	}
	s.text(e.Window)
}

func (t *tx) match(number int64) error {
	if err := t.c.use(qMatch).int(number).run(); err != nil {
		return err
	}
	if t.c.changes() == 0 {
		return fmt.Errorf("%w: it is not new", store.ErrConflict)
	}
	return nil
}

// Enforced implements store.Enforcements.
func (t *tx) Enforced(_ context.Context, numbers []int64) (map[int64][]string, error) {
	all := map[int64][]string{}
	for _, n := range numbers {
		there := t.c.use(qSignalThere).int(n)
		found := there.next()
		if err := there.done(); err != nil {
			return nil, fmt.Errorf("look for signal number %d: %w", n, err)
		}
		if !found {
			continue
		}
		all[n] = []string{}
		s := t.c.use(qEnforced).int(n)
		for s.next() {
			all[n] = append(all[n], s.getText())
		}
		if err := s.done(); err != nil {
			return nil, fmt.Errorf("look up enforcements of signal number %d: %w", n, err)
		}
	}
	return all, nil
}

// checkLed compares an execution with the enforcement that it leads.
func (c *conn) checkLed(f *verification.Findings, x *flow.Execution) error {
	var led *verification.Led
	s := c.use(qLedBy).id(x.ID)
	if s.next() {
		led = &verification.Led{Rule: s.getText(), Signal: s.getID()}
	}
	if err := s.done(); err != nil {
		return err
	}
	there := false
	if led == nil && !x.Signal.IsZero() {
		s := c.use(qIsMatched).id(x.Signal)
		there = s.next()
		if err := s.done(); err != nil {
			return err
		}
	}
	verification.Enforcement(f, x, led, there)
	return nil
}

// Enforcements implements store.EnforcementReader.
func (s *Store) Enforcements(ctx context.Context, f store.EnforcementFilter) (all []flow.Enforcement, err error) {
	l := &listing{}
	if f.Rule != "" {
		l.and(`e.rule = ?`)
		l.text(f.Rule)
	}
	if f.State != 0 {
		l.and(`e.state = ?`)
		l.int(int64(f.State))
		if f.State > flow.EnforcementFolded {
			l.and(`e.state > 3`) // the condition of an index
		}
	}
	if f.Signal != 0 {
		l.and(`e.signal = ?`)
		l.int(f.Signal)
	}
	if f.BeforeSignal != 0 {
		l.and(`e.signal <= ?`)
		l.int(f.BeforeSignal)
		l.and(`(e.signal, e.rule) < (?, ?)`)
		l.int(f.BeforeSignal)
		l.text(f.BeforeRule)
	}
	where := ""
	if len(l.where) > 0 {
		where = ` WHERE ` + strings.Join(l.where, ` AND `)
	}
	err = s.read(ctx, func(c *conn) error {
		q := c.prepare(`SELECT ` + enforcements.names("") + `, (SELECT s.id FROM signals s WHERE s.n = e.signal) FROM enforcements e` + where + ` ORDER BY e.signal DESC, e.rule DESC LIMIT ?`)
		defer q.free()
		for _, bind := range l.bind {
			bind(q)
		}
		q.int(int64(f.Limit))
		var bad error
		for q.next() {
			var e flow.Enforcement
			if err := enforcements.read(q, &e); err != nil {
				bad = err
			}
			e.Signal = q.getID()
			all = append(all, e)
		}
		return cmp.Or(q.done(), bad)
	})
	return store.Result(all, err, "list enforcements")
}

func (c *conn) generation() (last int64, err error) {
	s := c.use(qGeneration)
	if s.next() {
		last = s.getInt()
	}
	return last, s.done()
}

// LatestSwitches implements store.Switches.
func (t *tx) LatestSwitches(_ context.Context, names []string) (map[string]store.Switch, int64, error) {
	found := make(map[string]store.Switch, len(names))
	for _, name := range names {
		all, err := rowsOf(t.c.use(qLatestSwitch).text(name), switches)
		if err != nil {
			return nil, 0, fmt.Errorf("read the switch of %s: %w", name, err)
		}
		if len(all) > 0 {
			found[name] = all[0]
		}
	}
	last, err := t.c.generation()
	return found, last, err
}

// addSwitches inserts switches.
func (t *tx) addSwitches(d *store.Delta) error {
	for _, k := range d.Switches {
		if err := taken(switches.bind(t.c.use(qAddSwitch), &k).run()); err != nil {
			return fmt.Errorf("switch %s: %w", k.Name, err)
		}
	}
	return nil
}

// Generation implements store.SwitchReader.
func (s *Store) Generation(ctx context.Context) (last int64, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		last, err = c.generation()
		return err
	})
	return store.Result(last, err, "read the generation of rules")
}

// SwitchesAt implements store.SwitchReader.
func (s *Store) SwitchesAt(ctx context.Context, generation int64) (all []store.Switch, err error) {
	return list(ctx, s, func(c *conn) ([]store.Switch, error) { return rowsOf(c.use(qSwitchesAt).int(generation), switches) }, "read switches")
}
