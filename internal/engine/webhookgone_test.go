package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// A test of rules whose caller has gone ends with its current signal.
func TestCallerOfRulesTestGoes(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	var made atomic.Int64
	var leaves atomic.Bool
	r := newRig(t, func(o *Options) {
		o.NewID = func() flow.ID {
			if made.Add(1); leaves.Load() {
				leave() // while the first signal is read
			}
			return newID()
		}
	})
	r.define("kind: trigger\nname: a.b\n")
	for i := range 20 {
		if _, err := r.e.Emit(r.ctx, []Emission{{Trigger: "a.b", Key: fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	defs, err := definition.Parse("r.yaml", []byte("kind: rule\nname: r\non: [a.b]\nrun: {action: noop}\n"))
	if err != nil {
		t.Fatal(err)
	}
	before := made.Load()
	leaves.Store(true)
	if _, err := r.e.TestRules(ctx, defs, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("test: %v, not that the caller has gone", err)
	}
	if n := made.Load() - before; n > 2 {
		t.Errorf("%d signals were looked at after the caller had gone", n)
	}
}

// A test of rules computes for a second, and reports the signals that it has not read.
func TestTestsOfRulesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 40 {
		r.emit(Emission{Trigger: "t", Key: fmt.Sprint(i), Data: ints(200)})
	}
	rule := "kind: rule\nname: %s\non: t\nif: signal.data.items.map(a, signal.data.items.map(b, a + b)).size() == 0\nrun: {action: noop}\n"
	defs, err := definition.Parse("r.yaml", fmt.Appendf(nil, rule+"---\n"+rule, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := r.e.TestRules(r.ctx, defs, time.Time{})
	if err != nil || len(all) != 2 || !all[0].More || all[0].Signals == 0 || all[0].Signals == 40 || !all[1].More || all[1].Signals != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}
