package definition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser"

	"github.com/pawl-run/pawl/internal/problem"
)

// typeCheck finds operators that fail for all values, and comparisons that never hold. For CEL's own check, a value from JSON can have any
// type; here it has the type of the input's schema.
type typeCheck struct {
	b      *builder
	scope  scope
	tree   *ast.AST
	locals map[string]*typed // variables of map(), filter() and the like
	unsure int               // number of enclosing calls and loops that may not evaluate the expression
	faults []issue
}

func (b *builder) typeFaults(e *compiled) []issue {
	if e.path != nil {
		return b.pathFaults(e.path, e.scope)
	}
	if e.tree == nil {
		return nil
	}
	c := &typeCheck{b: b, scope: e.scope, tree: e.tree, locals: map[string]*typed{}}
	c.infer(e.tree.Expr())
	return c.faults
}

func (c *typeCheck) fault(x ast.Expr, fix, format string, args ...any) {
	at := c.tree.SourceInfo().GetStartLocation(x.ID())
	c.faults = append(c.faults, issue{max(1, at.Line()), max(0, at.Column()), fmt.Sprintf(format, args...), fix})
}

// text returns a part of the expression as written; "" if a macro made it.
func (c *typeCheck) text(x ast.Expr) string {
	if text := pathOf(x); text != "" {
		return text
	}
	text, err := parser.Unparse(x, c.tree.SourceInfo())
	if err != nil || strings.Contains(text, "@") {
		return ""
	}
	return problem.Clip(text, 60)
}

// named returns a type with its expression, for example: an integer (input.n).
func (c *typeCheck) named(t *typed, x ast.Expr) string {
	if text := c.text(x); text != "" {
		return fmt.Sprintf("%s (%s)", t, text)
	}
	return t.String()
}

