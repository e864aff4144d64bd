package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
	"github.com/pawl-run/pawl/internal/store/verification"
)

const (
	enforcementColumns = `signal, rule, version, state, at, execution, reason, held_in`
	switchColumns      = `generation, name, version, paused, at, reason`
)

var (
	qInsertEnforcement = sql(`INSERT INTO enforcements (` + enforcementColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
	qRetryEnforcement  = sql(`UPDATE enforcements SET version = ?, state = ?, at = ?, execution = ?, reason = ?, held_in = ? WHERE signal = ? AND rule = ? AND state > 3`)
	qEnforcement       = sql(`SELECT ` + enforcementColumns + ` FROM enforcements WHERE signal = ? AND rule = ?`)
	qEnforced          = sql(`SELECT rule FROM enforcements WHERE signal = ? ORDER BY rule`)
	qSignalThere       = sql(`SELECT 1 FROM signals WHERE n = ?`)
	qLedBy             = sql(`SELECT e.rule, s.id FROM enforcements e LEFT JOIN signals s ON s.n = e.signal WHERE e.execution = ? AND e.state = 1`)
	qIsMatched         = sql(`SELECT 1 FROM signals WHERE id = ? AND state = 2`)
	qMatch             = sql(`UPDATE signals SET state = 2 WHERE n = ? AND state = 1`)

	qGeneration   = sql(`SELECT coalesce(max(generation), 0) FROM switches`)
	qLatestSwitch = sql(`SELECT ` + switchColumns + ` FROM switches WHERE name = ? ORDER BY generation DESC LIMIT 1`)
	qAddSwitch    = sql(`INSERT INTO switches (` + switchColumns + `) VALUES (?, ?, ?, ?, ?, ?)`)
	qSwitchesAt   = sql(`SELECT ` + switchColumns + ` FROM switches WHERE generation IN (SELECT max(generation) FROM switches WHERE generation <= ? GROUP BY name) ORDER BY name`)
)

func (t *tx) putEnforcement(e *flow.Enforcement) error {
	return taken(t.c.use(qInsertEnforcement).int(e.Number).text(e.Rule).int(int64(e.Version)).int(int64(e.State)).int(row.Micros(e.At)).
		id(e.Execution).textOrNull(row.Reason(&e.Reason)).windowOf(e).run())
}

func (t *tx) retryEnforcement(e *flow.Enforcement) error {
	err := t.c.use(qRetryEnforcement).int(int64(e.Version)).int(int64(e.State)).int(row.Micros(e.At)).id(e.Execution).textOrNull(row.Reason(&e.Reason)).windowOf(e).
		int(e.Number).text(e.Rule).run()
	if err == nil && t.c.changes() == 0 {
		err = fmt.Errorf("%w: it has neither failed nor been refused", store.ErrConflict)
	}
	return taken(err)
}

// LockEnforcement implements store.Enforcements. There is one transaction at a time, so it is locked by reading it.
func (t *tx) LockEnforcement(_ context.Context, number int64, rule string) (e flow.Enforcement, err error) {
	s := t.c.use(qEnforcement).int(number).text(rule)
	found := s.next()
	if found {
		e, err = s.enforcement()
	}
	if failed := s.done(); failed != nil {
		err = failed
	}
	if err == nil && !found {
		err = store.ErrNotFound
	}
	if err != nil {
		return e, fmt.Errorf("enforcement of rule %q: %w", rule, err)
	}
	return e, nil
}

// enforcement reads enforcementColumns.
func (s *stmt) enforcement() (flow.Enforcement, error) {
	e := flow.Enforcement{Number: s.getInt(), Rule: s.getText(), Version: int(s.getInt()), State: flow.EnforcementState(s.getInt()), At: row.FromMicros(s.getInt()), Execution: s.getID()}
	err := row.DecodeReason(&e.Reason, s.peekBlob())
	e.Window = s.getText()
	return e, err
}

// windowOf binds the key of an enforcement's window, which may be empty; NULL where it was never held.
func (s *stmt) windowOf(e *flow.Enforcement) *stmt {
	if e.State != flow.EnforcementHeld {
		return s.textOrNull(e.Window)
	}
	return s.text(e.Window)
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
		q := c.prepare(`SELECT ` + enforcementColumns + `, (SELECT s.id FROM signals s WHERE s.n = e.signal) FROM enforcements e` + where + ` ORDER BY e.signal DESC, e.rule DESC LIMIT ?`)
		defer q.free()
		for _, bind := range l.bind {
			bind(q)
		}
		q.int(int64(f.Limit))
		var bad error
		for q.next() {
			e, err := q.enforcement()
			if err != nil {
				bad = err
			}
			e.Signal = q.getID()
			all = append(all, e)
		}
		if err := q.done(); err != nil {
			return err
		}
		return bad
	})
	if err != nil {
		return nil, fmt.Errorf("list enforcements: %w", err)
	}
	return all, nil
}

// switches reads rows of switchColumns.
func (s *stmt) switches() ([]store.Switch, error) {
	var all []store.Switch
	for s.next() {
		all = append(all, store.Switch{Generation: s.getInt(), Name: s.getText(), Version: int(s.getInt()), Paused: s.getInt() == 1, At: row.FromMicros(s.getInt()), Reason: s.getText()})
	}
	return all, s.done()
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
		all, err := t.c.use(qLatestSwitch).text(name).switches()
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
func (t *tx) addSwitches(all []store.Switch) error {
	for _, k := range all {
		paused := int64(0)
		if k.Paused {
			paused = 1
		}
		if err := taken(t.c.use(qAddSwitch).int(k.Generation).text(k.Name).int(int64(k.Version)).int(paused).int(row.Micros(k.At)).text(k.Reason).run()); err != nil {
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
	if err != nil {
		return 0, fmt.Errorf("read the generation of rules: %w", err)
	}
	return last, nil
}

// SwitchesAt implements store.SwitchReader.
func (s *Store) SwitchesAt(ctx context.Context, generation int64) (all []store.Switch, err error) {
	return list(ctx, s, func(c *conn) ([]store.Switch, error) { return c.use(qSwitchesAt).int(generation).switches() }, "read switches")
}
