package compute

import (
	"cmp"
	"math"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"github.com/pawl-run/pawl/internal/strictjson"
)

// comparison replaces an operator or function that compares values. It refuses values that are too large: lists that contain each other
// many times are small in memory but take forever to compare. It compares numbers of two types exactly, while CEL converts both to double,
// so that 9007199254740993 and …992 are equal.
type comparison struct {
	interpreter.InterpretableCall
}

// membership is the operator in. It has its own overload, because CEL would convert a list of constants into a table with all numbers as
// doubles.
type membership struct{ comparison }

// OverloadID implements CEL's InterpretableCall.
func (*membership) OverloadID() string { return "" }

var compared = types.NewSizeCalculator(types.SizeCalculatorMaxDepth(2*strictjson.MaxDepth), types.SizeCalculatorMaxTraversal(maxCompared))

// boundComparison replaces CEL's comparisons by limited and exact ones.
func boundComparison(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	switch call.Function() {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return &comparison{call}, nil
	case operators.In:
		return &membership{comparison{call}}, nil
	case greatest, least:
		return &extreme{call}, nil
	}
	return i, nil
}

// Exec implements CEL's InterpretableV2.
func (c *comparison) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	a := c.Args()[0].Exec(frame)
	var b ref.Val = types.UnknownType
	result := a
	if !types.IsError(a) {
		if b = c.Args()[1].Exec(frame); types.IsError(b) {
			result = b
		} else {
			result = c.compare(a, b)
		}
	}
	if costs := frame.CostTracker(); costs != nil {
		costs.EvalBinary(frame, c.ID(), c, a, b, result)
	}
	return result
}

// Eval implements CEL's Interpretable.
func (c *comparison) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, c.Exec)
}

func (c *comparison) compare(a, b ref.Val) ref.Val {
	_, object := b.(traits.Mapper)
	lookup := object && c.Function() == operators.In // it looks up one key
	if tooLarge(a) || !lookup && tooLarge(b) {
		return types.NewErr("values of more than %d elements are not compared", maxCompared)
	}
	switch c.Function() {
	case operators.Equals:
		return types.Bool(equal(a, b))
	case operators.NotEquals:
		return types.Bool(!equal(a, b))
	case operators.In:
		return contains(b, a)
	}
	n, ok := order(a, b).(types.Int)
	if !ok {
		return order(a, b)
	}
	switch c.Function() {
	case operators.Less:
		return types.Bool(n < 0)
	case operators.LessEquals:
		return types.Bool(n <= 0)
	case operators.Greater:
		return types.Bool(n > 0)
	}
	return types.Bool(n >= 0)
}

// contains computes a in b.
func contains(b, a ref.Val) ref.Val {
	in, ok := b.(traits.Container)
	if !ok {
		return types.NewErr("no such overload: in takes a list or an object, not a value of type %s", b.Type().TypeName())
	}
	found := in.Contains(a)
	list, ok := b.(traits.Lister)
	if !ok || found != types.True {
		return found
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		if equal(a, it.Next()) {
			return types.True
		}
	}
	return types.False
}

// equal computes ==. CEL never considers equal numbers different, so only values that it considers equal are compared again.
func equal(a, b ref.Val) bool { return types.Equal(a, b) == types.True && sameNumbers(a, b) }

// sameNumbers reports whether the numbers in two values that CEL considers equal are the same.
func sameNumbers(a, b ref.Val) bool {
	switch a := a.(type) {
	case types.Int, types.Uint, types.Double:
		return a.Type() == b.Type() || order(a, b) == types.IntZero
	case traits.Mapper:
		other, ok := b.(traits.Mapper)
		for it := a.Iterator(); ok && it.HasNext() == types.True; {
			key := it.Next()
			x, _ := a.Find(key)
			y, found := other.Find(key)
			ok = found && sameNumbers(x, y)
		}
		return ok
	case traits.Lister:
		other, ok := b.(traits.Lister)
		for i, it := types.Int(0), a.Iterator(); ok && it.HasNext() == types.True; i++ {
			ok = sameNumbers(it.Next(), other.Get(i))
		}
		return ok
	case *types.Optional:
		other, ok := b.(*types.Optional)
		return !ok || !a.HasValue() || sameNumbers(a.GetValue(), other.GetValue())
	}
	return true
}

