package relational

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

var definitions = Relation[store.Definition]{
	text("name", func(d *store.Definition) *string { return &d.Name }),
	number("version", Int4, func(d *store.Definition) *int { return &d.Version }),
	text("kind", func(d *store.Definition) *string { return &d.Kind }),
	sum("hash", func(d *store.Definition) *[sha256.Size]byte { return &d.Hash }),
	moment("defined_at", func(d *store.Definition) *time.Time { return &d.CreatedAt }),
	plain("document", Bytes, func(d *store.Definition) *[]byte { return &d.Document }, Args.Bytes, bytesOf),
}

// summaries are definitions without their documents.
var summaries = definitions[:len(definitions)-1]

var (
	qDefine = sql(func(d dialect) string { return definitions.insert(d, "definitions") })

	qDefinition = same(`SELECT ` + definitions.names("") + ` FROM {s}.definitions WHERE name = $1 AND ($2::bigint = 0 OR version = $2::bigint)
		ORDER BY version DESC LIMIT 1`)

	qLatestHash = same(`SELECT ` + summaries.names("") + ` FROM {s}.definitions WHERE name = $1 ORDER BY version DESC LIMIT 1`)

	qLatest = sql(func(d dialect) string {
		latest := `SELECT ` + definitions.names("") + ` FROM {s}.definitions WHERE name = `
		if d == sqlite {
			return latest + `?1 ORDER BY version DESC LIMIT 1`
		}
		return `SELECT d.* FROM ` + keys.rows(d) + ` AS v JOIN LATERAL (` + latest + `v.key COLLATE "C" ORDER BY version DESC LIMIT 1) d ON true`
	})

	qDefinitions = sql(func(d dialect) string {
		if d == sqlite {
			return `SELECT ` + summaries.names("") + ` FROM definitions d WHERE name > ?1
				AND version = (SELECT max(version) FROM definitions m WHERE m.name = d.name) ORDER BY name LIMIT ?2`
		}
		return `SELECT DISTINCT ON (name) ` + summaries.names("") + ` FROM {s}.definitions WHERE name > $1 ORDER BY name, version DESC LIMIT $2`
	})
)

// Define implements store.Catalog. If two transactions define the same version at once, one succeeds and the other gets store.ErrConflict.
func (t Tx) Define(ctx context.Context, d store.Definition) (int, bool, error) {
	if d.Version == 0 {
		latest, err := list(ctx, t, Call{Statement: qLatestHash, Args: []any{d.Name}}, summaries, "define %q", d.Name)
		if err != nil {
			return 0, false, err
		}
		d.Version = 1
		if len(latest) > 0 {
			if latest[0].Hash == d.Hash {
				return latest[0].Version, false, nil
			}
			d.Version = latest[0].Version + 1
		}
	}
	err := t.Run(ctx, Call{Statement: qDefine, Rows: definitions.input([]store.Definition{d})})
	if err != nil {
		return 0, false, store.Failed(err, "define %q version %d", d.Name, d.Version)
	}
	return d.Version, true, nil
}

func (t Tx) Definition(ctx context.Context, name string, version int) (store.Definition, error) {
	return Reader{t.Writer}.Definition(ctx, name, version)
}

func (s Reader) Definition(ctx context.Context, name string, version int) (store.Definition, error) {
	return one(ctx, s, Call{Statement: qDefinition, Args: []any{name, version}}, definitions, "read definition %q version %d", name, version)
}

func (s Reader) Latest(ctx context.Context, names []string) ([]store.Definition, error) {
	all, err := list(ctx, s, Call{Statement: qLatest, Rows: keys.input(names)}, definitions, "read %d definitions", len(names))
	slices.SortFunc(all, func(a, b store.Definition) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

func (s Reader) Definitions(ctx context.Context, after string, n int) ([]store.Definition, error) {
	return list(ctx, s, Call{Statement: qDefinitions, Args: []any{after, n}}, summaries, "read definitions")
}
