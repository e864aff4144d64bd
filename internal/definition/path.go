package definition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// path is an expression that only selects members and elements from a variable, such as tasks.load.output.items[0]. It is evaluated on the
// JSON text, without CEL and without decoding the rest.
type path struct {
	root  string
	steps []step
}

type step struct {
	name  string
	index int // if name is "" and byIndex
	byIdx bool
}

// variables are the variables with which a path can begin.
var variables = []string{"input", "tasks", "item", "index", "workflow", "labels", "env", "tick", "signal", "signals", "answer", "body", "headers", "query", "vars",
	"round", "previous", "output", "status", "error"}

// parsePath reads a path; ok is false for any other expression.
func parsePath(text string) (p path, ok bool) {
	rest := strings.TrimSpace(text)
	root, rest := identifier(rest)
	if !slices.Contains(variables, root) {
		return p, false
	}
	p.root = root
	for rest != "" {
		switch rest[0] {
		case '.':
			var name string
			name, rest = identifier(rest[1:])
			switch name {
			case "", "in", "true", "false", "null": // not selectors in CEL
				return p, false
			}
			p.steps = append(p.steps, step{name: name})
		case '[':
			inner, after, found := strings.Cut(rest[1:], "]")
			if !found {
				return p, false
			}
			s, ok := subscript(strings.TrimSpace(inner))
			if !ok {
				return p, false
			}
			p.steps = append(p.steps, s)
			rest = after
		default:
			return p, false
		}
	}
	if root == "tasks" && (len(p.steps) < 2 || p.steps[0].byIdx || p.steps[1].byIdx) {
		return p, false // CEL builds the whole result of a task, or of all tasks
	}
	return p, true
}

func identifier(s string) (name, rest string) {
	i := 0
	for i < len(s) && (s[i] == '_' || s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z' || i > 0 && s[i] >= '0' && s[i] <= '9') {
		i++
	}
	return s[:i], s[i:]
}

func subscript(s string) (step, bool) {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] && !strings.ContainsAny(s[1:len(s)-1], "\\\"'\n") {
		return step{name: s[1 : len(s)-1]}, true
	}
	if s != "" && s[0] >= '0' && s[0] <= '9' && (s == "0" || s[0] != '0') {
		if n, err := strconv.ParseInt(s, 10, 32); err == nil {
			return step{index: int(n), byIdx: true}, true
		}
	}
	return step{}, false
}

// walk follows steps down from raw; sofar is the name of raw in errors.
func walk(raw json.RawMessage, steps []step, sofar string) (json.RawMessage, error) {
	for _, s := range steps {
		kind := jsonvalue.KindOf(raw)
		var next json.RawMessage
		found := false
		var err error
		switch {
		case kind == "object" && !s.byIdx:
			next, found, err = strictjson.Member(raw, s.name)
		case kind == "list" && s.byIdx:
			next, found, err = element(raw, s.index)
		default:
			return nil, fmt.Errorf("%s is %s and has no %s", sofar, article(kind), s)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", sofar, err)
		}
		if !found {
			return nil, fmt.Errorf("%s has no %s%s", sofar, s, offer(raw))
		}
		raw = next
		sofar += s.suffix()
	}
	return raw, nil
}

func element(raw json.RawMessage, index int) (value json.RawMessage, found bool, err error) {
	err = strictjson.Elements(raw, func(i int, el []byte) error {
		if i == index {
			value, found = el, true
			return strictjson.ErrStop
		}
		return nil
	})
	return value, found, err
}

func (s step) String() string {
	if s.byIdx {
		return fmt.Sprintf("element %d", s.index)
	}
	return strconv.Quote(s.name)
}

func (s step) suffix() string {
	if s.byIdx {
		return fmt.Sprintf("[%d]", s.index)
	}
	if name, rest := identifier(s.name); name != "" && rest == "" {
		return "." + s.name
	}
	return fmt.Sprintf("[%q]", s.name)
}

func article(kind string) string {
	switch kind {
	case "object":
		return "an object"
	case "null":
		return "null"
	}
	return "a " + kind
}

// offer lists the members of an object for an error, or says how long a list is.
func offer(raw json.RawMessage) string {
	if jsonvalue.KindOf(raw) == "list" {
		list, err := jsonvalue.Elements(raw)
		if err != nil {
			return ""
		}
		return fmt.Sprintf(": the list has %d elements, counted from 0", len(list))
	}
	var names []string
	err := strictjson.Members(raw, func(name string, _ []byte) error {
		names = append(names, strconv.Quote(name))
		if len(names) == 8 {
			return strictjson.ErrStop
		}
		return nil
	})
	if err != nil {
		return ""
	}
	if len(names) == 0 {
		return ": it is empty"
	}
	slices.Sort(names)
	return ": it has " + strings.Join(names, ", ")
}
