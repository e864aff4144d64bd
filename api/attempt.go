package api

import "encoding/json"

// Attempt is one attempt of an execution: what its worker was given, and how it ended.
type Attempt struct {
	Execution string `json:"execution" doc:"Of which it is an attempt"`
	Attempt   int    `json:"attempt" doc:"Number of the attempt, from 1"`
	Action    string `json:"action" doc:"Name of the action, or the kind of ad-hoc work"`
	Version   int    `json:"version,omitempty" doc:"Version of the definition; absent for ad-hoc work"`
	Kind      string `json:"kind" doc:"What runs it: code, container, http, llm, input, output, sleep, ask, wait, noop, workflow, or the name of a handler"`

	Workflow string `json:"workflow,omitempty" doc:"The execution that it is a task of"`
	Task     string `json:"task,omitempty" doc:"Its name there"`
	Index    int    `json:"index,omitempty" doc:"Which item or round of the task it is, from 0"`

	Labels  map[string]string `json:"labels,omitempty" doc:"By which lists, counts and waits select it"`
	Timeout Duration          `json:"timeout,omitempty" doc:"Most time for one attempt, from its hand-off to a worker"`
	Chain   string            `json:"chain,omitempty" doc:"Value of the header Pawl-Chain for what it sends, where rules have led to it"`
	// Payload is what the handler got: the input, or what the action's definition makes of it, with every expression evaluated.
	Payload json.RawMessage `json:"payload,omitempty" doc:"What the handler got: the input, or what the action's definition makes of it"`

	Began bool `json:"began" doc:"A worker has said that it began to run it"`
	Lost  bool `json:"lost,omitempty" doc:"Its worker was lost: what became of it is not known"`
	// Status is how the attempt ended, or where it stands. That of an earlier attempt than the last is of the attempt alone.
	Status Status          `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Error  *Error          `json:"error,omitempty" doc:"Why it did not complete"`
	Output json.RawMessage `json:"output,omitempty" doc:"Only of the last attempt: outputs of others are not kept"`
}
