package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/pawl-run/pawl/internal/problem"
)

// typed is the known type of a value before it exists: from the schema of an input, from Pawl's own types, or from the form of an
// expression. nil: unknown.
type typed struct {
	kind   typeKind
	words  []string // possible texts; nil: any
	elem   *typed   // of a list
	fields map[string]*typed
	closed bool // an object that cannot have other fields
}

type typeKind uint8

const (
	typeNull typeKind = iota
	typeBool
	typeInteger
	typeFraction // a number with a fraction, such as 1.5
	typeNumber   // either of them
	typeText
	typeList
	typeObject
)

var typeNames = [...]string{"null", "a boolean", "an integer", "a number with a fraction", "a number", "a string", "a list", "an object"}

func (t *typed) String() string { return typeNames[t.kind] }

func (t *typed) number() bool {
	return t.kind == typeInteger || t.kind == typeFraction || t.kind == typeNumber
}

func (t *typed) member(name string) *typed {
	if t == nil {
		return nil
	}
	return t.fields[name]
}

// lacks reports whether no value of the type has the field.
func (t *typed) lacks(field string) bool {
	if t == nil || t.kind == typeNull {
		return false
	}
	_, known := t.fields[field]
	return t.kind != typeObject || t.closed && !known
}

// nearest returns the fix for a field that an object of the type lacks.
func (t *typed) nearest(field string) string {
	if len(t.fields) == 0 {
		return ""
	}
	return problem.NearestOr(field, slices.Sorted(maps.Keys(t.fields)), "it has")
}

// deepestType is the depth to which schemas are examined; below it nothing is known.
const deepestType = 20

// schemaType returns the type of the values that a schema allows. What a schema leaves open is unknown; a keyword next to type can only
// narrow it.
func schemaType(v *value, depth int) *typed {
	if v == nil || v.kind != objectValue || depth > deepestType {
		return nil
	}
	t := declaredType(v)
	if t == nil {
		return nil
	}
	switch t.kind {
	case typeList:
		t.elem = schemaType(v.get("items"), depth+1)
	case typeObject:
		others := v.get("additionalProperties")
		t.closed = others != nil && others.kind == boolValue && others.text == "false" && v.get("patternProperties") == nil
		if p := v.get("properties"); p != nil && p.kind == objectValue {
			t.fields = make(map[string]*typed, len(p.fields))
			for _, f := range p.fields {
				t.fields[f.name] = schemaType(f.value, depth+1)
			}
		}
	}
	return t
}

var schemaTypes = map[string]typeKind{
	"null": typeNull, "boolean": typeBool, "integer": typeInteger, "number": typeNumber, "string": typeText, "array": typeList, "object": typeObject,
}

// declaredType returns the type given by type, enum or const.
func declaredType(v *value) *typed {
	t := v.get("type")
	if t != nil && t.kind == listValue && len(t.list) == 1 {
		t = t.list[0]
	}
	all := v.get("enum")
	if c := v.get("const"); c != nil {
		all = &value{kind: listValue, list: []*value{c}}
	}
	var words []string
	if all != nil && all.kind == listValue && len(all.list) > 0 && !slices.ContainsFunc(all.list, func(el *value) bool { return el.kind != textValue }) {
		for _, el := range all.list {
			words = append(words, el.text)
		}
	}
	switch {
	case t != nil && t.kind == textValue:
		kind, known := schemaTypes[t.text]
		if !known {
			return nil
		}
		return &typed{kind: kind, words: words}
	case t == nil && words != nil:
		return &typed{kind: typeText, words: words}
	case t == nil && v.get("properties") != nil:
		return &typed{kind: typeObject} // other values are allowed as well, but an expression that selects a member expects an object
	}
	return nil
}

// statusWords are the possible statuses of a task that has ended.
var statusWords = []string{string(StatusCompleted), string(StatusFailed), string(StatusSkipped), string(StatusCancelled), string(StatusTimedOut)}

var (
	textType    = &typed{kind: typeText}
	boolType    = &typed{kind: typeBool}
	integerType = &typed{kind: typeInteger}
	statusType  = &typed{kind: typeText, words: statusWords}
	errorType   = &typed{kind: typeObject, fields: map[string]*typed{"code": textType, "message": textType}}
)

