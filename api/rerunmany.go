package api

import "time"

// RerunManyRequest is a request to run many executions again. Without IDs its parameters select them, as those of a list do.
type RerunManyRequest struct {
	IDs []string `json:"ids,omitempty" doc:"Up to 1,000 execution IDs; if absent, the query parameters select up to 10,000"`

	Definition string `json:"definition,omitempty" check:"filled" doc:"Definition for the reruns: same (default), latest, or name@version"`

	From   []string `json:"from,omitempty" doc:"Tasks to run again in each although they completed, for example b or deploy/verify[3]"`
	AtOnce int      `json:"at_once,omitempty" check:"positive" doc:"Reruns in progress at the same time, 1 to 100; default 10"`
	Plan   bool     `json:"plan,omitempty" doc:"Report what would run again, but change nothing"`

	Details int `json:"details,omitempty" check:"positive" doc:"With plan: executions to describe one by one, at most 10,000; default 50"`
}

// RerunMany says what is run again.
type RerunMany struct {
	// Execution runs the others again: each of its tasks is a rerun of one, and puts out which execution that is.
	Execution string `json:"execution,omitempty" doc:"Execution that performs the reruns, one per task; absent if nothing was changed"`
	Selected  int    `json:"selected" doc:"Number of executions selected, at most 10,000"`
	// SearchedTo says how far the parameters were looked up; NextCursor goes on there.
	SearchedTo *time.Time `json:"searched_to,omitempty" doc:"Executions created before this time were not searched"`
	NextCursor string     `json:"next_cursor,omitempty" doc:"More executions may match: repeat the request with this as cursor"`
	// Counted and what follows are of a plan.
	Counted  int             `json:"counted,omitempty" doc:"Executions that were planned: all, unless planning took over 10 s"`
	Reused   int             `json:"reused,omitempty" doc:"Results that the planned reruns would reuse"`
	Runs     int             `json:"runs,omitempty" doc:"Executions that the planned reruns would start, at least"`
	Refused  int             `json:"refused,omitempty" doc:"Planned reruns that would be refused"`
	Refusals []RerunRefusals `json:"refusals,omitempty" doc:"Up to 20 reasons for refusals, most frequent first"`
	Planned  []RerunPlanned  `json:"planned,omitempty" doc:"Plan for each of the first executions"`
}

// RerunRefusals are the executions of a plan that would be refused for one reason.
type RerunRefusals struct {
	Detail string `json:"detail" doc:"Reason, as a single rerun would report it"`
	Count  int    `json:"count" doc:"Number of executions"`
	First  string `json:"first" doc:"ID of the first of them"`
}

// RerunPlanned is one execution of a plan to run many again.
type RerunPlanned struct {
	ID      string   `json:"id" doc:"Id of the execution; begins with ex_"`
	Action  string   `json:"action,omitempty" doc:"Action of the rerun"`
	Version int      `json:"version,omitempty" doc:"Version of the definition that the rerun would use"`
	Reused  int      `json:"reused,omitempty" doc:"Results that would be reused"`
	Runs    int      `json:"runs,omitempty" doc:"Executions that would run, at least"`
	Problem *Problem `json:"problem,omitempty" doc:"Why the rerun would be refused"`
}
