package definition

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/parser"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-run/pawl/internal/jsonvalue"
)

// Predicate is a part of a condition, joined to its other parts by &&, that compares one operand with constants. Many conditions compare
// the same operand: its value is looked up once for all of them, and the comparison takes nanoseconds where an evaluation of the whole
// condition takes microseconds.
type Predicate struct {
	Operand *Operand
	Is      Relation
	Texts   []string // the constants that are texts
	Numbers []float64
	// Formula computes the whole part without CEL, where looking up the operand is not cheap; nil: nothing can.
	Formula *Formula
}

// Relation is how an operand must relate to the constants of a predicate.
type Relation uint8

// The relations. Holds has no constants: the operand is the part as a whole.
const (
	Holds    Relation = iota
	OneOf             // ==, in, or several of them joined by ||
	AtMost            // < as well as <=
	AtLeast           // > as well as >=
	Begins            // startsWith
	Ends              // endsWith
	Contains          // contains
)

// Operand is an expression whose value predicates are about.
type Operand struct{ expr *expression }

// Text is the expression. Operands of one scope with the same text have the same value.
func (o *Operand) Text() string { return o.expr.text }

// IsPath reports whether the operand is a path into the data, which is looked up without CEL.
func (o *Operand) IsPath() bool { return o.expr.path != nil }

// errUncomparable is of values about which predicates say nothing.
var errUncomparable = errors.New("a value of this type is not compared")

// Value is the operand's value: a string, a bool, a float64 for every number, or nil for null, a list or an object.
func (o *Operand) Value(v *Vars) (any, error) {
	if o.expr.path != nil {
		raw, err := o.expr.path.eval(v)
		if err != nil {
			return nil, err
		}
		switch jsonvalue.KindOf(raw) {
		case "string":
			text, err := jsontext.AppendUnquote(nil, bytes.TrimSpace(raw))
			if err != nil {
				return nil, errUncomparable // a lone surrogate, of which CEL makes U+FFFD
			}
			return string(text), nil
		case "number":
			return strconv.ParseFloat(strings.TrimSpace(string(raw)), 64)
		case "boolean":
			return strings.TrimSpace(string(raw)) == "true", nil
		}
		return nil, nil
	}
	val, err := o.expr.run(v)
	if err != nil {
		return nil, err
	}
	switch val := val.(type) {
	case types.String:
		return string(val), nil
	case types.Bool:
		return bool(val), nil
	case types.Int:
		return float64(val), nil
	case types.Double:
		if !math.IsNaN(float64(val)) {
			return float64(val), nil
		}
	case types.Null, traits.Lister, traits.Mapper:
		return nil, nil
	}
	return nil, errUncomparable
}

// Excludes reports whether the predicate is false for a value that Operand.Value returned; then the condition, of which
// the predicate is one operand of &&, is false. It returns false where the comparison is an error, as of a text with a
// number: evaluating the whole condition reports that error. Numbers are compared as float64. Rounding to it keeps
// their order but may make two numbers equal, so < is compared as <=, and > as >=.
func (p *Predicate) Excludes(value any) bool {
	text, isText := value.(string)
	number, isNumber := value.(float64)
	//exhaustive:enforce
	switch p.Is {
	case Holds:
		holds, is := value.(bool)
		return is && !holds
	case OneOf:
		return !(isText && slices.Contains(p.Texts, text) || isNumber && slices.Contains(p.Numbers, number))
	case AtMost:
		return isNumber && len(p.Numbers) > 0 && number > p.Numbers[0] || isText && len(p.Texts) > 0 && text > p.Texts[0]
	case AtLeast:
		return isNumber && len(p.Numbers) > 0 && number < p.Numbers[0] || isText && len(p.Texts) > 0 && text < p.Texts[0]
	case Begins:
		return isText && !strings.HasPrefix(text, p.Texts[0])
	case Ends:
		return isText && !strings.HasSuffix(text, p.Texts[0])
	case Contains:
		return isText && !strings.Contains(text, p.Texts[0])
	}
	return false
}

