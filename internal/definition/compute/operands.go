package compute

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// noOverload is CEL's error for operands of types that a function does not accept; it does not name the types.
const noOverload = "no such overload"

// operands wraps a call so that its error names the types of the operands.
type operands struct{ interpreter.InterpretableCall }

// nameOperands wraps every call in operands.
func nameOperands(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if call, ok := i.(interpreter.InterpretableCall); ok {
		return &operands{call}, nil
	}
	return i, nil
}

// Exec implements CEL's InterpretableV2.
func (o *operands) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := o.InterpretableCall.Exec(frame)
	if err, ok := v.(*types.Err); ok && strings.HasPrefix(err.Error(), noOverload) && !strings.Contains(err.Error(), "; ") {
		return o.named(frame, v)
	}
	return v
}

// Eval implements CEL's Interpretable.
func (o *operands) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, o.Exec)
}

// named returns the error with the types of the operands and how to convert them; if an operand is itself an error, it returns the error
// unchanged.
func (o *operands) named(frame *interpreter.ExecutionFrame, fault ref.Val) ref.Val {
	var names []string
	for _, arg := range o.Args() {
		v := arg.Exec(frame)
		if types.IsUnknownOrError(v) {
			return fault
		}
		names = append(names, NameOf(v.Type().TypeName()))
	}
	message, fix := Refused(o.Function(), names)
	return types.NewErrWithNodeID(o.ID(), "%s: %s; %s", noOverload, message, fix)
}

var typeNames = map[string]string{
	"string": "a string", "int": "an integer", "uint": "an integer", "double": "a number with a fraction", "bool": "a boolean", "null_type": "null",
	"list": "a list", "map": "an object", "dyn": "a value of any type",
}

// NameOf returns the name of a CEL type for people. It leaves out the types of elements.
func NameOf(celType string) string {
	base, _, _ := strings.Cut(celType, "(")
	if name := typeNames[base]; name != "" {
		return name
	}
	return "a " + celType
}

// Refused returns the error for a function or operator that does not accept operands of these types, and its fix: the conversion for a
// common pair of types, else the functions that convert.
func Refused(function string, names []string) (message, fix string) {
	symbol, _ := operators.FindReverse(function)
	switch {
	case function == greatest:
		symbol = "math.greatest()"
	case function == least:
		symbol = "math.least()"
	case symbol == "":
		symbol = function + "()"
	}
	message = symbol + " does not take " + strings.Join(names, " and ")
	has := func(name string) bool { return slices.Contains(names, name) }
	number := has("an integer") || has("a number with a fraction")
	switch {
	case has("null"):
		return message, "default(x, y) gives y where x is null or absent"
	case has("a string") && function == operators.Add:
		return message, "string(x) makes a string of the other, int(x) or double(x) a number of the string"
	case has("a string") && number:
		return message, "int(x) or double(x) makes a number of the string, string(x) a string of the number"
	case has("an integer") && has("a number with a fraction"):
		return message, "double(x) makes the integer a number with a fraction, int(x) cuts a fraction off"
	case (has("a list") || has("an object")) && len(names) == 2:
		return message, "take an element of it, or json(x) for its text"
	}
	return message, "convert them with int(), double(), string() or json()"
}
