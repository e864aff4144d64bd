package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// An alias is a name for versions of a definition that can be moved from one to another: deploy@stable. It is resolved once, when an
// execution is submitted, and the execution records both. Each move is one more version of a row beside the definitions, so the rows are
// the audit, and the caches and waits for new versions serve aliases too.

const (
	aliasPrefix = "alias:"
	aliasKind   = "alias"
	aliasPage   = 100 // rows that are listed at a time
)

type aliasDocument struct {
	Name   string            `json:"name"`
	Alias  string            `json:"alias"`
	To     []api.AliasTarget `json:"to,omitempty"`
	By     string            `json:"by,omitempty"`
	Reason string            `json:"reason,omitempty"`
}

func aliasRow(name, alias string) string { return aliasPrefix + name + "@" + alias }

// Choose returns the version for a caller, always the same one for the same text; 0: the alias has no version.
func Choose(a *api.Alias, by string) int {
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

// ReadAlias reads the targets of an alias. An alias that was never set has none.
func ReadAlias(ctx context.Context, from Source, name, alias string) (*api.Alias, error) {
	a, err := AliasMove(ctx, from, name, alias, 0)
	if errors.Is(err, store.ErrNotFound) {
		return &api.Alias{Name: name, Alias: alias, To: []api.AliasTarget{}}, nil
	}
	return a, err
}

// AliasMove reads one move of an alias, by its number; 0 is the last one.
func AliasMove(ctx context.Context, from Source, name, alias string, number int) (*api.Alias, error) {
	row, err := from.Definition(ctx, aliasRow(name, alias), number)
	if err != nil {
		return nil, err
	}
	var d aliasDocument
	if err := json.Unmarshal(row.Document, &d); err != nil {
		return nil, fmt.Errorf("decode %s@%d: %w", row.Name, row.Version, err)
	}
	return &api.Alias{Name: d.Name, Alias: d.Alias, Number: row.Version, To: append([]api.AliasTarget{}, d.To...), At: row.CreatedAt, By: d.By, Reason: d.Reason}, nil
}

// AliasRow is a move of an alias as it is stored.
func AliasRow(a *api.Alias) (store.Definition, error) {
	doc, err := json.Marshal(aliasDocument{a.Name, a.Alias, a.To, a.By, a.Reason})
	return store.Definition{Name: aliasRow(a.Name, a.Alias), Kind: aliasKind, Document: doc, Hash: sha256.Sum256(doc), CreatedAt: a.At}, err
}

// Aliases lists the aliases of a definition and their targets, by name, without removed aliases.
func (c *Catalog) Aliases(ctx context.Context, name string) (all []api.Alias, err error) {
	all = []api.Alias{}
	prefix := aliasRow(name, "")
	for after := prefix; ; {
		rows, err := c.store.Definitions(ctx, after, aliasPage)
		if err != nil {
			return nil, fmt.Errorf("list aliases of %q: %w", name, err)
		}
		for _, row := range rows {
			alias, ok := strings.CutPrefix(row.Name, prefix)
			if !ok {
				return all, nil
			}
			after = row.Name
			a, err := ReadAlias(ctx, c.store, name, alias)
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

// AliasMoves lists up to n moves of an alias with numbers below a bound (0: all), the last one first. *NoSuch if there are none.
func (c *Catalog) AliasMoves(ctx context.Context, name, alias string, below, n int) (all []api.Alias, err error) {
	all = []api.Alias{}
	a := &api.Alias{}
	if fault.BadText(name, fault.ActionLimit) == "" && definition.IsAlias(alias) {
		a, err = ReadAlias(ctx, c.store, name, alias)
	}
	if err == nil && a.Number == 0 {
		return nil, &fault.NoSuch{Say: fmt.Sprintf("there is no alias %.100q", name+"@"+alias), Fix: c.aliasFix(ctx, name, alias)}
	}
	if err != nil {
		return nil, err
	}
	last := a.Number
	if below > 0 {
		last = min(last, below-1)
	}
	for number := last; number > 0 && len(all) < n; number-- {
		if a, err = AliasMove(ctx, c.store, name, alias, number); err != nil {
			return nil, err
		}
		all = append(all, *a)
	}
	return all, nil
}

// aliasFix suggests the alias that may be meant.
func (c *Catalog) aliasFix(ctx context.Context, name, alias string) string {
	all, err := c.Aliases(ctx, name)
	if err != nil || len(all) == 0 {
		return fmt.Sprintf("%s has no aliases: pawl alias %[1]s@%s VERSION makes this one", name, alias)
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
