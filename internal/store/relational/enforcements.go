package relational

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

var enforcements = Relation[flow.Enforcement]{
	number("signal", Int8, func(e *flow.Enforcement) *int64 { return &e.Number }),
	text("rule", func(e *flow.Enforcement) *string { return &e.Rule }),
	number("version", Int4, func(e *flow.Enforcement) *int { return &e.Version }),
	number("state", Int2, func(e *flow.Enforcement) *flow.EnforcementState { return &e.State }),
	moment("at", func(e *flow.Enforcement) *time.Time { return &e.At }),
	idOrNull("execution", func(e *flow.Enforcement) *flow.ID { return &e.Execution }),
	orNull(Column[flow.Enforcement]{"reason", JSON, func(a Args, e *flow.Enforcement) { a.Text(row.Reason(&e.Reason)) },
		func(r Row, e *flow.Enforcement) error { return row.DecodeReason(&e.Reason, r.Peek()) }},
		func(e *flow.Enforcement) bool { return e.Reason == flow.Reason{} }),
	// The key of a window may be empty, which must not become null.
	orNull(text("held_in", func(e *flow.Enforcement) *string { return &e.Window }),
		func(e *flow.Enforcement) bool { return e.Window == "" && e.State != flow.EnforcementBuffered }),
}

// listedEnforcements has the columns of enforcements, and the ids of their signals.
var listedEnforcements = append(slices.Clone(enforcements), id("id", func(e *flow.Enforcement) *flow.ID { return &e.Signal }))

var switches = Relation[store.Switch]{
	number("generation", Int8, func(k *store.Switch) *int64 { return &k.Generation }),
	text("name", func(k *store.Switch) *string { return &k.Name }),
	number("version", Int4, func(k *store.Switch) *int { return &k.Version }),
	truth("paused", func(k *store.Switch) *bool { return &k.Paused }),
	moment("at", func(k *store.Switch) *time.Time { return &k.At }),
	text("reason", func(k *store.Switch) *string { return &k.Reason }),
}

var (
	qInsertEnforcements = sql(func(d dialect) string { return enforcements.insert(d, "enforcements") })

	qRetryEnforcements = sql(func(d dialect) string {
		return `UPDATE {s}.enforcements AS e SET version = v.version, state = v.state, at = v.at, execution = v.execution,
				reason = v.reason, held_in = v.held_in FROM ` + enforcements.rows(d) + ` AS v
			WHERE ` + d.is("e.signal", "v.signal") + ` AND e.rule || '' = v.rule AND e.state + 0 > 3`
	}).exactly(store.ErrConflict, "enforcements have neither failed nor been refused")

	qLockEnforcement = sql(func(d dialect) string {
		return `SELECT ` + enforcements.names("") + ` FROM {s}.enforcements WHERE signal = $1 AND rule = $2` + d.forUpdate()
	})

	// The signals are locked so that they cannot be removed.
	qKeepSignals = sql(func(d dialect) string {
		lock := ""
		if d == postgres {
			lock = ` FOR KEY SHARE`
		}
		return `SELECT n FROM {s}.signals WHERE ` + d.in("n", Int8) + ` ORDER BY n` + lock
	})

	qEnforced = sql(func(d dialect) string {
		return `SELECT e.signal, e.rule FROM ` + numbered.rows(d) + ` AS v` + d.lookUp("enforcements", "e", `e.signal = v.n`) + `
			ORDER BY e.signal, e.rule`
	})

	qLedBy = sql(func(d dialect) string {
		return `SELECT e.execution, e.rule, (SELECT s.id FROM {s}.signals s WHERE s.n = e.signal) FROM ` + ids.rows(d) + ` AS v` +
			d.lookUp("enforcements", "e", `e.execution = v.id AND e.state = 1`)
	})

	qMatched = sql(func(d dialect) string {
		return `SELECT s.id FROM ` + ids.rows(d) + ` AS v` + d.lookUp("signals", "s", `s.id = v.id AND s.state + 0 = 2`)
	})

	// "+ 0" keeps the planner from reading all new signals in the order of their index.
	qMatch = sql(func(d dialect) string {
		return `UPDATE {s}.signals AS k SET state = 2 FROM ` + numbered.rows(d) + ` AS v
			WHERE ` + d.is("k.n", "v.n") + ` AND k.state + 0 = 1`
	}).exactly(store.ErrConflict, "signals are not new any more")

	qGeneration = same(`SELECT coalesce((SELECT generation FROM {s}.switches WHERE generation > 0 ORDER BY generation DESC LIMIT 1), 0)`)

	qLatestSwitches = sql(func(d dialect) string {
		if d == sqlite {
			return `SELECT ` + switches.names("") + ` FROM switches WHERE name = ?1 ORDER BY generation DESC LIMIT 1`
		}
		return `SELECT ` + switches.names("k.") + ` FROM ` + keys.rows(d) + ` AS v
			JOIN LATERAL (SELECT * FROM {s}.switches k WHERE k.name = v.key ORDER BY k.generation DESC LIMIT 1) k ON true`
	})

	qAddSwitches = sql(func(d dialect) string { return switches.insert(d, "switches") })

	qSwitchesAt = sql(func(d dialect) string {
		if d == sqlite {
			return `SELECT ` + switches.names("") + ` FROM switches
				WHERE generation IN (SELECT max(generation) FROM switches WHERE generation <= ?1 GROUP BY name) ORDER BY name`
		}
		return `SELECT DISTINCT ON (name) ` + switches.names("") + ` FROM {s}.switches WHERE generation <= $1::bigint
			ORDER BY name, generation DESC`
	}).whole()
)