// infer returns the type of an expression, and records the errors within.
func (c *typeCheck) infer(x ast.Expr) *typed {
	switch x.Kind() {
	case ast.LiteralKind:
		if s, isText := x.AsLiteral().(types.String); isText {
			return &typed{kind: typeText, words: []string{string(s)}}
		}
	case ast.IdentKind:
		if t, local := c.locals[x.AsIdent()]; local {
			return t
		}
		if t := c.b.rootType(x.AsIdent(), c.scope); t != nil {
			return t
		}
	case ast.SelectKind:
		return c.selected(x, x.AsSelect().Operand(), x.AsSelect().FieldName())
	case ast.ListKind:
		for _, el := range x.AsList().Elements() {
			c.infer(el)
		}
	case ast.MapKind:
		for _, entry := range x.AsMap().Entries() {
			c.infer(entry.AsMapEntry().Key())
			c.infer(entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		c.comprehension(x.AsComprehension())
	case ast.CallKind:
		if t := c.call(x); t != nil {
			return t
		}
	}
	return celType(c.tree.GetType(x.ID()))
}

func (c *typeCheck) selected(x, operand ast.Expr, field string) *typed {
	if x.Kind() == ast.SelectKind && x.AsSelect().IsTestOnly() {
		c.infer(operand)
		return boolType
	}
	if _, isTask := taskName(operand); isTask {
		return memberType(field)
	}
	of := c.infer(operand)
	if of.lacks(field) {
		c.fault(x, of.nearest(field), "%s has no field %q", c.named(of, operand), field)
	}
	if t := of.member(field); t != nil {
		return t
	}
	return celType(c.tree.GetType(x.ID()))
}

// comprehension checks what map(), filter(), exists() and the like expand to. Their variables have the type of the list's elements.
func (c *typeCheck) comprehension(k ast.ComprehensionExpr) {
	of, first := c.infer(k.IterRange()), c.infer(k.AccuInit())
	bind := map[string]*typed{k.IterVar(): nil, k.AccuVar(): nil}
	if k.HasIterVar2() {
		bind[k.IterVar2()] = nil
	}
	if of != nil && of.kind == typeList {
		if k.HasIterVar2() {
			bind[k.IterVar()], bind[k.IterVar2()] = integerType, of.elem
		} else {
			bind[k.IterVar()] = of.elem
		}
	}
	if k.LoopCondition().Kind() == ast.LiteralKind && k.LoopCondition().AsLiteral() == types.False { // cel.bind: it does not iterate
		bind[k.AccuVar()] = first
	}
	before := c.locals
	c.locals = make(map[string]*typed, len(before)+len(bind))
	maps.Copy(c.locals, before)
	maps.Copy(c.locals, bind)
	c.unsure++ // the list may be empty
	for _, part := range []ast.Expr{k.LoopCondition(), k.LoopStep(), k.Result()} {
		c.infer(part)
	}
	c.unsure--
	c.locals = before
}

var orders = []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals}

// ofText are the methods that only texts have.
var ofText = []string{
	overloads.StartsWith, overloads.EndsWith, overloads.Contains, overloads.Matches, "lowerAscii", "upperAscii", "trim", "split", "replace", "substring",
}

func (c *typeCheck) call(x ast.Expr) *typed {
	k := x.AsCall()
	function := k.FunctionName()
	if operand, field, ok := subscripted(x); ok && function == operators.Index {
		return c.selected(x, operand, field)
	}
	args := k.Args()
	if k.IsMemberFunction() {
		args = append([]ast.Expr{k.Target()}, args...)
	}
	all := make([]*typed, len(args))
	lazy := slices.Contains(perhaps, function)
	if lazy {
		c.unsure++
	}
	for i, arg := range args {
		all[i] = c.infer(arg)
	}
	if lazy {
		c.unsure--
	}
	before := len(c.faults)
	t := c.typedCall(x, function, args, all)
	if len(c.faults) == before {
		c.constant(x, args)
	}
	return t
}

// typedCall returns the type of a call with arguments of known types, and records arguments that the function does not accept.
func (c *typeCheck) typedCall(x ast.Expr, function string, args []ast.Expr, all []*typed) *typed {
	switch {
	case len(args) == 2 && strings.Contains("+-*/%", symbol(function)) && symbol(function) != "":
		return c.arithmetic(x, symbol(function), args, all)
	case slices.Contains(orders, function):
		c.ordered(x, symbol(function), args, all)
	case function == operators.Equals, function == operators.NotEquals:
		c.equal(x, args[0], args[1], all[0], all[1])
	case function == operators.In:
		c.in(x, args, all)
	case function == operators.LogicalAnd, function == operators.LogicalOr, function == operators.LogicalNot:
		for i, t := range all {
			c.wantBool(args[i], t)
		}
	case function == operators.Conditional:
		c.wantBool(args[0], all[0])
		return common(all[1], all[2])
	case function == "default" && len(all) == 2:
		return common(all[0], all[1])
	case function == operators.Index && all[0] != nil && all[0].kind == typeList:
		return all[0].elem
	case function == operators.Index && all[0] != nil && (all[0].number() || all[0].kind == typeBool || all[0].kind == typeText):
		c.fault(x, "", "%s has no elements", c.named(all[0], args[0]))
	case function == overloads.Size && all[0] != nil && (all[0].number() || all[0].kind == typeBool):
		c.fault(x, "", "%s has no size", c.named(all[0], args[0]))
	case function == overloads.TypeConvertString && all[0] != nil && (all[0].kind == typeList || all[0].kind == typeObject):
		c.fault(x, c.instead(args[0], "json(", ")"), "string() does not take %s", c.named(all[0], args[0]))
	case function == "urlencode" && all[0] != nil && all[0].kind != typeText:
		c.fault(x, c.asArgument(args[0], all[0], "urlencode("), "urlencode() does not take %s", c.named(all[0], args[0]))
	case function == "join" && all[0] != nil && all[0].kind == typeList && all[0].elem != nil && all[0].elem.kind != typeText:
		c.fault(x, c.instead(args[0], "", ".map(v, string(v)).join(…)"), "join() takes a list of strings, and an element of %s is %s", c.text(args[0]), all[0].elem)
	case function == "format" && len(all) == 2 && all[1] != nil && all[1].kind != typeList:
		c.fault(x, c.instead(args[1], "….format([", "])"), "format() takes a list, and not %s", c.named(all[1], args[1]))
	case x.AsCall().IsMemberFunction() && slices.Contains(ofText, function) && all[0] != nil && all[0].kind != typeText:
		c.fault(x, c.asText(args[0], all[0], "."+function+"(…)"), "%s has no %s(), which is of strings", c.named(all[0], args[0]), function)
	}
	return nil
}

// symbol returns an operator as it is written; "" for functions.
func symbol(function string) string {
	s, _ := operators.FindReverseBinaryOperator(function)
	return s
}

// common returns the common type of two alternatives.
func common(a, b *typed) *typed {
	switch {
	case a == nil || b == nil:
		return nil
	case a.kind == b.kind:
		return &typed{kind: a.kind}
	case a.number() && b.number():
		return &typed{kind: typeNumber}
	}
	return nil
}

func (c *typeCheck) asText(x ast.Expr, t *typed, after string) string {
	if text := c.text(x); text != "" && (t.number() || t.kind == typeBool) {
		return "write string(" + text + ")" + after
	}
	return ""
}

// instead returns the fix that puts texts around an argument; "" if the argument has no text.
func (c *typeCheck) instead(x ast.Expr, before, after string) string {
	if text := c.text(x); text != "" {
		return "write " + before + text + after
	}
	return ""
}

// asArgument returns the fix that converts an argument to a text.
func (c *typeCheck) asArgument(x ast.Expr, t *typed, before string) string {
	if t.kind == typeList || t.kind == typeObject || t.kind == typeNull {
		return c.instead(x, before+"json(", "))")
	}
	return c.instead(x, before+"string(", "))")
}

func (c *typeCheck) wantBool(x ast.Expr, t *typed) {
	if t != nil && t.kind != typeBool {
		c.fault(x, "compare it with something", "%s is not true or false", c.named(t, x))
	}
}

// arithmetic checks + - * / and %: CEL computes only with two values of the same type.
func (c *typeCheck) arithmetic(x ast.Expr, op string, args []ast.Expr, all []*typed) *typed {
	a, b := all[0], all[1]
	for i, t := range all {
		if t != nil && !computes(op, t.kind) {
			c.fault(x, c.mend(op, args, all), "%s does not take %s%s", op, c.named(t, args[i]), c.beside(args[1-i], all[1-i]))
			return nil
		}
	}
	switch {
	case a == nil || b == nil:
		return nil
	case a.kind == b.kind:
		return &typed{kind: a.kind, elem: a.elem}
	case a.number() && b.number():
		if a.kind != typeNumber && b.kind != typeNumber {
			c.fault(x, c.mend(op, args, all), "%s does not take %s and %s", op, c.named(a, args[0]), c.named(b, args[1]))
		}
		return nil
	}
	c.fault(x, c.mend(op, args, all), "%s does not take %s and %s", op, c.named(a, args[0]), c.named(b, args[1]))
	return nil
}

func (c *typeCheck) beside(x ast.Expr, t *typed) string {
	if t == nil {
		return ""
	}
	return " and " + c.named(t, x)
}

// computes reports whether an operator accepts values of a type at all.
func computes(op string, k typeKind) bool {
	switch k {
	case typeInteger, typeNumber:
		return true
	case typeFraction:
		return op != "%"
	case typeText, typeList:
		return op == "+"
	}
	return false
}

// mend returns the fix that makes two operands compatible.
func (c *typeCheck) mend(op string, args []ast.Expr, all []*typed) string {
	texts := []string{c.text(args[0]), c.text(args[1])}
	if texts[0] == "" || texts[1] == "" || all[0] == nil || all[1] == nil {
		return ""
	}
	for i, t := range all {
		other := all[1-i]
		into := ""
		switch {
		case op == "%" && t.kind == typeFraction:
			into = "int"
		case t.kind == typeInteger && other.kind == typeFraction:
			into = "double"
		case op == "+" && other.kind == typeText && (t.number() || t.kind == typeBool):
			into = "string"
		case op != "+" && t.kind == typeText && other.kind == typeInteger:
			into = "int"
		case op != "+" && t.kind == typeText && other.number():
			into = "double"
		default:
			continue
		}
		texts[i] = into + "(" + texts[i] + ")"
		return "write " + texts[0] + " " + op + " " + texts[1]
	}
	return ""
}

// ordered checks < <= > and >=.
func (c *typeCheck) ordered(x ast.Expr, op string, args []ast.Expr, all []*typed) {
	a, b := all[0], all[1]
	for i, t := range all {
		if t != nil && (t.kind == typeList || t.kind == typeObject || t.kind == typeNull) {
			c.fault(x, "", "%s does not compare %s", op, c.named(t, args[i]))
			return
		}
	}
	if a != nil && b != nil && a.kind != b.kind && !(a.number() && b.number()) {
		c.fault(x, c.mend(op, args, all), "%s does not compare %s with %s", op, c.named(a, args[0]), c.named(b, args[1]))
	}
}

// equal finds comparisons that never hold. It ignores null: an input may be absent, or be null in addition to its type.
func (c *typeCheck) equal(x, left, right ast.Expr, a, b *typed) {
	switch {
	case a == nil || b == nil || a.kind == typeNull || b.kind == typeNull || a.number() && b.number():
	case a.kind != b.kind:
		c.fault(x, c.mend("==", []ast.Expr{left, right}, []*typed{a, b}), "%s is never equal to %s", c.named(a, left), c.named(b, right))
	case a.kind == typeText && right.Kind() == ast.LiteralKind && left.Kind() != ast.LiteralKind:
		c.word(right, left, a, b)
	case a.kind == typeText && left.Kind() == ast.LiteralKind && right.Kind() != ast.LiteralKind:
		c.word(left, right, b, a)
	}
}

// otherStatuses maps words of other systems to Pawl's statuses.
var otherStatuses = map[string]Status{
	"success": StatusCompleted, "succeeded": StatusCompleted, "successful": StatusCompleted, "ok": StatusCompleted, "done": StatusCompleted,
	"finished": StatusCompleted, "complete": StatusCompleted, "passed": StatusCompleted, "failure": StatusFailed, "error": StatusFailed, "errored": StatusFailed,
	"canceled": StatusCancelled, "aborted": StatusCancelled, "timeout": StatusTimedOut, "timedout": StatusTimedOut, "upstream_failed": StatusSkipped,
}

// word checks a text that is compared with a value from a fixed set of words.
func (c *typeCheck) word(literal, x ast.Expr, t, l *typed) {
	if t.words == nil || len(l.words) != 1 || slices.Contains(t.words, l.words[0]) {
		return
	}
	fix := ""
	if other, known := otherStatuses[strings.ToLower(l.words[0])]; known && slices.Contains(t.words, string(other)) {
		fix = fmt.Sprintf("write %q", other)
	}
	fix = cmp.Or(fix, problem.NearestOr(l.words[0], t.words, "it is one of"))
	c.fault(literal, fix, "%s is never %q", cmp.Or(c.text(x), "the value"), problem.Clip(l.words[0], 60))
}

// in checks x in LIST.
func (c *typeCheck) in(x ast.Expr, args []ast.Expr, all []*typed) {
	if args[1].Kind() == ast.ListKind {
		for _, el := range args[1].AsList().Elements() {
			c.equal(x, args[0], el, all[0], c.infer(el))
		}
		return
	}
	if of := all[1]; of != nil {
		switch of.kind {
		case typeList:
			c.equal(x, args[0], args[1], all[0], of.elem)
		case typeObject, typeNull:
		default:
			c.fault(x, "", "in does not look into %s", c.named(of, args[1]))
		}
	}
}
