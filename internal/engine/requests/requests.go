// Package requests makes the requests of executions from a built-in kind, a version of a definition, or a task of a workflow. It decides
// nothing, and names what is wrong with a request in the user's terms.
package requests

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
)

// BuiltIn is the request for a built-in kind without a definition.
func BuiltIn(k flow.Kind, input json.RawMessage) flow.Request {
	return flow.Request{Action: string(k), Kind: k, Queue: flow.DefaultQueue, Input: input, Retry: k.Retry()}
}

// For makes the request for one version of a definition. An error is about the input, or an expression on it. w counts and bounds the work
// of expressions; nil: each value of the definition has its own bound.
func For(def *definition.Definition, version int, input json.RawMessage, labels, env map[string]string, w *definition.Work) (flow.Request, error) {
	labels = Merged(def.Settings.Labels, labels)
	run, err := def.Prepare(input, labels, env, w)
	if err != nil {
		return flow.Request{}, err
	}
	if err := CheckText("the key of the rate", run.Rate.Key, fault.KeyLimit); err != nil {
		return flow.Request{}, err
	}
	if err := CheckText("fair_by", run.Fair.By, fault.KeyLimit); err != nil {
		return flow.Request{}, err
	}
	r := flow.Request{
		Action: def.Name, Version: version, Kind: run.Kind, Queue: flow.DefaultQueue,
		Input: run.Input, With: run.With, Labels: labels,
		Key: run.Key, KeyLimit: run.KeyLimit, WhenFull: run.WhenFull, Fair: run.Fair, Rate: run.Rate, Retry: run.Kind.Retry(),
	}
	if !r.Kind.AdHoc() && !r.Kind.ByEngine() {
		r.Queue = string(r.Kind) // a custom handler's own queue: only programs that have it serve it
	}
	Apply(&r, &def.Settings)
	return r, nil
}

// Apply applies the settings of a definition or a task to a request.
func Apply(r *flow.Request, s *definition.Settings) {
	if s.Queue != "" || len(s.WorkerLabels) > 0 {
		r.Queue = flow.Reroute(r.Queue, s.Queue, s.WorkerLabels)
	}
	if s.Priority != nil {
		r.Priority = *s.Priority
	}
	r.Settings = s.Settings.Over(r.Settings)
	if s.Retry != nil {
		r.Retry = *s.Retry
	}
	r.Labels = Merged(r.Labels, s.Labels)
}

func Merged(a, b map[string]string) map[string]string {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	m := make(map[string]string, len(a)+len(b))
	maps.Copy(m, a)
	maps.Copy(m, b)
	return m
}

// CheckText refuses a text from an expression that a user could not have sent.
func CheckText(what, text string, limit int) error {
	switch {
	case len(text) > limit:
		return fmt.Errorf("%s has %d bytes, more than the %d allowed", what, len(text), limit)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return fmt.Errorf("%s %.60q has a NUL byte or is not UTF-8: remove the byte", what, text)
	}
	return nil
}
