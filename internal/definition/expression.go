package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types/ref"

	"github.com/pawl-run/pawl/internal/definition/compute"
	"github.com/pawl-run/pawl/internal/problem"
)

// TaskRef is a reference to an upstream task in an expression.
type TaskRef struct {
	Task string
	// Output is false if only the status or the error is used.
	Output bool
}

// expression is one `${{ … }}` at one place. It is safe for concurrent use.
type expression struct {
	field string // its position in the document, such as "tasks.build.with.source"
	*compiled
}

// compiled is the text of an expression and the result of compiling it. All expressions of a document with the same text and scope share
// one.
type compiled struct {
	text  string
	scope scope
	path  *path // set if it is only a path

	once    sync.Once
	program *compute.Program
	result  *cel.Type
	tree    *ast.AST // kept for the check of types
	keep    bool     // keep the tree
	facts   facts
	sole    func(*Vars) bool // returns the value of a condition that is one function of `if`, possibly negated
	issues  []issue          // compile errors

	missed sync.Once
	paths  []path // of the expression, for errors

	taken     sync.Once
	constants map[string][]string // of a condition that was analysed
}

// issue is a compile error; Line counts from 1 and Column from 0, within the
// expression.
type issue struct {
	line, column int
	message, fix string
}

// facts are collected while an expression is compiled.
type facts struct {
	refs []TaskRef
	// all means that it uses `tasks` as a whole.
	all bool
	// status means that it calls a function of `if`; survives, that it may hold although something failed.
	status, survives bool
}

type EvalError struct {
	Field      string
	Expression string
	Err        error
}

func (e *EvalError) Error() string {
	return fmt.Sprintf("%s: ${{ %s }}: %v", e.Field, problem.Clip(e.Expression, 200), e.Err)
}

func (e *EvalError) Unwrap() error { return e.Err }

func newCompiled(text string, s scope) *compiled {
	e := &compiled{text: text, scope: s}
	if p, ok := parsePath(e.text); ok && slices.Contains(scopeVariables[s], p.root) {
		e.path = &p
		if p.root == "tasks" {
			e.facts.refs = []TaskRef{{Task: p.steps[0].name, Output: p.steps[1].name == "output"}}
		}
	}
	return e
}

// compile sets everything that needs CEL; for a path it does nothing.
func (e *compiled) compile() {
	if e.path != nil {
		return
	}
	e.once.Do(func() {
		env, err := languages[e.scope]()
		if err != nil {
			e.issues = []issue{{1, 0, err.Error(), ""}}
			return
		}
		checked, issues := env.Compile(e.text)
		if issues.Err() != nil {
			for _, err := range issues.Errors() {
				i := e.explain(err)
				// CEL's parser continues after an error, and often reports the same error again.
				if !slices.ContainsFunc(e.issues, func(o issue) bool { return o.message == i.message }) {
					e.issues = append(e.issues, i)
				}
				if strings.Contains(err.Message, soleEqualsSign) || isBrokenText(err.Message) {
					break // the rest cannot be read either
				}
			}
			return
		}
		e.result = checked.OutputType()
		if e.keep {
			e.tree = checked.NativeRep()
		}
		e.survey(checked.NativeRep().Expr(), false)
		e.sole = soleStatus(checked.NativeRep().Expr())
		e.program, err = compute.NewProgram(env, checked)
		if err != nil {
			e.issues = append(e.issues, issue{1, 0, err.Error(), ""})
		}
	})
}

