package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
	"github.com/pawl-run/pawl/internal/store/verification"
)

var enforcements = relation[*flow.Enforcement, *flow.Enforcement]{
	{"signal", oidInt8, func(c *column, e *flow.Enforcement) { c.int(e.Number) }, func(r *rows, e *flow.Enforcement) { e.Number = r.int() }},
	{"rule", oidText, func(c *column, e *flow.Enforcement) { c.text(e.Rule) }, func(r *rows, e *flow.Enforcement) { e.Rule = r.text() }},
	{"version", oidInt4, func(c *column, e *flow.Enforcement) { c.int(int64(e.Version)) }, func(r *rows, e *flow.Enforcement) { e.Version = int(r.int()) }},
	{"state", oidInt2, func(c *column, e *flow.Enforcement) { c.int(int64(e.State)) }, func(r *rows, e *flow.Enforcement) { e.State = flow.EnforcementState(r.int()) }},
	{"at", oidInt8, func(c *column, e *flow.Enforcement) { c.int(row.Micros(e.At)) }, func(r *rows, e *flow.Enforcement) { e.At = r.time() }},
	{"execution", oidUUID, func(c *column, e *flow.Enforcement) { c.idOrNull(e.Execution) }, func(r *rows, e *flow.Enforcement) { e.Execution = r.id() }},
	{"reason", oidJSON, func(c *column, e *flow.Enforcement) { c.textOrNull(row.Reason(&e.Reason)) },
		func(r *rows, e *flow.Enforcement) { r.failed(row.DecodeReason(&e.Reason, r.peek())) }},
	{"held_in", oidText, func(c *column, e *flow.Enforcement) {
		if e.State == flow.EnforcementHeld { // the key of a window may be empty, which is not null
			c.text(e.Window)
		} else {
			c.textOrNull(e.Window)
		}
	}, func(r *rows, e *flow.Enforcement) { e.Window = r.text() }},
}

// listedEnforcements are the columns of enforcements, and the ids of their signals.
var listedEnforcements = enforcements.with(field[*flow.Enforcement, *flow.Enforcement]{"id", oidUUID, nil, func(r *rows, e *flow.Enforcement) { e.Signal = r.id() }})

var switches = relation[*store.Switch, *store.Switch]{
	{"generation", oidInt8, func(c *column, k *store.Switch) { c.int(k.Generation) }, func(r *rows, k *store.Switch) { k.Generation = r.int() }},
	{"name", oidText, func(c *column, k *store.Switch) { c.text(k.Name) }, func(r *rows, k *store.Switch) { k.Name = r.text() }},
	{"version", oidInt4, func(c *column, k *store.Switch) { c.int(int64(k.Version)) }, func(r *rows, k *store.Switch) { k.Version = int(r.int()) }},
	{"paused", oidBool, func(c *column, k *store.Switch) { c.bool(k.Paused) }, func(r *rows, k *store.Switch) { k.Paused = r.bool() }},
	{"at", oidInt8, func(c *column, k *store.Switch) { c.int(row.Micros(k.At)) }, func(r *rows, k *store.Switch) { k.At = r.time() }},
	{"reason", oidText, func(c *column, k *store.Switch) { c.text(k.Reason) }, func(r *rows, k *store.Switch) { k.Reason = r.text() }},
}

// numbered are numbers, one in each row.
var numbered = relation[int64, none]{{"n", oidInt8, func(c *column, n int64) { c.int(n) }, nil}}

