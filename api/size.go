package api

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// Size is a number of bytes. It is written as a number, and read as a number or as text with a unit: "64MB" (10⁶), "64MiB" (2²⁰).
type Size int64

// units are tried in order: the longer names first.
var units = []struct {
	name  string
	bytes int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"t", 1e12}, {"b", 1},
}

// decimalNumber limits the digits, because the exponent of an exact number costs memory: 1e999999999 has a billion digits.
var decimalNumber = regexp.MustCompile(`^([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})(e[0-9]{1,2})?$`)

// ParseSize reads "64MB", "1.5GiB" or a plain number of bytes. A fraction of a byte, as in "1.1GiB", is rounded to the nearest byte.
func ParseSize(s string) (Size, error) {
	text, factor := strings.ToLower(strings.TrimSpace(s)), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			text, factor = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	if decimalNumber.MatchString(text) {
		n, _ := new(big.Rat).SetString(text) // exact: 2.3 * 1e6 is 2299999.9999999995 in floating point
		if n.Mul(n, new(big.Rat).SetInt64(factor)); factor > 1 || n.IsInt() {
			n.Add(n, big.NewRat(1, 2))
			if v := new(big.Int).Div(n.Num(), n.Denom()); v.IsInt64() {
				return Size(v.Int64()), nil
			}
		}
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

// String writes the size with the largest binary or decimal unit that divides it, else in bytes.
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