// PutEnforcements writes enforcements, sorted. Their signals must have been written before.
func (t Tx) PutEnforcements(ctx context.Context, all []flow.Enforcement) error {
	if len(all) == 0 {
		return nil
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b flow.Enforcement) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(a.Rule, b.Rule))
	})
	return queue(ctx, t, qInsertEnforcements, enforcements, all, "write %d enforcements")
}

// RetryEnforcements overwrites enforcements that have not started anything.
func (t Tx) RetryEnforcements(ctx context.Context, all []flow.Enforcement) error {
	return queue(ctx, t, qRetryEnforcements, enforcements, all, "write %d enforcements again")
}

func (t Tx) LockEnforcement(ctx context.Context, signal int64, rule string) (flow.Enforcement, error) {
	return one(ctx, t, Call{Statement: qLockEnforcement, Args: []any{signal, rule}}, enforcements, "enforcement of rule %q", rule)
}

// Match marks new signals as matched.
func (t Tx) Match(ctx context.Context, signals []int64) error {
	return queue(ctx, t, qMatch, numbered, signals, "match %d signals")
}

func (t Tx) Enforced(ctx context.Context, signals []int64) (map[int64][]string, error) {
	all := map[int64][]string{}
	in := numbered.input(signals)
	err := t.Run(ctx, Call{Statement: qKeepSignals, Rows: in, Read: func(r Row) error {
		all[r.Int()] = []string{}
		return nil
	}}, Call{Statement: qEnforced, Rows: in, Read: func(r Row) error {
		if n := r.Int(); all[n] != nil {
			all[n] = append(all[n], textOf(r))
		}
		return nil
	}})
	return store.Result(all, err, "look up enforcements of %d signals", len(signals))
}

// CheckLed compares executions with the enforcements that started them, in the snapshot of q.
func CheckLed(ctx context.Context, q Querier, f *verification.Findings, all []*flow.Execution) error {
	var roots, of []flow.ID
	for _, x := range all {
		if x.Parent.IsZero() {
			roots = append(roots, x.ID)
		}
		if !x.Signal.IsZero() {
			of = append(of, x.Signal)
		}
	}
	starts, there := map[flow.ID]*verification.RuleStart{}, map[flow.ID]bool{}
	err := q.Run(ctx, Call{Statement: qLedBy, Rows: ids.input(roots), Read: func(r Row) error {
		starts[idOf(r)] = &verification.RuleStart{Rule: textOf(r), Signal: idOf(r)}
		return nil
	}}, Call{Statement: qMatched, Rows: ids.input(of), Read: func(r Row) error {
		there[idOf(r)] = true
		return nil
	}})
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.Parent.IsZero() {
			verification.Enforcement(f, x, starts[x.ID], there[x.Signal])
		}
	}
	return nil
}

func (s Reader) Enforcements(ctx context.Context, f store.EnforcementFilter) ([]flow.Enforcement, error) {
	var c filter
	if f.Rule != "" {
		c.and(`e.rule = ?::text`, f.Rule)
	}
	if f.State != 0 { // as a literal, so that the planner sees that an index has this condition
		c.and(fmt.Sprintf(`e.state = %d`, f.State))
	}
	if f.State > flow.EnforcementFolded {
		c.and(`e.state > 3`)
	}
	if f.Signal != 0 {
		c.and(`e.signal = ?::bigint`, f.Signal)
	}
	if f.BeforeSignal != 0 {
		c.and(`e.signal <= ?::bigint`, f.BeforeSignal)
		c.and(`(e.signal, e.rule) < (?::bigint, ?::text)`, f.BeforeSignal, f.BeforeRule)
	}
	query := `SELECT ` + enforcements.names("e.") + `, (SELECT s.id FROM {s}.signals s WHERE s.n = e.signal)
		FROM {s}.enforcements e` + c.where() +
		` ORDER BY e.signal DESC, e.rule DESC LIMIT ` + fmt.Sprint(f.Limit)
	return list(ctx, s, Call{Statement: once(func(dialect) string { return query }), Args: c.args}, listedEnforcements, "list enforcements")
}

func (t Tx) LatestSwitches(ctx context.Context, names []string) (map[string]store.Switch, int64, error) {
	var all []store.Switch
	var last int64
	err := t.Run(ctx, Call{Statement: qLatestSwitches, Rows: keys.input(names), Read: into(&all, switches)},
		Call{Statement: qGeneration, Read: readInt(&last)})
	if err != nil {
		return nil, 0, fmt.Errorf("read switches: %w", err)
	}
	found := make(map[string]store.Switch, len(all))
	for _, k := range all {
		found[k.Name] = k
	}
	return found, last, nil
}

// AddSwitches writes switches, in the order of their generations.
func (t Tx) AddSwitches(ctx context.Context, all []store.Switch) error {
	if len(all) == 0 {
		return nil
	}
	all = slices.SortedStableFunc(slices.Values(all), func(a, b store.Switch) int { return cmp.Compare(a.Generation, b.Generation) })
	return queue(ctx, t, qAddSwitches, switches, all, "write %d switches")
}

func (s Reader) Generation(ctx context.Context) (last int64, err error) {
	err = s.Run(ctx, Call{Statement: qGeneration, Read: readInt(&last)})
	return store.Result(last, err, "read the generation of rules")
}

func (s Reader) SwitchesAt(ctx context.Context, generation int64) ([]store.Switch, error) {
	return list(ctx, s, Call{Statement: qSwitchesAt, Args: []any{generation}}, switches, "read switches")
}
