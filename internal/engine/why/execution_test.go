package why

import (
	"encoding/json"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
)

// Failures are told in words and not as JSON.
func TestFailuresAreToldInWords(t *testing.T) {
	for _, c := range []struct {
		ev   flow.Event
		want string
	}{
		{flow.Event{Type: flow.EvLost, Data: json.RawMessage(`{"reason":"lease ran out"}`)}, "its worker was lost (lease ran out)"},
		{flow.Event{Type: flow.EvTimedOut, Data: json.RawMessage(`{"code":"timeout","message":"after 1s"}`)}, "it timed out (timeout: after 1s)"},
		{flow.Event{Type: flow.EvFailed, Data: json.RawMessage(`{"code":"nonzero_exit","message":""}`)}, "it failed (nonzero_exit)"},
		{flow.Event{Type: flow.EvFailed}, "it failed"},
	} {
		if got := describeEvent(c.ev); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
