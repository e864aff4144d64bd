package task

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/pawl-run/pawl/internal/flow"
)

// Pass hands its payload on as its output: the handler of input, output and noop.
type Pass struct{}

// Run returns the payload.
func (Pass) Run(_ context.Context, t *Task) (json.RawMessage, error) { return t.Payload, nil }

// Instant says that Run never waits.
func (Pass) Instant() {}

// Passes are handlers for every built-in kind that a worker of built-in kinds must have: those given, and for the others
// Pass. It is for load tests and other tests, in which the work itself does not matter, and for workers that are handed
// one kind only.
func Passes(over Handlers) Handlers {
	all := Handlers{}
	for _, kind := range flow.Standard() {
		all[kind] = Pass{}
	}
	maps.Copy(all, over)
	return all
}
