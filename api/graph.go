package api

// Graph is a version of a workflow, laid out to be read from left to right: a task stands one layer behind the last of what it
// needs. Lengths are in units of the layout; the left upper corner is 0, 0. An action has neither nodes nor edges.
type Graph struct {
	Name    string      `json:"name"`
	Version int         `json:"version"`
	Width   float64     `json:"width"`
	Height  float64     `json:"height"`
	Nodes   []GraphNode `json:"nodes"`
	Edges   []GraphEdge `json:"edges"`
}

// GraphNode is the box of a task.
type GraphNode struct {
	Task   string  `json:"task"`
	Action string  `json:"action"`
	Layer  int     `json:"layer"` // from 0
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	W      float64 `json:"w"`
	H      float64 `json:"h"`
}

// GraphEdge leads from a task to one that needs it, through the layers between them.
type GraphEdge struct {
	From   string       `json:"from"`
	To     string       `json:"to"`
	Points []GraphPoint `json:"points"` // at least two
}

// GraphPoint is a place in the layout.
type GraphPoint struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}
