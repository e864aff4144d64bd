package catalog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// ImportedPrefix begins the names of the rows beside the definitions with documents that came with archives, where their names and versions
// stand for something else here. Its end is the hash of the document; nothing but imported executions refers to them.
const (
	ImportedPrefix = "imported:"
	ImportedKind   = "imported" // so that no list of definitions has them
)

// Of is the definition that an execution ran on.
func (c *Catalog) Of(ctx context.Context, x *flow.Execution) (*definition.Definition, error) {
	if x.Imported == nil || x.Imported.Definition == "" {
		d, _, err := c.Get(ctx, x.Action, x.Version)
		return d, err
	}
	c.mu.Lock()
	d := c.versions[x.Imported.Definition]
	c.mu.Unlock()
	if d != nil {
		return d, nil
	}
	row, err := c.store.Definition(ctx, x.Imported.Definition, 1)
	if err != nil {
		return nil, fmt.Errorf("definition %s@%d, as it was imported: %w", x.Action, x.Version, err)
	}
	if d, err = definition.Decode(row.Document); err != nil {
		return nil, fmt.Errorf("decode definition %s@%d, as it was imported: %w", x.Action, x.Version, err)
	}
	c.keep(x.Imported.Definition, d)
	return d, nil
}

// VersionHere is the version of its definition under which what an execution has run runs again here. It is the recorded one but for an
// imported execution whose definition is another here: then it is the latest, where that has the same content.
func (c *Catalog) VersionHere(ctx context.Context, x *flow.Execution) (int, error) {
	if x.Imported == nil || x.Imported.Definition == "" {
		return x.Version, nil
	}
	row, err := c.store.Definition(ctx, x.Action, 0)
	if err == nil && ImportedPrefix+hex.EncodeToString(row.Hash[:]) == x.Imported.Definition {
		return row.Version, nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, fmt.Errorf("look for its definition: %w", err)
	}
	key := VersionKey(x.Action, x.Version)
	say, fix := "is not here", fmt.Sprintf("register it from the archive: tar -xOf ARCHIVE 'definitions/%s.%s.json' | pawl apply -", key, x.Imported.Definition[len(ImportedPrefix):])
	if err == nil {
		say, fix = "is not the latest here", fix+fmt.Sprintf("; or rerun it with the definition that is here: pawl rerun %s --definition latest", x.ID)
	}
	return 0, fault.New("id", x.ID.String(), fmt.Sprintf("it was imported, and ran on a definition %s that %s", key, say), fix)
}

// Loader loads a version of a definition, as requests of children need it.
type Loader = func(ctx context.Context, name string, version int, by string) (*definition.Definition, int, error)

// As loads definitions as they were where an execution has run.
func (c *Catalog) As(recorded *flow.Execution) Loader {
	return func(ctx context.Context, name string, version int, by string) (*definition.Definition, int, error) {
		if recorded.Imported != nil && name == recorded.Action && version == recorded.Version {
			d, err := c.Of(ctx, recorded)
			return d, version, err
		}
		return c.GetFor(ctx, name, version, by)
	}
}
