package definition

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"strings"

	"github.com/pawl-run/pawl/internal/jsonvalue"
)

// The plain scalars of YAML 1.2's core schema, and those that only YAML 1.1 reads as numbers.
var (
	coreInt   = regexp.MustCompile(`^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$`)
	coreFloat = regexp.MustCompile(`^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$`)
	coreNone  = regexp.MustCompile(`^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	zeroFirst = regexp.MustCompile(`^[-+]?0[0-9]`)
	oldNumber = regexp.MustCompile(`^[-+]?(?:0[bB][01_]+|0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*|[1-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)$`)
	oldTime   = regexp.MustCompile(`^[0-9]+(?::[0-9]{2})+$`)
)

// coreTag returns the tag of a plain scalar in YAML 1.2's core schema. misread says why other readers read it differently, so that it has
// to be quoted.
func coreTag(s string) (tag, misread string) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return "!!null", ""
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return "!!bool", ""
	}
	switch {
	case coreInt.MatchString(s) || coreFloat.MatchString(s):
		if zeroFirst.MatchString(s) && strings.TrimLeft(s, "+-0") != "" || zeroFirst.MatchString(s) && !strings.ContainsAny(s, ".eE") {
			return "!!str", "a number that begins with 0 is octal for some and decimal for others, and would lose the 0"
		}
		if _, fits := jsonNumber(s); !fits {
			return "!!str", "it is beyond the numbers that are computed with"
		}
		if coreInt.MatchString(s) {
			return "!!int", ""
		}
		return "!!float", ""
	case coreNone.MatchString(s):
		return "!!str", "JSON has no such number"
	case oldNumber.MatchString(s) && !oldTime.MatchString(s):
		return "!!str", "it is a number in YAML 1.1 and a text in YAML 1.2"
	}
	return "!!str", ""
}

// jsonNumber writes a YAML number as JSON, with the same digits: 0x1F is 31, .5 is 0.5. It refuses numbers that JSON does not have, and
// those outside the range of computations.
func jsonNumber(s string) (text string, fits bool) {
	sign, digits := "", s
	switch {
	case strings.HasPrefix(s, "+"):
		digits = s[1:]
	case strings.HasPrefix(s, "-"):
		sign, digits = "-", s[1:]
	}
	if strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0o") {
		n, ok := new(big.Int).SetString(digits, 0)
		if !ok {
			return "", false
		}
		digits = n.String()
	} else {
		if strings.HasPrefix(digits, ".") {
			digits = "0" + digits
		}
		if whole, rest, found := strings.Cut(digits, "."); found && (rest == "" || rest[0] == 'e' || rest[0] == 'E') {
			digits = whole + rest
		}
	}
	v, err := jsonvalue.Decode([]byte(sign + digits))
	if err != nil {
		return "", false
	}
	// YAML readers turn a number beyond the range of a double, such as 1e400, into a text or an infinity, so it has to be quoted.
	if n, ok := v.(json.Number); ok {
		if f, err := n.Float64(); err != nil || f == 0 {
			return "", false
		}
	}
	return sign + digits, true
}

// oldBreak reports whether the parser takes a character for a line break, as in YAML 1.1: it would become a space within quotes, or end a
// line of source code.
func oldBreak(r rune) bool { return r == 0x85 || r == 0x2028 || r == 0x2029 }

var version12 = regexp.MustCompile(`\A(?:[ \t]*(?:#[^\n]*)?\r?\n)*%YAML 1\.2[ \t]*\r?\n`)

// versionless comments out a directive %YAML 1.2: the parser accepts the syntax of 1.2 but refuses the directive.
func versionless(src []byte) []byte {
	at := version12.FindIndex(src)
	if at == nil {
		return src
	}
	out := bytes.Clone(src)
	out[bytes.IndexByte(out[:at[1]], '%')] = '#'
	return out
}
