package definition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-run/pawl/internal/definition/compute"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// Template is a JSON value with expressions in it. It is immutable and safe
// for concurrent use.
//
// A string that is a single expression becomes the expression's value, with its type. A string with text around its expressions becomes
// text: strings unchanged, null as "", everything else as JSON. `$${{` stands for `${{`.
type Template struct {
	root  part
	field string
}

// part is one node of a template; exactly one of the fields is set.
type part struct {
	constant json.RawMessage
	expr     *expression
	text     []part // parts of mixed text; a constant among them is plain text, not JSON
	list     []part
	fields   []fieldPart
}

type fieldPart struct {
	name  string
	value part
}

// Constant returns the value of a template without expressions.
func (t *Template) Constant() (json.RawMessage, bool) {
	return t.root.constant, t.root.constant != nil
}

// constantOr is Constant; a template that there is not has the value none.
func (t *Template) constantOr(none json.RawMessage) (json.RawMessage, bool) {
	if t == nil {
		return none, true
	}
	return t.Constant()
}

// Eval returns the template's value. An error is an *EvalError.
func (t *Template) Eval(v *Vars) (json.RawMessage, error) {
	if t.root.constant != nil {
		return t.root.constant, nil
	}
	if t.root.expr != nil {
		return t.root.expr.eval(v)
	}
	before, counted := v.bound()
	b, err := t.root.append(nil, v)
	v.unbound(before, counted)
	if err != nil {
		return nil, err
	}
	if len(b) > compute.MaxResult {
		return nil, &EvalError{Field: t.field, Expression: "…", Err: compute.ErrTooLarge}
	}
	return b, nil
}

// Text returns the template's value as text, by the rules of mixed text.
func (t *Template) Text(v *Vars) (string, error) {
	raw, err := t.Eval(v)
	if err != nil {
		return "", err
	}
	return plain(raw), nil
}

