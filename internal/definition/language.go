package definition

import (
	"fmt"
	"math"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
)

// scope says which variables an expression may name.
type scope uint8

const (
	scopeAction   scope = iota // input
	scopeWorkflow              // and labels, workflow
	scopeTask                  // and env, tasks
	scopeIf                    // and success(), failed(), cancelled(), always()
	scopeItem                  // scopeTask, and item, index
	scopes
)

var scopeVariables = [scopes][]string{
	scopeAction:   {"input"},
	scopeWorkflow: {"input", "labels", "workflow"},
	scopeTask:     {"input", "labels", "workflow", "env", "tasks"},
	scopeIf:       {"input", "labels", "workflow", "env", "tasks"},
	scopeItem:     {"input", "labels", "workflow", "env", "tasks", "item", "index"},
}

// The bounds of one evaluation. A unit of cost is about one operation, or ten
// bytes of text; costLimit units take well under 0.1 s.
const (
	costLimit     = 1_000_000
	maxExpression = 16 << 10 // characters of one expression
	maxRange      = 100_000  // elements that lists.range makes
	// MaxResult is how large the JSON text of one evaluated template may be, in bytes.
	MaxResult = 16 << 20
)

// The functions of `if` are macros for these variables, whose names nobody can
// write: a function cannot see variables.
const (
	identSuccess   = "@success"
	identFailed    = "@failed"
	identCancelled = "@cancelled"
	identAlways    = "@always"
)

var statusFunctions = map[string]string{
	"success": identSuccess, "failed": identFailed, "cancelled": identCancelled, "always": identAlways,
}

var base = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.OptionalTypes(),
		cel.EnableIdentifierEscapeSyntax(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserRecursionLimit(100),
		cel.ParserErrorRecoveryLimit(4),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ExpressionNodeLimit(20_000),
		cel.RegexProgramSizeLimit(1000),
		ext.Bindings(), ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(maxRange)), ext.Math(), ext.Sets(),
		ext.Encoders(), ext.Regex(), ext.TwoVarComprehensions(),
		cel.Function("json", cel.Overload("json_dyn", []*cel.Type{cel.DynType}, cel.StringType, cel.UnaryBinding(toText))),
		cel.Function("parse_json", cel.Overload("parse_json_string", []*cel.Type{cel.StringType}, cel.DynType, cel.UnaryBinding(fromText))),
		cel.Function("default", cel.Overload("default_dyn_dyn", []*cel.Type{cel.DynType, cel.DynType}, cel.DynType,
			cel.BinaryBinding(orDefault), cel.OverloadIsNonStrict())),
		cel.Function("sum", cel.Overload("sum_list", []*cel.Type{cel.ListType(cel.DynType)}, cel.DynType, cel.UnaryBinding(sum))),
	)
})

// languages are the environments of the scopes. Making one takes milliseconds.
var languages = [scopes]func() (*cel.Env, error){}

func init() {
	for s := range scopes {
		languages[s] = sync.OnceValues(func() (*cel.Env, error) { return environment(s) })
	}
}

func environment(s scope) (*cel.Env, error) {
	env, err := base()
	if err != nil {
		return nil, err
	}
	var opts []cel.EnvOption
	for _, name := range scopeVariables[s] {
		opts = append(opts, cel.Variable(name, variableType(name)))
	}
	if s == scopeIf {
		for name, ident := range statusFunctions {
			opts = append(opts, cel.Variable(ident, cel.BoolType), cel.Macros(cel.GlobalMacro(name, 0,
				func(f cel.MacroExprFactory, _ ast.Expr, _ []ast.Expr) (ast.Expr, *cel.Error) {
					return f.NewIdent(ident), nil
				})))
		}
	}
	return env.Extend(opts...)
}

func variableType(name string) *cel.Type {
	switch name {
	case "tasks":
		return cel.MapType(cel.StringType, cel.DynType)
	case "labels", "env", "workflow":
		return cel.MapType(cel.StringType, cel.StringType)
	case "index":
		return cel.IntType
	}
	return cel.DynType
}

func toText(v ref.Val) ref.Val {
	raw, err := encode(v)
	if err != nil {
		return types.WrapErr(fmt.Errorf("json: %w", err))
	}
	return types.String(raw)
}

func fromText(v ref.Val) ref.Val {
	s, ok := v.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	if s == "" {
		return types.NewErr("parse_json: the text is empty")
	}
	val, err := decode([]byte(s))
	if err != nil {
		return types.WrapErr(fmt.Errorf("parse_json: %w", err))
	}
	return types.DefaultTypeAdapter.NativeToValue(val)
}

// orDefault gives y for an x that is null, absent or in error.
func orDefault(x, y ref.Val) ref.Val {
	switch x := x.(type) {
	case *types.Err, types.Null:
		return y
	case *types.Optional:
		if !x.HasValue() {
			return y
		}
		return x.GetValue()
	}
	return x
}

// sum adds whole numbers exactly, and everything as floats once one is.
func sum(v ref.Val) ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	var whole int64
	var total float64
	exact := true
	for it := list.Iterator(); it.HasNext() == types.True; {
		switch n := it.Next().(type) {
		case types.Int:
			if next := whole + int64(n); (next > whole) == (n > 0) {
				whole = next
			} else if exact {
				return types.NewErr("sum: integer overflow")
			}
			total += float64(n)
		case types.Uint:
			if n > math.MaxInt64 {
				return types.NewErr("sum: integer overflow")
			}
			whole += int64(n)
			total += float64(n)
		case types.Double:
			exact = false
			total += float64(n)
		default:
			return types.NewErr("sum: %v is not a number", n.Type())
		}
	}
	if exact {
		return types.Int(whole)
	}
	return types.Double(total)
}

// prices charges our own functions for the text they read or write.
type prices struct{}

// CallCost implements CEL's ActualCostEstimator; nil leaves the price to CEL.
func (prices) CallCost(_, overload string, args []ref.Val, result ref.Val) *uint64 {
	var n uint64
	switch overload {
	case "json_dyn":
		n = textCost(result)
	case "parse_json_string":
		n = textCost(args[0])
	case "sum_list":
		if l, ok := args[0].(traits.Sizer); ok {
			if size, ok := l.Size().(types.Int); ok && size > 0 {
				n = uint64(size)
			}
		}
	default:
		return nil
	}
	n++
	return &n
}

func textCost(v ref.Val) uint64 {
	s, ok := v.(types.String)
	if !ok {
		return 0
	}
	return uint64(len(s)) / 10
}
