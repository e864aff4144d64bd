package definition

import (
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// largeText is the size of a text from which the parts of a value are first checked one by one. The library makes an error of 600 bytes
	// for each wrong part: 600 MB for a list of a million numbers that should be strings.
	largeText = 128 << 10
	// mostMistakes is how many mistakes of a large value are reported.
	mostMistakes = 20
	// smallValue is the number of values up to which a part is checked as a whole.
	smallValue = 100
)

// mistakes looks for wrong parts of a large value, up to most. It finds those that no other part can compensate: for anyOf and oneOf one in
// each alternative. Mistakes by not or if, and by keywords of large lists and objects other than type, are left to the check of the whole
// value.
type mistakes struct {
	root  string
	value any
	most  int
	found Problems
}

// within checks the parts of a list or an object to which s applies.
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

// alternatives looks for a mistake in each of several schemas, one of which has to match. The library makes errors for all wrong parts
// under one alternative before it tries the next.
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

// add records why a part is wrong.
func (m *mistakes) add(err error, value any, place []string) {
	for _, p := range violations(err, "", value) {
		p.Path = pathIn(m.root, m.value, place) + p.Path
		m.found = append(m.found, p)
	}
}

// part checks one part, and reports whether more mistakes may be recorded.
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

// fewValues reports whether a value consists of at most left values.
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

// elementSchema returns the schema for element i of a list, or nil if it has none.
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
