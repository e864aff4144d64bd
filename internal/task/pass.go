package task

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/pawl-run/pawl/internal/flow"
)

// Pass returns its payload as its output. It is the handler of input, output and noop.
type Pass struct{}

// Run returns the payload.
func (Pass) Run(_ context.Context, t *Task) (json.RawMessage, error) { return t.Payload, nil }

// Instant marks a handler whose Run never waits.
func (Pass) Instant() {}

// Passes are handlers for every built-in kind, as a worker of built-in kinds needs: the given ones, and Pass for the others.
// They are for load tests and other tests in which the work itself does not matter, and for workers that get only one kind.
func Passes(over Handlers) Handlers {
	all := Handlers{}
	for _, kind := range flow.Standard() {
		all[kind] = Pass{}
	}
	maps.Copy(all, over)
	return all
}
