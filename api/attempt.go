package api

import "encoding/json"

// Attempt is one attempt of an execution: the content that its worker got, and how the attempt ended.
type Attempt struct {
	Execution string `json:"execution" doc:"ID of the execution"`
	Attempt   int    `json:"attempt" doc:"Number of the attempt, from 1"`
	Action    string `json:"action" doc:"Name of the action, or the kind of ad-hoc work"`
	Version   int    `json:"version,omitempty" doc:"Version of the definition; absent for ad-hoc work"`
	Kind      string `json:"kind" doc:"Kind of work, for example code, http or workflow, or the name of a handler"`

	Workflow string `json:"workflow,omitempty" doc:"ID of the workflow execution that this is a task of"`
	Task     string `json:"task,omitempty" doc:"Name of the task in that workflow"`
	Index    int    `json:"index,omitempty" doc:"Item of a foreach task or round of a repeated task, from 0"`

	Labels  map[string]string `json:"labels,omitempty" doc:"Labels by name; lists, counts and waits can select by them"`
	Timeout Duration          `json:"timeout,omitempty" doc:"Time limit of one attempt, counted from its claim by a worker"`

	Chain string `json:"chain,omitempty" doc:"Pawl-Chain header for requests that the attempt sends, if a rule started the execution"`

	Payload json.RawMessage `json:"payload,omitempty" doc:"Content for the handler: the input, or the definition with expressions evaluated"`

	Began bool `json:"began" doc:"Whether a worker reported that it began the attempt"`
	Lost  bool `json:"lost,omitempty" doc:"The worker was lost, so the result of the attempt is unknown"`
	// Status is the attempt's final status, or its current one. An earlier attempt has its own status, not that of the execution.
	Status Status          `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Error  *Error          `json:"error,omitempty" doc:"Why the attempt did not complete"`
	Output json.RawMessage `json:"output,omitempty" doc:"Output, for the last attempt only: outputs of earlier attempts are not kept"`
}
