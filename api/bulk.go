package api

// BulkLimit is how many executions one bulk request is about at the most.
const BulkLimit = 1000

// BulkRequest asks for something to be done to many executions: to those that are named, or to those that the parameters of the
// request select.
type BulkRequest struct {
	IDs    []string `json:"ids,omitempty" doc:"Up to 1,000 executions; without it the parameters select them"`
	Reason string   `json:"reason,omitempty" doc:"Why, for people; of a cancel"`
	DryRun bool     `json:"dry_run,omitempty" doc:"Change nothing, and answer what would be changed"`
	Kill   bool     `json:"kill,omitempty" doc:"Of a cancel: as kill does, without the clean-up of workflows"`
}

// BulkResult is the answer to a bulk request.
type BulkResult struct {
	Selected   int         `json:"selected" doc:"How many executions this answer is about; 1,000 at the most"`
	Done       int         `json:"done" doc:"How many of them it was done to, or would be in a dry run"`
	DryRun     bool        `json:"dry_run,omitempty" doc:"Nothing was changed"`
	Executions []BulkEntry `json:"executions" doc:"One for each execution, the newest first where parameters selected them"`
	NextCursor string      `json:"next_cursor,omitempty" doc:"There are more: pass it as cursor with the same parameters"`
}

// BulkEntry says what became of one execution of a bulk request.
type BulkEntry struct {
	ID      string   `json:"id" doc:"Id of the execution; begins with ex_"`
	Status  Status   `json:"status,omitempty" doc:"Where it stands after the request"`
	New     string   `json:"new,omitempty" doc:"The execution that tries it again"`
	Problem *Problem `json:"problem,omitempty" doc:"Why it was not done"`
}