// endType is the type of the signal for an execution's end, as far as conditions compare it with words.
var endType = &typed{kind: typeObject, fields: map[string]*typed{"data": {kind: typeObject, fields: map[string]*typed{
	"action": textType, "version": integerType, "attempt": integerType, "output_size": integerType, "error": errorType,
	"status": {kind: typeText, words: []string{string(StatusCompleted), string(StatusFailed), string(StatusCancelled), string(StatusTimedOut)}},
}}}}

// rootType returns the known type of a variable in the current document and task.
func (b *builder) rootType(name string, s scope) *typed {
	switch name {
	case "input":
		return b.inputType
	case "item":
		return b.itemType
	case "signal":
		if s == scopeSignal {
			return b.signalType
		}
	case "index", "round":
		return integerType
	case "status":
		return statusType
	case "error":
		return errorType
	}
	return nil
}

// memberType returns the type of tasks.NAME.FIELD.
func memberType(field string) *typed {
	switch field {
	case "status":
		return statusType
	case "error":
		return errorType
	}
	return nil
}

func (b *builder) pathType(p *path, s scope) *typed {
	t, steps := b.beginType(p, s)
	for _, st := range steps {
		t = t.at(st)
	}
	return t
}

// pathFaults returns an error for the first field of a path that no value can have.
func (b *builder) pathFaults(p *path, s scope) []issue {
	t, steps := b.beginType(p, s)
	for i, st := range steps {
		if st.byIdx && t != nil && t.kind != typeList && t.kind != typeObject && t.kind != typeNull {
			return []issue{{1, 0, fmt.Sprintf("%s (%s) has no elements", t, problem.Clip(before(p, len(p.steps)-len(steps)+i), 60)), ""}}
		}
		if !st.byIdx && t.lacks(st.name) {
			return []issue{{1, 0, fmt.Sprintf("%s (%s) has no field %q", t, problem.Clip(before(p, len(p.steps)-len(steps)+i), 60), st.name), t.nearest(st.name)}}
		}
		t = t.at(st)
	}
	return nil
}

// before returns the text of a path up to one of its steps.
func before(p *path, step int) string {
	text := p.root
	for _, done := range p.steps[:step] {
		text += done.suffix()
	}
	return text
}

// beginType returns the known type of the value at which a path begins, and the remaining steps.
func (b *builder) beginType(p *path, s scope) (*typed, []step) {
	if p.root == "tasks" {
		return memberType(p.steps[1].name), p.steps[2:]
	}
	return b.rootType(p.root, s), p.steps
}

// at returns the known type of the value to which one step leads.
func (t *typed) at(st step) *typed {
	switch {
	case t == nil:
		return nil
	case st.byIdx:
		return t.elem
	}
	return t.member(st.name)
}

// celType returns the type that CEL's own check found.
func celType(t *cel.Type) *typed {
	if t == nil {
		return nil
	}
	switch t.Kind() {
	case types.BoolKind:
		return boolType
	case types.IntKind:
		return integerType
	case types.DoubleKind:
		return &typed{kind: typeFraction}
	case types.StringKind:
		return textType
	case types.NullTypeKind:
		return &typed{kind: typeNull}
	case types.ListKind:
		if p := t.Parameters(); len(p) == 1 {
			return &typed{kind: typeList, elem: celType(p[0])}
		}
		return &typed{kind: typeList}
	case types.MapKind:
		return &typed{kind: typeObject}
	}
	return nil
}

// exprType returns the known type of an expression that is a path; nil for others, whose type CEL knows.
func (b *builder) exprType(e *expression) *typed {
	if e.path == nil || b.trusted {
		return nil
	}
	return b.pathType(e.path, e.scope)
}

// elementType returns the known type of the elements of a foreach.
func (b *builder) elementType(v *value, t *Template) *typed {
	switch {
	case t == nil:
	case t.root.expr != nil:
		if of := b.exprType(t.root.expr); of != nil {
			return of.elem
		}
	case v.kind == listValue && len(v.list) > 0:
		var all *typed
		for i, el := range v.list {
			of := valueType(el)
			if i > 0 {
				of = common(all, of)
			}
			if all = of; all == nil {
				break
			}
		}
		return all
	}
	return nil
}

// valueType returns the type of a value that is written out; nil for texts with expressions, and for deeper values.
func valueType(v *value) *typed {
	switch v.kind {
	case boolValue:
		return boolType
	case numberValue:
		if strings.ContainsAny(v.text, ".eE") {
			return nil // the value may still be an integer
		}
		return integerType
	case textValue:
		if v.fixed() {
			return textType
		}
	}
	return nil
}
