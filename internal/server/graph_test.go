package server

import (
	"maps"
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
	g, err := h.client.Graph(t.Context(), "w", 1, 0)
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

// The graph of a version compared with another one has the tasks and needs of both, and marks the change of each. A need that was reversed
// is drawn in its new direction.
func TestGraphSince(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for _, tasks := range []string{
		"a: {action: noop}\n  b: {action: noop, needs: [a]}\n  gone: {action: sleep, with: {for: 1s}, needs: [b]}\n  last: {action: noop, needs: [gone, a]}\n  up: {action: noop}\n  down: {action: noop, needs: [up]}\n",
		"a: {action: noop}\n  b: {action: noop, needs: [a], with: {value: 1}}\n  fresh: {action: noop, needs: [b]}\n  last: {action: noop, needs: [fresh, a]}\n  up: {action: noop, needs: [down]}\n  down: {action: noop}\n",
	} {
		if _, err := h.client.Define(t.Context(), []byte("kind: workflow\nname: w\ntasks:\n  "+tasks), "w.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	compared := func(version, since int) (nodes, edges map[string]string) {
		t.Helper()
		g, err := h.client.Graph(t.Context(), "w", version, since)
		if err != nil {
			t.Fatal(err)
		}
		nodes, edges = map[string]string{}, map[string]string{}
		for _, n := range g.Nodes {
			nodes[n.Task] = n.Change
		}
		for _, e := range g.Edges {
			edges[e.From+" "+e.To] = e.Change
		}
		if g.Since != since || len(g.Nodes) != len(nodes) || len(g.Edges) != len(edges) {
			t.Errorf("%+v", g)
		}
		return nodes, edges
	}
	nodes, edges := compared(2, 1)
	if want := map[string]string{"a": "", "b": changed, "fresh": added, "gone": removed, "last": changed, "up": changed, "down": changed}; !maps.Equal(nodes, want) {
		t.Errorf("tasks: %v", nodes)
	}
	if want := map[string]string{"a b": "", "a last": "", "b fresh": added, "fresh last": added, "b gone": removed, "gone last": removed, "down up": added}; !maps.Equal(edges, want) {
		t.Errorf("needs: %v", edges)
	}
	if nodes, _ = compared(1, 2); nodes["fresh"] != removed || nodes["gone"] != added {
		t.Errorf("the other way round: %v", nodes)
	}
	for _, v := range []int{0, 2} {
		for name, change := range func() map[string]string { nodes, _ := compared(2, v); return nodes }() {
			if change != "" {
				t.Errorf("since %d: %s is %s", v, name, change)
			}
		}
	}
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/definitions/w/graph?version=2&since=3", "")
}