// survey collects the facts from the tree; negated means that x is below an odd number of `!`.
func (e *compiled) survey(x ast.Expr, negated bool) {
	switch x.Kind() {
	case ast.IdentKind:
		e.ident(x.AsIdent(), negated)
	case ast.SelectKind:
		s := x.AsSelect()
		if name, ok := taskName(s.Operand()); ok {
			e.refer(name, s.FieldName())
			return
		}
		if name, ok := taskName(x); ok {
			e.mention(TaskRef{Task: name, Output: true})
			return
		}
		e.survey(s.Operand(), negated)
	case ast.CallKind:
		c := x.AsCall()
		if name, ok := taskName(x); ok {
			e.mention(TaskRef{Task: name, Output: true})
			return
		}
		if operand, field, ok := subscripted(x); ok {
			if name, ok := taskName(operand); ok {
				e.refer(name, field)
				return
			}
		}
		if c.IsMemberFunction() {
			e.survey(c.Target(), negated)
		}
		for _, arg := range c.Args() {
			e.survey(arg, negated != (c.FunctionName() == operators.LogicalNot))
		}
	case ast.ListKind:
		for _, el := range x.AsList().Elements() {
			e.survey(el, negated)
		}
	case ast.MapKind:
		for _, entry := range x.AsMap().Entries() {
			e.survey(entry.AsMapEntry().Key(), negated)
			e.survey(entry.AsMapEntry().Value(), negated)
		}
	case ast.StructKind:
		for _, f := range x.AsStruct().Fields() {
			e.survey(f.AsStructField().Value(), negated)
		}
	case ast.ComprehensionKind:
		c := x.AsComprehension()
		for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			e.survey(part, negated)
		}
	}
}

// soleStatus returns the value of an expression that is success(), failed(), cancelled() or always(), possibly negated, and nil for any
// other. Most conditions are such expressions, and CEL needs a microsecond where reading a field is enough.
func soleStatus(x ast.Expr) func(*Vars) bool {
	switch x.Kind() {
	case ast.IdentKind:
		switch x.AsIdent() {
		case identSuccess:
			return func(v *Vars) bool { return v.Success }
		case identFailed:
			return func(v *Vars) bool { return v.Failed }
		case identCancelled:
			return func(v *Vars) bool { return v.Cancelled }
		case identAlways:
			return func(*Vars) bool { return true }
		}
	case ast.CallKind:
		if c := x.AsCall(); c.FunctionName() == operators.LogicalNot && len(c.Args()) == 1 {
			if of := soleStatus(c.Args()[0]); of != nil {
				return func(v *Vars) bool { return !of(v) }
			}
		}
	}
	return nil
}

func (e *compiled) ident(name string, negated bool) {
	switch name {
	case "tasks":
		e.facts.all = true
	case identSuccess:
		e.facts.status = true
		e.facts.survives = e.facts.survives || negated
	case identFailed, identCancelled, identAlways:
		e.facts.status, e.facts.survives = true, true
	}
}

// refer records tasks.NAME.FIELD.
func (e *compiled) refer(name, field string) {
	switch field {
	case "status", "error":
		e.mention(TaskRef{Task: name})
	default:
		e.mention(TaskRef{Task: name, Output: true})
	}
	if !slices.Contains(taskFields, field) {
		e.issues = append(e.issues, badField(name, field))
	}
}

var taskFields = []string{"output", "status", "error"}

func badField(task, field string) issue {
	return issue{1, 0, fmt.Sprintf("tasks.%s has no %q", task, field), offerName(field, taskFields, "it has")}
}

func (e *compiled) mention(r TaskRef) {
	for i := range e.facts.refs {
		if e.facts.refs[i].Task == r.Task {
			e.facts.refs[i].Output = e.facts.refs[i].Output || r.Output
			return
		}
	}
	e.facts.refs = append(e.facts.refs, r)
}

// taskName returns NAME if x is tasks.NAME or tasks["NAME"].
func taskName(x ast.Expr) (string, bool) {
	if x.Kind() == ast.SelectKind {
		s := x.AsSelect()
		return s.FieldName(), isTasks(s.Operand())
	}
	operand, name, ok := subscripted(x)
	return name, ok && isTasks(operand)
}

func isTasks(x ast.Expr) bool { return x.Kind() == ast.IdentKind && x.AsIdent() == "tasks" }

