package server

import (
	"fmt"
	"net/http"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/arrangement"
	"github.com/pawl-run/pawl/internal/definition"
)

// graph answers with the tasks of a workflow laid out. Only one layout is made at a time, so that requests for the widest
// workflow (10,000 tasks with 200,000 needs take 0.2 s) occupy one core and leave the others.
func (c *call) graph() error {
	version := int(c.number("version", 0, 1, 1<<31-1))
	if err := c.checked(); err != nil {
		return err
	}
	row, err := c.stored(c.r.PathValue("name"), version)
	if err != nil {
		return err
	}
	d, err := definition.Decode(row.Document)
	if err != nil {
		return fmt.Errorf("definition %s@%d: %w", row.Name, row.Version, err)
	}
	out := api.Graph{Name: row.Name, Version: row.Version, Nodes: []api.GraphNode{}, Edges: []api.GraphEdge{}}
	if d.Workflow != nil {
		c.laidOut(&out, d.Workflow.Tasks)
	}
	if version > 0 { // a version never changes
		c.w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	return c.json(http.StatusOK, out)
}

func (c *call) laidOut(out *api.Graph, tasks []*definition.Task) {
	needs := make([][]int, len(tasks))
	for i, t := range tasks {
		needs[i] = t.Needs
	}
	c.layouts.Lock()
	l := arrangement.Of(needs)
	c.layouts.Unlock()
	out.Width, out.Height = l.Width, l.Height
	for i, n := range l.Nodes {
		out.Nodes = append(out.Nodes, api.GraphNode{Task: tasks[i].Name, Action: tasks[i].Action, Layer: n.Layer,
			X: n.X, Y: n.Y, W: arrangement.BoxWidth, H: arrangement.BoxHeight})
	}
	for _, e := range l.Edges {
		edge := api.GraphEdge{From: tasks[e.From].Name, To: tasks[e.To].Name}
		for _, p := range e.Points {
			edge.Points = append(edge.Points, api.GraphPoint{X: p.X, Y: p.Y})
		}
		out.Edges = append(out.Edges, edge)
	}
}
