package server

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
)

func TestGraph(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	if _, err := h.client.Define(t.Context(), []byte("kind: workflow\nname: w\ntasks:\n  a: {action: noop}\n  b: {action: noop, needs: [a]}\n"), "w.yaml"); err != nil {
		t.Fatal(err)
	}
	g, err := h.client.Graph(t.Context(), "w", 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Nodes) != 2 || g.Nodes[1].Task != "b" || g.Nodes[1].Layer != 1 || len(g.Edges) != 1 || g.Edges[0].From != "a" || len(g.Edges[0].Points) != 2 {
		t.Errorf("%+v", g)
	}
	if res, _ := h.do(t, "GET", "/api/v1/definitions/w/graph?version=1", ""); !strings.Contains(res.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("a named version: %v", res.Header)
	}
	if res, _ := h.do(t, "GET", "/api/v1/definitions/w/graph", ""); res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the latest: %v", res.Header)
	}
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/definitions/v/graph", "")
}
