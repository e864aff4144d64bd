package definition

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"

	"github.com/pawl-run/pawl/internal/definition/compute"
)

// Formula is a part of a condition made of paths, constants, arithmetic, comparisons and tests of texts. It is computed without CEL, which
// takes tens of nanoseconds instead of microseconds. It gives the value that CEL gives, or none: an overflow, a value that is absent or of
// another type, and all else that CEL answers with an error are left to CEL.
type Formula struct {
	paths []*Operand
	root  term
}

// Paths are the paths that the formula reads, each once.
func (f *Formula) Paths() []*Operand { return f.paths }

// Excludes reports whether the formula is false. The value of its i-th path is values[at[i]].
func (f *Formula) Excludes(values []Scalar, at []int) bool {
	v := f.root.value(values, at)
	return v.kind == scalarBool && v.bits == 0
}

// Scalar is a value that formulas compute with. The zero value is unknown.
type Scalar struct {
	kind scalarKind
	bits int64 // of scalarInt the number; of scalarReal math.Float64bits of it; of scalarBool 1 for true; of scalarMany how many elements or members there are
	text string
}

type scalarKind uint8

const (
	scalarUnknown scalarKind = iota // absent, or beyond what formulas compute with
	scalarNull
	scalarBool
	scalarInt
	scalarReal
	scalarText
	scalarMany // a list or an object, of which a formula knows the size only
)

// formulaText bounds the texts that formulas look at. CEL counts the bytes of texts as work and refuses an expression that does too much of
// it; with shorter texts no expression of the allowed length can.
const formulaText = 4 << 10

// Scalar is the value of an operand that is a path, for formulas.
func (o *Operand) Scalar(v *Vars) Scalar {
	p := o.expr.path
	if p == nil {
		return Scalar{}
	}
	a := activation{v: v}
	value, found := a.ResolveName(p.root)
	if !found || a.err != nil {
		return Scalar{}
	}
	for _, s := range p.steps {
		object, is := value.(map[string]any)
		if !is || s.byIdx {
			return Scalar{}
		}
		if value, is = object[s.name]; !is {
			return Scalar{}
		}
	}
	return scalarOf(value)
}

func scalarOf(value any) Scalar {
	switch value := value.(type) {
	case nil:
		return Scalar{kind: scalarNull}
	case bool:
		return truth(value)
	case int64:
		return Scalar{kind: scalarInt, bits: value}
	case float64:
		return realOf(value)
	case string:
		if len(value) <= formulaText {
			return Scalar{kind: scalarText, text: value}
		}
	case []any:
		return Scalar{kind: scalarMany, bits: int64(len(value))}
	case map[string]any:
		return Scalar{kind: scalarMany, bits: int64(len(value))}
	}
	return Scalar{}
}

func truth(is bool) Scalar {
	if is {
		return Scalar{kind: scalarBool, bits: 1}
	}
	return Scalar{kind: scalarBool}
}

// realOf leaves NaN to CEL, which refuses to order it.
func realOf(f float64) Scalar {
	if math.IsNaN(f) {
		return Scalar{}
	}
	return Scalar{kind: scalarReal, bits: int64(math.Float64bits(f))}
}

// term is a node of a formula.
type term interface {
	value(values []Scalar, at []int) Scalar
}

type (
	constant Scalar
	variable int // of the formula's paths
	unary    struct {
		do func(Scalar) Scalar
		x  term
	}
	binary struct {
		do   func(x, y Scalar) Scalar
		x, y term
	}
	choice struct{ when, then, otherwise term }
	oneOf  struct {
		x   term
		all []Scalar
	}
	// junction is && or ||. decides is the operand that alone makes the result: 0 (false) makes && false, 1 (true) makes || true.
	junction struct {
		decides int64
		all     []term
	}
)

func (c constant) value([]Scalar, []int) Scalar { return Scalar(c) }

func (i variable) value(values []Scalar, at []int) Scalar { return values[at[i]] }

func (u *unary) value(values []Scalar, at []int) Scalar { return u.do(u.x.value(values, at)) }

func (b *binary) value(values []Scalar, at []int) Scalar {
	return b.do(b.x.value(values, at), b.y.value(values, at))
}

func (c *choice) value(values []Scalar, at []int) Scalar {
	when := c.when.value(values, at)
	switch {
	case when.kind != scalarBool:
		return Scalar{}
	case when.bits == 1:
		return c.then.value(values, at)
	}
	return c.otherwise.value(values, at)
}

func (o *oneOf) value(values []Scalar, at []int) Scalar {
	x := o.x.value(values, at)
	if x.kind == scalarUnknown || x.kind == scalarMany {
		return Scalar{} // also where there is nothing to compare it with
	}
	for _, y := range o.all {
		if is := equal(x, y); is.bits == 1 {
			return is
		}
	}
	return truth(false)
}

