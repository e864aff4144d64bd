package api

import (
	"encoding/json"
	"time"
)

// Emission says that something has happened.
type Emission struct {
	Trigger string          `json:"trigger" doc:"What kind of thing has happened, as in alert.fired"`
	Data    json.RawMessage `json:"data,omitempty" doc:"Any JSON, of at most 1 MiB; {} by default"`
	Key     string          `json:"key,omitempty" check:"filled" doc:"The same content again under this trigger and key gives the same signal, another one is refused with 422"`
	Subject string          `json:"subject,omitempty" doc:"What it is about, such as a host or an order"`
}

// Emitted is the answer to an emission.
type Emitted struct {
	Signal   string `json:"signal" doc:"Its id; begins with sg_"`
	Existing bool   `json:"existing,omitempty" doc:"The same was emitted before under this trigger and key"`
	// Enforcements are what the rules have made of it.
	Enforcements []Enforcement `json:"enforcements" doc:"What the rules have made of it, by name of the rules; none where it existed, and none yet where more rules fire on it than one transaction carries out"`
}

// EmissionBatch is up to BatchLimit emissions.
type EmissionBatch struct {
	Signals []Emission `json:"signals" doc:"1 to 10,000"`
}

// Signal is something that has happened.
type Signal struct {
	ID       string            `json:"id" doc:"Begins with sg_"`
	Trigger  string            `json:"trigger" doc:"What kind of thing has happened"`
	Key      string            `json:"key,omitempty" doc:"What it is known by when it is sent again"`
	Subject  string            `json:"subject,omitempty" doc:"What it is about"`
	Source   string            `json:"source" doc:"Who said it: api, or webhook:NAME"`
	At       time.Time         `json:"at" doc:"When it was accepted"`
	State    string            `json:"state" doc:"new: the rules are about to be asked about it; matched: they have been"`
	Data     json.RawMessage   `json:"data" doc:"What was sent"`
	Headers  map[string]string `json:"headers,omitempty" doc:"Of the request that brought it"`
	Cause    string            `json:"cause,omitempty" doc:"The execution that it follows from"`
	Replayed bool              `json:"replayed,omitempty" doc:"The same content came before under another id, which nobody signed: it is kept, and no rule is asked about it"`
	Rules    []string          `json:"rules,omitempty" doc:"Those that have led to it, the first one first"`
}

// SignalPage is a page of signals, the latest first.
type SignalPage struct {
	Signals    []Signal `json:"signals" doc:"The latest first"`
	NextCursor string   `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}
