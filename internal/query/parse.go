package query

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/duration"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

const (
	MaxLength = 4096 // bytes
	maxDepth  = 50   // nested parentheses and nots
	maxValues = 500  // in all terms together
)

// parser reads a condition by recursive descent. It stops at the first error, because the text after it is rarely meant as it reads.
type parser struct {
	lexer
	now    time.Time
	token  token
	depth  int
	values int
	query  *Query
	fault  *problem.Problem
}

// Parse parses a condition; times such as -7d are relative to now. The error is a problem.List with the position of the error.
func Parse(text string, now time.Time) (*Query, error) {
	p := &parser{lexer: lexer{text, 1, 1}, now: now.UTC(), query: &Query{text: text}}
	switch {
	case len(text) > MaxLength:
		return nil, problem.List{{Value: problem.Clip(text, 60), Message: fmt.Sprintf("the condition has %d bytes; %d are allowed", len(text), MaxLength), Fix: "search by fewer values"}}
	case !utf8.ValidString(text):
		return nil, problem.List{{Value: strconv.QuoteToASCII(problem.Clip(text, 60)), Message: "the condition is not UTF-8"}}
	}
	p.advance()
	p.query.root = p.or()
	if p.fault == nil && p.token.kind != end {
		p.behind()
	}
	if p.fault != nil {
		return nil, problem.List{*p.fault}
	}
	anyTerm(p.query.root, func(t *term) bool {
		if t.field.about == ofMember {
			p.query.members = append(p.query.members, t)
		}
		return false
	})
	return p.query, nil
}

func (p *parser) advance() {
	if p.fault != nil {
		p.token = token{}
		return
	}
	var open rune
	if p.token, open = p.next(); open != 0 {
		p.fail(p.token, fmt.Sprintf("a text begins here with %c and does not end", open), fmt.Sprintf("close it with %c", open))
	}
}

func (p *parser) fail(at token, message, fix string) {
	if p.fault == nil {
		p.fault = &problem.Problem{Value: problem.Clip(at.text, 60), Message: message, Fix: fix, Line: at.line, Column: at.column}
	}
	p.token = token{}
}

// behind reports text after a complete condition.
func (p *parser) behind() {
	switch t := p.token; {
	case t.is(other, "&&") || t.is(other, "&"):
		p.fail(t, fmt.Sprintf("%q does not join conditions", t.text), "write and")
	case t.is(other, "||") || t.is(other, "|"):
		p.fail(t, fmt.Sprintf("%q does not join conditions", t.text), "write or")
	case t.is(symbol, ")"):
		p.fail(t, "this parenthesis closes none", "take it away, or open one before it")
	case t.is(symbol, ","):
		p.fail(t, "a comma does not join conditions", "write and, or or; values stand in a list: status in (failed, timed_out)")
	default:
		p.fail(t, fmt.Sprintf("%q follows a condition that is complete", problem.Clip(t.text, 60)), "join conditions by and, or or; put a text with blanks in quotes")
	}
}

func (p *parser) or() node {
	n := p.and()
	if !p.token.keyword("or") {
		return n
	}
	some := or{n}
	for p.token.keyword("or") {
		p.advance()
		some = append(some, p.and())
	}
	return some
}

func (p *parser) and() node {
	n := p.unary()
	if !p.token.keyword("and") {
		return n
	}
	all := and{n}
	for p.token.keyword("and") {
		p.advance()
		all = append(all, p.unary())
	}
	return all
}

func (p *parser) unary() node {
	at := p.token
	if p.depth++; p.depth > maxDepth {
		p.fail(at, fmt.Sprintf("more than %d parentheses and nots are within one another", maxDepth), "write it flatter")
	}
	defer func() { p.depth-- }()
	switch {
	case p.fault != nil:
		return and{}
	case at.keyword("not"):
		p.advance()
		return not(p.unary())
	case at.is(symbol, "("):
		p.advance()
		n := p.or()
		if p.fault == nil && !p.token.is(symbol, ")") {
			if p.token.kind == end {
				p.fail(at, "this parenthesis is not closed", "close it with )")
			} else {
				p.behind()
			}
		}
		p.advance()
		return n
	}
	return p.term()
}

