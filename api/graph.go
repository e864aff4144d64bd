package api

// Graph is a version of a workflow, laid out from left to right: a task is one layer behind the last task that it needs. Lengths are in
// units of the layout; the top left corner is 0, 0. An action has neither nodes nor edges.
type Graph struct {
	Name    string      `json:"name" doc:"Name of the definition"`
	Version int         `json:"version" doc:"Version of the definition"`
	Width   float64     `json:"width" doc:"Width of the drawing, in layout units"`
	Height  float64     `json:"height" doc:"Height of the drawing, in layout units"`
	Since   int         `json:"since,omitempty" doc:"Version that this one is compared with"`
	Nodes   []GraphNode `json:"nodes" doc:"Tasks in document order, then, in a comparison, removed tasks; empty for an action"`
	Edges   []GraphEdge `json:"edges" doc:"Dependencies between tasks; a comparison adds removed ones that close no cycle"`
}

// GraphNode is the box of a task.
type GraphNode struct {
	Task   string  `json:"task" doc:"Name of the task"`
	Action string  `json:"action" doc:"Action of the task"`
	Layer  int     `json:"layer" doc:"Column: one more than the highest layer among the tasks it needs; 0 without needs"`
	X      float64 `json:"x" doc:"Left edge of the box"`
	Y      float64 `json:"y" doc:"Top edge of the box"`
	W      float64 `json:"w" doc:"Width of the box"`
	H      float64 `json:"h" doc:"Height of the box"`

	Change string `json:"change,omitempty" enum:"added,removed,changed" doc:"Comparison only: what changed; absent if the task is the same"`
}

// GraphEdge is the line from a task to one that needs it, through the layers between them.
type GraphEdge struct {
	From   string       `json:"from" doc:"Task that is needed"`
	To     string       `json:"to" doc:"Task that needs it"`
	Points []GraphPoint `json:"points" doc:"Points of the line from left to right, at least two"`

	Change string `json:"change,omitempty" enum:"added,removed" doc:"Comparison only: what changed; absent if the dependency is the same"`
}

// GraphPoint is a place in the layout.
type GraphPoint struct {
	X float64 `json:"x" doc:"Distance from the left edge of the drawing"`
	Y float64 `json:"y" doc:"Distance from the top edge of the drawing"`
}
