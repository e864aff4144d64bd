package definition

import (
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/ext"

	"github.com/pawl-run/pawl/internal/definition/compute"
)

// scope is the set of variables that an expression can use.
type scope uint8

const (
	scopeAction   scope = iota // input
	scopeWorkflow              // scopeAction, and labels, workflow
	scopeTask                  // scopeWorkflow, and env, tasks
	scopeIf                    // scopeTask, and success(), failed(), cancelled(), always()
	scopeItem                  // scopeTask, and item, index
	scopeRound                 // scopeTask, and round, previous
	scopeUntil                 // scopeTask, and round, output, status, error
	scopeTick                  // tick
	scopeSignal                // signal
	scopeSignals               // signals
	scopeAnswer                // answer
	scopeWait                  // signal, vars
	scopeHook                  // body, headers, query
	scopes
)

var scopeVariables = [scopes][]string{
	scopeAction:   {"input"},
	scopeWorkflow: {"input", "labels", "workflow"},
	scopeTask:     {"input", "labels", "workflow", "env", "tasks"},
	scopeIf:       {"input", "labels", "workflow", "env", "tasks"},
	scopeItem:     {"input", "labels", "workflow", "env", "tasks", "item", "index"},
	scopeRound:    {"input", "labels", "workflow", "env", "tasks", "round", "previous"},
	scopeUntil:    {"input", "labels", "workflow", "env", "tasks", "round", "output", "status", "error"},
	scopeTick:     {"tick"},
	scopeSignal:   {"signal"},
	scopeSignals:  {"signals"},
	scopeAnswer:   {"answer"},
	scopeWait:     {"signal", "vars"},
	scopeHook:     {"body", "headers", "query"},
}

const maxExpression = 8 << 10 // characters of one expression

// The functions of `if` are macros for these variables, since a function cannot access variables. Expressions cannot name the variables,
// because of the @.
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
	opts := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(&env.LibrarySubset{ExcludeFunctions: []*env.Function{{Name: "matches"}}})),
		cel.OptionalTypes(),
		cel.EnableIdentifierEscapeSyntax(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserRecursionLimit(100),
		cel.ParserErrorRecoveryLimit(4),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ExpressionNodeLimit(2_000),
		ext.Bindings(), ext.Strings(ext.StringsVersion(0)), ext.Math(), ext.Encoders(ext.EncodersVersion(0)), ext.TwoVarComprehensions(),
	}
	return cel.NewCustomEnv(append(opts, compute.Functions()...)...)
})

// languages has the CEL environments of the scopes. Creating one takes milliseconds.
var languages = [scopes]func() (*cel.Env, error){}

func init() {
	for s := range scopes {
		languages[s] = sync.OnceValues(func() (*cel.Env, error) { return environment(s) })
	}
}

func environment(s scope) (*cel.Env, error) {
	common, err := base()
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
	return common.Extend(opts...)
}

func variableType(name string) *cel.Type {
	switch name {
	case "tasks":
		return cel.MapType(cel.StringType, cel.DynType)
	case "labels", "env", "workflow", "headers", "query":
		return cel.MapType(cel.StringType, cel.StringType)
	case "index", "round":
		return cel.IntType
	case "status":
		return cel.StringType
	}
	return cel.DynType
}
