package definition

import (
	"fmt"
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A step of a check applies one schema to one value; it takes about a microsecond.
const (
	// checkSteps is how many steps the check of any value may take: 0.2 s of a processor.
	checkSteps = 200_000
	// stepsPerByte is how many more steps are allowed for each byte of the value's text: a list of eight million small numbers takes as many
	// steps and has 16 MB.
	stepsPerByte = 1
	// textPerStep is how many instructions of a pattern × bytes of a text cost one step.
	textPerStep = 100
)

// budgetFor returns how many steps the check of a JSON text may take.
func budgetFor(text []byte) int { return checkSteps + stepsPerByte*len(text) }

// ownSteps returns the steps of applying s to a value, without those of its subschemas.
func ownSteps(s *jsonschema.Schema) int {
	n := 1 + (len(s.Required)+len(s.DependentRequired))/16
	if s.Enum != nil {
		n += len(s.Enum.Values) / 16
	}
	return n
}

// costs computes how many steps a check would take. The library checks a value once for each path along which a schema applies to it; costs
// examines each pair of schema and value once, so it is fast even if the check would not be.
type costs struct {
	left int // pairs that may still be examined
	most int // allowed steps; larger sums are not distinguished
	seen map[application]int
}

// application is a schema that applies to an object or a list, identified by its address.
type application struct {
	s     *jsonschema.Schema
	value uintptr
}

// fewSteps is a number of steps that need not be counted exactly.
const fewSteps = 1_000

// affordable returns an error if the check of a decoded value takes more steps than its text allows. steps is their number, or 0 if they
// are few, or if they are certainly allowed and nothing counts them.
func (g *graph) affordable(root *jsonschema.Schema, value any, text []byte, counted bool) (steps int, err error) {
	most := budgetFor(text)
	enough := most
	if counted {
		enough = fewSteps
	}
	if !g.loops && g.perValue <= checkSteps && g.perValue*max(len(text), 1) <= enough {
		return 0, nil
	}
	c := &costs{most, most, map[application]int{}}
	if steps = c.of(root, value); steps > most {
		return steps, fmt.Errorf("checking it against the schema takes more than %d steps: give the schema fewer alternatives that apply to the same value, or send a smaller value", most)
	}
	return steps, nil
}

// of returns the steps of applying s to a value, or more than most.
func (c *costs) of(s *jsonschema.Schema, value any) int {
	if c.left--; c.left < 0 {
		return c.most + 1
	}
	var a application
	switch v := value.(type) {
	case map[string]any:
		a = application{s, reflect.ValueOf(v).Pointer()}
	case []any:
		if len(v) > 0 {
			a = application{s, reflect.ValueOf(v).Pointer()}
		}
	}
	if a.s != nil {
		if known, ok := c.seen[a]; ok {
			return known
		}
	}
	n := ownSteps(s)
	for _, next := range inPlace(s) {
		if n = c.sum(n, c.of(next, value)); n > c.most {
			return n
		}
	}
	switch v := value.(type) {
	case string:
		n = c.sum(n, c.text(s, v))
	case []any:
		n = c.sum(n, c.list(s, v))
	case map[string]any:
		n = c.sum(n, c.object(s, v))
	}
	if a.s != nil {
		c.seen[a] = n
	}
	return n
}

func (c *costs) sum(n, more int) int { return min(n+more, c.most+1) }

func (c *costs) text(s *jsonschema.Schema, text string) int {
	n := 0
	if s.Pattern != nil {
		n += matchSteps(s.Pattern, text)
	}
	if s.Format != nil {
		n += len(text) / textPerStep
		if s.Format.Name == "regex" { // the check compiles the text
			size, err := instructions(text)
			if err != nil {
				size = len(text)
			}
			n += size
		}
	}
	return n
}

func matchSteps(re jsonschema.Regexp, text string) int {
	return re.(*pattern).instructions * len(text) / textPerStep
}

func (c *costs) list(s *jsonschema.Schema, list []any) int {
	n := len(list) / 16
	for i, el := range list {
		for _, next := range elementSchemas(s, i) {
			if n = c.sum(n, c.of(next, el)); n > c.most {
				return n
			}
		}
	}
	return n
}

// elementSchemas returns the schemas that may apply to element i of a list to which s applies.
func elementSchemas(s *jsonschema.Schema, i int) (all []*jsonschema.Schema) {
	if i < len(s.PrefixItems) {
		all = append(all, s.PrefixItems[i])
	}
	for _, one := range []*jsonschema.Schema{s.Contains, s.Items2020, s.UnevaluatedItems} {
		if one != nil {
			all = append(all, one)
		}
	}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		all = append(all, items)
	case []*jsonschema.Schema:
		if i < len(items) {
			all = append(all, items[i])
		}
	}
	if one, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
		all = append(all, one)
	}
	return all
}

func (c *costs) object(s *jsonschema.Schema, object map[string]any) int {
	n := len(object) / 16
	for name, value := range object {
		next := []*jsonschema.Schema{s.Properties[name], s.UnevaluatedProperties}
		if one, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
			next = append(next, one)
		}
		for re, one := range s.PatternProperties {
			// The check matches the name too, so this match at most doubles the charged work.
			if n = c.sum(n, 1+matchSteps(re, name)); n > c.most {
				return n
			}
			if re.MatchString(name) {
				next = append(next, one)
			}
		}
		for _, one := range next {
			if one != nil {
				n = c.sum(n, c.of(one, value))
			}
		}
		if s.PropertyNames != nil {
			n = c.sum(n, c.of(s.PropertyNames, name))
		}
		if n > c.most {
			return n
		}
	}
	return n
}
