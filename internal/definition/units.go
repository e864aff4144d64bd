package definition

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var durationUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

// ParseDuration reads "1s", "1m30s" or "2d": numbers with the units ns, us,
// ms, s, m, h and d. A day is 24 hours. Negative durations are refused.
func ParseDuration(s string) (time.Duration, error) {
	fault := func(why string) error {
		return fmt.Errorf("%.40q is not a duration: %s; write it like 30s, 1m30s or 2d", s, why)
	}
	if s == "" {
		return 0, fault("it is empty")
	}
	total := 0.0
	for rest := s; rest != ""; {
		n := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if n < 0 {
			return 0, fault("it has no unit")
		}
		num, err := strconv.ParseFloat(rest[:n], 64)
		if err != nil {
			return 0, fault("it needs a number before each unit")
		}
		rest = rest[n:]
		m := strings.IndexFunc(rest, func(r rune) bool { return r >= '0' && r <= '9' || r == '.' })
		if m < 0 {
			m = len(rest)
		}
		unit, ok := durationUnits[rest[:m]]
		if !ok {
			return 0, fault(fmt.Sprintf("the unit %.10q is not one of ns, us, ms, s, m, h, d", rest[:m]))
		}
		total += num * float64(unit)
		rest = rest[m:]
	}
	if total > math.MaxInt64/2 {
		return 0, fault("it is too long")
	}
	return time.Duration(math.Round(total)), nil
}
