package definition

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/duration"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/problem"
)

const (
	maxName        = 100
	maxTasks       = 10_000
	maxNeeds       = 200_000 // in all
	maxLabels      = 64
	maxEnv         = 1000
	maxProblems    = 500
	maxExpressions = 2_000 // different ones, not counting plain paths
	maxTimeout     = 366 * 24 * time.Hour
)

// builder builds definitions from values and collects all errors.
type builder struct {
	file     string
	src      []byte
	lines    []int // offset of each line's start, computed on first use
	problems Problems
	// trusted is set for documents that Parse accepted before: expressions are compiled on first use.
	trusted bool
	// languages report whether a language exists that is not built in.
	languages []func(name string) bool
	most      payload.Ceilings // of the limits of one program

	shared   map[sharedKey]*compiled
	compiles int
	tried    int // cost of the calls of constants so far: see constantsCost
	mentions []mention
	// The known types of variables of the current document and task, or nil if they are unknown.
	inputType, itemType, signalType *typed
	tasks                           map[string]bool // their names
	taskNames                       *problem.Names  // the same, made when a name is not among them
}

type sharedKey struct {
	text  string
	scope scope
}

// mention is an expression whose task references are checked once the graph is complete. task is the index of its task, or noTask.
type mention struct {
	expr *expression
	task int
	at   func(line, column int) Position
}

// noTask is the task of an expression outside of any task, for example in a workflow's outputs, which may name every task.
const noTask = -1

func (b *builder) fail(v *value, path, fix, format string, args ...any) {
	b.failAt(b.place(v), path, fix, format, args...)
}

// place returns the position of a value; for nil only the file.
func (b *builder) place(v *value) Position {
	if v == nil {
		return Position{File: b.file}
	}
	return Position{b.file, v.line, v.column}
}

func (b *builder) failAt(at Position, path, fix, format string, args ...any) {
	if len(b.problems) < maxProblems {
		b.problems = append(b.problems, Problem{File: at.File, Line: at.Line, Column: at.Column, Path: path, Message: fmt.Sprintf(format, args...), Fix: fix})
	}
}

// object checks that v is an object and has only known keys.
func (b *builder) object(v *value, path string, known []string) bool {
	if v.kind != objectValue {
		b.fail(v, path, "", "want an object, not %s", v.kind)
		return false
	}
	for _, f := range v.fields {
		if !slices.Contains(known, f.name) {
			b.failAt(Position{b.file, f.line, f.column}, path, offerField(f.name, known), "unknown field %q", problem.Clip(f.name, 60))
		}
	}
	return true
}

// text reads a string of at most most bytes.
func (b *builder) text(v *value, path string, most int) string {
	if v == nil {
		return ""
	}
	if v.kind != textValue {
		fix := ""
		if v.kind == numberValue || v.kind == boolValue {
			fix = fmt.Sprintf("quote it: %q", v.text)
		}
		b.fail(v, path, fix, "want a string, not %s", v.kind)
		return ""
	}
	if len(v.text) > most {
		b.fail(v, path, "shorten it", "the text has %d bytes; at most %d are allowed", len(v.text), most)
		return ""
	}
	return v.text
}

// plainText reads a text in which expressions are not evaluated.
func (b *builder) plainText(v *value, path string, most int) string {
	s := b.text(v, path, most)
	if strings.Contains(s, opening) {
		b.fail(v, path, "write the value itself", "expressions are not evaluated here")
		return ""
	}
	return s
}

// filledText is plainText that has a character. In a document that was stored before, an empty text counts as absent, as it did.
func (b *builder) filledText(v *value, path string, most int) string {
	if v != nil && v.kind == textValue && v.text == "" && !b.trusted {
		b.fail(v, path, "leave it out, or give it a value", "the text is empty")
	}
	return b.plainText(v, path, most)
}

// name reads an identifier that the document defines.
func (b *builder) name(v *value, path, what string) string {
	s := b.plainText(v, path, 10*maxName)
	if s == "" {
		if v != nil && v.kind == textValue {
			b.fail(v, path, "", "the %s is empty", what)
		}
		return ""
	}
	if why := badName(s); why != "" {
		b.fail(v, path, fmt.Sprintf("use at most %d lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit", maxName), "%q is not a %s: %s", problem.Clip(s, 60), what, why)
		return ""
	}
	return s
}

