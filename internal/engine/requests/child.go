package requests

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// DepthLimit is how deep workflows may nest.
const DepthLimit = 20

// Maker makes the requests of a workflow's children.
type Maker struct {
	Definition catalog.Loader
	// Workflow is the parent of the children, or the first execution of its chain of reruns: if an alias has several versions, all children
	// get the same one, and so do those of reruns.
	Workflow        string
	Priority, Depth int // the workflow's
}

// Request makes a child's request. If that is impossible, refusal is the error with which the child is created, to fail. A store that does
// not answer is a returned error instead. w counts and bounds the work of the action's expressions.
func (m Maker) Request(ctx context.Context, c *orchestration.Child, w *definition.Work) (flow.Request, *flow.Error, error) {
	r, err := m.action(ctx, c, w)
	if away := (unreadable{}); errors.As(err, &away) {
		return r, nil, away.error
	}
	if err == nil {
		if c.Task.Settings.Priority == nil && r.Priority == 0 {
			r.Priority = m.Priority
		}
		Apply(&r, &c.Task.Settings)
		if c.Key != "" {
			r.Key, r.KeyLimit, r.WhenFull, r.Fair = c.Key, c.KeyLimit, c.WhenFull, c.Fair
		}
		if c.Rate.Key != "" {
			r.Rate = c.Rate
		}
		if err = CheckText("the concurrency key", r.Key, fault.KeyLimit); err == nil {
			err = CheckText("the key of the rate", r.Rate.Key, fault.KeyLimit)
		}
		if err == nil {
			err = CheckText("fair_by", r.Fair.By, fault.KeyLimit)
		}
		if err == nil && m.Depth+1 > DepthLimit {
			err = fmt.Errorf("workflows nest deeper than %d", DepthLimit)
		}
	}
	if err != nil {
		r = flow.Request{Action: c.Task.Action, Kind: flow.KindNoop, Queue: flow.DefaultQueue, Input: c.Input}
		return r, &flow.Error{Code: flow.CodeInvalidInput, Message: err.Error()}, nil
	}
	return r, nil, nil
}

// unreadable is an error of the store, not of the request.
type unreadable struct{ error }

func (m Maker) action(ctx context.Context, c *orchestration.Child, w *definition.Work) (flow.Request, error) {
	if err := checkEnv(c.Env); err != nil {
		return flow.Request{}, err
	}
	if kind := flow.Kind(c.Action); kind.AdHoc() && !c.Workflow {
		input := c.Input
		if kind.RunsCode() {
			var err error
			if input, err = definition.MergeEnv(input, c.Env); err != nil {
				return flow.Request{}, err
			}
		}
		return BuiltIn(kind, input), nil
	}
	if err := CheckText("the name of the action or workflow", c.Action, fault.ActionLimit); err != nil {
		return flow.Request{}, err
	}
	def, version, err := m.Definition(ctx, c.Action, c.Version, m.Workflow)
	if err != nil && fault.Passing(err) {
		return flow.Request{}, unreadable{fmt.Errorf("action %q: %w", c.Action, err)}
	}
	if fault.Missing(err) {
		what := fmt.Sprintf("action or workflow %.100q", c.Action)
		if c.Version > 0 {
			what = fmt.Sprintf("version %d of %s", c.Version, what)
		}
		return flow.Request{}, fmt.Errorf("there is no %s: apply its definition, or name another one", what)
	}
	if err != nil {
		return flow.Request{}, fmt.Errorf("action %q: %w", c.Action, err)
	}
	if c.Workflow && def.Workflow == nil {
		return flow.Request{}, fmt.Errorf("%q is an action, not a workflow", c.Action)
	}
	r, err := For(def, version, c.Input, nil, c.Env, w)
	_, r.Alias, _ = strings.Cut(c.Action, "@")
	return r, err
}

// envLimit bounds the environment of a task, names and values together, in bytes: it must fit into what the operating system accepts for a
// new program.
const envLimit = 1 << 20

// checkEnv refuses an environment with which no program can start.
func checkEnv(env map[string]string) error {
	size := 0
	for name, value := range env {
		if err := CheckText("the environment's "+name, value, envLimit); err != nil {
			return err
		}
		size += len(name) + len(value)
	}
	if size > envLimit {
		return fmt.Errorf("the environment has %d bytes, more than the %d allowed: pass large values as input or as files", size, envLimit)
	}
	return nil
}
