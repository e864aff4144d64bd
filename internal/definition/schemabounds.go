package definition

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-run/pawl/internal/problem"
)

// Users write schemas, and checks against them run while other users wait: a task's input is checked in the transaction of its workflow's
// step. Therefore only a limited dialect is accepted. A document is refused if its schema can apply to one value along more than maxPaths
// paths of $ref, allOf, anyOf and the like, or if it refers to itself without going into the value. A check that would take more steps than
// its budget is refused before it begins (schemacost.go).
const (
	// maxPaths limits the schemas that apply to one value, each counted once for every path of references to it. anyOf with two references to
	// the same schema, n levels deep, gives 2^n paths.
	maxPaths = 10_000
	// maxReferences limits the length of such a path: checking a value of 200 levels recurses 200 times as deep.
	maxReferences = 100
	// maxPatternProgram limits the instructions of all patterns together: 5,000 take 0.2 MB, and a match takes up to instructions × bytes
	// steps. (a?){900} alone has 1,800.
	maxPatternProgram = 5_000
)

// schemaError is the reason for refusing a schema, with its place in the schema.
type schemaError struct {
	steps        []string
	message, fix string
}

func (e *schemaError) Error() string {
	return strings.TrimPrefix("#/"+strings.Join(e.steps, "/")+": ", "#/: ") + e.message
}

// errorAt returns a schemaError at the place of a compiled schema.
func (g *graph) errorAt(s *jsonschema.Schema, fix, format string, args ...any) *schemaError {
	e := &schemaError{message: fmt.Sprintf(format, args...), fix: fix}
	// A built-in schema has no place in the user's text, so the place is that of the reference to it.
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

// graph is a compiled schema with all schemas that it refers to.
type graph struct {
	nodes    []*jsonschema.Schema
	loops    bool                                      // a schema may apply again within a value to which it applied
	from     map[*jsonschema.Schema]*jsonschema.Schema // schema from which each was found first; nil: the root
	perValue int                                       // largest number of steps for one value if there are no loops, without text
}

// newGraph collects the schemas and checks the limits.
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

// sizes are the keywords that the compiler reads as 64 bits: of maxItems 18446744073709551616 it would keep 0, and refuse every list.
var sizes = []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}

// boundSizes refuses sizes above those of 32 bits in the schemas of a document.
func (g *graph) boundSizes(doc any) error {
	for _, s := range g.nodes {
		at, value := g.errorAt(s, "leave it out: no value is that large", ""), doc
		for _, step := range at.steps {
			switch within := value.(type) {
			case map[string]any:
				value = within[step]
			case []any:
				if i, err := strconv.Atoi(step); err == nil && i < len(within) {
					value = within[i]
				}
			}
		}
		keywords, _ := value.(map[string]any)
		for _, keyword := range sizes {
			text := fmt.Sprint(keywords[keyword])
			if n, _ := strconv.ParseFloat(text, 64); n > math.MaxInt32 { // 0 where there is none
				at.steps, at.message = append(at.steps, keyword), fmt.Sprintf("%.40s is larger than %d", text, math.MaxInt32)
				return at
			}
		}
	}
	return nil
}

// inPlace returns the schemas that apply to the same value as s.
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

// inside returns the schemas that apply to the members, elements and names of the value to which s applies.
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

// boundPaths refuses a schema that applies to one value along too many paths, along a path that is too long, or along one that returns to
// itself.
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
		known[s] = bound{} // being visited
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

// stepsPerValue returns the largest number of steps per value in checking a whole value, or false if the schema loops, so that there is no
// such number. known has the results; -1: in progress.
func stepsPerValue(s *jsonschema.Schema, known map[*jsonschema.Schema]int) (int, bool) {
	if n, ok := known[s]; ok {
		return n, n >= 0
	}
	known[s] = -1
	n := ownSteps(s) + 1 // one for each member or element that it examines
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

// pattern is a regular expression in a schema.
type pattern struct {
	*regexp.Regexp
	instructions int
}

// patterns compiles the regular expressions of one schema within maxPatternProgram. It caches them, because the library compiles each
// several times.
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

// instructions estimates the number of instructions of a compiled regular expression without compiling it.
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
