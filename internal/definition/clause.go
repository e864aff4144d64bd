package definition

import (
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/parser"
)

// Clause is one part of a condition, which holds when all of its parts do.
type Clause struct {
	Text  string
	Holds bool
	Err   error // why it could not be evaluated
	// Values are the sides of its comparison that are no constants; empty where the part is no comparison.
	Values []Value
}

// Value is an expression and its value, as JSON.
type Value struct{ Text, Value string }

// Explain evaluates every part of a condition by itself.
func (c *Condition) Explain(v *Vars) []Clause {
	parts := c.parts()
	if len(parts) == 0 {
		holds, err := c.Eval(v)
		return []Clause{{Text: c.Text(), Holds: holds, Err: err}}
	}
	all := make([]Clause, len(parts))
	for i, p := range parts {
		k := Condition{expr: c.part(p.text)}
		all[i].Text = p.text
		all[i].Holds, all[i].Err = k.Eval(v)
		for _, side := range p.sides {
			raw, err := c.part(side).eval(v)
			if err != nil {
				continue // the clause has the error
			}
			all[i].Values = append(all[i].Values, Value{side, string(raw)})
		}
	}
	return all
}

// Text is the condition as it was written; "" when there is none.
func (c *Condition) Text() string {
	if c.expr == nil {
		return ""
	}
	return c.expr.text
}

func (c *Condition) part(text string) *expression {
	return &expression{field: c.expr.field, compiled: newCompiled(text, c.expr.scope)}
}

// conjunct is a part of a condition, and the sides of its comparison that are no constants.
type conjunct struct {
	text  string
	sides []string
}

// tracking are the environments of the scopes with macro calls recorded as they were written: a part of a condition is
// shown as its author wrote it, not as the comprehension that CEL made of has() or exists().
var tracking = [scopes]func() (*cel.Env, error){}

func init() {
	for s := range scopes {
		tracking[s] = sync.OnceValues(func() (*cel.Env, error) {
			env, err := languages[s]()
			if err != nil {
				return nil, err
			}
			return env.Extend(cel.EnableMacroCallTracking())
		})
	}
}

// tree is the syntax of a condition; nil where there is none.
func (c *Condition) tree() *ast.AST {
	if c.expr == nil {
		return nil
	}
	env, err := tracking[c.expr.scope]()
	if err != nil {
		return nil
	}
	parsed, issues := env.Parse(c.expr.text)
	if issues.Err() != nil {
		return nil
	}
	return parsed.NativeRep()
}

// parts are the operands of the condition's &&; none where they cannot be told apart.
func (c *Condition) parts() (all []conjunct) {
	t := c.tree()
	if t == nil {
		return nil
	}
	for _, x := range operands(t.Expr(), operators.LogicalAnd) {
		text, err := parser.Unparse(x, t.SourceInfo())
		if err != nil {
			return nil
		}
		k := conjunct{text: text}
		if compares(x) {
			for _, side := range x.AsCall().Args() {
				if side.Kind() == ast.LiteralKind || side.Kind() == ast.ListKind {
					continue
				}
				if text, err := parser.Unparse(side, t.SourceInfo()); err == nil {
					k.sides = append(k.sides, text)
				}
			}
		}
		all = append(all, k)
	}
	return all
}

func compares(x ast.Expr) bool {
	if x.Kind() != ast.CallKind {
		return false
	}
	switch x.AsCall().FunctionName() {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.In:
		return true
	}
	return false
}

// operands takes x && y && z, or x || y || z, apart.
func operands(x ast.Expr, operator string) []ast.Expr {
	if x.Kind() != ast.CallKind || x.AsCall().FunctionName() != operator {
		return []ast.Expr{x}
	}
	var all []ast.Expr
	for _, arg := range x.AsCall().Args() {
		all = append(all, operands(arg, operator)...)
	}
	return all
}

// Constants are the texts to which the condition compares paths: where it holds, the value at each path is one of them. What it
// says within || or ! about a path is left out, unless each side of the || is about the same path.
func (c *Condition) Constants() map[string][]string {
	all := map[string][]string{}
	for _, p := range c.Predicates() {
		if p.Is != OneOf || len(p.Numbers) > 0 || !p.Operand.IsPath() {
			continue
		}
		path, values := p.Operand.Text(), p.Texts
		if before, twice := all[path]; twice {
			values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !slices.Contains(before, v) })
		}
		all[path] = values
	}
	return all
}

// pathOf writes a.b["c"] as a.b.c, and what is no plain name as a.b["x y"]; "" for what is no path.
func pathOf(x ast.Expr) string {
	var names []string
	for {
		switch x.Kind() {
		case ast.IdentKind:
			var path strings.Builder
			path.WriteString(x.AsIdent())
			for _, name := range slices.Backward(names) {
				path.WriteString(step{name: name}.suffix())
			}
			return path.String()
		case ast.SelectKind:
			if x.AsSelect().IsTestOnly() {
				return ""
			}
			names = append(names, x.AsSelect().FieldName())
			x = x.AsSelect().Operand()
		default:
			operand, name, is := subscripted(x)
			if !is || x.AsCall().FunctionName() != operators.Index {
				return "" // a[?"b"] is an optional value, and no path
			}
			names = append(names, name)
			x = operand
		}
	}
}
