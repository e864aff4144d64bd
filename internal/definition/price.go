package definition

import (
	"math/bits"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// limits are the options that bound an evaluation. They are measured in work
// and size, never in time, so that the same values always give the same result.
func limits() []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.EvalOptions(cel.OptOptimize),
		cel.CostLimit(costLimit),
		cel.CostTracking(prices{}),
		cel.CustomDecoratorV2(boundComparison),
	}
}

// prices charges our own functions for the elements and the text they handle.
type prices struct{}

// CallCost implements CEL's ActualCostEstimator; nil leaves the price to CEL.
func (prices) CallCost(_, overload string, args []ref.Val, result ref.Val) *uint64 {
	var n uint64
	switch overload {
	case "json_dyn", "range_int":
		n = weight(result)
	case "default_dyn_dyn":
	case "parse_json_string", "sum_list", "list_slice_int_int", "list_reverse", "string_reverse", "string_index_of_string", "string_index_of_string_int":
		n = weight(args[0])
	case "list_flatten", "string_replace_string_string", "string_replace_string_string_int", "list_join", "list_join_string", "string_format":
		n = weight(args[0]) + weight(result)
	case "list_sort", "list_sort_by":
		n = weight(args[0])
		n *= uint64(bits.Len64(n))
	case "list_distinct":
		n = 4 * weight(args[0])
	case "sets_contains", "sets_intersects", "sets_equivalent":
		n = 4 * (weight(args[0]) + weight(args[1]))
	case "matches_text_text", "text_matches_text", "string_last_index_of_string", "string_last_index_of_string_int":
		n = 100 + weight(args[0])*(1+weight(args[1]))
	default:
		return nil
	}
	n++
	return &n
}

// weight is how many elements a list has, or tens of bytes a text.
func weight(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / 10
	case traits.Lister:
		if n, ok := v.Size().(types.Int); ok && n > 0 {
			return uint64(n)
		}
	}
	return 0
}

// comparison is ==, != or in, refused for values that are too large: lists that
// hold each other many times over are small in memory and endless to compare.
type comparison struct {
	interpreter.InterpretableCall
}

var compared = types.NewSizeCalculator(types.SizeCalculatorMaxDepth(2*maxDepth), types.SizeCalculatorMaxTraversal(maxCompared))

// boundComparison replaces CEL's comparisons by bounded ones.
func boundComparison(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	switch call.Function() {
	case operators.Equals, operators.NotEquals, operators.In:
		return &comparison{call}, nil
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
	if tooLarge(a) || tooLarge(b) {
		return types.NewErr("values of more than %d elements are not compared", maxCompared)
	}
	switch c.Function() {
	case operators.Equals:
		return types.Equal(a, b)
	case operators.NotEquals:
		return types.Bool(types.Equal(a, b) != types.True)
	}
	if list, ok := b.(traits.Container); ok {
		return list.Contains(a)
	}
	return types.NewErr("no such overload: in takes a list or an object, not a value of type %s", b.Type().TypeName())
}

func tooLarge(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper, *types.Optional:
		size := compared.ApproximateAggregateSize(v)
		return size.LimitExceeded || size.Size > 10*maxCompared
	}
	return false
}
