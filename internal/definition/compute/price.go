package compute

import (
	"math/bits"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// prices computes the cost of calls, including CEL's own functions: CEL's own estimates ignore the copies that some of them make of a
// string.
type prices struct{}

// CallCost implements CEL's ActualCostEstimator. Every call costs the text that it reads and writes; some also cost the elements of lists.
// The factors 4, 10 and 1000 are chosen, not measured: with them every expression of TestHostileExpressionsStop ends in time (decision 25).
func (prices) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	n := uint64(1) + textWeight(result)
	for _, a := range args {
		n += textWeight(a)
	}
	if len(args) == 2 && args[0].Type() == types.TimestampType {
		if _, zone := args[1].(types.String); zone { // functions such as getHours('Europe/Berlin') read the zone's file
			n += 60
		}
	}
	switch function {
	case "json", "urlencode":
		n *= 4
	case operators.Equals, operators.NotEquals:
		n += compareCost(args[0]) + compareCost(args[1])
	case operators.In:
		if _, list := args[1].(traits.Lister); list {
			n += compareCost(args[1])
		}
		n += compareCost(args[0])
	case "sum", "slice", "format", "math.@max", "math.@min":
		for _, a := range args {
			n += weight(a)
		}
	case "lists.range":
		n += weight(result)
	case "flatten", "join", "split", "reverse":
		n += weight(args[0]) + weight(result)
	case "sort", "@sort_by":
		w := weight(args[0])
		n += w * uint64(bits.Len64(w))
	case "distinct":
		n += 4 * weight(args[0])
	case "sets.contains", "sets.intersects", "sets.equivalent":
		n += 4 * (weight(args[0]) + weight(args[1]))
	case "cel.@mapInsert": // it copies the map
		n += weight(args[0])/2 + weight(result)/2
	case "@matches":
		n += 1000 + weight(args[0])*(1+10*weight(args[1]))
	case "lastIndexOf":
		n += weight(args[0]) * weight(args[1])
	}
	return &n
}

func compareCost(v ref.Val) uint64 {
	if !composite(v) {
		return 0
	}
	return uint64(compared.AggregateSize(v)) / 2
}

func textWeight(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / 10
	case types.Bytes:
		return uint64(len(v)) / 10
	}
	return 0
}

// weight is the number of elements of a list or an object, or a tenth of the bytes of a text.
func weight(v ref.Val) uint64 {
	if sized, ok := v.(traits.Sizer); ok && composite(v) {
		if n, ok := sized.Size().(types.Int); ok && n > 0 {
			return uint64(n)
		}
	}
	return textWeight(v)
}
