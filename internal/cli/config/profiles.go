package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/task"
)

// profilesKey is the key of the language profiles in the configuration file. They can only be set there.
const profilesKey = "languages"

var profileFields = map[string]func(p *task.Profile, n *yaml.Node) error{
	"aliases":        func(p *task.Profile, n *yaml.Node) (err error) { p.Aliases, err = texts(n); return },
	"extensions":     func(p *task.Profile, n *yaml.Node) (err error) { p.Extensions, err = texts(n); return },
	"file":           func(p *task.Profile, n *yaml.Node) (err error) { p.File, err = oneText(n); return },
	"files":          func(p *task.Profile, n *yaml.Node) (err error) { p.Files, err = textMap(n); return },
	"tools":          func(p *task.Profile, n *yaml.Node) (err error) { p.Tools, err = texts(n); return },
	"version":        func(p *task.Profile, n *yaml.Node) (err error) { p.Version, err = texts(n); return },
	"install":        func(p *task.Profile, n *yaml.Node) (err error) { p.Install, err = oneText(n); return },
	"compile":        func(p *task.Profile, n *yaml.Node) (err error) { p.Compile, err = texts(n); return },
	"built":          func(p *task.Profile, n *yaml.Node) (err error) { p.Built, err = texts(n); return },
	"run":            func(p *task.Profile, n *yaml.Node) (err error) { p.Run, err = texts(n); return },
	"check":          func(p *task.Profile, n *yaml.Node) (err error) { p.CheckSource, err = texts(n); return },
	"uncaught":       func(p *task.Profile, n *yaml.Node) (err error) { p.Uncaught, err = oneText(n); return },
	"message":        func(p *task.Profile, n *yaml.Node) (err error) { p.Message, err = texts(n); return },
	"out_of_memory":  func(p *task.Profile, n *yaml.Node) (err error) { p.OutOfMemory, err = oneText(n); return },
	"mounts":         func(p *task.Profile, n *yaml.Node) (err error) { p.Mounts, err = texts(n); return },
	"env":            func(p *task.Profile, n *yaml.Node) (err error) { p.Env, err = textMap(n); return },
	"limits":         func(p *task.Profile, n *yaml.Node) (err error) { p.Limits, err = limitsIn(n); return },
	"compile_limits": func(p *task.Profile, n *yaml.Node) (err error) { p.CompileLimits, err = limitsIn(n); return },
	"like":           func(p *task.Profile, n *yaml.Node) (err error) { p.Like, err = oneText(n); return },
	"warm":           func(p *task.Profile, n *yaml.Node) (err error) { p.Warm, err = warmIn(n); return },
	"override":       func(p *task.Profile, n *yaml.Node) (err error) { p.Override, err = strconv.ParseBool(n.Value); return },
}

// readProfiles reads the profiles in a configuration file. Every fault has its line, the value and the fix.
func readProfiles(file string, n *yaml.Node) (*task.Languages, error) {
	builtIn := task.BuiltInLanguages()
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d:%d: %s: want profiles by name, as in \"kotlin: {tools: [kotlinc], …}\"", file, n.Line, n.Column, profilesKey)
	}
	var problems []error
	var all []task.Profile
	report := func(at *yaml.Node, e api.FieldError) {
		e.File, e.Line, e.Column = file, at.Line, at.Column
		e.Path = strings.TrimSuffix(profilesKey+"."+e.Path, ".")
		problems = append(problems, errors.New(e.String()))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := strings.ToLower(key.Value)
		if err := language.CheckName(name); err != nil {
			report(key, api.FieldError{Path: key.Value, Message: err.Error()})
			continue
		}
		p := task.Profile{Name: name}
		before := len(problems)
		readProfile(&p, value, func(at *yaml.Node, e api.FieldError) {
			e.Path = strings.TrimSuffix(name+"."+e.Path, ".")
			report(at, e)
		})
		if len(problems) > before {
			continue
		}
		for _, f := range p.Check() {
			at := nodeAt(value, f.Path)
			f.Path = name + "." + f.Path
			report(at, f)
		}
		all = append(all, p)
	}
	languages, faults := builtIn.With(all)
	for _, f := range faults {
		report(nodeAt(n, f.Path), f)
	}
	return languages, errors.Join(problems...)
}

