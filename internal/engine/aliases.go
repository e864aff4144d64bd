package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// An alias is a name for versions of a definition that may be moved from one to another: deploy@stable. What is submitted by an alias
// is resolved once, at its start, and records both. Each move is one more version of a row beside the definitions, so the
// rows are the audit, and the caches and waits that new versions have serve aliases too.

// LatestAlias is what a name without @ means. It stands for the newest version, unless it has been moved to another one.
const LatestAlias = "latest"

const (
	aliasPrefix = "alias:"
	aliasKind   = "alias"
	aliasPage   = 100 // rows that are listed at a time
	targetsMost = 20  // versions that one alias stands for
)

// AliasTarget is a version that an alias stands for.
type AliasTarget struct {
	Version int `json:"version"`
	// Percent of executions get this version, in steps of 0.01; 0: those that no other target gets.
	Percent float64 `json:"percent,omitempty"`
}

// Alias is where an alias stands since a move.
type Alias struct {
	Name, Alias string
	Number      int           // of the move, from 1
	To          []AliasTarget // none: the alias was removed
	At          time.Time
	By, Reason  string
}

// AliasOrder moves an alias.
type AliasOrder struct {
	// One of these says where to.
	To     []AliasTarget
	Back   bool // to where it stood before the last move
	Remove bool

	By, Reason string
}

// DefineOrder says for whom definitions are stored.
type DefineOrder struct {
	// Alias is moved to what is stored, and a name without @ goes on to stand for what it stands for. Empty: a name without @ stands for
	// what is stored, where that is a new version; storing a known one again moves nothing.
	Alias string
	By    string
}

func (o *DefineOrder) check() error {
	switch say := fault.BadText(o.By, fault.AuthorLimit); {
	case say != "":
		return fault.New("by", fault.Short(o.By), say, "give a name")
	case o.Alias == "":
		return nil
	case o.Alias == LatestAlias:
		return fault.New("alias", o.Alias, "it is what a definition becomes without an alias", "leave it out")
	case !definition.IsAlias(o.Alias):
		return badAlias(o.Alias)
	}
	return nil
}

func badAlias(alias string) *fault.Invalid {
	return fault.New("alias", fault.Short(alias), fmt.Sprintf("it is not 1 to %d of a-z, 0-9, '_' and '-', beginning with a letter", definition.AliasMost), "take a name such as stable")
}

// aliasDocument is an alias as it is stored.
type aliasDocument struct {
	Name   string        `json:"name"`
	Alias  string        `json:"alias"`
	To     []AliasTarget `json:"to,omitempty"`
	By     string        `json:"by,omitempty"`
	Reason string        `json:"reason,omitempty"`
}

// SplitAction reads "name", "name@3" or "name@stable"; version is 0 but for the second, alias empty but for the third.
func SplitAction(action string) (name string, version int, alias string, err error) {
	name, text, has := strings.Cut(action, "@")
	if !has {
		return name, 0, "", nil
	}
	if definition.IsAlias(text) {
		return name, 0, text, nil
	}
	if version, err = strconv.Atoi(text); err != nil || version < 1 || strconv.Itoa(version) != text {
		return "", 0, "", fmt.Errorf("%.100q: after @ comes a version, 1 or more, as in %s@1, or an alias, as in %s@stable", action, name, name)
	}
	return name, version, "", nil
}

func aliasRow(name, alias string) string { return aliasPrefix + name + "@" + alias }

// choose returns the version that a caller gets, always the same one for the same text; 0: the alias stands for none.
func (a *Alias) choose(by string) int {
	if len(a.To) == 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(a.Name + "@" + a.Alias + "\x00" + by))
	at := float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53) * 100
	rest := 0
	for _, to := range a.To {
		if to.Percent == 0 {
			rest = to.Version
			continue
		}
		if at < to.Percent {
			return to.Version
		}
		at -= to.Percent
	}
	return rest
}

// firstOf is the execution with which a chain of reruns began.
func firstOf(x *flow.Execution) flow.ID {
	if x.RerunFirst.IsZero() {
		return x.ID
	}
	return x.RerunFirst
}

// readAlias reads where an alias stands. One that was never set stands for nothing.
func readAlias(ctx context.Context, from definitions, name, alias string) (*Alias, error) {
	row, err := from.Definition(ctx, aliasRow(name, alias), 0)
	if errors.Is(err, store.ErrNotFound) {
		return &Alias{Name: name, Alias: alias}, nil
	}
	if err != nil {
		return nil, err
	}
	return aliasOf(&row)
}

func aliasOf(row *store.Definition) (*Alias, error) {
	var d aliasDocument
	if err := json.Unmarshal(row.Document, &d); err != nil {
		return nil, fmt.Errorf("decode %s@%d: %w", row.Name, row.Version, err)
	}
	return &Alias{Name: d.Name, Alias: d.Alias, Number: row.Version, To: d.To, At: row.CreatedAt, By: d.By, Reason: d.Reason}, nil
}

