package definition

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

const ratedDocument = `name: mail
action: noop
rate: {key: "mail:${{ input.to }}", limit: 6, per: 1m, burst: 2, over: drop}
---
name: flow
rate: {key: flows, limit: 1, per: 1h}
tasks:
  one: {action: mail, rate: {key: "${{ input.customer }}", limit: 10, per: 1s}}
`

func TestRate(t *testing.T) {
	t.Parallel()
	defs, err := Parse("r.yaml", []byte(ratedDocument))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range defs {
		if again, err := Decode(d.Canonical()); err != nil || string(again.Canonical()) != string(d.Canonical()) || again.Settings.Rate.Bound != d.Settings.Rate.Bound {
			t.Errorf("%s decoded: %v", d.Name, err)
		}
	}
	run, err := defs[0].Prepare(json.RawMessage(`{"to":"ada"}`), nil, nil, nil)
	if want := (flow.Rate{Key: "mail:ada", Limit: 6, Per: time.Minute, Burst: 2, Over: flow.OverDrop}); err != nil || run.Rate != want {
		t.Errorf("%+v, %v", run.Rate, err)
	}
	if _, err := defs[0].Prepare(json.RawMessage(`{}`), nil, nil, nil); err == nil || !strings.Contains(err.Error(), "rate.key") {
		t.Errorf("a key that cannot be evaluated: %v", err)
	}
	if b := defs[1].Settings.Rate.Bound; b.Burst != 1 || b.Over != flow.OverDelay || b.Per != time.Hour {
		t.Errorf("defaults: %+v", b)
	}
}

func TestFair(t *testing.T) {
	t.Parallel()
	defs, err := Parse("f.yaml", []byte("name: f\naction: noop\nconcurrency: {key: k, limit: 2, fair_by: '${{ input.by }}', weight: 3}\n---\nname: g\naction: noop\nconcurrency: {key: k}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if run, err := defs[0].Prepare(json.RawMessage(`{"by":"ada"}`), nil, nil, nil); err != nil || run.Fair != (flow.Fair{By: "ada", Weight: 3}) {
		t.Errorf("%+v, %v", run.Fair, err)
	}
	if run, err := defs[1].Prepare(nil, nil, nil, nil); err != nil || run.Fair != (flow.Fair{}) {
		t.Errorf("%+v, %v", run.Fair, err)
	}
	for src, want := range map[string]string{
		"fair_by: [a]":            "concurrency.fair_by: want a string",
		"fair_by: a, weight: 0":   "concurrency.weight:",
		"fair_by: a, weight: 101": "concurrency.weight:",
		"weight: 2":               "concurrency.weight: it says how many turns",
	} {
		if _, err := Parse("f.yaml", []byte("name: f\naction: noop\nconcurrency: {key: k, "+src+"}\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestRateProblems(t *testing.T) {
	t.Parallel()
	const head = "name: r\naction: noop\n"
	for src, want := range map[string]string{
		head + "rate: {limit: 1, per: 1s}":                      "r.yaml:3:7: rate: key is missing",
		head + "rate: {key: k, per: 1s}":                        "r.yaml:3:7: rate: limit is missing",
		head + "rate: {key: k, limit: 1}":                       "r.yaml:3:7: rate: per is missing",
		head + "rate: {key: k, limit: 0, per: 1s}":              "r.yaml:3:23: rate.limit:",
		head + "rate: {key: k, limit: 1, per: 0s}":              "rate.per:",
		head + "rate: {key: k, limit: 100000, per: 10ms}":       "more often than once a microsecond",
		head + "rate: {key: k, limit: 1, per: 1s, burst: -1}":   "rate.burst:",
		head + "rate: {key: k, limit: 1, per: 1s, over: queue}": "rate.over:",
		head + "rate: {key: k, limit: 1, per: 1s, most: 1h}":    `unknown field "most"`,
		head + "rate: 6": "r.yaml:3:7: rate:",
		head + "rate: {key: '${{ tasks.x }}', limit: 1, per: 1s}": "rate.key:",
	} {
		_, err := Parse("r.yaml", []byte(src))
		var ps Problems
		if !errors.As(err, &ps) || !slices.ContainsFunc(ps, func(p Problem) bool { return strings.Contains(p.String(), want) }) {
			t.Errorf("%s\ngives %v, want %s", src, err, want)
		}
	}
}
