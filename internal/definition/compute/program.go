package compute

import (
	"context"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types/ref"
)

// The bounds of one evaluation: together they stop a hostile expression within
// a tenth of a second. A unit of cost is about one operation, or ten bytes of
// text. CEL charges a call when it has returned, so no function may do more
// than about costLimit's worth of work at one go: those of CEL's own libraries
// that can are replaced by bounded ones (functions.go, price.go).
const (
	costLimit     = 1_000_000
	maxIterations = 300_000    // turns of all loops together
	maxVisits     = 30_000_000 // turns times the nodes of the expression
	maxElements   = 100_000    // of a list that a function works on
	maxCompared   = 200_000    // elements, of all levels, of a value that is compared
	maxText       = 4 << 20    // bytes of a text that a function makes
	// MaxResult is how large the JSON text of one evaluated template may be, in bytes.
	MaxResult = 16 << 20
)

// Program is an expression that is evaluated within the bounds. They are
// measured in work and size, never in time, so that the same values always give
// the same result. It is safe for concurrent use.
type Program struct {
	program cel.Program
	turns   int // of all its loops together: nodes that CEL charges nothing for take their time as well
}

// NewProgram makes a program of an expression that env has checked.
func NewProgram(env *cel.Env, checked *cel.Ast) (*Program, error) {
	turns := min(maxIterations, maxVisits/max(1, ast.NodeCount(checked.NativeRep())))
	program, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(costLimit), cel.CostTracking(prices{}),
		cel.CustomDecoratorV2(boundComparison), cel.InterruptCheckFrequency(uint(turns)))
	if err != nil {
		return nil, err
	}
	return &Program{program, turns}, nil
}

// ended is a context that has ended. CEL looks at it after as many turns as a
// program may make, so that the evaluation ends there: CEL charges nothing for
// a loop with a free body, and its cost limit would never end one.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Run evaluates the program and returns what that has cost, which is positive also with an error. Its errors say what
// to do where CEL's do not.
func (p *Program) Run(vars cel.Activation) (val ref.Val, cost int, err error) {
	val, details, err := p.program.ContextEval(ended, vars)
	cost = 1
	if details != nil && details.ActualCost() != nil {
		cost += int(min(*details.ActualCost(), costLimit))
	}
	if err == nil {
		return val, cost, nil
	}
	return nil, cost, p.explained(err)
}

// explained is an error of CEL with what to do about it.
func (p *Program) explained(err error) error {
	msg := err.Error()
	switch {
	case strings.Contains(msg, "operation interrupted"):
		return fmt.Errorf("its loops take more than %d turns: do the work in a task, in code", p.turns)
	case strings.Contains(msg, "cost limit exceeded"):
		return fmt.Errorf("it takes more than %d operations: do the work in a task, in code", costLimit)
	case strings.Contains(msg, "no such overload"):
		return fmt.Errorf("%w: the operator or function does not take values of these types; convert them with int(), double(), string() or json()", err)
	case strings.Contains(msg, "no such key"), strings.Contains(msg, "no such attribute"):
		return fmt.Errorf("%w: default(x, y) gives y where x is absent", err)
	}
	return err
}
