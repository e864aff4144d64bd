package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// Items evaluates the foreach of a task to its items, or with `batch` to lists of items. An error is an *EvalError.
func (t *Task) Items(v *Vars) ([]json.RawMessage, error) {
	raw, err := t.Foreach.Eval(v)
	if err != nil {
		return nil, err
	}
	fault := func(err error) error {
		text := "…"
		if e := t.Foreach.root.expr; e != nil {
			text = e.text
		}
		return &EvalError{Field: t.Foreach.field, Expression: text, Err: err}
	}
	if kind := jsonvalue.KindOf(raw); kind != "list" {
		return nil, fault(fmt.Errorf("the value is %s, not a list", article(kind)))
	}
	items, err := jsonvalue.Elements(raw)
	if err != nil {
		return nil, fault(err)
	}
	if t.Batch == 0 {
		return items, nil
	}
	batches := make([]json.RawMessage, 0, (len(items)+t.Batch-1)/t.Batch)
	for len(items) > 0 {
		n := min(t.Batch, len(items))
		batches = append(batches, joinItems(items[:n]))
		items = items[n:]
	}
	return batches, nil
}

// Limit returns how many items of a foreach may be unfinished at the same time, 0 for all. An error is an *EvalError.
func (t *Task) Limit(v *Vars) (int, error) {
	if t.InFlightOf == nil {
		return t.InFlight, nil
	}
	raw, err := t.InFlightOf.Eval(v)
	if err != nil {
		return 0, err
	}
	val, err := jsonvalue.Decode(raw)
	n, whole := val.(int64)
	if err != nil || !whole || n < 1 || n > 100_000 {
		return 0, t.InFlightOf.root.expr.failed(fmt.Errorf("the value is %s, not a whole number from 1 to 100000", problem.Clip(string(raw), 60)))
	}
	return int(n), nil
}

// Child is the workflow that the built-in action `workflow` runs.
type Child struct {
	Name    string
	Version int // 0 is the latest
	Input   json.RawMessage
}

