package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/store"
)

// A retired definition is kept with all its versions, but new executions of it are refused: by name, version or alias, from callers,
// schedules and rules. Workflows that have begun continue, and their tasks may run it. As with aliases, each retirement is one more version
// of a row beside the definitions.

const (
	retiredPrefix = "retired:"
	retiredKind   = "retired"
)

// Retirement is the latest decision about a definition: whether it is retired, the time, the author and the reason. The zero value belongs
// to a definition that was never retired.
type Retirement struct {
	Name    string
	Number  int // of the decision, from 1
	Retired bool
	At      time.Time
	By      string
	Reason  string
}

type retirementDocument struct {
	Name    string `json:"name"`
	Retired bool   `json:"retired"`
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func retirementOf(row *store.Definition) (Retirement, error) {
	var d retirementDocument
	if err := json.Unmarshal(row.Document, &d); err != nil {
		return Retirement{}, fmt.Errorf("decode %s@%d: %w", row.Name, row.Version, err)
	}
	return Retirement{Name: d.Name, Number: row.Version, Retired: d.Retired, At: row.CreatedAt, By: d.By, Reason: d.Reason}, nil
}

// retirement looks up whether a definition is retired. As with aliases, decisions of other servers are known within LatestFor.
func (c *Catalog) retirement(ctx context.Context, name string) (Retirement, error) {
	if known, ok := c.retired.get(name); ok {
		return known, nil
	}
	asked := time.Now()
	r, err := ReadRetirement(ctx, c.store, name)
	if err != nil {
		return r, err
	}
	c.IsRetired(r, asked)
	return r, nil
}

// RefuseRetired refuses new executions of a retired definition: *Invalid.
func (c *Catalog) RefuseRetired(ctx context.Context, name string) error {
	r, err := c.retirement(ctx, name)
	if err != nil {
		return fmt.Errorf("look up whether %q is retired: %w", name, err)
	}
	if !r.Retired {
		return nil
	}
	return fault.New("action", name, r.Say(), "name another one, or bring it back: pawl retire "+name+" --undo")
}

// Say returns the sentence for users that the definition is retired, with the time, the account and the reason if they are known.
func (r *Retirement) Say() string {
	say := fmt.Sprintf("%s is retired since %s", r.Name, r.At.UTC().Format(time.RFC3339))
	if r.By != "" {
		say += ", by " + r.By
	}
	if r.Reason != "" {
		say += ": " + r.Reason
	}
	return say
}

// Registered loads the newest version of a definition; *NoSuch if there is none.
func (c *Catalog) Registered(ctx context.Context, name string) (store.Definition, error) {
	if fault.BadText(name, fault.ActionLimit) != "" {
		return store.Definition{}, &fault.NoSuch{Say: fmt.Sprintf("there is no action or workflow %q", fault.Short(name)), Fix: "a name has lower-case letters, digits, '.', '_' and '-'"}
	}
	row, err := c.store.Definition(ctx, name, 0)
	if err == nil && !strings.ContainsRune(name, ':') || err != nil && !errors.Is(err, store.ErrNotFound) {
		return row, err
	}
	return row, c.Unregistered(ctx, name, 0)
}

// Unregistered returns *NoSuch: the definition or its version (0: all) does not exist, with a suggestion.
func (c *Catalog) Unregistered(ctx context.Context, name string, version int) error {
	fix, err := c.NameFix(ctx, name, version)
	if err != nil {
		return err
	}
	if version > 0 {
		name = VersionKey(name, version)
	}
	return &fault.NoSuch{Say: fmt.Sprintf("there is no action or workflow %.100q", name), Fix: fix}
}

// Retired returns the retired ones of some definitions, by name, in one read.
func (c *Catalog) Retired(ctx context.Context, names []string) (map[string]Retirement, error) {
	rows := slices.Clone(names)
	for i := range rows {
		rows[i] = retiredPrefix + rows[i]
	}
	found, err := c.store.Latest(ctx, rows)
	if err != nil {
		return nil, fmt.Errorf("look up what is retired: %w", err)
	}
	all := map[string]Retirement{}
	for i := range found {
		r, err := retirementOf(&found[i])
		if err != nil {
			return nil, err
		}
		if r.Retired {
			all[r.Name] = r
		}
	}
	return all, nil
}

// Row is a retirement as it is stored.
func (r *Retirement) Row() (store.Definition, error) {
	doc, err := json.Marshal(retirementDocument{r.Name, r.Retired, r.By, r.Reason})
	return store.Definition{Name: retiredPrefix + r.Name, Kind: retiredKind, Document: doc, Hash: sha256.Sum256(doc), CreatedAt: r.At}, err
}

// ReadRetirement reads the latest decision about a definition.
func ReadRetirement(ctx context.Context, from Source, name string) (Retirement, error) {
	row, err := from.Definition(ctx, retiredPrefix+name, 0)
	if errors.Is(err, store.ErrNotFound) {
		return Retirement{Name: name}, nil
	}
	if err != nil {
		return Retirement{Name: name}, err
	}
	return retirementOf(&row)
}

// IsRetired caches a decision that was stored when the store was asked, or later.
func (c *Catalog) IsRetired(r Retirement, asked time.Time) {
	c.retired.keep(r.Name, r, r.Number, asked)
}
