package api

import (
	"slices"
	"testing"
)

func TestTerminal(t *testing.T) {
	ends := []Status{Completed, Failed, Cancelled, TimedOut}
	for _, s := range Statuses() {
		if s.Terminal() != slices.Contains(ends, s) {
			t.Errorf("%s is terminal: %t", s, s.Terminal())
		}
	}
}
