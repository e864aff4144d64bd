package compute

import (
	"context"
	"fmt"
	"strings"
	"sync"

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
	// QuickCost bounds the work of a quick evaluation, which ends hostile expressions within a millisecond or so: what comparisons, has() and
	// a few functions need is a hundredth of it.
	QuickCost = 5_000
)

// Program is an expression that is evaluated within the bounds. They are
// measured in work and size, never in time, so that the same values always give
// the same result. It is safe for concurrent use.
type Program struct {
	program cel.Program
	turns   int // of all its loops together: nodes that CEL charges nothing for take their time as well
	// quick is the same program within QuickCost, and explaining one whose errors name the types of what a function does not take. They are
	// made when they are first needed, by few programs.
	quick, explaining, explainingQuickly func() (cel.Program, error)
}

// NewProgram makes a program of an expression that env has checked.
func NewProgram(env *cel.Env, checked *cel.Ast) (*Program, error) {
	turns := min(maxIterations, maxVisits/max(1, ast.NodeCount(checked.NativeRep())))
	within := func(cost, turns int, more ...cel.ProgramOption) (cel.Program, error) {
		return env.Program(checked, append([]cel.ProgramOption{cel.EvalOptions(cel.OptOptimize), cel.CostLimit(uint64(cost)), cel.CostTracking(prices{}),
			cel.CustomDecoratorV2(boundComparison), cel.InterruptCheckFrequency(uint(turns))}, more...)...)
	}
	program, err := within(costLimit, turns)
	if err != nil {
		return nil, err
	}
	quickTurns := max(1, turns/(costLimit/QuickCost))
	explains := cel.CustomDecoratorV2(nameOperands)
	return &Program{
		program: program, turns: turns,
		quick:             sync.OnceValues(func() (cel.Program, error) { return within(QuickCost, quickTurns) }),
		explaining:        sync.OnceValues(func() (cel.Program, error) { return within(costLimit, turns, explains) }),
		explainingQuickly: sync.OnceValues(func() (cel.Program, error) { return within(QuickCost, quickTurns, explains) }),
	}, nil
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
	val, cost, err = evaluate(p.program, vars)
	if err != nil {
		more, err := p.explained(err, vars, p.explaining)
		return nil, cost + more, err
	}
	return val, cost, nil
}

// RunQuickly is Run within QuickCost. A cost beyond that says that the program takes more, and that the result is not its own.
func (p *Program) RunQuickly(vars cel.Activation) (val ref.Val, cost int, err error) {
	quick, err := p.quick()
	if err != nil {
		return nil, 1, err
	}
	val, cost, err = evaluate(quick, vars)
	if err == nil {
		return val, min(cost, QuickCost), nil
	}
	if isCut(err) {
		_, err = p.explained(err, vars, nil)
		return nil, QuickCost + 1, err
	}
	more, err := p.explained(err, vars, p.explainingQuickly)
	return nil, min(cost+more, QuickCost), err
}

// isCut reports whether a bound has ended an evaluation.
func isCut(err error) bool {
	return strings.Contains(err.Error(), interrupted) || strings.Contains(err.Error(), tooCostly)
}

// evaluate runs a program and returns what that has cost.
func evaluate(program cel.Program, vars cel.Activation) (val ref.Val, cost int, err error) {
	val, details, err := program.ContextEval(ended, vars)
	cost = 1
	if details != nil && details.ActualCost() != nil {
		cost += int(min(*details.ActualCost(), costLimit))
	}
	return val, cost, err
}

// How CEL says that a bound has ended an evaluation.
const (
	interrupted = "operation interrupted"
	tooCostly   = "cost limit exceeded"
)

// explained is an error of CEL with what to do about it. cost is that of finding it out, for which explaining is run: it computes the
// operands of a call that fails twice, and what these have in them again, so its bound may end it where the program itself has failed
// early.
func (p *Program) explained(err error, vars cel.Activation, explaining func() (cel.Program, error)) (cost int, _ error) {
	msg := err.Error()
	switch {
	case strings.Contains(msg, interrupted):
		return 0, fmt.Errorf("its loops take more than %d turns: do the work in a task, in code", p.turns)
	case strings.Contains(msg, tooCostly):
		return 0, fmt.Errorf("it takes more than %d operations: do the work in a task, in code", costLimit)
	case strings.Contains(msg, noOverload):
		if program, bad := explaining(); bad == nil {
			var again error
			if _, cost, again = evaluate(program, vars); again != nil && !isCut(again) {
				err = again
			}
		}
		if msg := err.Error(); strings.Contains(msg, "; ") {
			return cost, err // it says what to do
		}
		return cost, fmt.Errorf("%w: the operator or function does not take values of these types; convert them with int(), double(), string() or json()", err)
	case strings.Contains(msg, "no such key"), strings.Contains(msg, "no such attribute"):
		return 0, fmt.Errorf("%w; default(x, y) gives y where x is absent", err)
	}
	return 0, err
}
