package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/crashloop"
	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/programtest"
)

// poison ends a server that evaluates any of its documents, once the failpoint is set.
const poison = `kind: workflow
name: poison
tasks:
  first: {action: sleep, with: {for: 1s}}
  second: {needs: [first], action: noop}
---
kind: schedule
name: poison
every: 1s
run: {action: noop}
---
kind: rule
name: poison
on: execution.ended
if: signal.data.action == 'noop'
run: {action: sleep, input: {for: 1ms}}
---
kind: workflow
name: innocent
tasks:
  first: {action: sleep, with: {for: 2s}}
  second: {needs: [first], action: noop} # the server's worker may run it at each death, and these attempts do not count
`

// A workflow, a schedule and a rule end the process whenever they are evaluated, as a stack overflow does. After crashloop.Most deaths
// each, servers no longer evaluate them: the workflow fails, the schedule pauses, the rule fails, each with the reason, and all other work
// goes on.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { crashLoops(t, "sqlite") })
	t.Run("postgres", func(t *testing.T) { crashLoops(t, shared(t).named(t)) })
}

func crashLoops(t *testing.T, dsn string) {
	dir := t.TempDir()
	address := "http://127.0.0.1:" + programtest.FreePort(t)
	p := run(t, dir, "server", "server", "--listen", strings.TrimPrefix(address, "http://"), "--state-dir", dir+"/state",
		"--store", dsn, "--runtime", "process")
	c, err := client.New(address)
	if err != nil {
		t.Fatal(err)
	}
	// within repeats is until it returns true; its calls fail while the server is away.
	within := func(what string, is func() bool) {
		t.Helper()
		for ends := time.Now().Add(patience); !is(); <-time.After(50 * time.Millisecond) {
			if time.Now().After(ends) {
				t.Fatalf("%s: not within %s; the server has lived %d times", what, patience, p.lives)
			}
		}
	}
	within("documents", func() bool { _, err := c.Define(t.Context(), []byte(poison), "poison.yaml"); return err == nil })
	submit := func(action string) string {
		x, err := c.Submit(t.Context(), api.Submission{Action: action})
		if err != nil {
			t.Fatal(err)
		}
		return x.ID
	}
	bad, good := submit("poison"), submit("innocent")
	p.mu.Lock()
	p.set = append(p.set, failpoint.Variable+"="+failpoint.Evaluating+"=poison")
	p.mu.Unlock()
	p.kill(0)

	within("the workflow's end", func() bool {
		x, err := c.Get(t.Context(), bad)
		return err == nil && x.Status == api.Failed && x.Error.Code == "internal_error" &&
			strings.Contains(x.Error.Message, "ended 3 times in a row")
	})
	within("the schedule's pause", func() bool {
		k, err := c.Schedule(t.Context(), "poison")
		return err == nil && k.PausedAt != nil && strings.Contains(k.Reason, "ended 3 times in a row")
	})
	within("another one's workflow", func() bool {
		x, err := c.Get(t.Context(), good)
		if err == nil && x.Status.Terminal() && x.Status != api.Completed {
			t.Fatalf("another one's workflow: %s: %v", x.Status, x.Error)
		}
		return err == nil && x.Status == api.Completed
	})
	submit("noop") // its end is a signal that the rule matches
	within("the rule's failure", func() bool {
		for k, err := range c.AllEnforcements(t.Context(), client.EnforcementFilter{Rule: "poison"}) {
			if err == nil && k.Reason != nil && strings.Contains(k.Reason.Message, "ended 3 times in a row") {
				return true
			}
		}
		return false
	})
	if x, err := c.Get(t.Context(), submit("innocent")); err != nil || x.Status.Terminal() {
		t.Errorf("%+v, %v", x, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if most := 1 + 3*crashloop.Most + 2; p.lives > most {
		t.Errorf("the server lived %d times, more than %d", p.lives, most)
	}
}
