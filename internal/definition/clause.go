package definition

import (
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser"

	"github.com/pawl-run/pawl/api"
)

// Explain evaluates every part of a condition separately.
func (c *Condition) Explain(v *Vars) []api.RuleClause {
	parts := c.parts()
	if len(parts) == 0 {
		return []api.RuleClause{c.clause(v)}
	}
	all := make([]api.RuleClause, len(parts))
	for i, p := range parts {
		k := Condition{expr: c.part(p.text)}
		all[i] = k.clause(v)
		for _, side := range p.sides {
			raw, err := c.part(side).eval(v)
			if err != nil {
				continue // the error is part of the clause
			}
			all[i].Values = append(all[i].Values, api.RuleValue{Text: side, Value: raw})
		}
	}
	return all
}

func (c *Condition) clause(v *Vars) api.RuleClause {
	holds, err := c.Eval(v)
	k := api.RuleClause{Text: c.Text(), Holds: holds}
	if err != nil {
		k.Error = err.Error()
	}
	return k
}

// Text returns the condition as it was written; "" if there is none.
func (c *Condition) Text() string {
	if c.expr == nil {
		return ""
	}
	return c.expr.text
}

func (c *Condition) part(text string) *expression {
	return &expression{field: c.expr.field, compiled: newCompiled(text, c.expr.scope)}
}

// conjunct is a part of a condition, with the sides of its comparison that are not constants.
type conjunct struct {
	text  string
	sides []string
}

// tracking has the environments of the scopes with macro calls recorded as written: a part of a condition is shown as its author wrote it,
// not as the comprehension into which CEL expands has() or exists().
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

// tree returns the syntax tree of a condition; nil if there is none.
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

// parts returns the operands of the condition's &&; none if they cannot be separated.
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

// operands returns the operands of x && y && z, or of x || y || z.
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

// Constants returns the texts with which the condition compares paths: if it holds, the value at each path is one of them. Comparisons
// within || or ! are left out, unless each side of the || compares the same path. Callers must not change the result.
func (c *Condition) Constants() map[string][]string {
	t := c.tree()
	if t == nil {
		return nil
	}
	c.expr.taken.Do(func() {
		all := map[string][]string{}
		for _, x := range operands(t.Expr(), operators.LogicalAnd) {
			path, texts := textsOf(x)
			if path == "" {
				continue
			}
			if before, twice := all[path]; twice {
				texts = slices.DeleteFunc(texts, func(v string) bool { return !slices.Contains(before, v) })
			}
			all[path] = texts
		}
		c.expr.constants = all
	})
	return c.expr.constants
}

// textsOf reads PATH == "a", PATH in ["a", "b"], or several of these for one path joined by ||. For any other expression the path is "".
func textsOf(x ast.Expr) (path string, texts []string) {
	if x.Kind() != ast.CallKind || x.AsCall().IsMemberFunction() {
		return "", nil
	}
	args := x.AsCall().Args()
	switch x.AsCall().FunctionName() {
	case operators.LogicalOr:
		for _, side := range operands(x, operators.LogicalOr) {
			of, more := textsOf(side)
			if of == "" || path != "" && of != path {
				return "", nil
			}
			path, texts = of, append(texts, more...)
		}
		return path, texts
	case operators.Equals:
		if args[0].Kind() == ast.LiteralKind {
			args = []ast.Expr{args[1], args[0]}
		}
		text, ok := textIn(args[1])
		if !ok {
			return "", nil
		}
		return pathOf(args[0]), []string{text}
	case operators.In:
		if args[1].Kind() != ast.ListKind {
			return "", nil
		}
		for _, el := range args[1].AsList().Elements() {
			text, ok := textIn(el)
			if !ok {
				return "", nil
			}
			texts = append(texts, text)
		}
		return pathOf(args[0]), texts
	}
	return "", nil
}

func textIn(x ast.Expr) (string, bool) {
	if x.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := x.AsLiteral().(types.String)
	return string(text), ok
}

// pathOf writes a.b["c"] as a.b.c, and a name that is not an identifier as a.b["x y"]; it returns "" for an expression that is not a path.
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
			operand, name, ok := subscripted(x)
			if !ok || x.AsCall().FunctionName() != operators.Index {
				return "" // a[?"b"] is an optional value, not a path
			}
			names = append(names, name)
			x = operand
		}
	}
}
