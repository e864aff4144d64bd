package api

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. It is written as a number, and read as one or as text with a unit: "64MB" (10⁶), "64MiB"
// (2²⁰).
type Size int64

// units are tried in order: the longer names first.
var units = []struct {
	name  string
	bytes float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"t", 1e12}, {"b", 1},
}

// ParseSize reads "64MB", "1.5GiB" or a plain number of bytes.
func ParseSize(s string) (Size, error) {
	text, factor := strings.ToLower(strings.TrimSpace(s)), 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			text, factor = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if v := f * factor; err == nil && !strings.ContainsAny(text, "_x") && v >= 0 && v < math.MaxInt64 { // Go takes 1_0 for 10
		return Size(v), nil
	}
	return 0, fmt.Errorf("%.40q is not a size: write \"64MB\", \"64MiB\" or a number of bytes", s)
}

// UnmarshalJSON reads a number of bytes or text with a unit.
func (s *Size) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		text = string(b)
	}
	v, err := ParseSize(text)
	if err != nil {
		return err
	}
	*s = v
	return nil
}

// String writes the size with the largest binary or decimal unit that fits exactly, else in bytes.
func (s Size) String() string {
	for _, u := range []struct {
		name  string
		bytes Size
	}{{"TiB", 1 << 40}, {"GB", 1e9}, {"GiB", 1 << 30}, {"MB", 1e6}, {"MiB", 1 << 20}, {"KB", 1e3}, {"KiB", 1 << 10}} {
		if s >= u.bytes && s%u.bytes == 0 {
			return fmt.Sprintf("%d%s", s/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%dB", int64(s))
}