// SubWorkflow reads the evaluated `with` of the built-in action `workflow`.
func SubWorkflow(with json.RawMessage) (Child, error) {
	var c Child
	if jsonvalue.KindOf(with) != "object" {
		return c, fmt.Errorf("want an object with name and input, not %s", article(jsonvalue.KindOf(with)))
	}
	err := strictjson.Members(with, func(key string, raw []byte) error {
		switch key {
		case "name":
			if jsonvalue.KindOf(raw) != "string" {
				return fmt.Errorf("name is %s, not a string", article(jsonvalue.KindOf(raw)))
			}
			c.Name = plain(raw)
		case "version":
			n, err := strconv.Atoi(plain(raw))
			if err != nil || n < 1 {
				return fmt.Errorf("version %s is not a number from 1", problem.Clip(string(raw), 40))
			}
			c.Version = n
		case "input":
			c.Input = raw
		default:
			return fmt.Errorf("unknown field %q: the fields are name, version and input", problem.Clip(key, 60))
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	if c.Name == "" {
		return c, errors.New("the name of the workflow to run is empty")
	}
	if strings.ContainsRune(c.Name, '@') && (!byAlias(c.Name) || c.Version > 0) {
		return c, fmt.Errorf("the name %q of the workflow to run: after @ comes an alias, as in name@stable; give a version as version: 3", problem.Clip(c.Name, 60))
	}
	return c, nil
}

// byAlias reports whether s has the form name@stable.
func byAlias(s string) bool {
	name, alias, has := strings.Cut(s, "@")
	return has && name != "" && badName(name) == "" && IsAlias(alias)
}

// Run is the work of one execution of a definition.
type Run struct {
	Kind flow.Kind
	// Input has its defaults filled in.
	Input json.RawMessage
	// With is the content for the handler. If it is nil, Input is.
	With json.RawMessage
	// Key is the concurrency key; "": none.
	Key      string
	KeyLimit int
	WhenFull flow.WhenFull
	Fair     flow.Fair
	Rate     flow.Rate
}

// Prepare checks an execution's input, and evaluates the handler's content and the concurrency key. env is the environment of the workflow
// to which the execution belongs, or nil; it overrides the action's own. An error is of type Problems (for the input) or an *EvalError. w
// counts and limits the work; if it is nil, only each template is limited.
func (d *Definition) Prepare(input json.RawMessage, labels, env map[string]string, w *Work) (Run, error) {
	input, err := validateInput(d, input, w)
	if err != nil {
		return Run{}, err
	}
	r := Run{Kind: flow.KindWorkflow, Input: input}
	v := &Vars{Input: input, Labels: labels, Name: d.Name, Work: w}
	if a := d.Action; a != nil {
		r.Kind = flow.Kind(a.Kind)
		if a.Handler != "" {
			r.Kind = flow.Kind(a.Handler)
		}
		if a.With != nil {
			if r.With, err = a.With.Eval(v); err != nil {
				return Run{}, err
			}
		}
		if r.Kind.RunsCode() {
			if err := r.addEnv(d, v, env); err != nil {
				return Run{}, err
			}
		}
	}
	if c := d.Settings.Concurrency; c != nil {
		if r.Key, err = c.Key.Text(v); err != nil {
			return Run{}, err
		}
		r.KeyLimit, r.WhenFull = c.Limit, c.WhenFull
		if r.Fair, err = c.Fair(v); err != nil {
			return Run{}, err
		}
	}
	if c := d.Settings.Rate; c != nil {
		key, err := c.Key.Text(v)
		if err != nil {
			return Run{}, err
		}
		r.Rate = c.Of(key)
	}
	return r, nil
}

func (r *Run) addEnv(d *Definition, v *Vars, env map[string]string) error {
	own := map[string]string{}
	if d.Settings.Env != nil {
		var err error
		if own, err = d.Settings.Env.Texts(v); err != nil {
			return err
		}
	}
	maps.Copy(own, env)
	if len(own) == 0 && r.With == nil {
		return nil // the handler gets the input unchanged
	}
	with := r.With
	if with == nil {
		with = r.Input
	}
	merged, err := MergeEnv(with, own)
	if err != nil {
		return err
	}
	r.With = merged
	return nil
}

// MergeEnv adds an environment to the input of code, except variables that the input sets itself. The input's own variables are converted
// to text by the same rule as env: a number or a boolean as it is written, null as "".
func MergeEnv(with json.RawMessage, env map[string]string) (json.RawMessage, error) {
	if jsonvalue.KindOf(with) != "object" {
		if len(env) == 0 {
			return with, nil // the handler reports the error
		}
		return nil, fmt.Errorf("the input of code is %s, not an object", article(jsonvalue.KindOf(with)))
	}
	out := []byte{'{'}
	sep := func() {
		if len(out) > 1 {
			out = append(out, ',')
		}
	}
	all := maps.Clone(env)
	changed := len(env) > 0
	err := strictjson.Members(with, func(key string, raw []byte) error {
		switch kind := jsonvalue.KindOf(raw); {
		case key != "env":
			sep()
			out = append(append(jsonvalue.AppendText(out, key), ':'), raw...)
			return nil
		case kind == "null":
			return nil
		case kind != "object" && len(env) == 0:
			return strictjson.ErrStop // likewise
		case kind != "object":
			return fmt.Errorf("env is %s, not an object", article(kind))
		}
		return strictjson.Members(raw, func(name string, value []byte) error {
			if all == nil {
				all = map[string]string{}
			}
			changed = changed || jsonvalue.KindOf(value) != "string"
			all[name] = plain(value)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the input of code: %w", err)
	}
	if !changed {
		return with, nil
	}
	sep()
	out = append(jsonvalue.AppendText(out, "env"), ':')
	out = append(out, textObject(all)...)
	return append(out, '}'), nil
}