// order returns -1, 0 or 1 as an Int, or CEL's error for values without an order.
func order(a, b ref.Val) ref.Val {
	switch x := a.(type) {
	case types.Double:
		switch y := b.(type) {
		case types.Int, types.Uint:
			if !math.IsNaN(float64(x)) {
				return -order(y, x).(types.Int)
			}
		}
	case types.Int:
		if y, ok := b.(types.Double); ok && !math.IsNaN(float64(y)) {
			return types.Int(compareMixed(int64(x), float64(y)))
		}
	case types.Uint:
		y, ok := b.(types.Double)
		switch whole := math.Trunc(float64(y)); {
		case !ok || math.IsNaN(whole):
		case x <= math.MaxInt64:
			return types.Int(compareMixed(int64(x), float64(y)))
		case y >= 1<<64:
			return types.IntNegOne
		case y < 1<<63:
			return types.IntOne
		default:
			return types.Int(cmp.Compare(uint64(x), uint64(whole)))
		}
	}
	if y, ok := b.(longNumber); ok && a.Type() != longNumberType {
		if n, ok := y.Compare(a).(types.Int); ok {
			return -n
		}
	}
	if a, ok := a.(traits.Comparer); ok {
		return a.Compare(b)
	}
	return types.NewErr("no such overload: a value of type %s has no order", a.Type().TypeName())
}

// compareMixed compares an integer with a float exactly: as a float64, 9007199254740993 is …992.
func compareMixed(n int64, f float64) int {
	switch whole := math.Trunc(f); {
	case f >= 1<<63:
		return -1
	case f < -1<<63:
		return 1
	case n != int64(whole):
		return cmp.Compare(n, int64(whole))
	default:
		return cmp.Compare(whole, f)
	}
}

// The functions to which CEL expands math.greatest and math.least.
const (
	greatest = "math.@max"
	least    = "math.@min"
)

// extreme is one of them, with exact comparisons.
type extreme struct{ interpreter.InterpretableCall }

// Exec implements CEL's InterpretableV2.
func (x *extreme) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, len(x.Args()))
	for i, arg := range x.Args() {
		if args[i] = arg.Exec(frame); types.IsError(args[i]) {
			return args[i]
		}
	}
	result := x.of(args)
	if costs := frame.CostTracker(); costs != nil {
		costs.EvalVarArgs(frame, x.ID(), x, args, result)
	}
	return result
}

// Eval implements CEL's Interpretable.
func (x *extreme) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, x.Exec)
}

func (x *extreme) of(args []ref.Val) ref.Val {
	if list, ok := args[0].(traits.Lister); ok && len(args) == 1 {
		args = nil
		for it := list.Iterator(); it.HasNext() == types.True; {
			args = append(args, it.Next())
		}
	}
	var best ref.Val
	for _, v := range args {
		switch v.(type) {
		case types.Int, types.Uint, types.Double, longNumber:
		default:
			return types.NewErr("no such overload: %s takes numbers, not a value of type %s", x.Function(), v.Type().TypeName())
		}
		if best == nil {
			best = v
			continue
		}
		n, ok := order(v, best).(types.Int)
		if !ok {
			return order(v, best)
		}
		if x.Function() == greatest && n > 0 || x.Function() == least && n < 0 {
			best = v
		}
	}
	if best == nil {
		return types.NewErr("%s of an empty list", x.Function())
	}
	return best
}

func tooLarge(v ref.Val) bool {
	if !composite(v) {
		return false
	}
	size := compared.ApproximateAggregateSize(v)
	return size.LimitExceeded || size.Size > 10*maxCompared
}

func composite(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper, *types.Optional:
		return true
	}
	return false
}