// Predicates are the parts of the condition. It holds only of what none of them excludes.
func (c *Condition) Predicates() []Predicate {
	if c.expr == nil {
		return nil
	}
	c.expr.taken.Do(func() { c.expr.predicates = c.takeApart() })
	return c.expr.predicates
}

func (c *Condition) takeApart() (all []Predicate) {
	t := c.tree()
	if t == nil {
		return nil
	}
	for _, x := range operands(t.Expr(), operators.LogicalAnd) {
		p, of := comparisonOf(x)
		if of == nil {
			p, of = Predicate{}, x
		}
		text := pathOf(of) // the same for a.b and a["b"]
		if text == "" {
			var err error
			if text, err = parser.Unparse(of, t.SourceInfo()); err != nil {
				continue
			}
		}
		p.Operand = &Operand{c.part(text)}
		if p.Is == Holds || !p.Operand.IsPath() {
			p.Formula = c.formulaOf(x)
		}
		all = append(all, p)
	}
	return all
}

// comparisonOf reads a comparison of an operand with constants; the operand is nil where x is none.
func comparisonOf(x ast.Expr) (p Predicate, of ast.Expr) {
	if x.Kind() != ast.CallKind {
		return p, nil
	}
	c := x.AsCall()
	if c.IsMemberFunction() {
		is, known := map[string]Relation{"startsWith": Begins, "endsWith": Ends, "contains": Contains}[c.FunctionName()]
		if !known || len(c.Args()) != 1 || !p.constant(c.Args()[0]) || len(p.Texts) != 1 {
			return Predicate{}, nil
		}
		p.Is = is
		return p, c.Target()
	}
	if c.FunctionName() == operators.LogicalOr {
		return eitherOf(x)
	}
	if len(c.Args()) != 2 {
		return p, nil
	}
	a, b := c.Args()[0], c.Args()[1]
	turned := a.Kind() == ast.LiteralKind || computable(a)
	if turned {
		a, b = b, a
	}
	switch c.FunctionName() {
	case operators.Equals:
		p.Is = OneOf
	case operators.Less, operators.LessEquals:
		p.Is = AtMost
		if turned {
			p.Is = AtLeast
		}
	case operators.Greater, operators.GreaterEquals:
		p.Is = AtLeast
		if turned {
			p.Is = AtMost
		}
	case operators.In:
		if turned || b.Kind() != ast.ListKind {
			return p, nil
		}
		p.Is = OneOf
		for _, el := range b.AsList().Elements() {
			if !p.constant(el) {
				return Predicate{}, nil
			}
		}
		return p, a
	default:
		return p, nil
	}
	if !p.constant(b) {
		return Predicate{}, nil
	}
	return p, a
}

// eitherOf reads a == "x" || a == "y", in which each side is about the same path.
func eitherOf(x ast.Expr) (all Predicate, of ast.Expr) {
	all.Is = OneOf
	for _, side := range operands(x, operators.LogicalOr) {
		p, about := comparisonOf(side)
		if about == nil || p.Is != OneOf || pathOf(about) == "" || of != nil && pathOf(about) != pathOf(of) {
			return Predicate{}, nil
		}
		of, all.Texts, all.Numbers = about, append(all.Texts, p.Texts...), append(all.Numbers, p.Numbers...)
	}
	return all, of
}

// constant takes a literal, or a computation with literals alone such as 24 * 3600, as a constant of the predicate, if
// it is a text or a number.
func (p *Predicate) constant(x ast.Expr) bool {
	if x.Kind() != ast.LiteralKind {
		k, _ := computed(x)
		switch k.kind {
		case scalarInt:
			p.Numbers = append(p.Numbers, float64(k.bits))
		case scalarReal:
			p.Numbers = append(p.Numbers, k.asReal())
		default:
			return false
		}
		return true
	}
	switch l := x.AsLiteral().(type) {
	case types.String:
		p.Texts = append(p.Texts, string(l))
	case types.Int:
		p.Numbers = append(p.Numbers, float64(l))
	case types.Double:
		p.Numbers = append(p.Numbers, float64(l))
	default:
		return false
	}
	return true
}
