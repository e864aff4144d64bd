package definition

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// unasked reports members of an object for which its schema has no property, if the schema does not say whether other members are allowed.
// JSON Schema would accept them. In an answer all of them are refused, since the form lists everything that was asked. In an input
// (misspelt) only members are refused whose names are close to a property that the input lacks: it would silently get the default.
func (c *Schema) unasked(value json.RawMessage, root string, misspelt bool) error {
	s, err := c.compile()
	if err != nil {
		return nil // validate reports it
	}
	schema := s.Schema
	for schema.Ref != nil { // a chain of references cannot return to itself: newGraph refuses those
		schema = schema.Ref
	}
	if len(schema.Properties) == 0 || !closable(schema) || jsonvalue.KindOf(value) != "object" {
		return nil
	}
	there, strange := map[string]bool{}, []string(nil)
	err = strictjson.Members(value, func(name string, _ []byte) error {
		if schema.Properties[name] != nil {
			there[name] = true
		} else if len(strange) < maxNear {
			strange = append(strange, name)
		}
		return nil
	})
	if err != nil || len(strange) == 0 {
		return nil
	}
	known := slices.Sorted(maps.Keys(schema.Properties))
	absent := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return there[name] })
	var ps Problems
	for _, name := range strange {
		fix := ""
		if len(absent) <= maxNear {
			fix = problem.Nearest(name, absent)
		}
		switch {
		case misspelt && fix == "":
			continue
		case fix == "":
			fix = problem.NearestOr("", known, "it asks for")
		}
		ps = append(ps, Problem{Path: problem.Join(root, name), Message: "there is no such field: " + strconv.Quote(problem.Clip(name, 60)), Fix: fix})
	}
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// maxNear limits how many names are compared with one another.
const maxNear = 200

// closable reports whether the properties of a schema alone determine its known members.
func closable(s *jsonschema.Schema) bool {
	return s.AdditionalProperties == nil && len(s.PatternProperties) == 0 && s.UnevaluatedProperties == nil && s.PropertyNames == nil &&
		len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) == 0 && s.If == nil && s.Not == nil && len(s.DependentSchemas) == 0 && s.DynamicRef == nil
}
