package api

import (
	"encoding/json"
	"time"
)

// Definition is a stored version of a workflow or an action.
type Definition struct {
	Name      string    `json:"name" doc:"By which it is submitted"`
	Version   int       `json:"version" doc:"From 1"`
	Kind      string    `json:"kind" doc:"workflow or action"`
	CreatedAt time.Time `json:"created_at,omitzero" doc:"When this version was registered"`
	// Document is the definition in its canonical form, which is taken again as the same version; left out in lists.
	Document json.RawMessage `json:"document,omitempty" doc:"In its canonical form, which is taken again as the same version; left out in lists"`
	Paused   *Pause          `json:"paused,omitempty" doc:"No execution of it begins until it is resumed; absent while it is not paused"`
	Retired  *Retirement     `json:"retired,omitempty" doc:"Nothing new of it is accepted; absent while it is not retired"`
}

// Retirement is the latest decision to retire a definition: its time, its author and the reason.
type Retirement struct {
	At     time.Time `json:"at" doc:"Since when"`
	By     string    `json:"by,omitempty" doc:"Who retired it"`
	Reason string    `json:"reason,omitempty" doc:"Why"`
}

// RetireOrder retires a definition, or brings it back.
type RetireOrder struct {
	Undo   bool   `json:"undo,omitempty" doc:"Bring it back"`
	By     string `json:"by,omitempty" doc:"Who does it"`
	Reason string `json:"reason,omitempty" doc:"Why, for those whose submissions are refused"`
}

// DefinitionPage is a page of the latest versions, by name, or of the versions of one definition, the newest first.
type DefinitionPage struct {
	Definitions []Definition `json:"definitions" doc:"The latest versions, by name"`
	NextCursor  string       `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// Defined answers a registration.
type Defined struct {
	Definitions []DefinedVersion `json:"definitions" doc:"What each document became, in their order"`
	// Warnings are about what is defined all the same.
	Warnings []FieldError `json:"warnings,omitempty" doc:"What is defined all the same, and may not be meant: a task, schedule or rule names a definition that is retired, or what is defined is retired"`
}

// DefinedVersion is what one document became.
type DefinedVersion struct {
	Name    string `json:"name" doc:"Of the definition"`
	Version int    `json:"version" doc:"Version of the definition, from 1; 0 if it was only checked"`
	Kind    string `json:"kind" doc:"workflow, action, queue, schedule, trigger or rule"`
	Created bool   `json:"created" doc:"false: this version had been registered before"`
	Latest  int    `json:"latest,omitempty" doc:"The version that the name alone stands for, where it does not stand for the newest"`
}

// Validation is the answer to a check of definitions. It is valid when there are no problems.
type Validation struct {
	Valid       bool             `json:"valid" doc:"There are no problems"`
	Definitions []DefinedVersion `json:"definitions,omitempty" doc:"What the documents define"`
	Problems    []FieldError     `json:"problems,omitempty" doc:"Everything that is wrong"`
	Warnings    []FieldError     `json:"warnings,omitempty" doc:"What is valid, and may not be meant, as in the answer of a registration"`
}