// checkAlias says what is wrong with an order: *Invalid, or *NoSuch where there is no such definition.
func (e *Engine) checkAlias(ctx context.Context, name, alias string, o *AliasOrder) error {
	var f fault.List
	if !definition.IsAlias(alias) {
		f = append(f, badAlias(alias).Problems...)
	}
	f.Text("by", o.By, fault.AuthorLimit)
	f.Text("reason", o.Reason, fault.ReasonLimit)
	if len(o.To) > targetsMost {
		return fault.New("to", strconv.Itoa(len(o.To)), fmt.Sprintf("an alias stands for %d versions at the most", targetsMost), "give fewer")
	}
	if to := len(o.To) > 0; to && o.Back || to && o.Remove || o.Back && o.Remove || !(to || o.Back || o.Remove) {
		f.Add("to", "", "say one thing: versions, back or remove", "give the versions that it is to stand for")
	}
	rests, sum, seen := 0, 0.0, map[int]bool{}
	for i, to := range o.To {
		path := fmt.Sprintf("to[%d]", i)
		switch hundredths := to.Percent * 100; {
		case !(to.Percent >= 0 && to.Percent <= 100), math.Abs(hundredths-math.Round(hundredths)) > 1e-6, to.Percent > 0 && hundredths < 0.5:
			f.Add(path+".percent", fmt.Sprint(to.Percent), "it is not from 0 to 100 in steps of 0.01", "give a percentage such as 10 or 0.5")
		case to.Percent == 0:
			rests++
		}
		if seen[to.Version] {
			f.Add(path+".version", strconv.Itoa(to.Version), "it is given twice", "give each version once")
		}
		seen[to.Version] = true
		sum += to.Percent
	}
	if len(o.To) > 0 && rests != 1 {
		f.Add("to", "", fmt.Sprintf("%d versions have no percentage", rests), "leave the percentage out of exactly one version: it gets what the others do not")
	}
	if sum > 100+1e-6 {
		f.Add("to", "", fmt.Sprintf("the percentages add up to %v", sum), "give at most 100 in all")
	}
	if len(f) > 0 {
		return &fault.Invalid{Problems: f}
	}
	latest, err := e.registered(ctx, name)
	if err != nil {
		return err
	}
	for i, to := range o.To {
		if to.Version < 1 || to.Version > latest.Version {
			return fault.New(fmt.Sprintf("to[%d].version", i), strconv.Itoa(to.Version), "there is no such version of "+name, fmt.Sprintf("give one from 1 to %d", latest.Version))
		}
	}
	return nil
}

// MoveAlias lets an alias stand for other versions. It reports whether that changes anything: the same order twice is one move.
// Executions that have begun go on as they are.
func (e *Engine) MoveAlias(ctx context.Context, name, alias string, o AliasOrder) (now Alias, moved bool, err error) {
	if err := e.checkAlias(ctx, name, alias, &o); err != nil {
		return now, false, err
	}
	type move struct {
		*Alias
		moved bool
	}
	asked := time.Now()
	m, err := askAlone(ctx, e, func(ctx context.Context, t *transaction) (move, error) {
		was, err := readAlias(ctx, t.tx, name, alias)
		if err != nil {
			return move{}, err
		}
		to := o.To
		if o.Back {
			if to, err = before(ctx, t.tx, was); err != nil {
				return move{}, err
			}
		}
		if slices.Equal(was.To, to) {
			return move{was, false}, nil
		}
		a, err := t.moveAlias(ctx, Alias{Name: name, Alias: alias, To: to, By: o.By, Reason: o.Reason})
		return move{a, true}, err
	})
	if err != nil {
		return now, false, err
	}
	e.catalog.isAlias(m.Alias, asked)
	return *m.Alias, m.moved, nil
}

// before is where an alias stood before its last move.
func before(ctx context.Context, from definitions, a *Alias) ([]AliasTarget, error) {
	if a.Number < 2 {
		return nil, fault.New("back", "true", fmt.Sprintf("%s@%s has not been moved yet", a.Name, a.Alias), "say which version it is to stand for")
	}
	row, err := from.Definition(ctx, aliasRow(a.Name, a.Alias), a.Number-1)
	if err != nil {
		return nil, err
	}
	b, err := aliasOf(&row)
	if err != nil {
		return nil, err
	}
	return b.To, nil
}

