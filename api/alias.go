package api

import "time"

// AliasTarget is a version that an alias stands for.
type AliasTarget struct {
	Version int     `json:"version" doc:"A registered version of the definition"`
	Percent float64 `json:"percent,omitempty" check:"positive" doc:"How many of a hundred executions get it, in steps of 0.01; left out of exactly one version, which gets the others"`
}

// AliasOrder moves an alias to other versions.
type AliasOrder struct {
	To     []AliasTarget `json:"to,omitempty" doc:"What it is to stand for, at most 20 versions"`
	Back   bool          `json:"back,omitempty" doc:"To where it stood before its last move, instead"`
	Remove bool          `json:"remove,omitempty" doc:"Remove it, instead; of latest: let it be the newest version again"`
	By     string        `json:"by,omitempty" doc:"Who moves it"`
	Reason string        `json:"reason,omitempty" doc:"Why, for those who look at it later"`
}

// Alias is where an alias of a definition stands since a move.
type Alias struct {
	Name   string        `json:"name" doc:"Of the definition"`
	Alias  string        `json:"alias" doc:"What follows the @"`
	Number int           `json:"number" doc:"Of the move: 1, 2, 3 …"`
	To     []AliasTarget `json:"to" doc:"What it stands for; empty: the alias was removed, and latest is the newest version again"`
	At     time.Time     `json:"at,omitzero" doc:"When it was moved there"`
	By     string        `json:"by,omitempty" doc:"Who did it"`
	Reason string        `json:"reason,omitempty" doc:"Why"`
	Moved  bool          `json:"moved,omitempty" doc:"In the answer to an order: whether that changed anything"`
}

// AliasPage is the aliases of a definition by name, or the moves of one, the last one first.
type AliasPage struct {
	Aliases    []Alias `json:"aliases" doc:"By name, or as they were moved"`
	NextCursor string  `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}
