package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

func TestRules(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c, ctx := h.client, t.Context()
	const doc = "kind: rule\nname: page\non: alert.*\nif: signal.data.severity == \"page\"\nrun: {action: noop, input: {host: '${{ signal.data.host }}'}}\n"
	d, err := c.Define(ctx, []byte(doc), "r.yaml")
	if err != nil || d.Definitions[0].Kind != "rule" || d.Definitions[0].Version != 1 || !d.Definitions[0].Created {
		t.Fatalf("define: %v, %+v", err, d)
	}
	emitted, err := c.Emit(ctx, api.Emission{Trigger: "alert.fired", Data: json.RawMessage(`{"severity":"page","host":"db1"}`)})
	if err != nil || len(emitted.Enforcements) != 1 || emitted.Enforcements[0].State != "ran" {
		t.Fatalf("emit: %v, %+v", err, emitted)
	}
	x, err := c.Get(ctx, emitted.Enforcements[0].Execution)
	if err != nil || string(x.Input) != `{"host":"db1"}` || x.Signal != emitted.Signal || len(x.Rules) != 1 || x.Rules[0] != "page" {
		t.Errorf("its execution: %v, %+v", err, x)
	}
	if _, err := c.Emit(ctx, api.Emission{Trigger: "alert.fired", Data: json.RawMessage(`{"severity":"page"}`)}); err != nil {
		t.Fatal(err)
	}
	for want, f := range map[int]client.EnforcementFilter{2: {Limit: 1}, 1: {State: "failed"}, 0: {Rule: "nobody"}} {
		n := 0
		for e, err := range c.AllEnforcements(ctx, f) {
			if err != nil || e.State == "failed" && (e.Reason == nil || e.Reason.Code != "input" || e.Reason.Path != "run.input.host") {
				t.Errorf("%+v: %v, %+v", f, err, e)
			}
			n++
		}
		if n != want {
			t.Errorf("%+v: %d enforcements, want %d", f, n, want)
		}
	}
	if p, err := c.Enforcements(ctx, client.EnforcementFilter{Signal: emitted.Signal}); err != nil || len(p.Enforcements) != 1 || p.Enforcements[0].Signal != emitted.Signal {
		t.Errorf("of one signal: %v, %+v", err, p)
	}
	for e, err := range c.AllEnforcements(ctx, client.EnforcementFilter{State: "failed"}) {
		if err != nil {
			t.Fatal(err)
		}
		if again, err := c.RetryEnforcement(ctx, e.Signal, "page"); err != nil || again.State != "failed" || again.Reason == nil {
			t.Errorf("tried again as it was: %v, %+v", err, again)
		}
	}
	if e, err := c.RetryEnforcement(ctx, emitted.Signal, "page"); err != nil || e.State != "ran" || e.Execution != x.ID || e.Signal != emitted.Signal {
		t.Errorf("what has run tried again: %v, %+v", err, e)
	}
	r, err := c.PauseRule(ctx, "page", "too loud")
	if err != nil || !r.Paused || r.Reason != "too loud" || len(r.Document) == 0 || r.If == "" {
		t.Errorf("paused: %v, %+v", err, r)
	}
	if emitted, err := c.Emit(ctx, api.Emission{Trigger: "alert.fired", Data: json.RawMessage(`{"severity":"page","host":"db1"}`)}); err != nil || len(emitted.Enforcements) != 0 {
		t.Errorf("while it is paused: %v, %+v", err, emitted)
	}
	if r, err = c.ResumeRule(ctx, "page"); err != nil || r.Paused {
		t.Errorf("resumed: %v, %+v", err, r)
	}
	if all, err := c.Rules(ctx); err != nil || len(all) != 1 || all[0].Name != "page" || all[0].On[0] != "alert.*" {
		t.Errorf("rules: %v, %+v", err, all)
	}
	var p *api.Problem
	if _, err := c.Rule(ctx, "nobody"); !errors.As(err, &p) || p.Status != http.StatusNotFound {
		t.Errorf("%v", err)
	}
	if _, err := c.PauseRule(ctx, "nobody", ""); !errors.As(err, &p) || p.Status != http.StatusNotFound {
		t.Errorf("%v", err)
	}
	for _, bad := range [][2]string{{"sg_x", "page"}, {emitted.Signal, "nobody"}} {
		if _, err := c.RetryEnforcement(ctx, bad[0], bad[1]); !errors.As(err, &p) || p.Status != http.StatusNotFound {
			t.Errorf("%v: %v", bad, err)
		}
	}
	for _, f := range []client.EnforcementFilter{{State: "done"}, {Signal: "x"}, {Cursor: "x"}} {
		if _, err := c.Enforcements(ctx, f); !errors.As(err, &p) || p.Status != http.StatusBadRequest {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for def, err := range c.Definitions(ctx) {
		if err != nil || def.Kind == "rule" {
			t.Errorf("among the definitions: %v, %+v", err, def)
		}
	}
}

// A signal, a request to a webhook and a submission keep the chain that they come with; an invalid chain is refused.
func TestChainHeader(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	const doc = "kind: rule\nname: caller\non: t\nrun: {action: noop}\n---\nkind: webhook\nname: back\nverify: {scheme: none}\ntrigger: t\n"
	if _, err := h.client.Define(t.Context(), []byte(doc), "r.yaml"); err != nil {
		t.Fatal(err)
	}
	const elsewhere = "0123456789abcdef"
	for _, c := range []struct{ path, body string }{
		{"/api/v1/signals", `{"trigger":"t"}`}, {"/hooks/back", `{}`}, {"/api/v1/signals:batch", `{"signals":[{"trigger":"t"}]}`},
		{"/api/v1/executions", `{"action":"noop"}`}, {"/api/v1/executions:batch", `{"executions":[{"action":"noop"}]}`},
	} {
		if res, body := h.do(t, "POST", c.path, c.body, "Content-Type", "application/json", "Pawl-Chain", elsewhere); res.StatusCode/100 != 2 {
			t.Errorf("%s: %s %s", c.path, res.Status, body)
		}
		if res, body := h.do(t, "POST", c.path, c.body, "Content-Type", "application/json", "Pawl-Chain", "caller"); res.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s with a bad chain: %s %s", c.path, res.Status, body)
		}
	}
	signals, led := 0, 0
	for s, err := range h.client.AllSignals(t.Context(), client.SignalFilter{}) {
		if signals++; err != nil || len(s.Rules) != 1 || s.Rules[0] != "elsewhere:"+elsewhere {
			t.Errorf("%v %+v", err, s)
		}
	}
	for x, err := range h.client.All(t.Context(), client.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if full, err := h.client.Get(t.Context(), x.ID); err != nil || full.Rules[0] != "elsewhere:"+elsewhere {
			t.Errorf("%v %+v", err, full)
		}
		led++
	}
	if signals != 3 || led != 5 {
		t.Errorf("%d signals, %d executions", signals, led)
	}
}
