package server

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/arrangement"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// The change of a task or of a need compared with another version.
const (
	added   = "added"
	removed = "removed"
	changed = "changed"
)

// graph answers with the layout of a workflow's tasks, optionally compared with another version. Only one layout is made at a time, so that
// requests for the widest workflow (10,000 tasks with 200,000 needs take 0.2 s) occupy one core and leave the others.
func (c *call) graph() error {
	version, since := int(c.number("version", 0, 1, 1<<31-1)), int(c.number("since", 0, 1, 1<<31-1))
	if err := c.checked(); err != nil {
		return err
	}
	d, row, err := c.defined(version)
	if err != nil {
		return err
	}
	out := api.Graph{Name: row.Name, Version: row.Version, Since: since, Nodes: []api.GraphNode{}, Edges: []api.GraphEdge{}}
	s := sketchOf(d)
	if since > 0 {
		old, before, err := c.defined(since)
		if err != nil {
			return err
		}
		if err := s.compare(row.Document, sketchOf(old), before.Document); err != nil {
			return fmt.Errorf("definition %s@%d and %d: %w", row.Name, row.Version, since, err)
		}
	}
	c.laidOut(&out, s)
	if version > 0 { // a version never changes
		c.w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	return c.json(http.StatusOK, out)
}

func (c *call) defined(version int) (*definition.Definition, store.Definition, error) {
	row, err := c.stored(c.r.PathValue("name"), version)
	if err != nil {
		return nil, row, err
	}
	d, err := definition.Decode(row.Document)
	if err != nil {
		return nil, row, fmt.Errorf("definition %s@%d: %w", row.Name, row.Version, err)
	}
	return d, row, nil
}

// sketch has the tasks of a workflow in drawing order. When two versions are compared, changes has the change of each task and needed that
// of each need.
type sketch struct {
	tasks   []*definition.Task
	places  map[string]int // index of each task by name
	needs   [][]int
	changes map[int]string
	needed  map[[2]int]string // by the indexes of the needed task and of the task that needs it
}

func sketchOf(d *definition.Definition) *sketch {
	s := &sketch{places: map[string]int{}}
	if d.Workflow == nil {
		return s
	}
	for i, t := range d.Workflow.Tasks {
		s.tasks, s.needs, s.places[t.Name] = append(s.tasks, t), append(s.needs, t.Needs), i
	}
	return s
}

// compare adds the tasks and needs that only an earlier sketch has, and marks the changes of all. The documents are those of both versions:
// a task has changed if its canonical text has.
func (s *sketch) compare(document []byte, old *sketch, before []byte) error {
	texts, err := taskTexts(document)
	if err != nil {
		return err
	}
	earlier, err := taskTexts(before)
	if err != nil {
		return err
	}
	s.changes, s.needed = map[int]string{}, map[[2]int]string{}
	for i, t := range s.tasks {
		was, had := earlier[t.Name]
		switch {
		case !had:
			s.changes[i] = added
		case !bytes.Equal(was, texts[t.Name]):
			s.changes[i] = changed
		}
		for _, from := range t.Needs {
			s.needed[[2]int{from, i}] = added
		}
	}
	for _, t := range old.tasks {
		if _, has := s.places[t.Name]; !has {
			s.places[t.Name] = len(s.tasks)
			s.changes[len(s.tasks)] = removed
			s.tasks, s.needs = append(s.tasks, t), append(s.needs, nil)
		}
	}
	also := make([][]int, len(s.tasks))
	for _, t := range old.tasks {
		to := s.places[t.Name]
		for _, need := range t.Needs {
			from := s.places[old.tasks[need].Name]
			if need := [2]int{from, to}; s.needed[need] == added {
				delete(s.needed, need)
				continue
			}
			also[to] = append(also[to], from)
			s.needed[[2]int{from, to}] = removed
		}
	}
	s.needs = arrangement.With(s.needs, also)
	return nil
}

func taskTexts(document []byte) (map[string][]byte, error) {
	texts := map[string][]byte{}
	tasks, found, err := strictjson.Member(document, "tasks")
	if err != nil || !found {
		return texts, err
	}
	return texts, strictjson.Members(tasks, func(name string, text []byte) error {
		texts[name] = text
		return nil
	})
}

func (c *call) laidOut(out *api.Graph, s *sketch) {
	c.layouts.Lock()
	l := arrangement.Of(s.needs)
	c.layouts.Unlock()
	out.Width, out.Height = l.Width, l.Height
	for i, n := range l.Nodes {
		out.Nodes = append(out.Nodes, api.GraphNode{Task: s.tasks[i].Name, Action: s.tasks[i].Action, Layer: n.Layer,
			X: n.X, Y: n.Y, W: arrangement.BoxWidth, H: arrangement.BoxHeight, Change: s.changes[i]})
	}
	for _, e := range l.Edges {
		edge := api.GraphEdge{From: s.tasks[e.From].Name, To: s.tasks[e.To].Name, Change: s.needed[[2]int{e.From, e.To}]}
		for _, p := range e.Points {
			edge.Points = append(edge.Points, api.GraphPoint{X: p.X, Y: p.Y})
		}
		out.Edges = append(out.Edges, edge)
	}
}
