package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/programtest"
)

// When a server's database connections fall silent, each request ends in time, with success or with 503, and afterwards everything works:
// submissions, lists, readiness, and the worker in the server.
func TestSilentConnectionsToTheDatabase(t *testing.T) {
	t.Parallel()
	db := shared(t)
	if !strings.Contains(db.dsn, "@") {
		t.Skipf("NOT TESTED: %s is %q, which names no server", dsnVar, db.dsn)
	}
	dsn, dir, addr := db.named(t), t.TempDir(), "127.0.0.1:"+programtest.FreePort(t)
	p := newProxy(t, hostOf(dsn))
	runSet(t, dir, "server", hasty, "server", "--listen", addr, "--state-dir", filepath.Join(dir, "state"), "--store", through(dsn, p.address()),
		"--runtime", "process", "--slots", "2", "--lease", "10s", "--grace", "1s")
	c := connect(t, addr)
	ready(t, c)

	calls := map[string]func(context.Context) error{
		"submit": func(ctx context.Context) error { _, err := c.Submit(ctx, api.Submission{Action: "noop"}); return err },
		"list": func(ctx context.Context) error {
			for _, err := range c.All(ctx, client.Filter{}) {
				return err
			}
			return nil
		},
		"ready": c.Ready, // after a failed commit only once another has succeeded
		"work": func(ctx context.Context) error {
			x, err := c.Submit(ctx, api.Submission{Action: "noop"})
			if err == nil {
				x, err = c.Wait(ctx, x.ID)
			}
			if err == nil && x.Status != api.Completed {
				err = fmt.Errorf("it has ended as %s", x.Status)
			}
			return err
		},
	}
	const beside = 10 // calls of each kind: more than the server has connections
	// burst makes all calls at once and passes their results to judge.
	burst := func(judge func(what string, took time.Duration, err error)) {
		var all sync.WaitGroup
		for what, call := range calls {
			for range beside {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					began := time.Now()
					err := call(ctx)
					judge(what, time.Since(began), err)
				})
			}
		}
		all.Wait()
	}
	well := func(what string, took time.Duration, err error) {
		if err != nil && what != "ready" {
			t.Errorf("%s: after %s: %v", what, took, err)
		}
	}
	burst(well)
	p.silence()
	silent := time.Now()
	burst(func(what string, took time.Duration, err error) {
		var no *api.Problem
		switch {
		case took > worksAgain || what == "ready" && took > 5*time.Second:
			t.Errorf("%s took %s: %v", what, took, err)
		case err != nil && (!errors.As(err, &no) || no.Status != http.StatusServiceUnavailable):
			t.Errorf("%s, after %s: %v", what, took, err)
		}
	})
	burst(well)
	if took := time.Since(silent); took > worksAgain {
		t.Errorf("everything worked again after %s, want %s", took, worksAgain)
	}
	until(t, "the server is ready again", func() bool { return c.Ready(t.Context()) == nil })
}
