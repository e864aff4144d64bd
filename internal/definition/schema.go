package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/problem"
)

// Schema is a JSON Schema (2020-12 unless it names another version). It is immutable and safe for concurrent use.
type Schema struct {
	text    json.RawMessage
	compile func() (*compiledSchema, error)
	// defaults reports whether the text contains defaults.
	defaults bool
}

// compiledSchema is a schema within the limits.
type compiledSchema struct {
	*jsonschema.Schema
	graph *graph
}

// Limits of a schema's text; schemabounds.go has those of its meaning.
const (
	maxSchema       = 256 << 10 // bytes
	maxSchemaValues = 5_000
)

// schemaURL is the name of a schema while it is compiled.
const schemaURL = "pawl:input"

// noLoader refuses to load other schemas: parsing a definition must not access the network or the disk.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s would be loaded from elsewhere: only references within the schema (\"#/…\") are followed", problem.Clip(url, 100))
}

func newSchema(text json.RawMessage) *Schema {
	return &Schema{
		text:     text,
		defaults: strings.Contains(string(text), `"default"`),
		compile:  sync.OnceValues(func() (*compiledSchema, error) { return compileSchema(text) }),
	}
}

func compileSchema(text json.RawMessage) (*compiledSchema, error) {
	doc, err := jsonvalue.Decode(text)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.AssertFormat()
	c.UseRegexpEngine((&patterns{known: map[string]*pattern{}}).compile)
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	s, err := c.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	g, err := newGraph(s)
	if err != nil {
		return nil, err
	}
	if err := g.boundSizes(doc); err != nil {
		return nil, err
	}
	if err := checkDefaults(g); err != nil {
		return nil, err
	}
	return &compiledSchema{s, g}, nil
}

// validateInput checks the input of an execution against the definition's schema and fills in defaults. A nil input counts as null, or as
// {} if the schema requires an object. The error is of type Problems; the paths in it start with "input".
func validateInput(d *Definition, input json.RawMessage, w *Work) (json.RawMessage, error) {
	if d.Input == nil {
		return checkJSON(input, "input")
	}
	if err := d.Input.unasked(input, "input", true); err != nil {
		return nil, err
	}
	return d.Input.validate(input, "input", w)
}

// validate checks a value, which is called root in errors, and fills in defaults. It counts its steps in w, if there is one.
func (c *Schema) validate(input json.RawMessage, root string, w *Work) (json.RawMessage, error) {
	s, err := c.compile()
	if err != nil {
		return nil, Problems{{Path: root, Message: err.Error()}}
	}
	if jsonvalue.KindOf(input) == "null" && wantsObject(s.Schema) {
		input = json.RawMessage("{}")
	}
	val, err := jsonvalue.Decode(input)
	if err != nil {
		return nil, Problems{{Path: root, Message: err.Error(), Fix: "send one valid JSON value"}}
	}
	if c.defaults {
		f := filler{steps: budgetFor(input)}
		filled, changed, err := f.fill(s.Schema, input, 0)
		if err != nil {
			return nil, Problems{{Path: root, Message: err.Error()}}
		}
		if changed {
			input = filled
			if val, err = jsonvalue.Decode(input); err != nil {
				return nil, Problems{{Path: root, Message: err.Error()}}
			}
		}
	}
	steps, err := s.graph.affordable(s.Schema, val, input, w != nil)
	if err == nil {
		err = w.spend(steps * operationsPerStep)
	}
	if err != nil {
		return nil, Problems{{Path: root, Message: err.Error()}}
	}
	if len(input) > largeText {
		m := mistakes{root: root, value: val, most: mostMistakes}
		if m.within(s.Schema, val, nil); len(m.found) > 0 {
			return nil, m.found.Sorted()
		}
	}
	if err := s.Validate(val); err != nil {
		return nil, violations(err, root, val)
	}
	return input, nil
}

// checkJSON accepts any single JSON value that is not nested too deeply.
func checkJSON(input json.RawMessage, root string) (json.RawMessage, error) {
	if len(input) == 0 {
		return nil, nil
	}
	if _, err := jsonvalue.Decode(input); err != nil {
		return nil, Problems{{Path: root, Message: err.Error(), Fix: "send one valid JSON value"}}
	}
	return input, nil
}

func wantsObject(s *jsonschema.Schema) bool {
	for s.Ref != nil { // a chain of references cannot return to itself: newGraph refuses those
		s = s.Ref
	}
	if s.Types != nil {
		return slices.Equal(s.Types.ToStrings(), []string{"object"})
	}
	return len(s.Properties) > 0 || len(s.Required) > 0
}

// pathIn returns the path of a place in the value called root. The library names an element of a list in the same way as a field.
func pathIn(root string, value any, steps []string) string {
	for _, s := range steps {
		switch v := value.(type) {
		case []any:
			root += "[" + s + "]"
			if i, err := strconv.Atoi(s); err == nil && i >= 0 && i < len(v) {
				value = v[i]
			}
		case map[string]any:
			root, value = root+step{name: s}.suffix(), v[s]
		default:
			root += step{name: s}.suffix()
		}
	}
	return root
}