func (p *parser) term() node {
	at := p.token
	switch {
	case at.kind == end:
		p.fail(at, "a condition is missing here", "write one, such as status = failed")
	case at.kind == other && at.text == "!":
		p.fail(at, "! is not part of the language", "write not")
	case at.kind != word || at.keyword("and") || at.keyword("or") || at.keyword("in"):
		p.fail(at, fmt.Sprintf("a field should stand here, not %q", problem.Clip(at.text, 60)), "write a condition such as status = failed")
	case at.keyword("exists"):
		p.fail(at, "exists stands behind a field", "write label.team exists")
	}
	t := &term{line: at.line, column: at.column}
	if p.fault == nil {
		t.field = p.field(at)
	}
	p.advance()
	p.relation(t)
	if p.fault != nil {
		return and{}
	}
	return t
}

func (p *parser) field(at token) (f field) {
	for _, known := range fields {
		if strings.EqualFold(at.text, known.name) && len(at.parts) == 1 {
			f.about = known.about
			return f
		}
	}
	switch root := strings.ToLower(at.parts[0]); {
	case root == "label" && len(at.parts) > 1 && at.text != at.parts[0]+".":
		return field{about: ofLabel, name: strings.Join(at.parts[1:], ".")}
	case root == "label" || root == "labels":
		fix := "write label.team = docs"
		if len(at.parts) > 1 && at.parts[1] != "" {
			fix = "write label." + strings.Join(at.parts[1:], ".")
		}
		p.fail(at, "the name of the label is missing, or stands elsewhere", fix)
		return f
	case root == "input" || root == "output":
		return p.member(root, at)
	}
	var names []string
	for _, known := range fields {
		names = append(names, known.name)
	}
	fix := cmp.Or(problem.Nearest(at.text, append(slices.Clone(names), "label", "input", "output")),
		fmt.Sprintf("one of %s, label.NAME, input.PATH, output.PATH; a label is label.%s", strings.Join(names, ", "), problem.Clip(at.text, 60)))
	p.fail(at, fmt.Sprintf("executions have no %q to search by", problem.Clip(at.text, 60)), fix)
	return f
}

// member reads the path of a member of the input or output.
func (p *parser) member(root string, at token) field {
	name, path, ok := memberPath(root + strings.TrimPrefix(at.text, at.parts[0]))
	if !ok {
		p.fail(at, fmt.Sprintf("%q is not a member of the %s", problem.Clip(at.text, 60), root),
			fmt.Sprintf("write its path of letters, digits, _ and -: %s.customer, or %s.items[0].id", root, root))
	}
	return field{ofMember, name, path}
}

// Member reports whether a text names a searchable member of an input or output: input.customer, output.items[0].id.
func Member(text string) bool {
	_, _, ok := memberPath(text)
	return ok
}

const maxSteps = 20