func (j *junction) value(values []Scalar, at []int) Scalar {
	known := true
	for _, x := range j.all {
		v := x.value(values, at)
		if v.kind == scalarBool && v.bits == j.decides {
			return v
		}
		known = known && v.kind == scalarBool
	}
	if !known {
		return Scalar{}
	}
	return truth(j.decides == 0)
}

// formulaOf makes a formula of a part of the condition; nil: it has something that formulas do not compute.
func (c *Condition) formulaOf(x ast.Expr) *Formula {
	f := &Formula{}
	if f.root = c.term(f, x); f.root == nil {
		return nil
	}
	return f
}

// term makes the node of an expression; nil: formulas do not compute it.
func (c *Condition) term(f *Formula, x ast.Expr) term {
	if text := pathOf(x); text != "" {
		return c.variable(f, text)
	}
	switch x.Kind() {
	case ast.LiteralKind:
		return literal(x)
	case ast.CallKind:
		return folded(c.call(f, x.AsCall()))
	}
	return nil
}

func (c *Condition) variable(f *Formula, text string) term {
	for i, o := range f.paths {
		if o.Text() == text {
			return variable(i)
		}
	}
	o := &Operand{c.part(text)}
	if !o.IsPath() {
		return nil
	}
	f.paths = append(f.paths, o)
	return variable(len(f.paths) - 1)
}

func literal(x ast.Expr) term {
	var s Scalar
	switch l := x.AsLiteral().(type) {
	case types.Int:
		s = scalarOf(int64(l))
	case types.Double:
		s = scalarOf(float64(l))
	case types.String:
		s = scalarOf(string(l))
	case types.Bool:
		s = scalarOf(bool(l))
	case types.Null:
		s = scalarOf(nil)
	}
	if s.kind == scalarUnknown {
		return nil
	}
	return constant(s)
}

func (c *Condition) call(f *Formula, k ast.CallExpr) term {
	args := k.Args()
	if k.IsMemberFunction() {
		args = append([]ast.Expr{k.Target()}, args...)
	}
	switch k.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr:
		j := &junction{}
		if k.FunctionName() == operators.LogicalOr {
			j.decides = 1
		}
		for _, x := range args {
			t := c.term(f, x)
			if t == nil {
				t = constant{} // the other operands may decide
			}
			j.all = append(j.all, t)
		}
		return j
	case operators.In:
		return c.in(f, args)
	}
	terms := make([]term, len(args))
	for i, x := range args {
		if terms[i] = c.term(f, x); terms[i] == nil {
			return nil
		}
	}
	switch len(terms) {
	case 1:
		if do := unaries[k.FunctionName()]; do != nil {
			return &unary{do, terms[0]}
		}
	case 2:
		if do := binaries[k.FunctionName()]; do != nil {
			return &binary{do, terms[0], terms[1]}
		}
	case 3:
		if k.FunctionName() == operators.Conditional {
			return &choice{terms[0], terms[1], terms[2]}
		}
	}
	return nil
}

// in makes the node of x in [CONSTANT, …].
func (c *Condition) in(f *Formula, args []ast.Expr) term {
	x := c.term(f, args[0])
	if x == nil || args[1].Kind() != ast.ListKind {
		return nil
	}
	o := &oneOf{x: x}
	for _, el := range args[1].AsList().Elements() {
		k, is := c.term(f, el).(constant)
		if !is {
			return nil
		}
		o.all = append(o.all, Scalar(k))
	}
	return o
}

// folded computes what has constant operands only.
func folded(t term) term {
	is := func(t term) bool { _, is := t.(constant); return is }
	switch t := t.(type) {
	case *unary:
		if !is(t.x) {
			return t
		}
	case *binary:
		if !is(t.x) || !is(t.y) {
			return t
		}
	default:
		return t
	}
	return constant(t.value(nil, nil))
}

// computed is the value of an expression that names no variable.
func computed(x ast.Expr) (s Scalar, is bool) {
	if !computable(x) {
		return s, false
	}
	k, is := (&Condition{}).term(&Formula{}, x).(constant)
	return Scalar(k), is
}

// computable reports whether an expression is an operation on literals, and on such operations.
func computable(x ast.Expr) bool {
	if x.Kind() != ast.CallKind || x.AsCall().IsMemberFunction() {
		return false
	}
	return !slices.ContainsFunc(x.AsCall().Args(), func(x ast.Expr) bool { return x.Kind() != ast.LiteralKind && !computable(x) })
}

var unaries = map[string]func(Scalar) Scalar{
	operators.LogicalNot: not,
	operators.Negate: func(x Scalar) Scalar {
		switch {
		case x.kind == scalarInt && x.bits != math.MinInt64:
			return Scalar{kind: scalarInt, bits: -x.bits}
		case x.kind == scalarReal:
			return realOf(-x.asReal())
		}
		return Scalar{}
	},
	overloads.Size: func(x Scalar) Scalar {
		switch x.kind {
		case scalarText:
			return Scalar{kind: scalarInt, bits: int64(utf8.RuneCountInString(x.text))}
		case scalarMany:
			return Scalar{kind: scalarInt, bits: x.bits}
		}
		return Scalar{}
	},
}