// Texts returns the value of a template for an object, with each member as text.
func (t *Template) Texts(v *Vars) (map[string]string, error) {
	m := make(map[string]string, len(t.root.fields))
	if t.root.constant == nil && t.root.expr == nil {
		before, counted := v.bound()
		defer v.unbound(before, counted)
		for _, f := range t.root.fields {
			raw, err := f.value.eval(v)
			if err != nil {
				return nil, err
			}
			m[f.name] = plain(raw)
		}
		return m, nil
	}
	raw, err := t.Eval(v)
	if err != nil {
		return nil, err
	}
	err = strictjson.Members(raw, func(name string, value []byte) error {
		m[name] = plain(value)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: want an object of strings: %w", t.field, err)
	}
	return m, nil
}

// Refs returns the upstream tasks to which the template's expressions refer, in order. all means that one uses `tasks` as a whole, so that
// every upstream task may matter.
func (t *Template) Refs() (refs []TaskRef, all bool) {
	var f facts
	t.root.collect(&f)
	return f.refs, f.all
}

// UsesAll reports whether an expression of the template uses `tasks` as a whole; nil uses none.
func (t *Template) UsesAll() bool { return t != nil && t.root.usesAll() }

func (p *part) usesAll() bool {
	if p.expr != nil {
		p.expr.compile()
		return p.expr.facts.all
	}
	for i := range p.text {
		if p.text[i].usesAll() {
			return true
		}
	}
	for i := range p.list {
		if p.list[i].usesAll() {
			return true
		}
	}
	for i := range p.fields {
		if p.fields[i].value.usesAll() {
			return true
		}
	}
	return false
}

func (p *part) collect(f *facts) {
	if p.expr != nil {
		p.expr.compile()
		f.add(&p.expr.facts)
	}
	for _, parts := range [][]part{p.text, p.list} {
		for i := range parts {
			parts[i].collect(f)
		}
	}
	for i := range p.fields {
		p.fields[i].value.collect(f)
	}
}

func (f *facts) add(g *facts) {
	f.all = f.all || g.all
	for _, r := range g.refs {
		i := slices.IndexFunc(f.refs, func(o TaskRef) bool { return o.Task == r.Task })
		if i < 0 {
			f.refs = append(f.refs, r)
			continue
		}
		f.refs[i].Output = f.refs[i].Output || r.Output
	}
}

func (p *part) eval(v *Vars) (json.RawMessage, error) {
	if p.constant != nil {
		return p.constant, nil
	}
	if p.expr != nil {
		return p.expr.eval(v)
	}
	return p.append(nil, v)
}

func (p *part) append(b []byte, v *Vars) ([]byte, error) {
	var err error
	switch {
	case p.constant != nil:
		return append(b, p.constant...), nil
	case p.expr != nil:
		raw, err := p.expr.eval(v)
		return append(b, raw...), err
	case p.text != nil:
		return p.appendMixed(b, v)
	case p.list != nil:
		b = append(b, '[')
		for i := range p.list {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = p.list[i].append(b, v); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	b = append(b, '{')
	for i := range p.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsonvalue.AppendText(b, p.fields[i].name), ':')
		if b, err = p.fields[i].value.append(b, v); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func (p *part) appendMixed(b []byte, v *Vars) ([]byte, error) {
	var s strings.Builder
	for i := range p.text {
		t := &p.text[i]
		if t.expr == nil {
			s.Write(t.constant)
			continue
		}
		raw, err := t.expr.eval(v)
		if err != nil {
			return nil, err
		}
		s.WriteString(plain(raw))
		if s.Len() > compute.MaxResult {
			return nil, t.expr.failed(compute.ErrTooLarge)
		}
	}
	return jsonvalue.AppendText(b, s.String()), nil
}

// plain returns the text of a JSON value: a string without its quotes, null as "".
func plain(raw json.RawMessage) string {
	switch jsonvalue.KindOf(raw) {
	case "string":
		if s, err := jsontext.AppendUnquote(nil, bytes.TrimSpace(raw)); err == nil {
			return string(s)
		}
	case "null":
		return ""
	}
	return string(raw)
}

// Condition is the `if` of a task or a rule, or the `until` of a repeat. It is immutable and safe for concurrent use.
type Condition struct {
	expr *expression // nil means success()
}

// Survives reports whether the condition may hold although something failed: when its workflow fails, such a task is not skipped without
// evaluating the condition.
func (c *Condition) Survives() bool {
	if c.expr == nil {
		return false
	}
	c.expr.compile()
	return c.expr.facts.survives
}

// Refs returns the upstream tasks to which the condition refers; see Template.Refs.
func (c *Condition) Refs() (refs []TaskRef, all bool) {
	if c.expr == nil {
		return nil, false
	}
	c.expr.compile()
	return c.expr.facts.refs, c.expr.facts.all
}

// UsesAll reports whether the condition uses `tasks` as a whole.
func (c *Condition) UsesAll() bool {
	_, all := c.Refs()
	return all
}

// Eval reports whether the task runs. A condition that does not call success(), failed(), cancelled() or always() holds only after success.
// An error is an *EvalError.
func (c *Condition) Eval(v *Vars) (bool, error) {
	if c.expr == nil {
		return v.Success, nil
	}
	c.expr.compile()
	if !c.expr.facts.status && !v.Success {
		return false, nil
	}
	if c.expr.sole != nil {
		return c.expr.sole(v), nil
	}
	if c.expr.path != nil {
		raw, err := c.expr.eval(v)
		if err != nil {
			return false, err
		}
		switch s := string(raw); s {
		case "true", "false":
			return s == "true", nil
		}
		return false, c.expr.failed(fmt.Errorf("the value is %s, not true or false: compare it with something", article(jsonvalue.KindOf(raw))))
	}
	val, err := c.expr.run(v)
	if err != nil {
		return false, err
	}
	b, ok := val.(types.Bool)
	if !ok {
		return false, c.expr.failed(fmt.Errorf("the value is of type %s, not true or false: compare it with something", val.Type().TypeName()))
	}
	return bool(b), nil
}
