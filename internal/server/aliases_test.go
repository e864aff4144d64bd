package server

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
)

// A retired definition is marked as such, and its submissions are refused with the reason.
func TestRetire(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c, ctx := h.client, t.Context()
	if _, err := c.Define(ctx, []byte("kind: action\nname: deploy\naction: noop\n"), ""); err != nil {
		t.Fatal(err)
	}
	d, err := c.Retire(ctx, "deploy", api.RetireOrder{By: "ann", Reason: "use rollout"})
	if err != nil || d.Retired == nil || d.Retired.By != "ann" || d.Retired.Reason != "use rollout" || d.Retired.At.IsZero() {
		t.Fatalf("%+v, %v", d, err)
	}
	for d, err := range c.Definitions(ctx) {
		if err != nil || d.Retired == nil {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if r, body := h.do(t, "POST", "/api/v1/executions", `{"action":"deploy"}`); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(body), "use rollout") {
		t.Errorf("%d %s", r.StatusCode, body)
	}
	if r, _ := h.do(t, "POST", "/api/v1/definitions/deploi/retire", ``); r.StatusCode != http.StatusNotFound {
		t.Errorf("a definition that is not there: %d", r.StatusCode)
	}
	doc := []byte("name: roll\ntasks:\n  one: {action: deploy}\n")
	v, err := c.Validate(ctx, doc, "roll.yaml")
	if err != nil || !v.Valid || len(v.Warnings) != 1 || v.Warnings[0].File != "roll.yaml" || v.Warnings[0].Line != 3 || v.Warnings[0].Path != "tasks.one.action" {
		t.Errorf("%+v, %v", v, err)
	}
	if defined, err := c.Define(ctx, doc, "roll.yaml"); err != nil || len(defined.Definitions) != 1 || !reflect.DeepEqual(defined.Warnings, v.Warnings) {
		t.Errorf("%+v, %v", defined, err)
	}
	if d, err = c.Retire(ctx, "deploy", api.RetireOrder{Undo: true}); err != nil || d.Retired != nil {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := c.Submit(ctx, api.Submission{Action: "deploy"}); err != nil {
		t.Error(err)
	}
}

// Aliases are moved, listed and followed over the API; errors are refused with their place.
func TestAliases(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c, ctx := h.client, t.Context()
	for _, doc := range []string{"kind: action\nname: deploy\naction: noop\n", "kind: action\nname: deploy\naction: noop\nlabels: {v: b}\n"} {
		if _, err := c.Define(ctx, []byte(doc), "deploy.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	a, err := c.MoveAlias(ctx, "deploy", "stable", api.AliasOrder{To: []api.AliasTarget{{Version: 1}}, By: "ann", Reason: "it works"})
	if err != nil || !a.Moved || a.Number != 1 || a.Name != "deploy" || a.Alias != "stable" || a.At.IsZero() {
		t.Fatalf("%+v, %v", a, err)
	}
	if a, err = c.MoveAlias(ctx, "deploy", "stable", api.AliasOrder{To: []api.AliasTarget{{Version: 2}}}); err != nil || a.Number != 2 {
		t.Errorf("%+v, %v", a, err)
	}
	s, err := c.Submit(ctx, api.Submission{Action: "deploy@stable"})
	if err != nil {
		t.Fatal(err)
	}
	if x, err := c.Get(ctx, s.ID); err != nil || x.Action != "deploy" || x.Version != 2 || x.Alias != "stable" {
		t.Errorf("%+v, %v", x, err)
	}
	if a, err = c.MoveAlias(ctx, "deploy", "stable", api.AliasOrder{Back: true}); err != nil || len(a.To) != 1 || a.To[0].Version != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	moves := 0
	for m, err := range c.AliasMoves(ctx, "deploy", "stable") {
		if err != nil || m.Number != 3-moves {
			t.Fatalf("%+v, %v", m, err)
		}
		moves++
	}
	if moves != 3 {
		t.Errorf("%d moves, want 3", moves)
	}
	if _, err := c.DefineFor(ctx, []byte("kind: action\nname: deploy\naction: noop\nlabels: {v: c}\n"), "deploy.yaml", "next", "ann"); err != nil {
		t.Error(err)
	}
	all, err := c.Aliases(ctx, "deploy")
	if err != nil || len(all) != 3 || all[0].Alias != "latest" || all[0].To[0].Version != 2 || all[1].Alias != "next" || all[1].To[0].Version != 3 || all[2].Alias != "stable" {
		t.Errorf("%+v, %v", all, err)
	}
	for _, tt := range []struct {
		method, path, body string
		status             int
		say                string
	}{
		{"PUT", "/api/v1/definitions/deploy/aliases/stable", `{"to":[{"version":9}]}`, http.StatusUnprocessableEntity, "give one from 1 to 3"},
		{"PUT", "/api/v1/definitions/deploy/aliases/UP", `{"to":[{"version":1}]}`, http.StatusUnprocessableEntity, "take a name such as stable"},
		{"PUT", "/api/v1/definitions/deploi/aliases/stable", `{"to":[{"version":1}]}`, http.StatusNotFound, "deploy"},
		{"PUT", "/api/v1/definitions/deploy/aliases/stable", `{"two":1}`, http.StatusUnprocessableEntity, "two"},
		{"GET", "/api/v1/definitions/deploy/aliases/stabel", "", http.StatusNotFound, "stable"},
		{"GET", "/api/v1/definitions/deploi/aliases", "", http.StatusNotFound, "deploi"},
		{"POST", "/api/v1/definitions?alias=latest", "kind: action\nname: deploy\naction: noop\n", http.StatusUnprocessableEntity, "leave it out"},
		{"POST", "/api/v1/executions", `{"action":"deploy@stabel"}`, http.StatusUnprocessableEntity, "stable"},
	} {
		r, body := h.do(t, tt.method, tt.path, tt.body)
		if r.StatusCode != tt.status || !strings.Contains(string(body), tt.say) {
			t.Errorf("%s %s %s: %d %s, want %d and %q", tt.method, tt.path, tt.body, r.StatusCode, body, tt.status, tt.say)
		}
	}
}