var (
	qInsertEnforcements = sql(enforcements.insert("enforcements"))

	qRetryEnforcements = sql(`WITH v AS ` + enforcements.rows() + `,
		again AS (UPDATE {s}.enforcements e SET version = v.version, state = v.state, at = v.at, execution = v.execution, reason = v.reason, held_in = v.held_in FROM v
			WHERE ` + is("e.signal", "v.signal") + ` AND e.rule || '' = v.rule AND e.state + 0 > 3 RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM again), cardinality($1), 'PW409', 'enforcements have neither failed nor been refused')`)

	qLockEnforcement = sql(`SELECT ` + enforcements.names("") + ` FROM {s}.enforcements WHERE signal = $1 AND rule = $2 FOR UPDATE`)

	qKeepSignals = sql(`SELECT n FROM {s}.signals WHERE n = ANY ($1::bigint[]) ORDER BY n FOR KEY SHARE`)

	qLedBy = sql(`SELECT e.execution, e.rule, s.id FROM (SELECT unnest($1::uuid[]) AS id) v
		JOIN LATERAL (SELECT * FROM {s}.enforcements e WHERE e.execution = v.id AND e.state = 1 OFFSET 0) e ON true
		LEFT JOIN LATERAL (SELECT * FROM {s}.signals s WHERE s.n = e.signal OFFSET 0) s ON true`)

	qMatched = sql(`SELECT s.id FROM (SELECT unnest($1::uuid[]) AS id) v
		JOIN LATERAL (SELECT * FROM {s}.signals s WHERE s.id = v.id AND s.state + 0 = 2 OFFSET 0) s ON true`)

	qEnforced = sql(`SELECT e.signal, e.rule FROM ` + numbered.rows() + ` AS v
		JOIN LATERAL (SELECT * FROM {s}.enforcements e WHERE e.signal = v.n OFFSET 0) e ON true ORDER BY e.signal, e.rule`)

	// "+ 0" keeps the planner from reading all new signals in the order of their index.
	qMatch = sql(`WITH v AS ` + numbered.rows() + `,
		met AS (UPDATE {s}.signals k SET state = 2 FROM v WHERE ` + is("k.n", "v.n") + ` AND k.state + 0 = 1 RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM met), cardinality($1), 'PW409', 'signals are not new any more')`)

	qGeneration = sql(`SELECT coalesce((SELECT generation FROM {s}.switches WHERE generation > 0 ORDER BY generation DESC LIMIT 1), 0)`)

	qLatestSwitches = sql(`SELECT ` + switches.names("k.") + ` FROM (SELECT unnest($1::text[]) AS name) v
		JOIN LATERAL (SELECT * FROM {s}.switches k WHERE k.name = v.name ORDER BY k.generation DESC LIMIT 1) k ON true`)

	qAddSwitches = sql(switches.insert("switches"))

	qSwitchesAt = sql(`SELECT DISTINCT ON (name) ` + switches.names("") + ` FROM {s}.switches WHERE generation <= $1::bigint ORDER BY name, generation DESC`)
)

// insertEnforcements writes enforcements. They come after the signals that they name.
func (t *tx) insertEnforcements() {
	if len(t.enforced) == 0 {
		return
	}
	slices.SortFunc(t.enforced, func(a, b flow.Enforcement) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(a.Rule, b.Rule))
	})
	t.put(qInsertEnforcements, columnsOf(enforcements, t.enforced))
	t.enforced = nil
}

// retryEnforcements queues the statement that overwrites enforcements which have started nothing.
func (t *tx) retryEnforcements(all []flow.Enforcement) {
	t.put(qRetryEnforcements, columnsOf(enforcements, all))
}

// LockEnforcement implements store.Enforcements.
func (t *tx) LockEnforcement(ctx context.Context, number int64, rule string) (flow.Enforcement, error) {
	var all []flow.Enforcement
	err := t.ask(ctx, qLockEnforcement, t.args().int(number).text(rule), readInto(&all, enforcements))
	if err == nil && len(all) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return flow.Enforcement{}, fmt.Errorf("enforcement of rule %q: %w", rule, err)
	}
	return all[0], nil
}

// putMatched queues the statement that makes new signals matched ones.
func (t *tx) putMatched(numbers []int64) {
	if len(numbers) > 0 {
		t.put(qMatch, numbered.columns(numbers...))
	}
}

// Enforced implements store.Enforcements.
func (t *tx) Enforced(ctx context.Context, numbers []int64) (map[int64][]string, error) {
	all := map[int64][]string{}
	t.add(qKeepSignals, t.args().columns(numbered.columns(numbers...)), func(r *rows) error {
		all[r.int()] = []string{}
		return nil
	})
	err := t.ask(ctx, qEnforced, t.args().columns(numbered.columns(numbers...)), func(r *rows) error {
		if n := r.int(); all[n] != nil {
			all[n] = append(all[n], r.text())
		}
		return nil
	})
	return store.Result(all, err, "look up enforcements of %d signals", len(numbers))
}

