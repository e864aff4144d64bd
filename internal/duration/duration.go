// Package duration parses durations as people write them, by one rule for definitions, the API, the configuration and the
// command line. It is pure.
package duration

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrNegative means that the duration is negative but otherwise valid.
var ErrNegative = errors.New("it is negative")

var units = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

// Parse parses "1s", "1m30s" or "2d": numbers with the units ns, us, ms, s, m, h and d. A day is 24 hours. A number without
// a unit is in seconds: "90" and "1.5". Negative durations are refused.
func Parse(s string) (time.Duration, error) {
	fault := func(why string) error {
		return fmt.Errorf("%.40q is not a duration: %s; write it like 30s, 1m30s or 2d, or as a number of seconds", s, why)
	}
	if s == "" {
		return 0, fault("it is empty")
	}
	if strings.HasPrefix(s, "-") {
		return 0, fmt.Errorf("%.40q is not a duration: %w; write it without the minus sign", s, ErrNegative)
	}
	total := 0.0
	for rest := s; rest != ""; {
		n := strings.IndexFunc(rest, func(r rune) bool { return !ofNumber(r) })
		if n < 0 {
			n = len(rest)
		}
		num, err := strconv.ParseFloat(rest[:n], 64)
		if err != nil {
			return 0, fault("it needs a number before each unit")
		}
		all := n == len(s)
		rest = rest[n:]
		m := strings.IndexFunc(rest, ofNumber)
		if m < 0 {
			m = len(rest)
		}
		unit, ok := units[rest[:m]]
		switch {
		case all:
			unit = time.Second
		case m == 0:
			return 0, fault("its last number has no unit")
		case !ok:
			return 0, fault(fmt.Sprintf("the unit %.10q is not one of ns, us, ms, s, m, h, d", rest[:m]))
		}
		total += num * float64(unit)
		rest = rest[m:]
	}
	return inRange(s, total)
}

// Number parses a number in JSON or YAML, such as 1.5 or 2e3: it is in seconds.
func Number(s string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(seconds) {
		return 0, fmt.Errorf("%.40q is not a number of seconds", s)
	}
	return inRange(s, seconds*float64(time.Second))
}

func ofNumber(r rune) bool { return r >= '0' && r <= '9' || r == '.' }

func inRange(s string, nanoseconds float64) (time.Duration, error) {
	if math.Abs(nanoseconds) > math.MaxInt64/2 {
		return 0, fmt.Errorf("%.40q is not a duration: it is too long; write at most 100 years", s)
	}
	return time.Duration(math.Round(nanoseconds)), nil
}
