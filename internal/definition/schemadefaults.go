package definition

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// filler fills in the defaults of one value.
type filler struct {
	steps int // steps left
}

// fill returns raw with the defaults of absent members added.
func (f *filler) fill(s *jsonschema.Schema, raw json.RawMessage, depth int) (json.RawMessage, bool, error) {
	if depth > strictjson.MaxDepth || s == nil {
		return raw, false, nil
	}
	if f.steps -= 1 + len(raw)/textPerStep; f.steps < 0 { // each call reads the text
		return nil, false, fmt.Errorf("filling in defaults takes more than %d steps: give the schema fewer alternatives that apply to the same value, or send a smaller value", checkSteps)
	}
	changed := false
	for _, sub := range append([]*jsonschema.Schema{s.Ref}, s.AllOf...) {
		next, c, err := f.fill(sub, raw, depth+1)
		if err != nil {
			return nil, false, err
		}
		raw, changed = next, changed || c
	}
	var next json.RawMessage
	var c bool
	var err error
	switch kind := jsonvalue.KindOf(raw); {
	case kind == "object" && len(s.Properties) > 0:
		next, c, err = f.fillObject(s, raw, depth)
	case kind == "list":
		next, c, err = f.fillList(s, raw, depth)
	default:
		return raw, changed, nil
	}
	if err != nil {
		return nil, false, err
	}
	return next, changed || c, nil
}

func (f *filler) fillObject(s *jsonschema.Schema, raw json.RawMessage, depth int) (json.RawMessage, bool, error) {
	out := []byte{'{'}
	seen := map[string]bool{}
	changed := false
	member := func(key string, value json.RawMessage) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonvalue.AppendText(out, key), ':'), value...)
	}
	err := strictjson.Members(raw, func(key string, value []byte) error {
		value, c, err := f.fill(s.Properties[key], value, depth+1)
		if err != nil {
			return err
		}
		changed = changed || c
		seen[key] = true
		member(key, value)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	for _, name := range sortedKeys(s.Properties) {
		def := defaultOf(s.Properties[name])
		if def == nil || seen[name] {
			continue
		}
		value, err := json.Marshal(*def)
		if err != nil {
			return nil, false, fmt.Errorf("write default of %q: %w", name, err)
		}
		member(name, value)
		changed = true
	}
	if !changed {
		return raw, false, nil
	}
	return append(out, '}'), true, nil
}

// defaultOf returns the default of a schema, or of the first one with a default that it refers to, or nil if there is none.
func defaultOf(s *jsonschema.Schema) *any {
	for s != nil && s.Default == nil {
		s = s.Ref
	}
	if s == nil {
		return nil
	}
	return s.Default
}

// checkDefaults refuses a default that the member's own schema does not allow: it would be filled in, and each input that relies on it
// would be refused.
func checkDefaults(g *graph) error {
	for _, s := range g.nodes {
		for _, name := range sortedKeys(s.Properties) {
			member := s.Properties[name]
			value := defaultOf(member)
			if value == nil {
				continue
			}
			text, err := json.Marshal(*value)
			if err != nil {
				return fmt.Errorf("write default of %q: %w", name, err)
			}
			_, err = g.affordable(member, *value, text, false)
			if err == nil {
				if err = member.Validate(*value); err == nil {
					continue
				}
				err = violations(err, "default", *value)
			}
			return g.errorAt(member, "write a default that the schema allows", "the default %s does not fit: %s", problem.Clip(string(text), 60), firstOf(err))
		}
	}
	return nil
}

// firstOf returns the first error without its place.
func firstOf(err error) string {
	if ps, ok := errors.AsType[Problems](err); ok && len(ps) > 0 {
		return ps[0].Message
	}
	return err.Error()
}

func (f *filler) fillList(s *jsonschema.Schema, raw json.RawMessage, depth int) (json.RawMessage, bool, error) {
	items := s.Items2020
	if items == nil {
		items, _ = s.Items.(*jsonschema.Schema)
	}
	if items == nil {
		return raw, false, nil
	}
	list, err := jsonvalue.Elements(raw)
	if err != nil {
		return nil, false, err
	}
	changed := false
	for i := range list {
		next, c, err := f.fill(items, list[i], depth+1)
		if err != nil {
			return nil, false, err
		}
		list[i], changed = next, changed || c
	}
	if !changed {
		return raw, false, nil
	}
	return joinItems(list), true, nil
}
