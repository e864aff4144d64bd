package api

import (
	"encoding/json"
	"time"
)

// Emission reports that something has happened.
type Emission struct {
	Trigger string          `json:"trigger" doc:"Name of what happened, for example alert.fired"`
	Data    json.RawMessage `json:"data,omitempty" doc:"Any JSON value up to 1 MiB; default {}"`
	Key     string          `json:"key,omitempty" check:"filled" doc:"Repeating the same content with this key returns the same signal"`
	Subject string          `json:"subject,omitempty" doc:"Subject of the signal, for example a host or an order number"`
}

// Emitted is the answer to an emission.
type Emitted struct {
	Signal       string        `json:"signal" doc:"ID of the signal; begins with sg_"`
	Existing     bool          `json:"existing,omitempty" doc:"The same signal was emitted before with this trigger and key"`
	Enforcements []Enforcement `json:"enforcements" doc:"Decisions by rule name; empty if the signal existed, or many rules still run"`
}

// EmissionBatch is up to BatchLimit emissions.
type EmissionBatch struct {
	Signals []Emission `json:"signals" doc:"Signals, 1 to 10,000"`
}

// Signal is something that has happened.
type Signal struct {
	ID      string            `json:"id" doc:"ID of the signal; begins with sg_"`
	Trigger string            `json:"trigger" doc:"Name of what happened, for example alert.fired"`
	Key     string            `json:"key,omitempty" doc:"Key that identifies the signal when it is sent again"`
	Subject string            `json:"subject,omitempty" doc:"Subject of the signal, for example a host or an order number"`
	Source  string            `json:"source" doc:"Origin: api, or webhook:NAME"`
	At      time.Time         `json:"at" doc:"When it was accepted"`
	State   string            `json:"state" doc:"new: the rules have yet to run; matched: they have run"`
	Data    json.RawMessage   `json:"data" doc:"Content that was sent"`
	Headers map[string]string `json:"headers,omitempty" doc:"Headers of the request that brought it"`
	Cause   string            `json:"cause,omitempty" doc:"Execution that caused the signal"`

	Replayed bool `json:"replayed,omitempty" doc:"Unsigned repeat of earlier content under another ID; it is kept, but starts nothing"`

	Rules []string `json:"rules,omitempty" doc:"Chain of rules that led to it, oldest first"`
}

// SignalPage is a page of signals, the latest first.
type SignalPage struct {
	Signals    []Signal `json:"signals" doc:"Newest first"`
	NextCursor string   `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}
