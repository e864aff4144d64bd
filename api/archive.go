package api

import "time"

// Archive identifies the archive that a server shows. Such a server changes nothing: it answers GET and HEAD, and refuses every other
// request.
type Archive struct {
	From       string    `json:"from" doc:"Host name of the server that wrote the archive"`
	At         time.Time `json:"at" doc:"When the archive was written"`
	Version    string    `json:"version" doc:"Version of Pawl that wrote it"`
	Executions int       `json:"executions" doc:"Number of executions in the archive, without the tasks of workflows"`
	Tasks      int       `json:"tasks" doc:"Number of workflow tasks in the archive"`
	LeftOut    int       `json:"left_out,omitempty" doc:"Selected executions that were not archived because they had not ended"`
}
