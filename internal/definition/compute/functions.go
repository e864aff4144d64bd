// Package compute has the functions that expressions can call, the limits on the cost of an evaluation, and the conversion of values to
// JSON.
package compute

import (
	"errors"
	"fmt"
	"math/big"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/parser"
)

// Functions are the functions for expressions in addition to CEL's standard library and its strings, math, encoders and bindings
// extensions. Functions of the strings extension whose work or result is the product of two sizes are replaced by limited ones, and so are
// all functions of the lists and sets extensions.
func Functions() []cel.EnvOption {
	list := cel.ListType(cel.DynType)
	text := cel.StringType
	on := func(id string, args []*cel.Type, result *cel.Type, f func(...ref.Val) (ref.Val, error)) cel.FunctionOpt {
		return cel.MemberOverload(id, args, result, cel.FunctionBinding(checked(f)))
	}
	of := func(id string, args []*cel.Type, result *cel.Type, f func(...ref.Val) (ref.Val, error)) cel.FunctionOpt {
		return cel.Overload(id, args, result, cel.FunctionBinding(checked(f)))
	}
	return append(conversions(), []cel.EnvOption{
		cel.CustomTypeAdapter(adapter{}),
		cel.Function("json", of("json_dyn", []*cel.Type{cel.DynType}, text, toText)),
		cel.Function("parse_json", of("parse_json_string", []*cel.Type{text}, cel.DynType, fromText)),
		cel.Function("default", cel.Overload("default_dyn_dyn", []*cel.Type{cel.DynType, cel.DynType}, cel.DynType,
			cel.BinaryBinding(orDefault), cel.OverloadIsNonStrict())),
		cel.Function("sum", of("sum_list", []*cel.Type{list}, cel.DynType, sum)),

		cel.Function("lists.range", of("range_int", []*cel.Type{cel.IntType}, cel.ListType(cel.IntType), countTo)),
		cel.Function("slice", on("list_slice_int_int", []*cel.Type{list, cel.IntType, cel.IntType}, list, slice)),
		cel.Function("reverse", on("list_reverse", []*cel.Type{list}, list, reverse), on("string_reverse", []*cel.Type{text}, text, reverseText)),
		cel.Function("distinct", on("list_distinct", []*cel.Type{list}, list, distinct)),
		cel.Function("flatten", on("list_flatten", []*cel.Type{list}, list, flatten)),
		cel.Function("sort", on("list_sort", []*cel.Type{list}, list, sortSelf)),
		cel.Function("@sort_by", on("list_sort_by", []*cel.Type{list, list}, list, sortKeys)),
		cel.Macros(cel.ReceiverMacro("sortBy", 2, sortByMacro)),

		cel.Function("sets.contains", of("sets_contains", []*cel.Type{list, list}, cel.BoolType, setsContain)),
		cel.Function("sets.intersects", of("sets_intersects", []*cel.Type{list, list}, cel.BoolType, setsIntersect)),
		cel.Function("sets.equivalent", of("sets_equivalent", []*cel.Type{list, list}, cel.BoolType, setsEqual)),

		cel.Function("@matches", of("text_matches_text", []*cel.Type{text, text}, cel.BoolType, matches)),
		cel.Macros(cel.ReceiverMacro("matches", 1, matchesMacro), cel.GlobalMacro("matches", 2, matchesMacro)),
		cel.Function("indexOf", on("string_index_of_string", []*cel.Type{text, text}, cel.IntType, indexOf),
			on("string_index_of_string_int", []*cel.Type{text, text, cel.IntType}, cel.IntType, indexOf)),
		cel.Function("lastIndexOf", on("string_last_index_of_string", []*cel.Type{text, text}, cel.IntType, lastIndexOf),
			on("string_last_index_of_string_int", []*cel.Type{text, text, cel.IntType}, cel.IntType, lastIndexOf)),
		cel.Function("substring", on("string_substring_int", []*cel.Type{text, cel.IntType}, text, substring),
			on("string_substring_int_int", []*cel.Type{text, cel.IntType, cel.IntType}, text, substring)),
		cel.Function("charAt", on("string_char_at_int", []*cel.Type{text, cel.IntType}, text, charAt)),
		cel.Function("replace", on("string_replace_string_string", []*cel.Type{text, text, text}, text, replace),
			on("string_replace_string_string_int", []*cel.Type{text, text, text, cel.IntType}, text, replace)),
		cel.Function("split", on("string_split_string", []*cel.Type{text, text}, cel.ListType(text), split),
			on("string_split_string_int", []*cel.Type{text, text, cel.IntType}, cel.ListType(text), split)),
		cel.Function("join", on("list_join", []*cel.Type{cel.ListType(text)}, text, joinTexts),
			on("list_join_string", []*cel.Type{cel.ListType(text), text}, text, joinTexts)),
		cel.Function("urlencode", of("urlencode_string", []*cel.Type{text}, text, urlEncode)),
		cel.Function("format", on("string_format", []*cel.Type{text, list}, text, format)),
	}...)
}

