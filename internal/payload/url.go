package payload

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// Characters that the URL standard encodes in addition to spaces, control characters and non-ASCII characters.
const (
	encodedInPath  = "\"#<>?^`{}"
	encodedInQuery = "\"#<>'"
)

// EncodedURL encodes the characters that a URL must not contain, as browsers do: spaces and non-ASCII characters. Already encoded
// characters stay.
func EncodedURL(text string) string {
	begin := 0
	if _, rest, found := strings.Cut(text, "://"); found {
		begin = len(text) - len(rest)
	}
	if n := strings.IndexAny(text[begin:], "/?"); n < 0 {
		return text
	} else {
		begin += n
	}
	path, query, asked := strings.Cut(text[begin:], "?")
	if text = text[:begin] + encoded(path, encodedInPath); asked {
		text += "?" + EncodedQuery(query)
	}
	return text
}

// EncodedQuery does the same for a URL's query.
func EncodedQuery(query string) string { return encoded(query, encodedInQuery) }

func encoded(text, those string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7F || strings.IndexByte(those, c) >= 0 {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func checkURL(r *strictjson.Reader, at string, v reflect.Value) {
	text := v.String()
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7F }) {
		r.ProblemAt(at, text, "it has a control character, such as a line end", "remove it, or encode it by urlencode()")
		return
	}
	before, fragment, cut := strings.Cut(text, "#")
	if cut {
		r.ProblemAt(at, text, fmt.Sprintf("what stands behind # is not sent: %.60q", fragment), "remove it, or write the # of a value as %23, which urlencode() and query do")
		return
	}
	if u, err := url.Parse(EncodedURL(before)); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		r.ProblemAt(at, text, "it is not an absolute http or https URL", `write "https://example.com/path"; a % that is meant as it is, is %25`)
	}
}

// checkQuery refuses values that a query cannot have.
func checkQuery(r *strictjson.Reader, at string, v reflect.Value) {
	for name, raw := range v.Interface().(map[string]json.RawMessage) {
		if _, err := queryValues(raw); err != nil {
			r.ProblemAt(beneath(at, name), string(raw), err.Error(), "write a text, a number, true or false, null to leave it out, or a list of these")
		}
	}
}

// queryValues returns the texts of a query's value: for a list one for each element, for null none.
func queryValues(raw json.RawMessage) (all []string, err error) {
	items := []json.RawMessage{raw}
	if jsonvalue.KindOf(raw) == "list" {
		if items, err = jsonvalue.Elements(raw); err != nil {
			return nil, err
		}
	}
	for _, item := range items {
		switch jsonvalue.KindOf(item) {
		case "null":
		case "string":
			var text string
			if err := json.Unmarshal(item, &text); err != nil {
				return nil, err
			}
			all = append(all, text)
		case "number", "boolean":
			all = append(all, strings.TrimSpace(string(item)))
		default:
			return nil, fmt.Errorf("a query has no form for it")
		}
	}
	return all, nil
}

// withQuery adds values to a URL, sorted by name.
func withQuery(text string, query map[string]json.RawMessage) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(query)) {
		values, _ := queryValues(query[name]) // they were checked
		for _, value := range values {
			parts = append(parts, url.QueryEscape(name)+"="+url.QueryEscape(value))
		}
	}
	if len(parts) == 0 {
		return text
	}
	sign := "?"
	switch {
	case strings.HasSuffix(text, "?") || strings.HasSuffix(text, "&"):
		sign = ""
	case strings.Contains(text, "?"):
		sign = "&"
	}
	return text + sign + strings.Join(parts, "&")
}