// subscripted splits x["name"], x[?"name"] and x.?name.
func subscripted(x ast.Expr) (operand ast.Expr, name string, ok bool) {
	if x.Kind() != ast.CallKind {
		return nil, "", false
	}
	c := x.AsCall()
	switch c.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
	default:
		return nil, "", false
	}
	if len(c.Args()) != 2 || c.Args()[1].Kind() != ast.LiteralKind {
		return nil, "", false
	}
	name, ok = textIn(c.Args()[1])
	return c.Args()[0], name, ok
}

func (e *expression) eval(v *Vars) (json.RawMessage, error) {
	if e.path != nil {
		raw, err := e.path.eval(v)
		if err != nil {
			return nil, e.failed(err)
		}
		if err := v.Work.add(1 + e.path.searched(v)/bytesPerOperation); err != nil {
			return nil, e.failed(err)
		}
		return raw, nil
	}
	val, err := e.run(v)
	if err != nil {
		return nil, err
	}
	raw, err := compute.Encode(val)
	if err != nil {
		return nil, e.failed(err)
	}
	return raw, nil
}

func (e *expression) run(v *Vars) (ref.Val, error) {
	e.compile()
	if len(e.issues) > 0 {
		return nil, e.failed(errors.New(e.issues[0].message))
	}
	a := activation{v: v, refs: e.facts.refs}
	if e.facts.all {
		a.refs = make([]TaskRef, len(v.Upstream))
		for i, name := range v.Upstream {
			a.refs[i] = TaskRef{Task: name, Output: true}
		}
	}
	run := e.program.Run
	if v.Work.quick() {
		run = e.program.RunQuickly
	}
	val, cost, err := run(&a)
	if err := v.Work.add(cost); err != nil {
		return nil, e.failed(err)
	}
	if a.err != nil {
		return nil, e.failed(a.err)
	}
	if err != nil {
		return nil, e.failed(e.located(err, v))
	}
	return val, nil
}

// noSuchKey is CEL's error for a missing member, which does not name the existing members.
const noSuchKey = "no such key: "

// located adds the members that the object has to CEL's error. The paths of the expression are collected at the first such error.
func (e *compiled) located(err error, v *Vars) error {
	_, key, found := strings.Cut(err.Error(), noSuchKey)
	if !found {
		return err
	}
	e.missed.Do(func() {
		if env, problem := languages[e.scope](); problem == nil {
			if parsed, issues := env.Parse(e.text); issues.Err() == nil {
				e.paths = pathsIn(parsed.NativeRep().Expr(), nil)
			}
		}
	})
	for i := range e.paths {
		_, problem := e.paths[i].eval(v)
		if problem == nil {
			continue
		}
		if _, at, said := strings.Cut(problem.Error(), " has no "); said && strings.HasPrefix(at, `"`) {
			name, _ := strconv.QuotedPrefix(at)
			if name, _ = strconv.Unquote(name); strings.HasPrefix(key, name) {
				return fmt.Errorf("%w; %w", err, problem)
			}
		}
	}
	return err
}

// mostPaths limits how many paths of one expression are checked for an error.
const mostPaths = 100

// pathsIn returns the paths in an expression, the longest for each variable.
func pathsIn(x ast.Expr, all []path) []path {
	if len(all) == mostPaths {
		return all
	}
	if p, ok := parsePath(pathOf(x)); ok {
		return append(all, p)
	}
	switch x.Kind() {
	case ast.SelectKind:
		return pathsIn(x.AsSelect().Operand(), all)
	case ast.CallKind:
		if c := x.AsCall(); c.IsMemberFunction() {
			all = pathsIn(c.Target(), all)
		}
		for _, arg := range x.AsCall().Args() {
			all = pathsIn(arg, all)
		}
	case ast.ListKind:
		for _, el := range x.AsList().Elements() {
			all = pathsIn(el, all)
		}
	case ast.MapKind:
		for _, entry := range x.AsMap().Entries() {
			all = pathsIn(entry.AsMapEntry().Value(), all)
		}
	case ast.ComprehensionKind:
		c := x.AsComprehension()
		for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			all = pathsIn(part, all)
		}
	}
	return all
}

func (e *expression) failed(err error) error {
	return &EvalError{Field: e.field, Expression: e.text, Err: err}
}