// checkLed compares the executions of a page with the enforcements that started them, in the same snapshot.
func checkLed(ctx context.Context, c *conn, answer time.Duration, f *verification.Findings, all []*checked) error {
	var top, of []flow.ID
	for _, k := range all {
		if k.x.Parent.IsZero() {
			top = append(top, k.x.ID)
		}
		if !k.x.Signal.IsZero() {
			of = append(of, k.x.Signal)
		}
	}
	led, there := map[flow.ID]*verification.Led{}, map[flow.ID]bool{}
	var a, b args
	_, err := c.within(ctx, answer, []call{{q: qLedBy, params: a.ids(top).params, read: func(r *rows) error {
		led[r.id()] = &verification.Led{Rule: r.text(), Signal: r.id()}
		return nil
	}}, {q: qMatched, params: b.ids(of).params, read: func(r *rows) error {
		there[r.id()] = true
		return nil
	}}})
	if err != nil {
		return err
	}
	for _, k := range all {
		if k.x.Parent.IsZero() {
			verification.Enforcement(f, k.x, led[k.x.ID], there[k.x.Signal])
		}
	}
	return nil
}

// Enforcements implements store.EnforcementReader.
func (s *Store) Enforcements(ctx context.Context, f store.EnforcementFilter) (all []flow.Enforcement, err error) {
	l := listing{schema: s.schema}
	if f.Rule != "" {
		l.and(`e.rule = ?::text`, func(a *args) { a.text(f.Rule) })
	}
	if f.State != 0 {
		l.and(fmt.Sprintf(`e.state = %d`, f.State), func(*args) {}) // inside the query, where the planner sees that an index has this condition
	}
	if f.Signal != 0 {
		l.and(`e.signal = ?::bigint`, func(a *args) { a.int(f.Signal) })
	}
	if f.BeforeSignal != 0 {
		l.and(`(e.signal, e.rule) < (?::bigint, ?::text)`, func(a *args) { a.int(f.BeforeSignal).text(f.BeforeRule) })
	}
	where := ""
	if len(l.where) > 0 {
		where = ` WHERE ` + strings.Join(l.where, ` AND `)
	}
	query := fmt.Sprintf(`SELECT %s, (SELECT s.id FROM %s.signals s WHERE s.n = e.signal) FROM %s.enforcements e%s ORDER BY e.signal DESC, e.rule DESC LIMIT %d`,
		enforcements.names("e."), s.schema, s.schema, where, f.Limit)
	err = s.read(ctx, call{once: query, params: l.args.params, read: readInto(&all, listedEnforcements)})
	return store.Result(all, err, "list enforcements")
}

// LatestSwitches implements store.Switches.
func (t *tx) LatestSwitches(ctx context.Context, names []string) (map[string]store.Switch, int64, error) {
	var all []store.Switch
	var last int64
	t.add(qLatestSwitches, t.args().texts(names), readInto(&all, switches))
	err := t.ask(ctx, qGeneration, nil, readTo(&last, (*rows).int))
	if err != nil {
		return nil, 0, fmt.Errorf("read switches: %w", err)
	}
	found := make(map[string]store.Switch, len(all))
	for _, k := range all {
		found[k.Name] = k
	}
	for _, k := range t.switched { // switches of this transaction that are not written yet
		if slices.Contains(names, k.Name) {
			found[k.Name] = k
		}
		last = max(last, k.Generation)
	}
	return found, last, nil
}

// insertSwitches writes switches, in the order of their generations.
func (t *tx) insertSwitches() {
	slices.SortStableFunc(t.switched, func(a, b store.Switch) int { return cmp.Compare(a.Generation, b.Generation) })
	t.put(qAddSwitches, columnsOf(switches, t.switched))
	t.switched = nil
}

// Generation implements store.SwitchReader.
func (s *Store) Generation(ctx context.Context) (last int64, err error) {
	err = s.read(ctx, call{q: qGeneration, read: readTo(&last, (*rows).int)})
	return store.Result(last, err, "read the generation of rules")
}

// SwitchesAt implements store.SwitchReader.
func (s *Store) SwitchesAt(ctx context.Context, generation int64) (all []store.Switch, err error) {
	return list(ctx, s, qSwitchesAt, new(args).int(generation), switches, "read switches")
}