// checked converts errors to CEL's, and answers "no such overload" for arguments of other types than the overload's, which dyn lets
// through.
func checked(f func(...ref.Val) (ref.Val, error)) func(...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val {
		v, err := f(args...)
		if err != nil {
			return types.WrapErr(err)
		}
		return v
	}
}

func native(v any) ref.Val { return adapter{}.NativeToValue(v) }

// listOf returns the elements of a list that is within maxElements.
func listOf(v ref.Val) ([]ref.Val, error) {
	l, ok := v.(traits.Lister)
	if !ok {
		return nil, fmt.Errorf("want a list, not a value of type %s", v.Type().TypeName())
	}
	n, ok := l.Size().(types.Int)
	if !ok || n < 0 || n > maxElements {
		return nil, fmt.Errorf("the list has %v elements; at most %d are worked on", l.Size(), maxElements)
	}
	out := make([]ref.Val, 0, n)
	for it := l.Iterator(); it.HasNext() == types.True; {
		out = append(out, it.Next())
	}
	return out, nil
}

// orDefault returns y if x is null, absent or an error, else x.
func orDefault(x, y ref.Val) ref.Val {
	switch x := x.(type) {
	case *types.Err, types.Null:
		return y
	case *types.Optional:
		if !x.HasValue() {
			return y
		}
		return x.GetValue()
	}
	return x
}

// sum adds integers exactly; if one number is a float, it adds all as floats.
func sum(args ...ref.Val) (ref.Val, error) {
	list, err := listOf(args[0])
	if err != nil {
		return nil, fmt.Errorf("sum: %w", err)
	}
	whole, total, exact := new(big.Int), 0.0, true
	var long ref.Val // an integer that a float cannot represent
	for _, el := range list {
		n := new(big.Int)
		switch el := el.(type) {
		case types.Int:
			n.SetInt64(int64(el))
		case types.Uint:
			n.SetUint64(uint64(el))
		case types.Double:
			exact = false
			total += float64(el)
			continue
		case longNumber:
			return nil, fmt.Errorf("sum: %w", el.fault())
		default:
			return nil, fmt.Errorf("sum: a value of type %s is not a number", el.Type().TypeName())
		}
		whole.Add(whole, n)
		f, accuracy := new(big.Float).SetInt(n).Float64()
		if total += f; accuracy != big.Exact {
			long = el
		}
	}
	switch {
	case !exact && long != nil:
		return nil, fmt.Errorf("sum: the whole number %v is added to one that is not whole, and would lose digits; use double()", long.Value())
	case !exact:
		return types.Double(total), nil
	case whole.IsInt64():
		return types.Int(whole.Int64()), nil
	case whole.IsUint64():
		return types.Uint(whole.Uint64()), nil
	}
	return nil, errors.New("sum: the total does not fit into a whole number; use double()")
}

func countTo(args ...ref.Val) (ref.Val, error) {
	n := args[0].(types.Int)
	if n < 0 || n > maxElements {
		return nil, fmt.Errorf("lists.range: %d is not from 0 to %d", n, maxElements)
	}
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return native(out), nil
}

func slice(args ...ref.Val) (ref.Val, error) {
	list, err := listOf(args[0])
	if err != nil {
		return nil, fmt.Errorf("slice: %w", err)
	}
	from, to := int64(args[1].(types.Int)), int64(args[2].(types.Int))
	if from < 0 || to < from || to > int64(len(list)) {
		return nil, fmt.Errorf("slice: from %d to %d is not within a list of %d elements", from, to, len(list))
	}
	return native(list[from:to]), nil
}

func reverse(args ...ref.Val) (ref.Val, error) {
	list, err := listOf(args[0])
	if err != nil {
		return nil, fmt.Errorf("reverse: %w", err)
	}
	slices.Reverse(list)
	return native(list), nil
}

