package definition

import (
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// largeText is from how many bytes of text on the parts of a value are checked one by one first. The library makes an error of 600 bytes
	// for each part that does not fit: of a list of a million numbers that were to be texts, 600 MB.
	largeText = 128 << 10
	// mostMistakes is how many mistakes of a large value are named.
	mostMistakes = 20
	// smallValue is how many values a part may have that is checked at once.
	smallValue = 100
)

// mistakes looks for parts of a large value that do not fit, up to most. It finds those that no other part can make good: of anyOf and
// oneOf one in each alternative. What applies by not or if, and the keywords of large lists and objects themselves but for their type, are
// left to the check of the whole.
type mistakes struct {
	root  string
	value any
	most  int
	found Problems
}

// within looks at the parts of a list or an object to which s applies.
func (m *mistakes) within(s *jsonschema.Schema, value any, at []string) {
	if s.Ref != nil {
		m.within(s.Ref, value, at)
		if s.DraftVersion < 2019 {
			return
		}
	}
	for _, all := range s.AllOf {
		m.within(all, value, at)
	}
	m.alternatives(s.AnyOf, value, at)
	m.alternatives(s.OneOf, value, at)
	if len(m.found) >= m.most {
		return
	}
	switch v := value.(type) {
	case []any:
		for i, element := range v {
			if one := elementSchema(s, i); one != nil && !m.part(one, element, at, strconv.Itoa(i)) {
				return
			}
		}
	case map[string]any:
		for name, member := range v {
			for _, one := range memberSchemas(s, name) {
				if !m.part(one, member, at, name) {
					return
				}
			}
		}
	}
}

// alternatives looks for a mistake in each of several schemas of which one has to fit. The library makes errors for all the parts that do
// not fit one of them before it looks at the next.
func (m *mistakes) alternatives(all []*jsonschema.Schema, value any, at []string) {
	var found Problems
	for _, one := range all {
		first := mistakes{root: m.root, value: m.value, most: 1}
		if err := (&jsonschema.Schema{Types: one.Types}).Validate(value); err != nil {
			first.add(err, value, at)
		} else {
			first.within(one, value, at)
		}
		if len(first.found) == 0 {
			return
		}
		found = append(found, first.found[0])
	}
	m.found = append(m.found, found[:min(len(found), max(m.most-len(m.found), 0))]...)
}

// add notes why a part does not fit.
func (m *mistakes) add(err error, value any, place []string) {
	for _, p := range violations(err, "", value) {
		p.Path = pathIn(m.root, m.value, place) + p.Path
		m.found = append(m.found, p)
	}
}

// part looks at one part, and reports whether more mistakes may be named.
func (m *mistakes) part(s *jsonschema.Schema, value any, at []string, step string) bool {
	place := append(slices.Clip(at), step)
	left := smallValue
	if !fewValues(value, &left) {
		m.within(s, value, place)
	} else if err := s.Validate(value); err != nil {
		m.add(err, value, place)
	}
	return len(m.found) < m.most
}

// fewValues reports whether a value has no more values in it than are left.
func fewValues(value any, left *int) bool {
	*left--
	switch v := value.(type) {
	case []any:
		for i := 0; i < len(v) && *left >= 0; i++ {
			fewValues(v[i], left)
		}
	case map[string]any:
		for _, member := range v {
			if *left < 0 {
				break
			}
			fewValues(member, left)
		}
	}
	return *left >= 0
}

// elementSchema is the schema that the element i of a list has to fit; nil: none.
func elementSchema(s *jsonschema.Schema, i int) *jsonschema.Schema {
	if s.DraftVersion >= 2020 {
		if i < len(s.PrefixItems) {
			return s.PrefixItems[i]
		}
		return s.Items2020
	}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		return items
	case []*jsonschema.Schema:
		if i < len(items) {
			return items[i]
		}
	}
	additional, _ := s.AdditionalItems.(*jsonschema.Schema)
	return additional
}

// memberSchemas are the schemas that a member of an object has to fit.
func memberSchemas(s *jsonschema.Schema, name string) (all []*jsonschema.Schema) {
	if one := s.Properties[name]; one != nil {
		all = append(all, one)
	}
	for re, one := range s.PatternProperties {
		if re.MatchString(name) {
			all = append(all, one)
		}
	}
	if additional, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && len(all) == 0 {
		all = append(all, additional)
	}
	return all
}
