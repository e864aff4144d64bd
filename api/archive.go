package api

import "time"

// Archive says which archive a server shows. Such a server changes nothing: it answers GET and HEAD, and refuses every other request.
type Archive struct {
	From       string    `json:"from" doc:"The machine of the server that wrote it"`
	At         time.Time `json:"at" doc:"When it was written"`
	Version    string    `json:"version" doc:"Of that server"`
	Executions int       `json:"executions" doc:"In it, without the tasks of workflows"`
	Tasks      int       `json:"tasks" doc:"Of these executions"`
	LeftOut    int       `json:"left_out,omitempty" doc:"Executions that were selected and had not ended"`
}
