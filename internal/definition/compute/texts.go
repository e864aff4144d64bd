package compute

import (
	"fmt"
	"math"
	"math/big"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-run/pawl/internal/jsonvalue"
)

func toText(args ...ref.Val) (ref.Val, error) {
	raw, err := encodeUpTo(args[0], maxText)
	if err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	return types.String(raw), nil
}

func fromText(args ...ref.Val) (ref.Val, error) {
	s := string(args[0].(types.String))
	if s == "" {
		return nil, fmt.Errorf("parse_json: the text is empty")
	}
	val, err := jsonvalue.Decode([]byte(s))
	if err != nil {
		return nil, fmt.Errorf("parse_json: %w", err)
	}
	return native(val), nil
}

// urlEncode encodes a text for a part of a URL's path or query, like encodeURIComponent in browsers.
func urlEncode(args ...ref.Val) (ref.Val, error) {
	s := url.QueryEscape(string(args[0].(types.String)))
	if len(s) > maxText {
		return nil, fmt.Errorf("urlencode: the text would have more than %d bytes", maxText)
	}
	return types.String(asComponent.Replace(s)), nil
}

var asComponent = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")

func reverseText(args ...ref.Val) (ref.Val, error) {
	runes := []rune(string(args[0].(types.String)))
	slices.Reverse(runes)
	return types.String(runes), nil
}

// maxPattern limits a pattern with its repetitions written out: a{9} counts 9.
const maxPattern = 500

func matches(args ...ref.Val) (ref.Val, error) {
	s, pattern := string(args[0].(types.String)), string(args[1].(types.String))
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("matches: the pattern has %d bytes; at most %d are allowed", len(pattern), maxPattern)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("matches: %w", err)
	}
	size := patternSize(tree)
	if size > maxPattern || len(s)*size > 2_000_000 {
		return nil, fmt.Errorf("matches: a pattern of size %d on a text of %d bytes is too much; the size, repetitions written out, may be %d, and the product 2,000,000", size, len(s), maxPattern)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("matches: %w", err)
	}
	return types.Bool(re.MatchString(s)), nil
}

// patternSize counts the parts of a pattern, up to just above maxPattern.
func patternSize(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += patternSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, maxPattern+1)
}

// indexOf counts in characters, like all of CEL's text functions.
func indexOf(args ...ref.Val) (ref.Val, error) {
	s, sub := string(args[0].(types.String)), string(args[1].(types.String))
	from := 0
	if len(args) == 3 {
		n := int64(args[2].(types.Int))
		if n < 0 {
			return nil, fmt.Errorf("indexOf: the offset %d is negative", n)
		}
		from = byteOffset(s, n)
	}
	i := strings.Index(s[from:], sub)
	if i < 0 {
		return types.Int(-1), nil
	}
	return types.Int(utf8.RuneCountInString(s[:from+i])), nil
}

func lastIndexOf(args ...ref.Val) (ref.Val, error) {
	s, sub := string(args[0].(types.String)), string(args[1].(types.String))
	if len(s)*len(sub) > 10_000_000 {
		return nil, fmt.Errorf("lastIndexOf: texts of %d and %d bytes are too long together", len(s), len(sub))
	}
	to := len(s)
	if len(args) == 3 {
		n := int64(args[2].(types.Int))
		if n < 0 {
			return nil, fmt.Errorf("lastIndexOf: the offset %d is negative", n)
		}
		to = min(len(s), byteOffset(s, n)+len(sub))
	}
	i := strings.LastIndex(s[:to], sub)
	if i < 0 {
		return types.Int(-1), nil
	}
	return types.Int(utf8.RuneCountInString(s[:i])), nil
}

// byteOffset returns the offset of character n of s, or len(s) if s is shorter.
func byteOffset(s string, n int64) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// substring counts in characters and does not copy the text.
func substring(args ...ref.Val) (ref.Val, error) {
	s, from := string(args[0].(types.String)), int64(args[1].(types.Int))
	to := int64(len(s))
	if len(args) == 3 {
		to = int64(args[2].(types.Int))
	}
	if from < 0 || to < from {
		return nil, fmt.Errorf("substring: from %d to %d is not within the text", from, to)
	}
	start := byteOffset(s, from)
	end := len(s)
	if len(args) == 3 {
		end = start + byteOffset(s[start:], to-from)
	}
	if beyond(s, start, from) || len(args) == 3 && beyond(s, end, to) {
		return nil, fmt.Errorf("substring: the text has %d characters", utf8.RuneCountInString(s))
	}
	return types.String(s[start:end]), nil
}

// beyond reports whether character n is after the end of s, given the result of byteOffset.
func beyond(s string, at int, n int64) bool {
	return at == len(s) && int64(utf8.RuneCountInString(s)) < n
}

