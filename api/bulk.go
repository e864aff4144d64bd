package api

// BulkLimit is the largest number of executions in one bulk request.
const BulkLimit = 1000

// BulkRequest asks for an operation on many executions: those in IDs, or those that the query parameters select.
type BulkRequest struct {
	IDs    []string `json:"ids,omitempty" doc:"Up to 1,000 execution IDs; if absent, the query parameters select"`
	Reason string   `json:"reason,omitempty" doc:"Cancel only: reason, shown to people"`
	DryRun bool     `json:"dry_run,omitempty" doc:"Report what would change, but change nothing"`
	Kill   bool     `json:"kill,omitempty" doc:"Cancel only: skip the clean-up tasks of workflows"`
}

// BulkResult is the answer to a bulk request.
type BulkResult struct {
	Selected   int         `json:"selected" doc:"Number of executions in this answer, at most 1,000"`
	Done       int         `json:"done" doc:"Executions that were changed, or would be in a dry run"`
	DryRun     bool        `json:"dry_run,omitempty" doc:"This was a dry run: nothing was changed"`
	Executions []BulkEntry `json:"executions" doc:"One entry per execution; newest first if selected by parameters"`
	NextCursor string      `json:"next_cursor,omitempty" doc:"More executions match: repeat the request with this as cursor"`
}

// BulkEntry is the result for one execution of a bulk request.
type BulkEntry struct {
	ID      string   `json:"id" doc:"Id of the execution; begins with ex_"`
	Status  Status   `json:"status,omitempty" doc:"Status of the execution after the request"`
	New     string   `json:"new,omitempty" doc:"ID of the new execution that retries this one"`
	Problem *Problem `json:"problem,omitempty" doc:"Why this execution was not changed"`
}
