package api

import "time"

// RerunManyRequest is a request to run many executions again. Without IDs its parameters select them, as those of a list do.
type RerunManyRequest struct {
	IDs        []string `json:"ids,omitempty" doc:"Up to 1,000 executions; without it the parameters select up to 10,000"`
	Definition string   `json:"definition,omitempty" check:"filled" doc:"What the reruns run on: same (default), latest, or name@version"`
	From       []string `json:"from,omitempty" doc:"Tasks, or items of them, also by a path, that run again in each of them though they completed"`
	AtOnce     int      `json:"at_once,omitempty" check:"positive" doc:"How many reruns may be under way at the same time: 1 to 100, 10 by default"`
	Plan       bool     `json:"plan,omitempty" doc:"Change nothing, and answer what would be run again"`
	Details    int      `json:"details,omitempty" check:"positive" doc:"With plan: of how many executions the answer says what would become of them; 50 by default, 10,000 at most"`
}

// RerunMany says what is run again.
type RerunMany struct {
	// Execution runs the others again: each of its tasks is a rerun of one, and puts out which execution that is.
	Execution string `json:"execution,omitempty" doc:"The execution that runs them again; its tasks say which became which. Without one nothing was changed"`
	Selected  int    `json:"selected" doc:"How many executions are selected; 10,000 at the most"`
	// SearchedTo says how far the parameters were looked up; NextCursor goes on there.
	SearchedTo *time.Time `json:"searched_to,omitempty" doc:"Older executions than this were not looked at"`
	NextCursor string     `json:"next_cursor,omitempty" doc:"There may be more: pass it as cursor with the same parameters"`
	// Counted and what follows are of a plan.
	Counted  int             `json:"counted,omitempty" doc:"How many of them were planned: all, unless that took more than 10 s"`
	Reused   int             `json:"reused,omitempty" doc:"Of those that were planned: how many outcomes would be reused"`
	Runs     int             `json:"runs,omitempty" doc:"Of those that were planned: how many executions would run at least"`
	Refused  int             `json:"refused,omitempty" doc:"Of those that were planned: how many would be refused"`
	Refusals []RerunRefusals `json:"refusals,omitempty" doc:"Why: up to 20 reasons, that of the most executions first"`
	Planned  []RerunPlanned  `json:"planned,omitempty" doc:"What would become of the first of them"`
}

// RerunRefusals are the executions of a plan that would be refused for one reason.
type RerunRefusals struct {
	Detail string `json:"detail" doc:"The reason, as the refusal of one says it"`
	Count  int    `json:"count" doc:"How many executions"`
	First  string `json:"first" doc:"The id of the first of them"`
}

// RerunPlanned is one execution of a plan to run many again.
type RerunPlanned struct {
	ID      string   `json:"id" doc:"Id of the execution; begins with ex_"`
	Action  string   `json:"action,omitempty" doc:"What the rerun would be of"`
	Version int      `json:"version,omitempty" doc:"The version of its definition that the rerun would run on"`
	Reused  int      `json:"reused,omitempty" doc:"How many outcomes would be reused"`
	Runs    int      `json:"runs,omitempty" doc:"How many executions would run at least"`
	Problem *Problem `json:"problem,omitempty" doc:"Why it would be refused"`
}
