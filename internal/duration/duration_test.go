package duration

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]time.Duration{
		"1s": time.Second, "1m30s": 90 * time.Second, "2d": 48 * time.Hour, "1.5h": 90 * time.Minute, "10ms": 10 * time.Millisecond,
		"0": 0, "0s": 0, "5": 5 * time.Second, "1.5": 1500 * time.Millisecond, "1d12h": 36 * time.Hour,
	} {
		if got, err := Parse(s); got != want || err != nil {
			t.Errorf("%s is %v (%v), want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "s", "1x", "-1s", "-5", "1s ", "1..5s", "1m30", "1e3", "inf", ".", "99999999999d"} {
		if got, err := Parse(s); err == nil {
			t.Errorf("%q is %v, want an error", s, got)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]time.Duration{"5": 5 * time.Second, "0.25": 250 * time.Millisecond, "2e3": 2000 * time.Second, "-1": -time.Second} {
		if got, err := Number(s); got != want || err != nil {
			t.Errorf("%s is %v (%v), want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "5s", "1e99", "nan", "true"} {
		if got, err := Number(s); err == nil {
			t.Errorf("%q is %v, want an error", s, got)
		}
	}
}
