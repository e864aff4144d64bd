package server

import (
	"fmt"
	"net/http"

	"github.com/pawl-run/pawl/api"
)

func (c *call) why() error {
	id, err := c.execution()
	if err != nil {
		return err
	}
	w, err := c.Engine.Why(c.ctx(), id)
	if err != nil {
		return fmt.Errorf("execution %s: %w", id, err)
	}
	return c.json(http.StatusOK, w)
}

// whyMany answers what each of some executions waits for, one after the other: the answer for a workflow may read 40 others.
func (c *call) whyMany(in *api.WhyRequest) error {
	if n := len(in.IDs); n == 0 || n > api.WhyLimit {
		return invalid(api.FieldError{Path: "ids", Message: fmt.Sprintf("it names %d executions", n), Fix: fmt.Sprintf("name 1 to %d", api.WhyLimit)})
	}
	out := api.WhyResult{Executions: make([]api.WhyEntry, len(in.IDs))}
	for i, text := range in.IDs {
		id, err := executionNamed(text)
		var w api.Why
		if err == nil {
			w, err = c.Engine.Why(c.ctx(), id)
		}
		if c.ctx().Err() != nil {
			return c.ctx().Err()
		}
		if err != nil {
			out.Executions[i].Problem = problemOf(fmt.Errorf("execution %s: %w", id, err))
			continue
		}
		out.Executions[i].Why = &w
	}
	return c.json(http.StatusOK, out)
}