func not(x Scalar) Scalar {
	if x.kind != scalarBool {
		return Scalar{}
	}
	return truth(x.bits == 0)
}

var binaries = map[string]func(x, y Scalar) Scalar{
	operators.Equals:        equal,
	operators.NotEquals:     func(x, y Scalar) Scalar { return not(equal(x, y)) },
	operators.Less:          ordered(func(n int) bool { return n < 0 }),
	operators.LessEquals:    ordered(func(n int) bool { return n <= 0 }),
	operators.Greater:       ordered(func(n int) bool { return n > 0 }),
	operators.GreaterEquals: ordered(func(n int) bool { return n >= 0 }),
	operators.Add: calculated(func(a, b int64) (int64, bool) { return a + b, (a+b > a) == (b > 0) || b == 0 },
		func(a, b float64) float64 { return a + b }),
	operators.Subtract: calculated(func(a, b int64) (int64, bool) { return a - b, (a-b < a) == (b > 0) || b == 0 },
		func(a, b float64) float64 { return a - b }),
	operators.Multiply: calculated(func(a, b int64) (int64, bool) {
		const safe = math.MaxInt32 // the product of two such fits
		return a * b, -safe <= a && a <= safe && -safe <= b && b <= safe
	}, func(a, b float64) float64 { return a * b }),
	operators.Divide: calculated(func(a, b int64) (int64, bool) {
		if b == 0 || b == -1 {
			return 0, false
		}
		return a / b, true
	}, func(a, b float64) float64 { return a / b }),
	operators.Modulo: calculated(func(a, b int64) (int64, bool) {
		if b == 0 || b == -1 {
			return 0, false
		}
		return a % b, true
	}, nil),
	overloads.StartsWith: ofTexts(strings.HasPrefix),
	overloads.EndsWith:   ofTexts(strings.HasSuffix),
	overloads.Contains:   ofTexts(strings.Contains),
}

// equal compares as CEL does: numbers of both types by value, and values of other different types are unlike. Lists and objects are left to
// CEL, which compares none that are too large.
func equal(x, y Scalar) Scalar {
	if x.kind == scalarUnknown || y.kind == scalarUnknown || x.kind == scalarMany || y.kind == scalarMany {
		return Scalar{}
	}
	if n, compared := compareScalars(x, y); compared {
		return truth(n == 0)
	}
	return truth(x.kind == y.kind && x.bits == y.bits)
}

// compareScalars orders numbers and texts.
func compareScalars(x, y Scalar) (n int, compared bool) {
	switch {
	case x.kind == scalarText && y.kind == scalarText:
		return strings.Compare(x.text, y.text), true
	case x.kind == scalarInt && y.kind == scalarInt:
		return cmp.Compare(x.bits, y.bits), true
	case x.kind == scalarReal && y.kind == scalarReal:
		return cmp.Compare(x.asReal(), y.asReal()), true
	case x.kind == scalarInt && y.kind == scalarReal:
		return compute.CompareMixed(x.bits, y.asReal()), true
	case x.kind == scalarReal && y.kind == scalarInt:
		return -compute.CompareMixed(y.bits, x.asReal()), true
	}
	return 0, false
}

func (s *Scalar) asReal() float64 {
	if s.kind == scalarInt {
		return float64(s.bits)
	}
	return math.Float64frombits(uint64(s.bits))
}

func ordered(holds func(int) bool) func(x, y Scalar) Scalar {
	return func(x, y Scalar) Scalar {
		n, compared := compareScalars(x, y)
		if !compared {
			return Scalar{}
		}
		return truth(holds(n))
	}
}

// calculated computes with two numbers of one type; CEL refuses others. whole reports whether the result fits.
func calculated(whole func(a, b int64) (int64, bool), real func(a, b float64) float64) func(x, y Scalar) Scalar {
	return func(x, y Scalar) Scalar {
		switch {
		case x.kind == scalarInt && y.kind == scalarInt:
			if n, fits := whole(x.bits, y.bits); fits {
				return Scalar{kind: scalarInt, bits: n}
			}
		case x.kind == scalarReal && y.kind == scalarReal && real != nil:
			return realOf(real(x.asReal(), y.asReal()))
		}
		return Scalar{}
	}
}

func ofTexts(holds func(a, b string) bool) func(x, y Scalar) Scalar {
	return func(x, y Scalar) Scalar {
		if x.kind != scalarText || y.kind != scalarText {
			return Scalar{}
		}
		return truth(holds(x.text, y.text))
	}
}
