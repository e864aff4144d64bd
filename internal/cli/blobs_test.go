package cli

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

func readBlob(t *testing.T, h *instance.BlobPlaces, name string) string {
	t.Helper()
	r, err := h.Get(t.Context(), name, 0)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// openAs opens blobs with settings and writes one.
func openAs(t *testing.T, put string, settings map[string]string) *instance.BlobPlaces {
	t.Helper()
	h, err := instance.OpenBlobs(t.Context(), &config.Config{Values: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := h.Put(t.Context(), put, strings.NewReader(put)); err != nil {
		t.Fatal(err)
	}
	return h
}

// allRead checks that blobs can be read wherever they were put.
func allRead(t *testing.T, h *instance.BlobPlaces, names ...string) {
	t.Helper()
	for _, name := range names {
		if got := readBlob(t, h, name); got != name {
			t.Errorf("blob %s: %q", name, got)
		}
	}
}

// Changing the setting loses nothing: blobs put under the previous value are read and removed under the next.
func TestBlobsMove(t *testing.T) {
	t.Parallel()
	state, dir := t.TempDir(), filepath.Join(t.TempDir(), "shared")
	settings := func(store, blobs string) map[string]string {
		return map[string]string{"state_dir": state, "store": store, "blobs": blobs}
	}
	openAs(t, "x/state", settings("sqlite", config.InStore))
	moved := openAs(t, "x/dir", settings("sqlite", dir))
	allRead(t, moved, "x/state", "x/dir")
	if _, err := os.Stat(filepath.Join(dir, "blobs", "x", "dir~")); err != nil {
		t.Errorf("the directory does not have what was put: %v", err)
	}

	dsn := emptyDatabase(t)
	h := openAs(t, "x/db", settings(dsn, config.InStore))
	if !h.InlineLogs {
		t.Error("the database is not where blobs go by default")
	}
	allRead(t, h, "x/db", "x/state") // as in an installation created by an earlier version
	back := openAs(t, "x/again", settings(dsn, dir))
	allRead(t, back, "x/again", "x/db", "x/dir", "x/state")
	if back.InlineLogs {
		t.Error("the setting names a directory")
	}
	if err := back.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if err := back.Remove(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x/again", "x/db", "x/dir", "x/state"} {
		if got := readBlob(t, back, name); !strings.Contains(got, "not found") {
			t.Errorf("%s after the removal: %q", name, got)
		}
	}

	fresh := t.TempDir()
	openAs(t, "x", map[string]string{"state_dir": fresh, "store": dsn, "blobs": config.InStore})
	if left, err := os.ReadDir(fresh); err != nil || len(left) > 0 {
		t.Errorf("a server with its blobs in the database has made %v, %v", left, err)
	}
}

// emptyDatabase is a new database with Pawl's tables.
func emptyDatabase(t *testing.T) string {
	t.Helper()
	dsn := os.Getenv("PAWL_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("NOT TESTED: PAWL_TEST_POSTGRES names no PostgreSQL. Run `eval \"$(scripts/services up)\"` first.")
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("cmd_%016x", rand.Uint64())
	run := func(sql string) {
		ctx := context.Background()
		c, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		if _, err := c.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE DATABASE " + name)
	t.Cleanup(func() { run("DROP DATABASE " + name + " WITH (FORCE)") })
	u.Path = "/" + name
	if err := postgres.Migrate(t.Context(), u.String(), postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	return u.String()
}

func TestBlobsSetting(t *testing.T) {
	t.Parallel()
	for value, good := range map[string]bool{"store": true, "/srv/blobs": true, "": false, "database": false, "blobs/here": false} {
		if err := config.CheckBlobs(value); (err == nil) != good {
			t.Errorf("%q: %v", value, err)
		}
	}
}
