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
	// nearNames is how many registered names are looked through for one that may have been meant.
	nearNames = 1000
	// NamesShown is how many of them are listed when none is near.
	NamesShown = 20
)

// NameFix says what may be meant by the name of an action or workflow that does not exist: another version, the closest name, or
// one of those that there are. among are the names of definitions that are about to be stored.
func (c *Catalog) NameFix(ctx context.Context, name string, version int, among []string) (string, error) {
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
	builtIns := slices.DeleteFunc(slices.Clone(definition.BuiltIns), func(s string) bool { return s == string(definition.KindWorkflow) })
	names := slices.Clone(among)
	const page = 200
	for after := ""; len(names) < nearNames; {
		rows, err := c.store.Definitions(ctx, after, page)
		if err != nil {
			return "", fmt.Errorf("look for names like %q: %w", name, err)
		}
		for _, row := range rows {
			after = row.Name
			kind := definition.Kind(row.Kind)
			if (kind == definition.KindWorkflow || kind == definition.KindAction) && !strings.ContainsRune(row.Name, ':') && !slices.Contains(names, row.Name) {
				names = append(names, row.Name)
			}
		}
		if len(rows) < page {
			break
		}
	}
	if near := problem.Nearest(name, append(slices.Clone(names), builtIns...)); near != "" {
		return near, nil
	}
	there := "nothing is registered yet"
	if slices.Sort(names); len(names) > 0 {
		there = "there are " + strings.Join(names[:min(len(names), NamesShown)], ", ")
		if len(names) > NamesShown {
			there += ", …"
		}
	}
	return fmt.Sprintf("%s; apply its definition first (pawl apply FILE), or use a built-in: %s", there, strings.Join(builtIns, ", ")), nil
}
