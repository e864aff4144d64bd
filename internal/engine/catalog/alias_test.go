package catalog

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

// A version that was applied for an alias other than the latest is not the version of the plain name, even on a server that has just read
// that the name has no alias.
func TestTriedVersionBesideAnOldAnswer(t *testing.T) {
	ctx := t.Context()
	s, err := sqlite.Open(ctx, ":memory:", sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	write := func(rows ...store.Definition) {
		t.Helper()
		err := s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
			for _, row := range rows {
				if _, _, err := tx.Define(ctx, row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	version := func(span string) store.Definition {
		defs, err := definition.Parse("test.yaml", []byte("kind: action\nname: deploy\naction: sleep\nwith: {for: "+span+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return store.Definition{Name: "deploy", Kind: string(defs[0].Kind), Hash: sha256.Sum256(defs[0].Canonical()), Document: defs[0].Canonical(), CreatedAt: time.Now()}
	}
	write(version("1s"))
	c := New(s)
	if _, n, err := c.Get(ctx, "deploy", 0); err != nil || n != 1 {
		t.Fatalf("version %d, %v", n, err)
	}
	stays := api.Alias{Name: "deploy", Alias: definition.LatestAlias, To: []api.AliasTarget{{Version: 1}}, At: time.Now()}
	row, err := AliasRow(&stays)
	if err != nil {
		t.Fatal(err)
	}
	write(version("2s"), row)
	c.latest.forget() // as if the alias had been read a moment ago, and the newest version longer ago
	c.NoteAlias(&api.Alias{Name: "deploy", Alias: definition.LatestAlias}, time.Now())
	if d, n, err := c.Get(ctx, "deploy", 0); err != nil || n != 1 {
		t.Errorf("%v: version %d, %v: the alias is known to stand for the newest, and the newest is one that the name does not stand for", d, n, err)
	}
}