// violations returns the leaves of the library's tree of errors, which are the actual mistakes in a value.
func violations(err error, root string, value any) Problems {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return Problems{{Path: root, Message: err.Error()}}
	}
	printer := message.NewPrinter(language.English)
	var ps Problems
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(ps) >= maxProblems {
			return
		}
		if len(e.Causes) == 0 {
			p := Problem{Path: pathIn(root, value, e.InstanceLocation), Message: e.ErrorKind.LocalizedString(printer)}
			switch k := e.ErrorKind.(type) {
			case *kind.Type:
				if slices.Equal(k.Want, []string{"string"}) && (k.Got == "number" || k.Got == "boolean") {
					p.Fix = `write it in quotes, on a command line as '"47"'`
				}
			case *kind.Enum:
				p.Message, p.Fix = "it is none of "+jsonTexts(k.Want), nearestOf(k)
			case *kind.Const:
				p.Message = "it is not " + jsonTexts([]any{k.Want})
			case *kind.Minimum:
				p.Message = fmt.Sprintf("%s is less than %s", decimal(k.Got), decimal(k.Want))
			case *kind.Maximum:
				p.Message = fmt.Sprintf("%s is more than %s", decimal(k.Got), decimal(k.Want))
			case *kind.ExclusiveMinimum:
				p.Message = fmt.Sprintf("%s is not more than %s", decimal(k.Got), decimal(k.Want))
			case *kind.ExclusiveMaximum:
				p.Message = fmt.Sprintf("%s is not less than %s", decimal(k.Got), decimal(k.Want))
			case *kind.MultipleOf:
				p.Message = fmt.Sprintf("%s is not a multiple of %s", decimal(k.Got), decimal(k.Want))
			case *kind.Format: // the library adds the parser's message, such as: cannot parse "31.12.2026" as "2006"
				p.Message = fmt.Sprintf("it does not have the format %s: %v", k.Want, k.Got)
				if such := formats[k.Want]; such != "" {
					p.Fix = "write it as in " + such
				}
			}
			p.Message = problem.Clip(p.Message, 300)
			ps = append(ps, p)
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(ve)
	return ps.Sorted()
}

// formats has an example for each format that people fill in.
var formats = map[string]string{
	"date": "2026-12-31", "time": "23:59:00Z", "date-time": "2026-12-31T23:59:00Z", "duration": "P1DT12H", "email": "ada@example.com",
	"hostname": "db1.example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uri": "https://example.com/path",
	"uuid": "123e4567-e89b-12d3-a456-426614174000",
}

// decimal writes a number with all its digits: the library rounds 9007199254740993 to …992.
func decimal(r *big.Rat) string {
	digits, _ := r.FloatPrec()
	return problem.Clip(r.FloatString(digits), 60)
}

// jsonTexts lists values as JSON, because the string "1" and the number 1 are different values.
func jsonTexts(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			b = []byte(fmt.Sprint(v))
		}
		texts[i] = string(b)
	}
	return strings.Join(texts, ", ")
}

// schemaProblem is one reason why a text is not a JSON Schema.
type schemaProblem struct {
	steps   []string // place in the schema
	message string
	fix     string
	list    bool // a list was expected
}

func schemaProblems(err error) []schemaProblem {
	if bounds, ok := errors.AsType[*schemaError](err); ok {
		return []schemaProblem{{steps: bounds.steps, message: bounds.message, fix: bounds.fix}}
	}
	var invalid *jsonschema.SchemaValidationError
	var ve *jsonschema.ValidationError
	if !errors.As(err, &invalid) || !errors.As(invalid.Err, &ve) {
		msg := strings.ReplaceAll(err.Error(), schemaURL, "")
		return []schemaProblem{{message: problem.Clip(strings.Join(strings.Fields(msg), " "), 300)}}
	}
	printer := message.NewPrinter(language.English)
	var ps []schemaProblem
	// A "type" is one name or a list of names: if a string is not the name of a type, the error does not say that a list was expected.
	named := map[string]bool{}
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 && len(ps) < 20 {
			p := schemaProblem{steps: e.InstanceLocation, message: problem.Clip(e.ErrorKind.LocalizedString(printer), 300)}
			switch k := e.ErrorKind.(type) {
			case *kind.Enum:
				p.fix = nearestOf(k)
				named[strings.Join(p.steps, "/")] = true
			case *kind.Type:
				p.list = len(k.Want) == 1 && k.Want[0] == "array"
			}
			ps = append(ps, p)
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(ve)
	return slices.DeleteFunc(ps, func(p schemaProblem) bool { return p.list && named[strings.Join(p.steps, "/")] })
}

// nearestOf suggests the closest of the allowed texts.
func nearestOf(k *kind.Enum) string {
	got, ok := k.Got.(string)
	if !ok {
		return ""
	}
	var known []string
	for _, v := range k.Want {
		if s, ok := v.(string); ok {
			known = append(known, s)
		}
	}
	return problem.Nearest(got, known)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
