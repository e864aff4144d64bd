package requests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/duration"
	"github.com/pawl-run/pawl/internal/engine/fault"
)

// SleepOf reads the payload of a sleep: {"for": "90s"}, or a number of seconds.
func SleepOf(payload json.RawMessage) (time.Duration, error) {
	var with struct {
		For json.RawMessage `json:"for"`
	}
	if err := json.Unmarshal(payload, &with); err != nil || with.For == nil {
		return 0, fmt.Errorf("sleep wants {\"for\": \"90s\"} or {\"for\": 90}, not %.80s", cmp.Or(string(payload), "nothing"))
	}
	var text string
	var seconds float64
	var d time.Duration
	err := json.Unmarshal(with.For, &seconds)
	if err == nil {
		d = time.Duration(min(max(seconds, -1), 1e9) * float64(time.Second))
	} else if err = json.Unmarshal(with.For, &text); err == nil {
		d, err = duration.Parse(text)
	}
	if err != nil {
		return 0, fmt.Errorf("sleep: for: %.40s is neither a duration such as \"1m30s\" nor a number of seconds", with.For)
	}
	if d < 0 || d > fault.TimeoutLimit {
		return 0, fmt.Errorf("sleep: for: %s is out of range: 0 to 366 days", d)
	}
	return d, nil
}
