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

// Limits of one evaluation: together they stop a hostile expression within a tenth of a second. A unit of cost is about one operation, or
// ten bytes of text. CEL charges a call after it has returned, so no function may do more than about costLimit of work in one call:
// functions of CEL's libraries that could are replaced by limited ones (functions.go, price.go).
const (
	costLimit     = 1_000_000
	maxIterations = 300_000    // of all loops together
	maxVisits     = 30_000_000 // iterations times the nodes of the expression
	maxElements   = 100_000    // of a list that a function processes
	maxCompared   = 200_000    // elements, in all levels, of a value that is compared
	maxText       = 4 << 20    // bytes of a text that a function returns
	// MaxResult is the largest size in bytes of the JSON of one evaluated template.
	MaxResult = 16 << 20
	// QuickCost limits a quick evaluation, which ends hostile expressions within about a millisecond: comparisons, has() and a few function
	// calls need a hundredth of it.
	QuickCost = 5_000
)

// Program is an expression that is evaluated within these limits. The limits count work and size, never time, so that the same values
// always give the same result. It is safe for concurrent use.
type Program struct {
	program cel.Program
	turns   int // iterations of all its loops together: this limits nodes for which CEL charges nothing
	// quick is the same program limited to QuickCost; explaining is one whose errors name the operand types that a function does not accept.
	// They are made on first use, which few programs need.
	quick, explaining, explainingQuickly func() (cel.Program, error)
}

// NewProgram returns the program of an expression that env has checked.
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

// ended is a cancelled context. CEL checks it after as many iterations as a program may make, and then ends the evaluation. The cost limit
// would not end a loop whose body is free.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Run evaluates the program and returns its cost, which is positive even with an error. It adds a fix to errors of CEL that have none.
func (p *Program) Run(vars cel.Activation) (val ref.Val, cost int, err error) {
	val, cost, err = evaluate(p.program, vars)
	if err != nil {
		more, err := p.explained(err, vars, p.explaining)
		return nil, cost + more, err
	}
	return val, cost, nil
}

// RunQuickly is Run limited to QuickCost. If the cost is above that, the program needs more, and the result is not valid.
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

// isCut reports whether a limit ended an evaluation.
func isCut(err error) bool {
	return strings.Contains(err.Error(), interrupted) || strings.Contains(err.Error(), tooCostly)
}

func evaluate(program cel.Program, vars cel.Activation) (val ref.Val, cost int, err error) {
	val, details, err := program.ContextEval(ended, vars)
	cost = 1
	if details != nil && details.ActualCost() != nil {
		cost += int(min(*details.ActualCost(), costLimit))
	}
	return val, cost, err
}

// CEL's errors for an evaluation that a limit ended.
const (
	interrupted = "operation interrupted"
	tooCostly   = "cost limit exceeded"
)

// explained adds the fix to an error of CEL. cost is the cost of finding the fix, for which explaining is run: it computes the operands of
// a failed call again, including failed calls within them, so its limit may end it although the program itself failed early.
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
			return cost, err // the fix is part of it
		}
		return cost, fmt.Errorf("%w: the operator or function does not take values of these types; convert them with int(), double(), string() or json()", err)
	case strings.Contains(msg, "no such key"), strings.Contains(msg, "no such attribute"):
		return 0, fmt.Errorf("%w; default(x, y) gives y where x is absent", err)
	}
	return 0, err
}
