package definition

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser"

	"github.com/pawl-run/pawl/internal/definition/compute"
)

// perhaps lists functions that may not evaluate an argument, or that handle its error.
var perhaps = []string{operators.LogicalAnd, operators.LogicalOr, operators.Conditional, "default"}

// constant reports calls that always fail: calls with only constants, invalid patterns, and divisions by 0. It ignores calls that may not
// be evaluated.
func (c *typeCheck) constant(x ast.Expr, args []ast.Expr) {
	if c.unsure > 0 || len(args) == 0 {
		return
	}
	function, info := x.AsCall().FunctionName(), c.tree.SourceInfo()
	text, shown := "", c.text(x)
	switch {
	case (function == operators.Divide || function == operators.Modulo) && isZero(args[1]):
		c.fault(x, "", "%s divides by 0", shown)
		return
	case !slices.ContainsFunc(args, func(a ast.Expr) bool { return !isConstant(a) }):
		text, _ = parser.Unparse(x, info)
	case function == "@matches" && isConstant(args[1]): // the macro matches expands to this
		if pattern, err := parser.Unparse(args[1], info); err == nil {
			text, shown = "'a'.matches("+pattern+")", "matches("+pattern+")"
		}
	}
	if text == "" || len(text) > maxConstant || c.b.tried > constantsCost {
		return
	}
	c.b.tried += constantCost
	env, err := languages[c.scope]()
	if err != nil {
		return
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return // CEL's own check reports it for the whole expression
	}
	program, err := compute.NewProgram(env, checked)
	if err == nil {
		var cost int
		_, cost, err = program.RunQuickly(cel.NoVars())
		if c.b.tried += cost; cost > compute.QuickCost {
			return
		}
	}
	if err != nil {
		c.fault(x, "", "%s fails always: %s", shown, err)
	}
}

const (
	// maxConstant is the length of the longest call of constants that is evaluated.
	maxConstant = 1000
	// constantsCost limits the total cost of such calls in a file; further ones are left to the evaluation. lists.range(50000) allocates 400
	// KB before its cost is known: without a limit, 10,000 of them, each below QuickCost, took 4 GB.
	constantsCost = 200 * compute.QuickCost
	constantCost  = 100 // for the compilation, which allocates 10 KB
)

func isZero(x ast.Expr) bool {
	return x.Kind() == ast.LiteralKind && (x.AsLiteral() == types.IntZero || x.AsLiteral() == types.Uint(0))
}

// isConstant reports whether an expression is a literal, or a list of literals.
func isConstant(x ast.Expr) bool {
	switch x.Kind() {
	case ast.LiteralKind:
		return true
	case ast.ListKind:
		return !slices.ContainsFunc(x.AsList().Elements(), func(el ast.Expr) bool { return !isConstant(el) })
	}
	return false
}
