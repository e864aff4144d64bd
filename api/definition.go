package api

import (
	"encoding/json"
	"time"
)

// Definition is a stored version of a workflow or an action.
type Definition struct {
	Name      string    `json:"name" doc:"Name by which the definition is submitted"`
	Version   int       `json:"version" doc:"Version, from 1"`
	Kind      string    `json:"kind" doc:"workflow or action"`
	CreatedAt time.Time `json:"created_at,omitzero" doc:"When this version was registered"`
	// Document is the definition in its canonical form; registering it again gives the same version. Lists leave it out.
	Document json.RawMessage `json:"document,omitempty" doc:"Document in canonical form; left out in lists"`
	Paused   *Pause          `json:"paused,omitempty" doc:"Present while it is paused: no execution of it begins"`
	Retired  *Retirement     `json:"retired,omitempty" doc:"Present while it is retired: new submissions are refused"`
}

// Retirement is the latest decision to retire a definition: its time, its author and the reason.
type Retirement struct {
	At     time.Time `json:"at" doc:"When it was retired"`
	By     string    `json:"by,omitempty" doc:"Who retired it"`
	Reason string    `json:"reason,omitempty" doc:"Reason that was given"`
}

// RetireOrder retires a definition, or brings it back.
type RetireOrder struct {
	Undo   bool   `json:"undo,omitempty" doc:"Bring it back into use instead"`
	By     string `json:"by,omitempty" doc:"Who retires it or brings it back"`
	Reason string `json:"reason,omitempty" doc:"Reason, shown to callers whose submissions are refused"`
}

// DefinitionPage is a page of the latest versions, by name, or of the versions of one definition, newest first.
type DefinitionPage struct {
	Definitions []Definition `json:"definitions" doc:"Latest versions, by name"`
	NextCursor  string       `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// Defined answers a registration.
type Defined struct {
	Definitions []DefinedVersion `json:"definitions" doc:"Result for each document, in order"`
	// Warnings concern definitions that were registered all the same.
	Warnings []FieldError `json:"warnings,omitempty" doc:"Accepted, but perhaps not intended: for example, a task names a retired action"`
}

// DefinedVersion is the result for one document.
type DefinedVersion struct {
	Name    string `json:"name" doc:"Name of the definition"`
	Version int    `json:"version" doc:"Version of the definition, from 1; 0 in a validation"`
	Kind    string `json:"kind" doc:"workflow, action, queue, schedule, trigger or rule"`
	Created bool   `json:"created" doc:"Whether this version is new; false if it was registered before"`
	Latest  int    `json:"latest,omitempty" doc:"Version that the name alone stands for, if it is not the newest"`
}

// Validation is the answer to a check of definitions. It is valid when there are no problems.
type Validation struct {
	Valid       bool             `json:"valid" doc:"Whether there are no problems"`
	Definitions []DefinedVersion `json:"definitions,omitempty" doc:"Definitions in the documents"`
	Problems    []FieldError     `json:"problems,omitempty" doc:"All errors"`
	Warnings    []FieldError     `json:"warnings,omitempty" doc:"Valid, but possibly not intended, as in the answer of a registration"`
}
