package api

// Graph is a version of a workflow, laid out to be read from left to right: a task stands one layer behind the last of what it
// needs. Lengths are in units of the layout; the left upper corner is 0, 0. An action has neither nodes nor edges.
type Graph struct {
	Name    string      `json:"name" doc:"Of the definition"`
	Version int         `json:"version" doc:"Of the definition"`
	Width   float64     `json:"width" doc:"In units of the layout"`
	Height  float64     `json:"height" doc:"In units of the layout"`
	Since   int         `json:"since,omitempty" doc:"The version with which this one is compared"`
	Nodes   []GraphNode `json:"nodes" doc:"One for each task, in the order of the document; none of an action. In a comparison, then those that were removed"`
	Edges   []GraphEdge `json:"edges" doc:"One for each need of a task. In a comparison also for each that was removed, but for those that may be on a cycle with others"`
}

// GraphNode is the box of a task.
type GraphNode struct {
	Task   string  `json:"task" doc:"Its name"`
	Action string  `json:"action" doc:"Of the task"`
	Layer  int     `json:"layer" doc:"One more than that of the last task that it needs; 0 without any"`
	X      float64 `json:"x" doc:"Left side of the box"`
	Y      float64 `json:"y" doc:"Upper side of the box"`
	W      float64 `json:"w" doc:"Width of the box"`
	H      float64 `json:"h" doc:"Height of the box"`
	Change string  `json:"change,omitempty" enum:"added,removed,changed" doc:"In a comparison: what became of the task; missing where it is as it was"`
}

// GraphEdge leads from a task to one that needs it, through the layers between them.
type GraphEdge struct {
	From   string       `json:"from" doc:"The task that is needed"`
	To     string       `json:"to" doc:"The task that needs it"`
	Points []GraphPoint `json:"points" doc:"At least two, from left to right"`
	Change string       `json:"change,omitempty" enum:"added,removed" doc:"In a comparison: what became of the need; missing where it is as it was"`
}

// GraphPoint is a place in the layout.
type GraphPoint struct {
	X float64 `json:"x" doc:"From the left side of the layout"`
	Y float64 `json:"y" doc:"From the upper side of the layout"`
}
