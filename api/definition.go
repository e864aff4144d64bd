package api

import (
	"encoding/json"
	"time"
)

// Definition is a stored version of a workflow or an action.
type Definition struct {
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	Kind      string    `json:"kind"` // workflow or action
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Document is the definition in its canonical form; left out in lists.
	Document json.RawMessage `json:"document,omitempty"`
}

// DefinitionPage is a page of the latest versions, by name, or of the versions of one definition, the newest first.
type DefinitionPage struct {
	Definitions []Definition `json:"definitions"`
	NextCursor  string       `json:"next_cursor,omitempty"`
}

// Defined answers a registration.
type Defined struct {
	Definitions []DefinedVersion `json:"definitions"`
}

// DefinedVersion is what one document became.
type DefinedVersion struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
	Kind    string `json:"kind"`    // workflow, action, queue or schedule
	Created bool   `json:"created"` // false: this version had been registered before
}

// Validation is the answer to a check of definitions. It is valid when there are no problems.
type Validation struct {
	Valid       bool             `json:"valid"`
	Definitions []DefinedVersion `json:"definitions,omitempty"` // what the documents define; Version is 0
	Problems    []FieldError     `json:"problems,omitempty"`
}
