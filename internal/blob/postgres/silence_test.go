package postgres_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/blobtest"
	"github.com/pawl-run/pawl/internal/blob/postgres"
	"github.com/pawl-run/pawl/internal/pgpool"
	"github.com/pawl-run/pawl/internal/pgpool/pgpooltest"
	executions "github.com/pawl-run/pawl/internal/store/postgres"
)

// Connections that become silent during an upload or a download end it if they are in use, and are replaced if they were idle.
func TestSilence(t *testing.T) {
	t.Parallel()
	for name, quiet := range map[string]bool{"quiet": true, "busy": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			beside := open(t, "")
			proxy, dsn := pgpooltest.New(t, os.Getenv("PAWL_TEST_POSTGRES"))
			limits := pgpool.Limits{Ping: 300 * time.Millisecond, Answer: 2 * time.Second, Unacknowledged: time.Minute, Idle: time.Hour}
			if quiet {
				limits.Idle = time.Nanosecond
			}
			pool, schema, err := executions.Pool(t.Context(), dsn, executions.Options{Schema: beside.schema, Limits: limits}, 3)
			if err != nil {
				t.Fatal(err)
			}
			s := postgres.New(pool, schema)
			t.Cleanup(func() { _ = s.Close() })
			large := strings.Repeat("0123456789abcdef", 3*piece/16)
			beside.put(t, "a/large", large)
			silence := hook(func() { proxy.Silence(t, pgpooltest.Swallowed) })
			r, err := s.Get(t.Context(), "a/large", 0)
			if err != nil {
				t.Fatal(err)
			}
			for what, call := range map[string]func() error{
				"put": func() error {
					_, err := s.Put(t.Context(), "a/put", io.MultiReader(strings.NewReader(large), silence, strings.NewReader(large)))
					return err
				},
				"get": func() error {
					if _, err := io.ReadFull(r, make([]byte, piece)); err != nil {
						return err
					}
					silence()
					_, err := io.Copy(io.Discard, r)
					return err
				},
				"find": func() error {
					silence()
					_, err := s.Get(t.Context(), "a/large", 0)
					return err
				},
				"remove": func() error {
					silence()
					return s.Remove(t.Context(), "none")
				},
				"sweep": func() error {
					silence()
					return s.Sweep(t.Context())
				},
			} {
				began := time.Now()
				err := call()
				if took := time.Since(began); took > 45*time.Second {
					t.Errorf("%s took %s", what, took)
				}
				if !quiet && !errors.Is(err, blob.ErrUnavailable) || quiet && err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if got := blobtest.Read(t, s, "a/large", 0); got != large {
					t.Errorf("after %s: %d bytes, want %d", what, len(got), len(large))
				}
			}
		})
	}
}