func memberPath(text string) (name string, path []string, ok bool) {
	root, rest, _ := strings.Cut(text, ".")
	if root != "input" && root != "output" || rest == "" || len(text) > 200 {
		return text, nil, false
	}
	for step := range strings.SplitSeq(rest, ".") {
		member, indexes, _ := strings.Cut(step, "[")
		if member == "" || strings.ContainsFunc(member, func(r rune) bool {
			return !(r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
		}) {
			return text, nil, false
		}
		path = append(path, member)
		if indexes == "" && len(member) == len(step) {
			continue
		}
		for index := range strings.SplitSeq(indexes, "[") {
			digits, closed := strings.CutSuffix(index, "]")
			if n, err := strconv.ParseUint(digits, 10, 31); !closed || err != nil || strconv.FormatUint(n, 10) != digits {
				return text, nil, false
			}
			path = append(path, "["+index)
		}
	}
	return text, path, len(path) <= maxSteps
}

// relation reads the operator and the values of a term.
func (p *parser) relation(t *term) {
	at := p.token
	if at.keyword("not") {
		t.negated = true
		p.advance()
		if !p.token.keyword("in") && !p.token.keyword("exists") && p.fault == nil {
			p.fail(p.token, "behind a field, not stands before in or exists", "write not in (…), not exists, or !=")
		}
	}
	switch {
	case p.fault != nil:
	case p.token.keyword("exists"):
		t.op = exists
		p.advance()
	case p.token.keyword("in"):
		if t.field.moment() {
			p.fail(at, "a time is compared by <, <=, > and >=", "write created >= 2026-11-01 and created < 2026-11-02")
		}
		p.list(t)
	case at.is(symbol, "="), at.is(symbol, "!="):
		if t.field.moment() {
			p.fail(at, "a time is compared by <, <=, > and >=", "write created >= 2026-11-01 and created < 2026-11-02")
		}
		t.negated = at.text == "!="
		p.advance()
		p.value(t)
	case at.kind == symbol && strings.Contains(" < <= > >= ", " "+at.text+" "):
		t.op = map[string]operator{"<": less, "<=": atMost, ">": more, ">=": atLeast}[at.text]
		if !t.field.moment() && t.field.about != ofVersion && t.field.about != ofMember {
			p.fail(at, fmt.Sprintf("%s compares times, versions and members of inputs and outputs", at.text), "write = or in (…)")
		}
		p.advance()
		p.value(t)
	case at.is(other, "=="):
		p.fail(at, "== is not part of the language", "write =")
	case at.kind == end:
		p.fail(at, "the condition is not complete", "say what the field is: = docs, != docs, in (docs, web), exists or not exists")
	default:
		p.fail(at, fmt.Sprintf("%q does not compare", problem.Clip(at.text, 60)), "write =, !=, <, <=, >, >=, in (…), not in (…), exists or not exists")
	}
}

// list reads the values after in.
func (p *parser) list(t *term) {
	p.advance()
	open := p.token
	if !open.is(symbol, "(") && p.fault == nil {
		p.fail(open, "the values behind in stand in parentheses", "write in (docs, web)")
	}
	for p.fault == nil {
		p.advance()
		p.value(t)
		switch {
		case p.fault != nil:
		case p.token.is(symbol, ","):
		case p.token.is(symbol, ")"):
			p.advance()
			return
		case p.token.kind == end:
			p.fail(open, "this list is not closed", "close it with )")
		default:
			p.fail(p.token, "values are separated by commas", "write in (docs, web); put a text with blanks in quotes")
		}
	}
}

func (p *parser) value(t *term) {
	at := p.token
	if p.values++; p.values > maxValues {
		p.fail(at, fmt.Sprintf("there are more than %d values", maxValues), "search by fewer values")
	}
	switch {
	case p.fault != nil:
		return
	case at.kind != word && at.kind != quoted:
		p.fail(at, "a value is missing here", "write one; put a text with blanks or signs in quotes")
		return
	}
	v := value{text: at.text, quoted: at.kind == quoted}
	v.number, v.numeric = readNumber(at.text)
	if v.quoted && t.field.about == ofMember && t.op == is {
		v.numeric = false // '7' is a text, like 007
	}
	switch {
	case t.field.about == ofStatus:
		p.status(at)
	case t.field.about == ofVersion && !(v.numeric && isVersion(at.text)):
		p.fail(at, fmt.Sprintf("%q is not the number of a version", problem.Clip(at.text, 60)), "write a whole number, such as 3")
	case t.field.about == ofMember && t.op != is && !v.numeric:
		p.fail(at, fmt.Sprintf("%q is not a number, and only numbers are less or more than one another", problem.Clip(at.text, 60)), "write a number, or compare by = or in (…)")
	case t.field.moment():
		v.at = p.moment(at)
	case at.text == "" && t.field.about != ofLabel && t.field.about != ofMember: // these may be empty
		p.fail(at, "the value is empty, and nothing equals that", "write not exists for what has none")
	}
	t.values = append(t.values, v)
	p.advance()
}

func isVersion(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

func (p *parser) status(at token) {
	var names []string
	for _, s := range flow.Stages() {
		if s.String() == at.text {
			return
		}
		names = append(names, s.String())
	}
	p.fail(at, fmt.Sprintf("there is no status %q", problem.Clip(at.text, 60)), problem.NearestOr(at.text, names, "one of"))
}

// moment reads a time. It is truncated to microseconds, like times in stores.
func (p *parser) moment(at token) time.Time {
	if at.keyword("now") {
		return p.now.Truncate(time.Microsecond)
	}
	if ago, ok := strings.CutPrefix(at.text, "-"); ok {
		if d, err := duration.Parse(ago); err == nil {
			return p.now.Add(-d).Truncate(time.Microsecond)
		}
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, at.text); err == nil {
			return t.UTC().Truncate(time.Microsecond)
		}
	}
	p.fail(at, fmt.Sprintf("%q is not a time", problem.Clip(at.text, 60)), "write -7d or -90m for how long ago, 2026-11-21T08:00:00Z, or a day as 2026-11-21 (from its start, in UTC)")
	return time.Time{}
}
