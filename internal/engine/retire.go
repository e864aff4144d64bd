package engine

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

// A definition that is retired is kept with all its versions, and nothing new of it is accepted: by name, version or alias, from
// callers, schedules and rules. Workflows that have begun go on, and their tasks may run it. As with aliases each retirement is one more
// version of a row beside the definitions.

const (
	retiredPrefix = "retired:"
	retiredKind   = "retired"
)

// Retirement is the latest decision about a definition: whether it is retired, the time, the author and the reason. The zero value is of one that never was.
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

// retirement looks up whether a definition is retired. As of aliases, what another server has decided is known within latestFor.
func (c *catalog) retirement(ctx context.Context, name string) (Retirement, error) {
	if known, ok := c.retired.get(name); ok {
		return known, nil
	}
	asked := time.Now()
	r := Retirement{Name: name}
	row, err := c.store.Definition(ctx, retiredPrefix+name, 0)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return r, err
	default:
		if r, err = retirementOf(&row); err != nil {
			return r, err
		}
	}
	c.retired.keep(name, r, r.Number, asked)
	return r, nil
}

// refuseRetired refuses what is new of a definition that is retired: *Invalid.
func (e *Engine) refuseRetired(ctx context.Context, name string) error {
	r, err := e.catalog.retirement(ctx, name)
	if err != nil {
		return fmt.Errorf("look up whether %q is retired: %w", name, err)
	}
	if !r.Retired {
		return nil
	}
	say := fmt.Sprintf("%s is retired since %s", r.Name, r.At.UTC().Format(time.RFC3339))
	if r.By != "" {
		say += ", by " + r.By
	}
	if r.Reason != "" {
		say += ": " + r.Reason
	}
	return fault.New("action", name, say, "name another one, or bring it back: pawl retire "+name+" --undo")
}

// Retire lets nothing new of a definition be accepted, or with undo lets it again. Doing it twice changes nothing.
func (e *Engine) Retire(ctx context.Context, name string, undo bool, by, reason string) (Retirement, error) {
	var f fault.List
	f.Text("by", by, fault.AuthorLimit)
	f.Text("reason", reason, fault.ReasonLimit)
	if len(f) > 0 {
		return Retirement{}, &fault.Invalid{Problems: f}
	}
	if _, err := e.registered(ctx, name); err != nil {
		return Retirement{}, err
	}
	asked := time.Now()
	r, err := askAlone(ctx, e, func(ctx context.Context, t *transaction) (Retirement, error) {
		was := Retirement{Name: name}
		row, err := t.tx.Definition(ctx, retiredPrefix+name, 0)
		if err == nil {
			was, err = retirementOf(&row)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return was, err
		}
		if was.Retired == !undo {
			return was, nil
		}
		doc, err := json.Marshal(retirementDocument{name, !undo, by, reason})
		if err != nil {
			return was, err
		}
		row = store.Definition{Name: retiredPrefix + name, Kind: retiredKind, Document: doc, Hash: sha256.Sum256(doc), CreatedAt: t.now}
		number, _, err := t.tx.Define(ctx, row)
		return Retirement{name, number, !undo, t.now, by, reason}, err
	})
	if err != nil {
		return r, fmt.Errorf("retire %q: %w", name, err)
	}
	e.catalog.retired.keep(name, r, r.Number, asked)
	return r, nil
}

// registered loads the newest version of a definition; *NoSuch where there is none.
func (e *Engine) registered(ctx context.Context, name string) (store.Definition, error) {
	if fault.BadText(name, fault.ActionLimit) != "" {
		return store.Definition{}, &fault.NoSuch{Say: fmt.Sprintf("there is no action or workflow %q", fault.Short(name)), Fix: "a name has lower-case letters, digits, '.', '_' and '-'"}
	}
	row, err := e.opts.Store.Definition(ctx, name, 0)
	if err == nil && !strings.ContainsRune(name, ':') || err != nil && !errors.Is(err, store.ErrNotFound) {
		return row, err
	}
	fix, err := e.nameFix(ctx, name, 0, nil)
	if err != nil {
		return row, err
	}
	return row, &fault.NoSuch{Say: fmt.Sprintf("there is no action or workflow %.100q", name), Fix: fix}
}

// Retired returns which of some definitions are retired, by name, in one read.
func (e *Engine) Retired(ctx context.Context, names []string) (map[string]Retirement, error) {
	rows := slices.Clone(names)
	for i := range rows {
		rows[i] = retiredPrefix + rows[i]
	}
	found, err := e.opts.Store.Latest(ctx, rows)
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
