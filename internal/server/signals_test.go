package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

func TestSignals(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c, ctx := h.client, t.Context()
	first, err := c.Emit(ctx, api.Emission{Trigger: "alert", Data: json.RawMessage(`{"a":1}`), Key: "k", Subject: "db1"})
	if err != nil || first.Existing || !strings.HasPrefix(first.Signal, "sg_") {
		t.Fatalf("emit: %v, %+v", err, first)
	}
	if again, err := c.Emit(ctx, api.Emission{Trigger: "alert", Data: json.RawMessage(`{ "a": 1.0 }`), Key: "k", Subject: "db1"}); err != nil || !again.Existing || again.Signal != first.Signal {
		t.Errorf("again: %v, %+v", err, again)
	}
	var p *api.Problem
	if _, err := c.Emit(ctx, api.Emission{Trigger: "alert", Data: json.RawMessage(`{"a":2}`), Key: "k", Subject: "db1"}); !errors.As(err, &p) || p.Status != 422 || p.Type != api.ProblemIdempotencyMismatch ||
		!strings.Contains(p.Detail, `the key "k" of trigger alert is that of sg_`) {
		t.Errorf("other content: %v", err)
	}
	if _, err := c.Emit(ctx, api.Emission{Trigger: "Alert"}); !errors.As(err, &p) || p.Status != 422 || p.Errors[0].Path != "trigger" || p.Errors[0].Fix == "" {
		t.Errorf("a bad trigger: %v", err)
	}
	s, err := c.Signal(ctx, first.Signal)
	if err != nil || s.Trigger != "alert" || s.Subject != "db1" || s.Key != "k" || s.Source != "api" || string(s.Data) != `{"a":1}` || s.State != "matched" || time.Since(s.At).Abs() > time.Minute {
		t.Errorf("get: %v, %+v", err, s)
	}
	for _, id := range []string{"sg_00000000000000000000000001", "ex_x", "x"} {
		if _, err := c.Signal(ctx, id); !errors.As(err, &p) || p.Status != http.StatusNotFound {
			t.Errorf("signal %s: %v", id, err)
		}
	}

	batch := make([]api.Emission, 250)
	for i := range batch {
		batch[i] = api.Emission{Trigger: "many", Subject: fmt.Sprint(i % 2), Key: fmt.Sprint(i % 200)}
	}
	batch[249].Trigger = ""
	r, err := c.EmitBatch(ctx, batch)
	if err != nil || r.Accepted != 249 || r.Refused != 1 || !r.Results[248].Existing || r.Results[248].ID != r.Results[48].ID || r.Results[249].Problem.Errors[0].Path != "signals[249].trigger" {
		t.Fatalf("batch: %v, %+v", err, r)
	}
	for what, size := range map[string]int{"none": 0, "too many": api.BatchLimit + 1} {
		if _, err := c.EmitBatch(ctx, make([]api.Emission, size)); !errors.As(err, &p) || p.Status != 422 {
			t.Errorf("%s: %v", what, err)
		}
	}
	count := func(f client.SignalFilter) (n int) {
		t.Helper()
		last := time.Now().Add(time.Hour)
		for s, err := range c.AllSignals(ctx, f) {
			if err != nil || s.At.After(last) {
				t.Fatalf("list: %v, %+v", err, s)
			}
			last = s.At
			n++
		}
		return n
	}
	for want, f := range map[int]client.SignalFilter{201: {}, 200: {Trigger: "many", Limit: 7}, 100: {Trigger: "many", Subject: "1"}, 1: {Subject: "db1"}, 0: {Since: time.Now().Add(time.Hour)}} {
		if n := count(f); n != want {
			t.Errorf("%+v: %d signals, want %d", f, n, want)
		}
	}
	if _, err := c.Signals(ctx, client.SignalFilter{Cursor: "x"}); !errors.As(err, &p) || p.Status != 400 {
		t.Errorf("a bad cursor: %v", err)
	}
}