func readProfile(p *task.Profile, n *yaml.Node, report func(*yaml.Node, api.FieldError)) {
	if n.Kind != yaml.MappingNode {
		report(n, api.FieldError{Message: "it is not a profile", Fix: "write its fields, such as tools, compile and run"})
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, ok := profileFields[key.Value]
		if !ok {
			names := slices.Sorted(maps.Keys(profileFields))
			report(key, api.FieldError{Path: key.Value, Message: "it is not a field of a profile", Fix: "one of " + strings.Join(names, ", ")})
			continue
		}
		err := read(p, value)
		faults, several := errors.AsType[problem.List](err)
		switch {
		case several:
			for _, f := range faults {
				at := nodeAt(value, f.Path)
				f.Path = key.Value + "." + f.Path
				report(at, api.FieldError(f))
			}
		case err != nil:
			report(value, api.FieldError{Path: key.Value, Message: err.Error()})
		}
	}
}

// nodeAt finds the node of a path such as "run[1]" or "files.a/b" beneath n, or the last existing node on the path.
func nodeAt(n *yaml.Node, path string) *yaml.Node {
	name, index, listed := strings.Cut(strings.TrimSuffix(path, "]"), "[")
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if k, err := strconv.Atoi(index); key.Value == name && listed && err == nil && k < len(value.Content) {
			return value.Content[k]
		}
		if key.Value == name {
			return value
		}
		if rest, ok := strings.CutPrefix(path, key.Value+"."); ok {
			return nodeAt(value, rest)
		}
	}
	return n
}

func oneText(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", errors.New("want a text")
	}
	return n.Value, nil
}

// texts reads a list of strings. A single string is refused: "a b" could be one argument or two, and the profile must decide.
func texts(n *yaml.Node) ([]string, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, errors.New(`want a list, as in ["{tool}", "{file}"]`)
	}
	all := make([]string, len(n.Content))
	for i, item := range n.Content {
		var err error
		if all[i], err = oneText(item); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return all, nil
}

func textMap(n *yaml.Node) (map[string]string, error) {
	if n.Kind != yaml.MappingNode {
		return nil, errors.New("want texts by name, as in {NAME: text}")
	}
	all := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		text, err := oneText(n.Content[i+1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Content[i].Value, err)
		}
		all[n.Content[i].Value] = text
	}
	return all, nil
}

func warmIn(n *yaml.Node) (*task.Warm, error) {
	if n.Kind != yaml.MappingNode {
		return nil, errors.New("want what they import, as in {imports: [numpy]}, or {}")
	}
	w := new(task.Warm)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != "imports" {
			return nil, fmt.Errorf("%s: it is not a field of warm; the only one is imports", n.Content[i].Value)
		}
		var err error
		if w.Imports, err = texts(n.Content[i+1]); err != nil {
			return nil, fmt.Errorf("imports: %w", err)
		}
	}
	return w, nil
}

// limitsIn reads limits with the API's own decoder, so that both accept the same.
func limitsIn(n *yaml.Node) (api.CodeLimits, error) {
	given, err := textMap(n)
	if err != nil {
		return api.CodeLimits{}, err
	}
	return LimitsFrom(given)
}

func LimitsFrom(given map[string]string) (api.CodeLimits, error) {
	fields := map[string]any{}
	for k, v := range given {
		fields[k] = v
		if n, err := strconv.Atoi(v); err == nil {
			fields[k] = n
		} else if n, err := strconv.ParseFloat(v, 64); k == "cpus" && err == nil && !strings.ContainsAny(v, "_xX") &&
			!math.IsInf(n, 0) && !math.IsNaN(n) {
			fields[k] = n
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return api.CodeLimits{}, fmt.Errorf("encode limits: %w", err)
	}
	return payload.Limits(raw)
}
