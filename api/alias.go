package api

import "time"

// AliasTarget is one of the versions that an alias selects.
type AliasTarget struct {
	Version int `json:"version" doc:"Registered version of the definition"`

	Percent float64 `json:"percent,omitempty" check:"positive" doc:"Percent of executions, in steps of 0.01; exactly one target omits it"`
}

// AliasOrder moves an alias to other versions.
type AliasOrder struct {
	To     []AliasTarget `json:"to,omitempty" doc:"New targets of the alias, at most 20"`
	Back   bool          `json:"back,omitempty" doc:"Undo the last move instead"`
	Remove bool          `json:"remove,omitempty" doc:"Remove the alias instead; latest then means the newest version again"`
	By     string        `json:"by,omitempty" doc:"Who moves the alias"`
	Reason string        `json:"reason,omitempty" doc:"Reason, shown in the history of the alias"`
}

// Alias is the state of an alias after a move.
type Alias struct {
	Name   string        `json:"name" doc:"Name of the definition"`
	Alias  string        `json:"alias" doc:"Name of the alias, for example stable in report@stable"`
	Number int           `json:"number" doc:"Number of the move: 1, 2, 3 …"`
	To     []AliasTarget `json:"to" doc:"Versions that the alias stands for; empty after the alias was removed"`
	At     time.Time     `json:"at,omitzero" doc:"When the alias was moved"`
	By     string        `json:"by,omitempty" doc:"Who moved it"`
	Reason string        `json:"reason,omitempty" doc:"Reason that was given for the move"`
	Moved  bool          `json:"moved,omitempty" doc:"Answer to an order only: whether it changed anything"`
}

// AliasPage lists the aliases of a definition by name, or the moves of one alias, newest first.
type AliasPage struct {
	Aliases    []Alias `json:"aliases" doc:"Aliases by name, or the moves of one alias, newest first"`
	NextCursor string  `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}
