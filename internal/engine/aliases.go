package engine

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
)

// targetsMost is how many versions one alias can have.
const targetsMost = 20

// DefineOrder says which alias a stored definition gets.
type DefineOrder struct {
	// Alias is moved to the stored version, and a name without @ keeps its version. Empty: a name without @ gets the stored version if it is
	// new; storing a known version again moves nothing.
	Alias string
	By    string
}

func (o *DefineOrder) check() error {
	if err := fault.CheckText("by", o.By, fault.AuthorLimit, "give a name"); err != nil {
		return err
	}
	switch {
	case o.Alias == "":
		return nil
	case o.Alias == definition.LatestAlias:
		return fault.New("alias", o.Alias, "it is what a definition becomes without an alias", "leave it out")
	case !definition.IsAlias(o.Alias):
		return badAlias(o.Alias)
	}
	return nil
}

func badAlias(alias string) *fault.Invalid {
	return fault.New("alias", fault.Short(alias), fmt.Sprintf("it is not 1 to %d of a-z, 0-9, '_' and '-', beginning with a letter", definition.AliasMost), "take a name such as stable")
}

// checkAlias returns what is wrong with an order: *Invalid, or *NoSuch if the definition does not exist.
func (e *Engine) checkAlias(ctx context.Context, name, alias string, o *api.AliasOrder) error {
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
	latest, err := e.catalog.Registered(ctx, name)
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

// MoveAlias points an alias at other versions. It reports whether that changes anything: the same order twice is one move. Executions that
// have begun keep their version.
func (e *Engine) MoveAlias(ctx context.Context, name, alias string, o api.AliasOrder) (now api.Alias, moved bool, err error) {
	if err := e.checkAlias(ctx, name, alias, &o); err != nil {
		return now, false, err
	}
	type move struct {
		*api.Alias
		moved   bool
		refused error // returned as a result: an error would fail the transaction, and with it the other requests of the batch
	}
	asked := time.Now()
	m, err := inBatchAlone(ctx, e, func(ctx context.Context, t *transaction) (move, error) {
		was, err := catalog.ReadAlias(ctx, &t.tx, name, alias)
		if err != nil {
			return move{}, err
		}
		to := o.To
		if o.Back {
			if was.Number < 2 {
				return move{refused: fault.New("back", "true", fmt.Sprintf("%s@%s has not been moved yet", name, alias), "say which version it is to stand for")}, nil
			}
			if to, err = targetsBefore(ctx, &t.tx, was); err != nil {
				return move{}, err
			}
		}
		if slices.Equal(was.To, to) {
			return move{Alias: was}, nil
		}
		a, err := t.moveAlias(ctx, api.Alias{Name: name, Alias: alias, To: to, By: o.By, Reason: o.Reason})
		return move{Alias: a, moved: true}, err
	})
	if err == nil {
		err = m.refused
	}
	if err != nil {
		return now, false, err
	}
	e.catalog.NoteAlias(m.Alias, asked)
	return *m.Alias, m.moved, nil
}

// targetsBefore returns the targets of a moved alias before its last move.
func targetsBefore(ctx context.Context, from catalog.Source, a *api.Alias) ([]api.AliasTarget, error) {
	b, err := catalog.AliasMove(ctx, from, a.Name, a.Alias, a.Number-1)
	if err != nil {
		return nil, err
	}
	return b.To, nil
}

func (t *transaction) moveAlias(ctx context.Context, a api.Alias) (*api.Alias, error) {
	a.At, a.To = t.now, append([]api.AliasTarget{}, a.To...)
	row, err := catalog.AliasRow(&a)
	if err == nil {
		a.Number, _, err = t.tx.Define(ctx, row)
	}
	if err != nil {
		return nil, fmt.Errorf("move alias %s@%s: %w", a.Name, a.Alias, err)
	}
	return &a, nil
}

// defineAliases moves aliases after a version has been defined. With an order it moves the order's alias to the version, and the latest
// stays where it is. Without an order, the latest moves to a new version, and an old one changes nothing: if a user has moved the latest
// back, it stays there when a document is applied again. It returns the moved aliases, and the version of the latest (0: the newest).
func (t *transaction) defineAliases(ctx context.Context, name string, version int, created bool, o *DefineOrder) (moved []*api.Alias, latest int, err error) {
	to := map[string][]api.AliasTarget{}
	switch {
	case o.Alias != "":
		to[o.Alias] = []api.AliasTarget{{Version: version}}
		if created && version > 1 {
			to[definition.LatestAlias] = []api.AliasTarget{{Version: version - 1}}
		}
	case created:
		to[definition.LatestAlias] = nil
	}
	was, err := catalog.ReadAlias(ctx, &t.tx, name, definition.LatestAlias)
	if err != nil {
		return nil, 0, err
	}
	latest = catalog.Choose(was, "")
	if o.Alias != "" && len(was.To) > 0 {
		delete(to, definition.LatestAlias) // it has an earlier version already
	}
	for _, alias := range slices.Sorted(maps.Keys(to)) {
		a := was
		if alias != definition.LatestAlias {
			if a, err = catalog.ReadAlias(ctx, &t.tx, name, alias); err != nil {
				return nil, 0, err
			}
		}
		if slices.Equal(a.To, to[alias]) {
			continue
		}
		m, err := t.moveAlias(ctx, api.Alias{Name: name, Alias: alias, To: to[alias], By: o.By, Reason: "version " + strconv.Itoa(version) + " was applied"})
		if err != nil {
			return nil, 0, err
		}
		if alias == definition.LatestAlias {
			latest = catalog.Choose(m, "")
		}
		moved = append(moved, m)
	}
	return moved, latest, nil
}
