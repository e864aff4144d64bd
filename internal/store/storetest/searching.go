package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// BenchmarkSearches measures lists by each kind of filter, as the API requests them, on a store in which twenty executions have the action
// "rare" and the label set=rare, half of the others have the label set=half, a few are Graded, and none has failed or is unfinished.
func BenchmarkSearches(b *testing.B, s store.Store) {
	for say, f := range map[string]store.Filter{
		"newest": {}, "top level": {TopLevel: true}, "action": {Action: "rare"}, "rare label": {Labels: map[string]string{"set": "rare"}},
		"half label": {Labels: map[string]string{"set": "half"}}, "half label, action": {Labels: map[string]string{"set": "half"}, Action: "rare"},
		"verdict": {Verdicts: []string{"oom"}}, "running": {Stages: []flow.Stage{flow.Provisioning, flow.Running}},
		"failed": {Stages: []flow.Stage{flow.Failed, flow.TimedOut}}, "time": {Until: time.Unix(1, 0)}, "oldest, action": {Oldest: true, Action: "rare", After: flow.ID{1}},
	} {
		b.Run(say, func(b *testing.B) {
			f.Limit, f.Reach = 100, 40_000
			measured(b, func() error {
				_, err := s.Search(b.Context(), f)
				return err
			})
		})
	}
}

// BenchmarkWalks measures searches by a condition that the store cannot evaluate, to the end of their reach, through all executions and
// through those with a label that half of them have.
func BenchmarkWalks(b *testing.B, s store.Store) {
	for say, f := range map[string]store.Filter{"condition": {}, "condition, half label": {Labels: map[string]string{"set": "half"}}, "condition, rare label": {Labels: map[string]string{"set": "rare"}}} {
		b.Run(say, func(b *testing.B) {
			f.Reach, f.Within = 40_000, 75*time.Millisecond // the values of the server
			looked := 0
			measured(b, func() error {
				looked = 0
				_, _, err := store.Walk(b.Context(), s, f, func(page []*flow.Execution) (bool, error) {
					looked += len(page)
					return slices.ContainsFunc(page, func(x *flow.Execution) bool { return x.Queue == "absent" || x.Version > 3 }), nil
				})
				return err
			})
			b.ReportMetric(float64(looked), "looked")
		})
	}
}

// Graded is an evaluation as the Batches page lists them: it has a label, and its last event has the results of its cases.
var Graded = flow.Request{Action: "code", Kind: flow.KindCode, Queue: "default", Input: []byte("{}"), Labels: map[string]string{"set": "graded"}}

// gradedEnd is the data of the last event of an evaluation with 100 cases.
var gradedEnd = flow.EndData(nil, json.RawMessage(`{"total": 100, "passed": 100, "cells": "`+strings.Repeat("P", 100)+`", "wall_ms": 1234.5, "cpu_ms": 1200.5, "peak_memory_bytes": 61000000}`))

// EndDataOf returns the data of the last event of a benchmark's execution, by its kind.
func EndDataOf(k flow.Kind) json.RawMessage {
	if k == flow.KindCode {
		return gradedEnd
	}
	return nil
}

// BenchmarkDigests measures a page of 1,000 evaluations with digest=true, as the Batches page requests it, on a store with at least as many
// Graded ones.
func BenchmarkDigests(b *testing.B, s store.Store) {
	b.Run("digests", func(b *testing.B) {
		measured(b, func() error {
			found, err := s.Search(b.Context(), store.Filter{Labels: Graded.Labels, Limit: 1000, Reach: 40_000})
			if err != nil {
				return err
			}
			ids := make([]flow.ID, len(found.Executions))
			for i, x := range found.Executions {
				ids[i] = x.ID
			}
			all, err := s.Documents(b.Context(), store.EndDataOf, ids)
			if err == nil && (len(all) != 1000 || slices.ContainsFunc(all, func(d json.RawMessage) bool { return len(d) < len(gradedEnd) })) {
				err = fmt.Errorf("%d of %d executions have a digest", len(all), len(ids))
			}
			return err
		})
	})
}

// measured reports the 99th percentile of the duration of the calls.
func measured(b *testing.B, call func() error) {
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkCounts measures the counts that a page shows.
func BenchmarkCounts(b *testing.B, s store.Store) {
	for say, count := range map[string]func(context.Context) error{
		"counts of half label": func(ctx context.Context) error {
			_, _, err := s.Tally(ctx, store.Filter{Labels: map[string]string{"set": "half"}, Reach: 10_000})
			return err
		},
		"counts of rare label": func(ctx context.Context) error {
			_, _, err := s.Tally(ctx, store.Filter{Labels: map[string]string{"set": "rare"}, Reach: 10_000})
			return err
		},
		"queues": func(ctx context.Context) error { _, err := s.Queues(ctx); return err },
		"keys":   func(ctx context.Context) error { _, err := s.Keys(ctx, 200); return err },
		"size":   func(ctx context.Context) error { _, err := s.Size(ctx); return err },
		"survey": func(ctx context.Context) error { _, err := s.Survey(ctx); return err },
	} {
		b.Run(say, func(b *testing.B) {
			measured(b, func() error { return count(b.Context()) })
		})
	}
}
