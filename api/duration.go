package api

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Duration is a span of time that JSON writes as text: "1.5s", "250ms", "2h45m". A JSON number is read as seconds.
type Duration time.Duration

// String writes d as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes d as text.
func (d Duration) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, d.String()), nil }

// UnmarshalJSON reads text or a number of seconds.
func (d *Duration) UnmarshalJSON(b []byte) error {
	v, err := parseDuration(b)
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

func parseDuration(b []byte) (time.Duration, error) {
	if len(b) > 0 && b[0] != '"' {
		seconds, err := strconv.ParseFloat(string(b), 64)
		if err != nil || seconds > 1e9 || seconds < -1e9 {
			return 0, fmt.Errorf("%.40s is not a duration: write it as in \"1.5s\", \"250ms\" or \"2h45m\"", b)
		}
		return time.Duration(seconds * float64(time.Second)), nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return 0, fmt.Errorf("read a duration: %w", err)
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a duration: write it as in \"1.5s\", \"250ms\" or \"2h45m\"", text)
	}
	return v, nil
}
