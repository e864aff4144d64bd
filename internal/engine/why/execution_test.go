package why

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Failures are described in words and not as JSON.
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

// A moment that is days away has its date: "until 00:00:00Z" was useless for an execution that is to start in a year.
func TestMomentsHaveTheirDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is midnight, 2000-01-01 UTC
		now := time.Now()
		for _, c := range []struct {
			in          time.Duration
			clock, span string
		}{
			{90 * time.Minute, "01:30:00Z", "1h30m0s"},
			{-2 * time.Hour, "22:00:00Z", ""},
			{-24 * time.Hour, "1999-12-31 00:00:00Z", ""},
			{50 * time.Hour, "2000-01-03 02:00:00Z", "50h0m0s"},
			{100 * 24 * time.Hour, "2000-04-10 00:00:00Z", "100 days"},
		} {
			if got := Clock(now.Add(c.in)); got != c.clock {
				t.Errorf("Clock of what is %s away: %q, want %q", c.in, got, c.clock)
			}
			if got := span(now, now.Add(c.in)); c.span != "" && got != c.span {
				t.Errorf("span of %s: %q, want %q", c.in, got, c.span)
			}
		}
		if got, want := span(now, now.AddDate(7000, 0, 0)), "2556698 days"; got != want {
			t.Errorf("span of 7000 years: %q, want %q", got, want)
		}
	})
}