// moveAlias writes one move.
func (t *transaction) moveAlias(ctx context.Context, a Alias) (*Alias, error) {
	doc, err := json.Marshal(aliasDocument{a.Name, a.Alias, a.To, a.By, a.Reason})
	if err != nil {
		return nil, err
	}
	row := store.Definition{Name: aliasRow(a.Name, a.Alias), Kind: aliasKind, Document: doc, Hash: sha256.Sum256(doc), CreatedAt: t.now}
	if a.Number, _, err = t.tx.Define(ctx, row); err != nil {
		return nil, fmt.Errorf("move alias %s@%s: %w", a.Name, a.Alias, err)
	}
	a.At = t.now
	return &a, nil
}

// defineAliases moves aliases once a version has been defined: that of the order to it, and the latest. With an order the latest stays where
// it is; without one a new version is what it stands for, and one that was there before changes nothing: who has moved the latest back
// keeps it there, whatever is applied again. It returns what it has moved, and what the latest stands for (0: the newest version).
func (t *transaction) defineAliases(ctx context.Context, name string, version int, created bool, o *DefineOrder) (moved []*Alias, latest int, err error) {
	to := map[string][]AliasTarget{}
	switch {
	case o.Alias != "":
		to[o.Alias] = []AliasTarget{{Version: version}}
		if created && version > 1 {
			to[LatestAlias] = []AliasTarget{{Version: version - 1}}
		}
	case created:
		to[LatestAlias] = nil
	}
	was, err := readAlias(ctx, t.tx, name, LatestAlias)
	if err != nil {
		return nil, 0, err
	}
	latest = was.choose("")
	if o.Alias != "" && len(was.To) > 0 {
		delete(to, LatestAlias) // it stands for an earlier version already
	}
	for _, alias := range slices.Sorted(maps.Keys(to)) {
		a := was
		if alias != LatestAlias {
			if a, err = readAlias(ctx, t.tx, name, alias); err != nil {
				return nil, 0, err
			}
		}
		if slices.Equal(a.To, to[alias]) {
			continue
		}
		m, err := t.moveAlias(ctx, Alias{Name: name, Alias: alias, To: to[alias], By: o.By, Reason: "version " + strconv.Itoa(version) + " was applied"})
		if err != nil {
			return nil, 0, err
		}
		if alias == LatestAlias {
			latest = m.choose("")
		}
		moved = append(moved, m)
	}
	return moved, latest, nil
}

// Aliases lists where the aliases of a definition stand, by name. Those that were removed are left out.
func (e *Engine) Aliases(ctx context.Context, name string) (all []Alias, err error) {
	prefix := aliasRow(name, "")
	for after := prefix; ; {
		rows, err := e.opts.Store.Definitions(ctx, after, aliasPage)
		if err != nil {
			return nil, fmt.Errorf("list aliases of %q: %w", name, err)
		}
		for _, row := range rows {
			alias, is := strings.CutPrefix(row.Name, prefix)
			if !is {
				return all, nil
			}
			after = row.Name
			a, err := readAlias(ctx, e.opts.Store, name, alias)
			if err != nil {
				return nil, fmt.Errorf("alias %s@%s: %w", name, alias, err)
			}
			if len(a.To) > 0 {
				all = append(all, *a)
			}
		}
		if len(rows) < aliasPage {
			return all, nil
		}
	}
}

// AliasMoves lists up to n moves of an alias that are numbered below a number (0: all), the last one first. *NoSuch where there are none.
func (e *Engine) AliasMoves(ctx context.Context, name, alias string, below, n int) (all []Alias, err error) {
	a := &Alias{}
	if fault.BadText(name, fault.ActionLimit) == "" && definition.IsAlias(alias) {
		a, err = readAlias(ctx, e.opts.Store, name, alias)
	}
	if err == nil && a.Number == 0 {
		return nil, &fault.NoSuch{Say: fmt.Sprintf("there is no alias %.100q", name+"@"+alias), Fix: e.aliasFix(ctx, name, alias)}
	}
	if err != nil {
		return nil, err
	}
	last := a.Number
	if below > 0 {
		last = min(last, below-1)
	}
	for number := last; number > 0 && len(all) < n; number-- {
		row, err := e.opts.Store.Definition(ctx, aliasRow(name, alias), number)
		if err != nil {
			return nil, err
		}
		if a, err = aliasOf(&row); err != nil {
			return nil, err
		}
		all = append(all, *a)
	}
	return all, nil
}

// aliasFix says which alias may be meant.
func (e *Engine) aliasFix(ctx context.Context, name, alias string) string {
	all, err := e.Aliases(ctx, name)
	if err != nil || len(all) == 0 {
		return fmt.Sprintf("it has none; pawl alias %s@%s VERSION sets it", name, alias)
	}
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = name + "@" + a.Alias
	}
	if near := problem.Nearest(name+"@"+alias, names); near != "" {
		return near
	}
	return "there are " + strings.Join(names, ", ")
}
