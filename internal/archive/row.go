package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/wirejson"
)

// Row is a line of the rows; exactly one of its fields is set. A tree is between its Tree and its End. Each execution is followed by its
// other rows, and then by its children, by attempt, task and index, each with its descendants.
type Row struct {
	Tree      flow.ID        `json:"tree,omitzero"` // begins a tree: its root
	Execution *Execution     `json:"execution,omitempty"`
	Events    []Event        `json:"events,omitempty"`
	Mark      *Mark          `json:"mark,omitempty"`
	Input     *Input         `json:"input,omitempty"`
	Log       *flow.LogChunk `json:"log,omitempty"`
	Blob      *Blob          `json:"blob,omitempty"`
	End       *End           `json:"end,omitempty"` // ends a tree
	LeftOut   *LeftOut       `json:"left_out,omitempty"`
}

type Event struct {
	Seq     int64          `json:"seq"`
	Attempt int            `json:"attempt"`
	Type    flow.EventType `json:"type"`
	At      time.Time      `json:"at"`
	Data    Value          `json:"data,omitempty"`
}

// Mark is a decision about a task of a workflow, not about its children.
type Mark struct {
	Attempt int    `json:"attempt"`
	Task    string `json:"task"`
	State   string `json:"state"`
	Total   int    `json:"total,omitempty"`
	Error   *Error `json:"error,omitempty"`
}

// Input is a piece of the input of an interactive execution.
type Input struct {
	Offset int64  `json:"offset"`
	Data   []byte `json:"data,omitempty"`
	Last   bool   `json:"last,omitempty"` // the input is closed after it
}

// Blob is a content of an execution in its own member, before the row.
type Blob struct {
	Name    string `json:"name"` // of the member
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256,omitempty"`
	Missing bool   `json:"missing,omitempty"` // the server did not have it any more, so there is no member
}

// End ends a tree.
type End struct {
	Executions int `json:"executions"`
}

// LeftOut is a requested execution that is not in the archive.
type LeftOut struct {
	Execution flow.ID `json:"execution"`
	Why       string  `json:"why"`
}

// Error is why an execution did not complete.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	Details Value  `json:"details,omitempty"`
}

func (r *Row) Appended(b []byte) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	if err := wirejson.Append(buf, r); err != nil {
		return nil, fmt.Errorf("write a row: %w", err)
	}
	return append(buf.Bytes(), '\n'), nil
}

func ParseRow(line []byte) (*Row, error) {
	var r Row
	if err := decode(line, &r); err != nil {
		return nil, broken("row %.60q: %v", line, err)
	}
	return &r, nil
}

func EventsOf(all []flow.Event) []Event {
	out := make([]Event, len(all))
	for i := range all {
		e := &all[i]
		out[i] = Event{e.Seq, e.Attempt, e.Type, e.At, Value(e.Data)}
	}
	return out
}

func (e *Event) Flow() flow.Event {
	return flow.Event{Seq: e.Seq, Attempt: e.Attempt, Type: e.Type, At: instant(e.At), Data: json.RawMessage(e.Data)}
}

func ErrorOf(e *flow.Error) *Error {
	if e == nil {
		return nil
	}
	return &Error{e.Code, e.Message, Value(e.Details)}
}

func (e *Error) Flow() *flow.Error {
	if e == nil {
		return nil
	}
	return &flow.Error{Code: e.Code, Message: e.Message, Details: json.RawMessage(e.Details)}
}

// instant returns a time with the precision of stores.
func instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