func flatten(args ...ref.Val) (ref.Val, error) {
	list, err := listOf(args[0])
	if err != nil {
		return nil, fmt.Errorf("flatten: %w", err)
	}
	var out []ref.Val
	for _, el := range list {
		inner, isList := el.(traits.Lister)
		if !isList {
			out = append(out, el)
			continue
		}
		if n, ok := inner.Size().(types.Int); !ok || n < 0 || n > maxElements || int(n)+len(out) > maxElements {
			return nil, fmt.Errorf("flatten: the list would have more than %d elements", maxElements)
		}
		for it := inner.Iterator(); it.HasNext() == types.True; {
			out = append(out, it.Next())
		}
	}
	return native(out), nil
}

// keysOf returns for every element a text that is the same only for equal elements.
func keysOf(v ref.Val) ([]ref.Val, []string, error) {
	list, err := listOf(v)
	if err != nil {
		return nil, nil, err
	}
	keys := make([]string, len(list))
	size := 0
	for i, el := range list {
		raw, err := encodeUpTo(el, maxText-size)
		if err != nil {
			return nil, nil, err
		}
		keys[i] = string(raw)
		size += len(raw)
	}
	return list, keys, nil
}

func distinct(args ...ref.Val) (ref.Val, error) {
	list, keys, err := keysOf(args[0])
	if err != nil {
		return nil, fmt.Errorf("distinct: %w", err)
	}
	seen := make(map[string]bool, len(list))
	out := []ref.Val{}
	for i, el := range list {
		if !seen[keys[i]] {
			seen[keys[i]] = true
			out = append(out, el)
		}
	}
	return native(out), nil
}

func setOf(v ref.Val) (map[string]bool, error) {
	_, keys, err := keysOf(v)
	set := make(map[string]bool, len(keys))
	for _, k := range keys {
		set[k] = true
	}
	return set, err
}

func sets(args []ref.Val) (a, b map[string]bool, err error) {
	if a, err = setOf(args[0]); err == nil {
		b, err = setOf(args[1])
	}
	return a, b, err
}

func within(a, b map[string]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return true
}

func setsContain(args ...ref.Val) (ref.Val, error) {
	a, b, err := sets(args)
	return types.Bool(within(b, a)), err
}

func setsEqual(args ...ref.Val) (ref.Val, error) {
	a, b, err := sets(args)
	return types.Bool(len(a) == len(b) && within(a, b)), err
}

func setsIntersect(args ...ref.Val) (ref.Val, error) {
	a, b, err := sets(args)
	for k := range a {
		if b[k] {
			return types.True, err
		}
	}
	return types.False, err
}

func sortSelf(args ...ref.Val) (ref.Val, error) { return sortKeys(args[0], args[0]) }

// sortKeys sorts a list by the keys of its elements, which must be of one kind: numbers, strings, booleans, times or durations. Elements
// with equal keys stay in order.
func sortKeys(args ...ref.Val) (ref.Val, error) {
	list, err := listOf(args[0])
	if err != nil {
		return nil, fmt.Errorf("sort: %w", err)
	}
	keys, err := listOf(args[1])
	if err != nil {
		return nil, fmt.Errorf("sort: %w", err)
	}
	if len(keys) != len(list) {
		return nil, fmt.Errorf("sort: %d elements have %d keys", len(list), len(keys))
	}
	at := make([]int, len(list))
	for i := range at {
		at[i] = i
	}
	var fault error
	slices.SortStableFunc(at, func(i, j int) int {
		if c, ok := order(keys[i], keys[j]).(types.Int); ok {
			return int(c)
		}
		if fault == nil {
			fault = fmt.Errorf("sort: a %s and a %s have no order", keys[i].Type().TypeName(), keys[j].Type().TypeName())
		}
		return 0
	})
	if fault != nil {
		return nil, fault
	}
	out := make([]ref.Val, len(list))
	for i, k := range at {
		out[i] = list[k]
	}
	return native(out), nil
}

// sortByMacro expands list.sortBy(x, key) to list.@sort_by(list.map(x, key)),
// with the list evaluated once.
func sortByMacro(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	const input = "@sorted"
	keys, err := parser.MakeMap(f, f.NewIdent(input), args)
	if err != nil {
		return nil, err
	}
	return f.NewComprehension(f.NewList(), "#unused", input, target, f.NewLiteral(types.False), f.NewIdent(input),
		f.NewMemberCall("@sort_by", f.NewIdent(input), keys)), nil
}

// matchesMacro renames the function matches, because CEL compiles its constant patterns by itself, without our limits.
func matchesMacro(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	if target != nil {
		args = append([]ast.Expr{target}, args...)
	}
	return f.NewCall("@matches", args...), nil
}
