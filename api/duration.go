package api

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/internal/duration"
)

// Duration is a span of time that JSON writes as text: "1.5s", "250ms", "48h0m0s". It is read as text with the units ns, us, ms,
// s, m, h and d ("1m30s", "2d"), or as a number of seconds, with or without quotes.
type Duration time.Duration

// String writes d as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes d as text.
func (d Duration) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, d.String()), nil }

// UnmarshalJSON reads text or a number of seconds.
func (d *Duration) UnmarshalJSON(b []byte) error {
	v, err := readDuration(b)
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

func readDuration(b []byte) (time.Duration, error) {
	if len(b) > 0 && b[0] != '"' {
		return duration.Number(string(b))
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return 0, fmt.Errorf("read a duration: %w", err)
	}
	return duration.Parse(text)
}
