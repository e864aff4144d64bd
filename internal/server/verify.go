package server

import (
	"net/http"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/store/verification"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const verifyPath = "/api/v1/verify"

// verify answers with the result of checking every row. Only one verification runs at a time, since it reads the whole store.
func (c *call) verify() error {
	if c.flag("last") {
		if err := c.checked(); err != nil {
			return err
		}
		if last := c.lastVerified.Load(); last != nil {
			return c.json(http.StatusOK, last)
		}
		return refusal(http.StatusNotFound, api.ProblemNotFound, "this server has not verified its store since it started: ask without last")
	}
	if !c.verifies.TryLock() {
		return refusal(http.StatusTooManyRequests, api.ProblemOverloaded, "the store is being verified already: wait for that to end")
	}
	done := sync.OnceFunc(c.verifies.Unlock)
	defer done()
	replays := c.flag("replay")
	if err := c.checked(); err != nil {
		return err
	}
	begun := time.Now()
	broken, err := c.Engine.Verify(c.ctx())
	if err != nil {
		return err
	}
	out := api.Verification{At: begun.UTC(), Broken: []api.Violation{}}
	scanned := []verification.By{verification.Engine}
	if replays {
		scanned = append(scanned, verification.Replay)
		r, err := c.Engine.Histories().Verify(c.ctx())
		if err != nil {
			return err
		}
		broken = append(broken, r.Broken...)
		out.Replayed = &api.Replayed{Executions: r.Executions, Events: r.Events, Unknown: r.Unknown}
	}
	for _, p := range verification.Report(broken, scanned...) {
		out.Promises = append(out.Promises, api.Invariant{Invariant: p.Number, Says: p.Says, LookedAt: p.LookedAt, State: p.State, Broken: p.Times})
	}
	out.Seconds = time.Since(begun).Seconds()
	for _, v := range broken {
		b := api.Violation{Invariant: v.Invariant, Message: v.Say}
		if !v.Execution.IsZero() {
			b.Execution = v.Execution.String()
		}
		out.Broken = append(out.Broken, b)
		c.log.Error("a promise is broken", telemetry.Invariant, v.Invariant, telemetry.Execution, b.Execution, telemetry.Why, v.Say)
	}
	c.lastVerified.Store(&out)
	done() // before the client reads the answer
	return c.json(http.StatusOK, out)
}