func badName(s string) string {
	if len(s) > maxName {
		return fmt.Sprintf("it has more than %d characters", maxName)
	}
	for i, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		case i > 0 && (r == '.' || r == '_' || r == '-'):
		default:
			return fmt.Sprintf("it has %q", r)
		}
	}
	return ""
}

// whole reads an integer in [low, high].
func (b *builder) whole(v *value, path string, low, high int) (int, bool) {
	if v == nil {
		return 0, false
	}
	n, err := strconv.Atoi(v.text)
	if v.kind != numberValue || err != nil && !strings.ContainsAny(v.text, "0123456789") {
		b.fail(v, path, fmt.Sprintf("write a whole number from %d to %d", low, high), "want a whole number, not %s", v.describe())
		return 0, false
	}
	if err != nil || n < low || n > high {
		b.fail(v, path, fmt.Sprintf("write a whole number from %d to %d", low, high), "%s is out of range", problem.Clip(v.text, 40))
		return 0, false
	}
	return n, true
}

func (v *value) describe() string {
	if v.kind == textValue {
		return fmt.Sprintf("the string %q", problem.Clip(v.text, 40))
	}
	return v.kind.String()
}

func (b *builder) boolean(v *value, path string) bool {
	if v == nil {
		return false
	}
	if v.kind != boolValue {
		b.fail(v, path, "write true or false", "want true or false, not %s", v.describe())
		return false
	}
	return v.text == "true"
}

func (b *builder) oneOf(v *value, path string, words ...string) string {
	s := b.filledText(v, path, 1000)
	if s == "" {
		return ""
	}
	if slices.Contains(words, s) {
		return s
	}
	b.fail(v, path, offerName(s, words, "write one of"), "%q is not one of %s", problem.Clip(s, 40), strings.Join(words, ", "))
	return ""
}

// duration reads a duration in (0, maxTimeout]; zero is allowed if zero is true.
func (b *builder) duration(v *value, path string, zero bool) time.Duration {
	if v == nil {
		return 0
	}
	s, read := v.text, duration.Number
	if v.kind != numberValue {
		read = duration.Parse
		if s = b.plainText(v, path, 1000); s == "" {
			if v.kind == textValue && v.text == "" {
				b.fail(v, path, "write it like 30s, 1m30s or 2d, or as a number of seconds", "the duration is empty")
			}
			return 0
		}
	}
	d, err := read(s)
	switch {
	case err != nil:
		b.fail(v, path, "", "%v", err)
	case d > maxTimeout:
		b.fail(v, path, "write at most 366d", "%s is too long", problem.Clip(s, 40))
	case d <= 0 && !zero:
		b.fail(v, path, "leave it out for the default, or write one such as 30s", "%s is too short: it must be more than nothing", problem.Clip(s, 40))
	default:
		return d
	}
	return 0
}

// template compiles a value with expressions of the given scope; task is its task, for the check of references.
func (b *builder) template(v *value, path string, s scope, task int) *Template {
	if v == nil {
		return nil
	}
	return &Template{root: b.part(v, path, s, task), field: path}
}

func (b *builder) part(v *value, path string, s scope, task int) part {
	p := part{}
	switch v.kind {
	case textValue:
		return b.textPart(v, path, s, task)
	case listValue:
		p.list = make([]part, len(v.list))
		constant := true
		for i, el := range v.list {
			p.list[i] = b.part(el, path+"["+strconv.Itoa(i)+"]", s, task)
			constant = constant && p.list[i].constant != nil
		}
		if constant {
			return part{constant: p.fixed()}
		}
		return p
	case objectValue:
		// In the order of the canonical form: a parsed definition and the same one read from the store write the same payload.
		p.fields = make([]fieldPart, len(v.fields))
		constant := true
		for i, f := range v.ordered() {
			if strings.Contains(f.name, opening) {
				b.failAt(Position{b.file, f.line, f.column}, path, "build the object in the expression: ${{ {key: value} }}", "expressions are not evaluated in keys")
			}
			p.fields[i] = fieldPart{f.name, b.part(f.value, problem.Join(path, f.name), s, task)}
			constant = constant && p.fields[i].value.constant != nil
		}
		if constant {
			return part{constant: p.fixed()}
		}
		return p
	}
	return part{constant: v.appendJSON(nil)}
}

