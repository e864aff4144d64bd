package definition

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-run/pawl/internal/problem"
)

// Users write schemas, and what a schema asks for is worked out where other users wait: a task's input is checked in the transaction of
// its workflow's step. Therefore schemas are a bounded dialect. A schema that can apply to one value along more than maxPaths paths of
// $ref, allOf, anyOf and the like, or that refers to itself without looking into the value, is refused when its document is applied; a
// check that would take more steps than its budget has is refused before it begins (schemacost.go).
const (
	// maxPaths bounds the schemas that apply to one value, each counted once for every path of references that leads to it. With anyOf of
	// twice the same $ref, n deep, there are 2^n.
	maxPaths = 10_000
	// maxReferences bounds how many schemas such a path has: the check of a value 200 levels deep calls itself 200 times as often.
	maxReferences = 100
	// maxPatternProgram bounds the instructions of all patterns together: 5,000 take 0.2 MB, and a match takes up to instructions × bytes
	// steps. (a?){900} alone has 1,800.
	maxPatternProgram = 5_000
)

// schemaError is why a schema is refused, with its place in the schema.
type schemaError struct {
	steps        []string
	message, fix string
}

func (e *schemaError) Error() string {
	return strings.TrimPrefix("#/"+strings.Join(e.steps, "/")+": ", "#/: ") + e.message
}

// errorAt is a schemaError whose place is a compiled schema's.
func (g *graph) errorAt(s *jsonschema.Schema, fix, format string, args ...any) *schemaError {
	e := &schemaError{message: fmt.Sprintf(format, args...), fix: fix}
	// A schema that is built in has no place in what the user wrote: the place is that of the reference which leads there.
	for within, _, _ := strings.Cut(s.Location, "#"); within != schemaURL && g.from[s] != nil; within, _, _ = strings.Cut(s.Location, "#") {
		if s = g.from[s]; strings.HasPrefix(s.Location, schemaURL+"#") {
			e.message = fmt.Sprintf("in %s, to which it refers: %s", within, e.message)
		}
	}
	if _, place, ok := strings.Cut(s.Location, "#/"); ok {
		for step := range strings.SplitSeq(place, "/") {
			e.steps = append(e.steps, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		}
	}
	return e
}

// graph is a compiled schema with all that it refers to.
type graph struct {
	nodes    []*jsonschema.Schema
	loops    bool                                      // a schema may apply within a value to which it applied
	from     map[*jsonschema.Schema]*jsonschema.Schema // by which each was found first; nil: the root
	perValue int                                       // the most steps that one value takes, where nothing loops; text is not counted
}

// newGraph collects the schemas and checks their bounds.
func newGraph(root *jsonschema.Schema) (*graph, error) {
	g := &graph{from: map[*jsonschema.Schema]*jsonschema.Schema{root: nil}}
	g.nodes = append(g.nodes, root)
	for i := 0; i < len(g.nodes); i++ {
		s := g.nodes[i]
		if s.DynamicRef != nil || s.RecursiveRef != nil {
			return nil, g.errorAt(s, `write $ref: "#/…"`, "$dynamicRef and $recursiveRef are not supported: what they refer to is only known while a value is checked")
		}
		for _, next := range slices.Concat(inPlace(s), inside(s)) {
			if _, seen := g.from[next]; !seen {
				g.from[next] = s
				g.nodes = append(g.nodes, next)
			}
		}
	}
	if err := g.boundPaths(); err != nil {
		return nil, err
	}
	var ok bool
	if g.perValue, ok = stepsPerValue(root, map[*jsonschema.Schema]int{}); !ok {
		g.loops = true
	}
	return g, nil
}

// inPlace is the schemas that apply to the same value as s does.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat(s.AllOf, s.AnyOf, s.OneOf)
	for _, one := range []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else} {
		if one != nil {
			all = append(all, one)
		}
	}
	for _, name := range sortedKeys(s.DependentSchemas) {
		all = append(all, s.DependentSchemas[name])
	}
	for _, name := range sortedKeys(s.Dependencies) {
		if one, ok := s.Dependencies[name].(*jsonschema.Schema); ok {
			all = append(all, one)
		}
	}
	return all
}

