package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// TestEndingIsWhatIsStored compares what waiting callers get, which comes from the commit, with the stored execution.
func TestEndingIsWhatIsStored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define(`name: pair
tasks:
  one: {action: output, with: {n: 1}, labels: {team: a}}
  two: {action: output, needs: one, with: {n: "${{ tasks.one.output.n + 1 }}"}}
outputs: {n: "${{ tasks.two.output.n }}"}
---
name: broken
tasks:
  one: {action: output, with: {n: "${{ input.none.at.all }}"}}
`)
	r.worker().serve(func(a handoff.Assignment) (string, *flow.Error) {
		if a.Labels["fate"] == "fails" {
			return "", &flow.Error{Code: "oom", Message: "no", Details: json.RawMessage(`{"at":[1,2]}`)}
		}
		return echo(a)
	})
	retry := &flow.Retry{MaxAttempts: 2, On: []string{"oom"}}
	for name, s := range map[string]Submission{
		"completed":                  {Action: "noop", Input: json.RawMessage(`{"a":[1,2.50,"é"]}`), Labels: map[string]string{"k": "v"}, Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		"without input":              {Action: "noop"},
		"with a key":                 {Action: "noop", Key: "k", KeyLimit: 1, IdempotencyKey: "once", Settings: flow.Settings{Timeout: time.Minute, TotalTimeout: time.Hour}},
		"failed":                     {Action: "noop", Input: json.RawMessage(`7`), Labels: map[string]string{"fate": "fails"}},
		"failed and retried":         {Action: "noop", Labels: map[string]string{"fate": "fails"}, Retry: retry},
		"workflow":                   {Action: "pair", Input: json.RawMessage(`{"x":1}`)},
		"workflow that ends at once": {Action: "broken", Input: json.RawMessage(`{}`)},
		"sleep":                      {Action: "sleep", Input: json.RawMessage(`{"for":"1ms"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out, end, err := r.e.SubmitOne(ctx, s)
			if err = errors.Join(err, out.Err); err != nil {
				t.Fatal(err)
			}
			defer end.Close()
			x, err := end.Wait(ctx)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := r.store.Get(ctx, out.Execution)
			if err != nil {
				t.Fatal(err)
			}
			if !x.Stage.Terminal() || !reflect.DeepEqual(x, stored) {
				t.Errorf("the caller that waits was given\n%s\nand the store has\n%s", show(x), show(stored))
			}
		})
	}
}

func show(x *flow.Execution) string {
	b, err := json.Marshal(x)
	return fmt.Sprintf("%s %v", b, err)
}

// TestEndingOfWhatIsThere waits for executions that were submitted before, have ended before, were refused, or do not end in time.
func TestEndingOfWhatIsThere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.worker()
	s := Submission{Action: "noop", Input: json.RawMessage(`1`), IdempotencyKey: "k"}
	first := r.submit(s)
	out, end, err := r.e.SubmitOne(r.ctx, s)
	if err != nil || out.Err != nil || !out.Existing || out.Execution != first {
		t.Fatalf("the same again: %+v, %v", out, err)
	}
	defer end.Close()
	short, cancel := context.WithTimeout(r.ctx, 10*time.Millisecond)
	defer cancel()
	if x, err := end.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait that is over gives %+v, %v", x, err)
	}
	h.complete(h.take(1)[0], `1`)
	for _, n := range []*EndWaiter{end, r.e.WaitForEnd(first)} {
		if x, err := n.Wait(r.ctx); err != nil || !reflect.DeepEqual(x, r.get(first)) {
			t.Errorf("the end of what was there: %+v, %v", x, err)
		}
		n.Close()
	}
	for _, bad := range []Submission{{Action: "none"}, {Action: "noop", IdempotencyKey: "k"}} {
		if out, end, err := r.e.SubmitOne(r.ctx, bad); err != nil || out.Err == nil || end != nil {
			t.Errorf("%+v: %+v, %v, %v", bad, out, end, err)
		}
	}
	if n := len(r.e.watch.one); n != 0 {
		t.Errorf("%d executions are watched when nobody waits", n)
	}
}