// fixed returns the value of a list or object if all its parts are constant.
func (p *part) fixed() json.RawMessage {
	b := []byte{'['}
	if p.list == nil {
		b[0] = '{'
	}
	for i := range p.list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, p.list[i].constant...)
	}
	for i := range p.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(jsonvalue.AppendText(b, p.fields[i].name), ':'), p.fields[i].value.constant...)
	}
	if p.list == nil {
		return append(b, '}')
	}
	return append(b, ']')
}

func (b *builder) textPart(v *value, path string, s scope, task int) part {
	if !strings.Contains(v.text, opening) {
		b.placeholders(v, v.text, path, s)
		return part{constant: jsonvalue.AppendText(nil, v.text)}
	}
	segs, nth, err := scan(v.text)
	if err != nil {
		b.failAt(b.expressionAt(v, nth)(1, -len(opening)), path, "write ${{ expression }}, or $${{ for the characters themselves", "%v", err)
		return part{constant: jsonvalue.AppendText(nil, v.text)}
	}
	if len(segs) == 1 && !segs[0].expr {
		return part{constant: jsonvalue.AppendText(nil, segs[0].text)}
	}
	parts := make([]part, len(segs))
	for i, seg := range segs {
		if !seg.expr {
			b.placeholders(v, seg.text, path, s)
			parts[i] = part{constant: []byte(seg.text)}
			continue
		}
		at := b.expressionAt(v, seg.nth)
		lead := len(seg.text) - len(strings.TrimLeft(seg.text, " \t\r\n"))
		parts[i] = part{expr: b.expression(seg.text, path, s, task, shift(at, seg.text[:lead]))}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return part{text: parts}
}

// bareBraces matches the placeholders of other systems that name an input or a task.
var bareBraces = regexp.MustCompile(`(^|[^$]){{-? *(inputs?|params|tasks)\.([A-Za-z_][A-Za-z0-9_-]*)[^{}]*}}`)

// placeholders reports {{ inputs.x }} in a text in which ${{ input.x }} would be evaluated: the text would be passed on unchanged. Only
// braces that name an input or a task are reported, because texts for template engines contain such braces as well.
func (b *builder) placeholders(v *value, text, path string, s scope) {
	if b.trusted || !slices.Contains(scopeVariables[s], "input") || !strings.Contains(text, "{{") {
		return
	}
	m := bareBraces.FindStringSubmatch(text)
	if m == nil {
		return
	}
	root, name := "input", m[3]
	if m[2] == "tasks" {
		if root = "tasks"; !b.tasks[name] {
			return
		}
	} else if b.inputType != nil && b.inputType.fields != nil && b.inputType.fields[name] == nil {
		return
	}
	b.fail(v, path, fmt.Sprintf(`write ${{ %s%s }}; or ${{ "{{" }} for braces that are meant as they are`, root, step{name: name}.suffix()),
		"%s is not an expression: the text has it as it stands", problem.Clip(strings.TrimLeft(m[0], m[1]), 60))
}

// expression makes an expression and compiles it unless the document is trusted.
func (b *builder) expression(text, path string, s scope, task int, at func(line, column int) Position) *expression {
	text = strings.TrimSpace(text)
	key := sharedKey{text, s}
	c := b.shared[key]
	if c == nil {
		c = newCompiled(text, s)
		c.keep = !b.trusted
		if b.shared == nil {
			b.shared = map[sharedKey]*compiled{}
		}
		b.shared[key] = c
		if c.path == nil {
			b.compiles++
		}
	}
	e := &expression{field: path, compiled: c}
	if b.trusted || len(b.problems) >= maxProblems {
		return e
	}
	if b.compiles > maxExpressions {
		if b.compiles == maxExpressions+1 {
			b.failAt(at(1, 0), path, "compute in tasks, or split the file", "the file has more than %d different expressions", maxExpressions)
			b.compiles++
		}
		return e
	}
	e.compile()
	for _, i := range slices.Concat(c.issues, b.typeFaults(c)) {
		b.failAt(at(i.line, i.column-indent(text, i.line)), path, i.fix, "%s", i.message)
	}
	b.mentions = append(b.mentions, mention{e, task, at})
	return e
}
