package query

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/strictjson"
)

type about uint8

const (
	ofStatus about = iota
	ofAction
	ofKind
	ofQueue
	ofKey
	ofWorker
	ofError
	ofLabel
	ofVersion
	ofCreated
	ofFinished
	ofMember
)

// fields are the fields without a name after a dot.
var fields = []struct {
	name  string
	about about
}{
	{"status", ofStatus}, {"action", ofAction}, {"version", ofVersion}, {"kind", ofKind}, {"queue", ofQueue}, {"key", ofKey}, {"worker", ofWorker},
	{"error", ofError}, {"created", ofCreated}, {"finished", ofFinished},
}

type field struct {
	about about
	name  string   // name of a label, or of the member as a definition declares it: input.customer
	path  []string // of a member, after input or output; an element of a list is its number in brackets
}

func (f *field) moment() bool { return f.about == ofCreated || f.about == ofFinished }

// operator is the relation between a field and the values of a term.
type operator uint8

const (
	is operator = iota // equal to any of the values
	less
	atMost
	more
	atLeast
	exists
)

type value struct {
	text    string
	quoted  bool // it is a text, even if it looks like a number
	number  jsonvalue.Decimal
	numeric bool // the text is a number
	at      time.Time
}

// term compares a field. A field without a value equals nothing and is neither less nor greater than anything.
type term struct {
	field   field
	op      operator
	values  []value
	negated bool
	column  int
	line    int
}

func (t *term) ofInput() bool { return strings.HasPrefix(t.field.name, "input") }

func (t *term) matches(r *Record) Verdict {
	if t.field.about == ofMember && !r.Loaded {
		return Unknown
	}
	if t.holds(r) != t.negated {
		return Yes
	}
	return No
}

func (t *term) holds(r *Record) bool {
	//exhaustive:enforce
	switch t.field.about {
	case ofStatus:
		return t.text(r.Stage.String())
	case ofAction:
		return t.text(r.Action)
	case ofKind:
		return t.text(string(r.Kind))
	case ofQueue:
		queue, _ := flow.NeedsOf(r.Queue)
		return t.text(queue)
	case ofKey:
		return t.text(r.Key)
	case ofWorker:
		if r.Owner.IsZero() {
			return false
		}
		return t.op == exists || t.text(r.Worker) || t.text(r.Owner.Text(flow.SessionPrefix))
	case ofError:
		return r.Outcome != nil && r.Outcome.Error != nil && t.text(r.Outcome.Error.Code)
	case ofLabel:
		v, has := r.Labels[t.field.name]
		return has && (t.op == exists || t.has(v))
	case ofVersion:
		return r.Version > 0 && (t.op == exists || t.number(versionNumber(r.Version)))
	case ofCreated:
		return t.time(r.CreatedAt)
	case ofFinished:
		return r.Stage.Terminal() && t.time(r.FinishedAt)
	case ofMember:
		return slices.Contains(r.Searchable, t.field.name) && t.member(r)
	}
	return false
}

func (t *term) text(s string) bool {
	return s != "" && (t.op == exists || t.has(s))
}

func (t *term) has(s string) bool {
	return slices.ContainsFunc(t.values, func(v value) bool { return v.text == s })
}

func versionNumber(n int) jsonvalue.Decimal {
	d, _ := readNumber(strconv.Itoa(n))
	return d
}

func (t *term) number(n jsonvalue.Decimal) bool {
	return slices.ContainsFunc(t.values, func(v value) bool {
		switch c := n.Compare(v.number); t.op {
		case is:
			return v.numeric && c == 0
		case less:
			return c < 0
		case atMost:
			return c <= 0
		case more:
			return c > 0
		case atLeast:
			return c >= 0
		}
		return false
	})
}

func (t *term) time(at time.Time) bool {
	switch t.op {
	case exists:
		return true
	case less:
		return at.Before(t.values[0].at)
	case atMost:
		return !at.After(t.values[0].at)
	case more:
		return at.After(t.values[0].at)
	}
	return !at.Before(t.values[0].at)
}

// member compares a member of the input or output. A list matches if one of its elements does.
func (t *term) member(r *Record) bool {
	raw := r.Output
	if t.ofInput() {
		raw = r.Input
	}
	for _, step := range t.field.path {
		var found bool
		if raw, found = below(raw, step); !found {
			return false
		}
	}
	raw = trimmed(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return false
	}
	if t.op == exists {
		return true
	}
	if raw[0] != '[' {
		return t.scalar(raw)
	}
	found := false
	// Stored values are valid JSON.
	_ = strictjson.Elements(raw, func(_ int, el []byte) error {
		if el = trimmed(el); t.scalar(el) {
			found = true
			return strictjson.ErrStop
		}
		return nil
	})
	return found
}

// below returns the member of an object with a name, or the element of a list with an index.
func below(raw []byte, step string) (value []byte, found bool) {
	if raw = trimmed(raw); len(raw) == 0 {
		return nil, false
	}
	switch index, isIndex := strings.CutPrefix(step, "["); {
	case isIndex && raw[0] == '[':
		_ = strictjson.Elements(raw, func(i int, el []byte) error {
			if strconv.Itoa(i) == strings.TrimSuffix(index, "]") {
				value, found = el, true
				return strictjson.ErrStop
			}
			return nil
		})
	case !isIndex && raw[0] == '{':
		m, has, err := strictjson.Member(raw, step)
		return m, has && err == nil
	}
	return value, found
}

func trimmed(raw []byte) []byte { return []byte(strings.TrimSpace(string(raw))) }

// scalar compares a string, a number, true or false.
func (t *term) scalar(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	switch c := raw[0]; {
	case c == '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return false
		}
		if t.op != is {
			n, numeric := readNumber(s)
			return numeric && t.number(n)
		}
		return t.has(s)
	case c == '-' || c >= '0' && c <= '9':
		n, numeric := readNumber(string(raw))
		return numeric && t.number(n)
	case c == 't' || c == 'f':
		return t.op == is && slices.ContainsFunc(t.values, func(v value) bool { return !v.quoted && v.text == string(raw) })
	}
	return false
}

// readNumber reads a number in JSON's grammar, with all its digits. Texts such as 007 or infinity are not numbers.
func readNumber(s string) (n jsonvalue.Decimal, numeric bool) { return jsonvalue.DecimalOf(s) }
