package compute

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/pawl-run/pawl/internal/jsonvalue"
)

// longNumber is a number that CEL's int, uint and double cannot represent exactly, such as 123456789012345678901, as it is written. It can
// be passed on, compared and written exactly. Arithmetic with it is an error, like an overflow.
type longNumber string

var longNumberType = types.NewObjectType("number", traits.ComparerType, traits.AdderType, traits.SubtractorType, traits.MultiplierType, traits.DividerType, traits.ModderType,
	traits.NegatorType)

func (n longNumber) fault() error {
	return fmt.Errorf("the number %.40s has more digits than can be computed with, or is beyond the range; double() rounds it within that", string(n))
}

func (n longNumber) refuse() ref.Val { return types.WrapErr(n.fault()) }

func (n longNumber) decimal() jsonvalue.Decimal {
	d, _ := jsonvalue.DecimalOf(string(n))
	return d
}

// decimalOf returns the decimal of one of CEL's numbers.
func decimalOf(v ref.Val) (d jsonvalue.Decimal, ok bool) {
	switch v := v.(type) {
	case types.Int, types.Uint:
		return jsonvalue.DecimalOf(fmt.Sprint(v.Value()))
	case types.Double:
		d = jsonvalue.DecimalOfFloat(float64(v))
		return d, d.Float() == float64(v) // false for an infinity and for NaN
	case longNumber:
		return v.decimal(), true
	}
	return d, false
}

func (n longNumber) Compare(other ref.Val) ref.Val {
	d, ok := decimalOf(other)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return types.Int(n.decimal().Compare(d))
}

func (n longNumber) Equal(other ref.Val) ref.Val {
	d, ok := decimalOf(other)
	return types.Bool(ok && n.decimal().Compare(d) == 0)
}

func (n longNumber) Add(ref.Val) ref.Val      { return n.refuse() }
func (n longNumber) Subtract(ref.Val) ref.Val { return n.refuse() }
func (n longNumber) Multiply(ref.Val) ref.Val { return n.refuse() }
func (n longNumber) Divide(ref.Val) ref.Val   { return n.refuse() }
func (n longNumber) Modulo(ref.Val) ref.Val   { return n.refuse() }
func (n longNumber) Negate() ref.Val          { return n.refuse() }

func (n longNumber) ConvertToType(to ref.Type) ref.Val {
	switch to {
	case types.StringType:
		return types.String(n)
	case types.DoubleType:
		f := n.decimal().Float()
		if math.IsInf(f, 0) || f == 0 {
			return types.NewErr("the number %.40s is beyond the range of a double", string(n))
		}
		return types.Double(f)
	case types.TypeType:
		return longNumberType
	case types.IntType, types.UintType:
		return n.refuse()
	}
	return types.NewErr("type conversion error from '%s' to '%s'", longNumberType, to)
}

func (n longNumber) ConvertToNative(to reflect.Type) (any, error) {
	if to == reflect.TypeFor[json.Number]() {
		return json.Number(n), nil
	}
	return nil, n.fault()
}

func (n longNumber) Type() ref.Type { return longNumberType }
func (n longNumber) Value() any     { return json.Number(n) }

// conversions are CEL's conversion functions for a longNumber.
func conversions() []cel.EnvOption {
	to := func(name string, t *cel.Type) cel.EnvOption {
		return cel.Function(name, cel.Overload("number_to_"+name, []*cel.Type{longNumberType}, t, cel.UnaryBinding(func(v ref.Val) ref.Val { return v.ConvertToType(t) })))
	}
	return []cel.EnvOption{to("string", cel.StringType), to("double", cel.DoubleType), to("int", cel.IntType), to("uint", cel.UintType)}
}

// adapter converts values from jsonvalue.Decode for expressions.
type adapter struct{}

func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case json.Number:
		return longNumber(v)
	case map[string]any:
		return types.NewStringInterfaceMap(a, v)
	case []any:
		return types.NewDynamicList(a, v)
	case []ref.Val:
		return types.NewRefValList(a, v)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}
