package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/api"
)

// Submit submits s with in, encoded as JSON, as its input.
func Submit[In any](ctx context.Context, c *Client, s api.Submission, in In) (*api.Execution, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode the input of %s: %w", s.Action, err)
	}
	s.Input = input
	return c.Submit(ctx, s)
}

// Run submits s with in as its input, waits until it has ended or ctx ends, and returns its output:
//
//	receipt, err := client.Run[Order, Receipt](ctx, c, api.Submission{Action: "charge"}, order)
//
// If it did not complete, the error is that of Output.
func Run[In, Out any](ctx context.Context, c *Client, s api.Submission, in In) (Out, error) {
	var none Out
	x, err := Submit(ctx, c, s, in)
	if err != nil {
		return none, err
	}
	if x, err = c.Wait(ctx, x.ID); err != nil {
		return none, err
	}
	return Output[Out](x)
}

// Output decodes the output of a finished execution. If the execution did not complete, the error is an *[api.Error] (use errors.As) whose
// Code says why. The output comes with it if there is one, as for code that failed.
func Output[Out any](x *api.Execution) (Out, error) {
	var out Out
	var bad error
	switch {
	case !x.Status.Terminal():
		return out, fmt.Errorf("%s is %s: it has no output yet", x.ID, x.Status)
	case x.Status != api.Completed:
		bad = fmt.Errorf("%s %s", x.ID, x.Status)
		if x.Error != nil {
			bad = fmt.Errorf("%s %s: %w", x.ID, x.Status, x.Error)
		}
	}
	if len(x.Output) == 0 {
		return out, bad
	}
	if err := json.Unmarshal(x.Output, &out); err != nil {
		return out, errors.Join(bad, fmt.Errorf("decode the output of %s: %w", x.ID, err))
	}
	return out, bad
}
