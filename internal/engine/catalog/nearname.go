package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/problem"
)

const (
	// nearNames is how many registered names are searched for the one that may have been meant.
	nearNames = 1000
	// NamesShown is how many of them are listed when none is near.
	NamesShown = 20
)

// NameFix is Fixes.Of for one name.
func (c *Catalog) NameFix(ctx context.Context, name string, version int) (string, error) {
	return c.Fixes(nil).Of(ctx, name, version)
}

// Fixes suggests names for actions and workflows that do not exist. It reads the existing names once, however often it is called: a
// document may mention 9,000 that do not exist.
type Fixes struct {
	catalog *Catalog
	among   []string
	names   []string       // that are registered or about to be, once they are read; sorted
	near    *problem.Names // of these and the built-in ones; nil: not read yet
}

// Fixes are for definitions that mention names. among are the names of definitions that are about to be stored.
func (c *Catalog) Fixes(among []string) *Fixes { return &Fixes{catalog: c, among: among} }

// Of suggests another version, the closest name, or some of the existing names.
func (f *Fixes) Of(ctx context.Context, name string, version int) (string, error) {
	c := f.catalog
	if base, alias, has := strings.Cut(name, "@"); has {
		if _, _, err := c.Get(ctx, base, 0); err == nil {
			return c.aliasFix(ctx, base, alias), nil
		}
		name = base
	}
	if version > 0 {
		if _, latest, err := c.Get(ctx, name, 0); err == nil {
			return fmt.Sprintf("its latest version is %d: %s, or %s for the latest", latest, VersionKey(name, latest), name), nil
		}
	}
	if err := f.read(ctx); err != nil {
		return "", fmt.Errorf("look for names like %q: %w", name, err)
	}
	if near := f.near.Nearest(name); near != "" {
		return near, nil
	}
	there := "nothing is registered yet"
	if len(f.names) > 0 {
		there = "there are " + strings.Join(f.names[:min(len(f.names), NamesShown)], ", ")
		if len(f.names) > NamesShown {
			there += ", …"
		}
	}
	return fmt.Sprintf("%s; apply its definition first (pawl apply FILE), or use a built-in: %s", there, strings.Join(builtIns(), ", ")), nil
}

func builtIns() []string {
	return slices.DeleteFunc(slices.Clone(definition.BuiltIns), func(s string) bool { return s == string(definition.KindWorkflow) })
}

// read reads the existing names.
func (f *Fixes) read(ctx context.Context) error {
	if f.near != nil {
		return nil
	}
	names := slices.Clone(f.among)
	const page = 200
	for after := ""; len(names) < nearNames; {
		rows, err := f.catalog.store.Definitions(ctx, after, page)
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = row.Name
			kind := definition.Kind(row.Kind)
			if (kind == definition.KindWorkflow || kind == definition.KindAction) && !strings.ContainsRune(row.Name, ':') {
				names = append(names, row.Name)
			}
		}
		if len(rows) < page {
			break
		}
	}
	f.near = problem.NamesOf(append(slices.Clone(names), builtIns()...))
	slices.Sort(names)
	f.names = slices.Compact(names)
	return nil
}
