package api

import (
	"encoding/json"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		`"2d"`: 48 * time.Hour, `"1m30s"`: 90 * time.Second, `"5"`: 5 * time.Second, `5`: 5 * time.Second, `0.25`: 250 * time.Millisecond,
	} {
		var d Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil || time.Duration(d) != want {
			t.Errorf("%s is %s (%v), want %s", text, d, err, want)
		}
	}
	for _, text := range []string{`"2 days"`, `"-1s"`, `true`, `1e30`} {
		var d Duration
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s is %s, want an error", text, d)
		}
	}
}
