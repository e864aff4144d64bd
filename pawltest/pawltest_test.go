package pawltest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/handler"
	"github.com/pawl-run/pawl/pawltest"
)

type picture struct{ Width int }

type resized struct{ Pixels int }

// The handler of this test fails once and is retried: three lines start a Pawl with it, and one runs it.
func TestHandler(t *testing.T) {
	var attempts atomic.Int32
	p := pawltest.Start(t)
	p.Serve(handler.Map{"resize": handler.Func(func(_ context.Context, _ *handler.Task, in picture) (resized, error) {
		if attempts.Add(1) == 1 {
			return resized{}, handler.Fail("busy", "try again")
		}
		return resized{Pixels: in.Width * in.Width}, nil
	})})
	p.Define("kind: action\nname: thumb\nhandler: resize\nretry: {max_attempts: 3, delay: 1ms, on: [busy]}")

	out, err := client.Run[picture, resized](t.Context(), p.Client, api.Submission{Action: "thumb"}, picture{Width: 20})
	if err != nil || out.Pixels != 400 || attempts.Load() != 2 {
		t.Errorf("%+v after %d attempts: %v", out, attempts.Load(), err)
	}
}

// Idle waits until a workflow of handlers and built-in kinds has ended.
func TestWorkflow(t *testing.T) {
	p := pawltest.Start(t)
	p.Serve(handler.Map{"double": handler.Func(func(_ context.Context, _ *handler.Task, n struct{ N int }) (int, error) { return 2 * n.N, nil })})
	p.Define(`
kind: action
name: double
handler: double
---
kind: workflow
name: sums
tasks:
  each: {action: double, foreach: [1, 2, 3], with: {N: "${{ item }}"}}
  rest: {needs: [each], action: sleep, with: {for: 1ms}}
outputs: {sum: "${{ sum(tasks.each.output) }}"}
`)
	var ids []string
	for range 5 {
		x, err := p.Submit(t.Context(), api.Submission{Action: "sums"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, x.ID)
	}
	p.Idle()
	for _, id := range ids {
		x, err := p.Get(t.Context(), id)
		if err != nil || x.Status != api.Completed || !strings.Contains(string(x.Output), `12`) {
			t.Errorf("%v: %+v", err, x)
		}
	}
	p.Idle() // with nothing to do
}

// A program of kind code runs, and a program that hangs reaches its limit.
func TestCode(t *testing.T) {
	p := pawltest.Start(t)
	x, err := p.Evaluate(t.Context(), api.Evaluation{Code: api.Code{Language: "bash", Source: "echo $((6*7))"}})
	if err == nil {
		x, err = p.Wait(t.Context(), x.ID)
	}
	if out, bad := client.Output[api.CodeResult](x); err != nil || bad != nil || out.Stdout != "42\n" {
		t.Errorf("%v %v: %+v", err, bad, out)
	}
	_, err = client.Run[api.Code, api.CodeResult](t.Context(), p.Client, api.Submission{Action: "code"},
		api.Code{Language: "bash", Source: "read -r -t 60 < <(tail -f /dev/null)", Limits: api.CodeLimits{Wall: api.Duration(50 * time.Millisecond)}})
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Code != "timeout" {
		t.Errorf("a program that hangs: %v", err)
	}
}