// inside is the schemas that apply to the members, elements and names of the value to which s applies.
func inside(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Clone(s.PrefixItems)
	for _, one := range []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema} {
		if one != nil {
			all = append(all, one)
		}
	}
	for _, some := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch some := some.(type) {
		case *jsonschema.Schema:
			all = append(all, some)
		case []*jsonschema.Schema:
			all = append(all, some...)
		}
	}
	for _, name := range sortedKeys(s.Properties) {
		all = append(all, s.Properties[name])
	}
	for _, one := range s.PatternProperties {
		all = append(all, one)
	}
	return all
}

// boundPaths refuses a schema that applies to one value along too many paths, along too long a one, or along one that returns to itself.
func (g *graph) boundPaths() error {
	type bound struct{ paths, length int }
	known := map[*jsonschema.Schema]bound{}
	var visit func(s *jsonschema.Schema, above int) (bound, error)
	visit = func(s *jsonschema.Schema, above int) (bound, error) {
		if b, ok := known[s]; ok {
			if b.paths == 0 {
				return b, g.errorAt(s, "let it refer to itself only from within properties or items",
					"the schema refers to itself at the same value, so checking a value would never end")
			}
			return b, nil
		}
		if above > maxReferences {
			return bound{}, g.errorAt(s, "refer to the schema itself", "more than %d schemas refer to one another for one value", maxReferences)
		}
		known[s] = bound{} // it is being visited
		b := bound{1, 1}
		for _, next := range inPlace(s) {
			n, err := visit(next, above+1)
			if err != nil {
				return b, err
			}
			b.paths, b.length = min(b.paths+n.paths, maxPaths+1), max(b.length, n.length+1)
		}
		if b.paths > maxPaths {
			return b, g.errorAt(s, "name each alternative once", "more than %d paths of $ref, allOf, anyOf, oneOf and the like apply to one value", maxPaths)
		}
		if b.length > maxReferences {
			return b, g.errorAt(s, "refer to the schema itself", "more than %d schemas refer to one another for one value", maxReferences)
		}
		known[s] = b
		return b, nil
	}
	for _, s := range g.nodes {
		if _, err := visit(s, 0); err != nil {
			return err
		}
	}
	return nil
}

// stepsPerValue is the most steps that the check of a whole value takes for each value in it, and false where the schema loops, so that no
// number bounds them. known has the results; -1: under way.
func stepsPerValue(s *jsonschema.Schema, known map[*jsonschema.Schema]int) (int, bool) {
	if n, ok := known[s]; ok {
		return n, n >= 0
	}
	known[s] = -1
	n := ownSteps(s) + 1 // one for each member or element that it looks at
	for _, next := range slices.Concat(inPlace(s), inside(s)) {
		m, ok := stepsPerValue(next, known)
		if !ok {
			return 0, false
		}
		n = min(n+m, checkSteps+1)
	}
	for re := range s.PatternProperties {
		n = min(n+re.(*pattern).instructions, checkSteps+1)
	}
	if s.Pattern != nil {
		n = min(n+s.Pattern.(*pattern).instructions, checkSteps+1)
	}
	if s.Format != nil && s.Format.Name == "regex" {
		n = checkSteps + 1
	}
	known[s] = n
	return n, true
}

// pattern is a regular expression of a schema.
type pattern struct {
	*regexp.Regexp
	instructions int
}

// patterns compiles the regular expressions of one schema within maxPatternProgram. The library compiles each of them several times.
type patterns struct {
	known map[string]*pattern
	sum   int
}

func (p *patterns) compile(text string) (jsonschema.Regexp, error) {
	if known, ok := p.known[text]; ok {
		return known, nil
	}
	n, err := instructions(text)
	if err != nil {
		return nil, err
	}
	if p.sum += n; p.sum > maxPatternProgram {
		return nil, fmt.Errorf("%q is too large: the patterns of a schema compile to at most %d instructions together, and a repetition such as {900} counts 900 times",
			problem.Clip(text, 60), maxPatternProgram)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	known := &pattern{re, n}
	p.known[text] = known
	return known, nil
}

// instructions is about how many instructions a regular expression compiles to, found without compiling it.
func instructions(text string) (int, error) {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err
	}
	var count func(re *syntax.Regexp) int
	count = func(re *syntax.Regexp) int {
		n := 1
		if re.Op == syntax.OpLiteral {
			n = len(re.Rune)
		}
		for _, sub := range re.Sub {
			n += count(sub)
		}
		if re.Op == syntax.OpRepeat {
			n *= max(re.Min, re.Max, 1)
		}
		return min(n, 1<<20)
	}
	return count(re), nil
}