func charAt(args ...ref.Val) (ref.Val, error) {
	s, n := string(args[0].(types.String)), int64(args[1].(types.Int))
	at := byteOffset(s, max(0, n))
	if n < 0 || beyond(s, at, n) {
		return nil, fmt.Errorf("charAt: %d is not within the text", n)
	}
	_, size := utf8.DecodeRuneInString(s[at:])
	return types.String(s[at : at+size]), nil
}

func replace(args ...ref.Val) (ref.Val, error) {
	s, from, to := string(args[0].(types.String)), string(args[1].(types.String)), string(args[2].(types.String))
	n := -1
	if len(args) == 4 {
		n = int(max(-1, min(int64(args[3].(types.Int)), math.MaxInt32)))
	}
	count := strings.Count(s, from)
	if n >= 0 {
		count = min(count, n)
	}
	if len(s)+count*(len(to)-len(from)) > maxText {
		return nil, fmt.Errorf("replace: the text would have more than %d bytes", maxText)
	}
	return types.String(strings.Replace(s, from, to, n)), nil
}

func split(args ...ref.Val) (ref.Val, error) {
	s, sep := string(args[0].(types.String)), string(args[1].(types.String))
	n := -1
	if len(args) == 3 {
		n = int(max(-1, min(int64(args[2].(types.Int)), maxElements)))
	}
	if n < 0 && strings.Count(s, sep) > maxElements {
		return nil, fmt.Errorf("split: the list would have more than %d elements", maxElements)
	}
	return native(strings.SplitN(s, sep, n)), nil
}

func joinTexts(args ...ref.Val) (ref.Val, error) {
	list, err := listOf(args[0])
	if err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	sep := ""
	if len(args) == 2 {
		sep = string(args[1].(types.String))
	}
	var b strings.Builder
	for i, el := range list {
		s, ok := el.(types.String)
		if !ok {
			return nil, fmt.Errorf("join: element %d is of type %s, not a string: map it with string() first", i, el.Type().TypeName())
		}
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(string(s))
		if b.Len() > maxText {
			return nil, fmt.Errorf("join: the text would have more than %d bytes", maxText)
		}
	}
	return types.String(b.String()), nil
}

// verbs are the verbs of format: %s %d %x %e %f with width and precision, %%.
var verbs = regexp.MustCompile(`%([-+0 ]?\d{0,3}(?:\.\d{1,3})?)([a-zA-Z%])`)

// format formats values as printf does. %s accepts any value and writes it as JSON unless it is a string.
func format(args ...ref.Val) (ref.Val, error) {
	list, err := listOf(args[1])
	if err != nil {
		return nil, fmt.Errorf("format: %w", err)
	}
	next := 0
	var fault error
	size := 0
	out := verbs.ReplaceAllStringFunc(string(args[0].(types.String)), func(verb string) string {
		kind := verb[len(verb)-1]
		if kind == '%' || fault != nil {
			return "%"
		}
		if next == len(list) {
			fault = fmt.Errorf("format: there are more verbs than the %d values", len(list))
			return ""
		}
		val, err := formattable(list[next], kind)
		next++
		s := ""
		if err == nil {
			s = fmt.Sprintf(verb, val)
		}
		if size += len(s); size > maxText {
			err = fmt.Errorf("the text would have more than %d bytes", maxText)
		}
		if err != nil {
			fault = fmt.Errorf("format: %s: %w", verb, err)
		}
		return s
	})
	return types.String(out), fault
}

func formattable(v ref.Val, verb byte) (any, error) {
	switch verb {
	case 's':
		switch s := v.(type) {
		case types.String:
			return string(s), nil
		case types.Timestamp, types.Duration, types.Bytes:
			text, err := encodeUpTo(v, maxText)
			if err == nil {
				text, err = jsontext.AppendUnquote(nil, text)
			}
			return string(text), err
		}
		raw, err := encodeUpTo(v, maxText)
		return string(raw), err
	case 'd', 'x':
		switch n := v.(type) {
		case types.Int:
			return int64(n), nil
		case types.Uint:
			return uint64(n), nil
		}
		return nil, fmt.Errorf("a value of type %s is not a whole number", v.Type().TypeName())
	case 'e', 'f':
		switch n := v.(type) {
		case types.Double:
			return float64(n), nil
		case types.Int:
			return new(big.Float).SetInt64(int64(n)), nil
		case types.Uint:
			return new(big.Float).SetUint64(uint64(n)), nil
		}
		return nil, fmt.Errorf("a value of type %s is not a number", v.Type().TypeName())
	}
	return nil, fmt.Errorf("the verbs are %%s, %%d, %%x, %%e, %%f and %%%%")
}
