package api

import "time"

// Import is what has become of an archive: each tree, an execution with all that is beneath it, is stored whole or not at all.
type Import struct {
	From       string          `json:"from" doc:"The server that wrote the archive"`
	Trees      int             `json:"trees" doc:"That are new here"`
	Executions int             `json:"executions" doc:"Of these trees"`
	Already    int             `json:"already" doc:"Trees that were here, with the same content"`
	LeftOut    int             `json:"left_out" doc:"Executions that the export left out: they had not ended"`
	Refused    int             `json:"refused" doc:"Trees of which nothing was stored"`
	Refusals   []ImportRefusal `json:"refusals" doc:"The first 100 of them"`
}

// ImportRefusal says why a tree of an archive was refused.
type ImportRefusal struct {
	Execution string `json:"execution" doc:"The top of the tree"`
	Why       string `json:"why" doc:"What is here under its id, or what could not be stored"`
}

// Imported is how an execution has come from an archive. It is to be looked at: nothing happens to it here.
type Imported struct {
	From string    `json:"from" doc:"The server that wrote the archive"`
	At   time.Time `json:"at" doc:"When it was imported here"`
}
