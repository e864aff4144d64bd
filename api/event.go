package api

import (
	"encoding/json"
	"time"
)

// Event is one entry of an execution's history. Seq starts at 1 and has no gaps over all attempts.
type Event struct {
	Seq     int64           `json:"seq"`
	Attempt int             `json:"attempt"`
	Type    string          `json:"type"`
	At      time.Time       `json:"at"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// EventPage is a gap-free piece of a history.
type EventPage struct {
	Events []Event `json:"events"`
	// NextCursor is what to pass as ?after= for what follows, also when nothing has followed yet.
	NextCursor string `json:"next_cursor"`
	Status     Status `json:"status"`
	More       bool   `json:"more"` // there was more to read at once
}

// LogChunk is a piece of what one attempt wrote. Its bytes are in Text when they are UTF-8 (a chunk may end inside a
// character), else in Data; Bytes gives them either way.
type LogChunk struct {
	Attempt int       `json:"attempt"`
	Seq     int64     `json:"seq"`    // 1, 2, 3 … over all streams of the attempt
	Stream  string    `json:"stream"` // stdout, stderr or log
	Offset  int64     `json:"offset"` // of the first byte, in its stream
	Size    int64     `json:"size"`   // in bytes
	At      time.Time `json:"at"`
	Text    string    `json:"text,omitempty"`
	Data    []byte    `json:"data,omitempty"`
}

// Bytes is what was written.
func (c *LogChunk) Bytes() []byte {
	if c.Data != nil {
		return c.Data
	}
	return []byte(c.Text)
}

// LogPage is a piece of an execution's logs.
type LogPage struct {
	Chunks []LogChunk `json:"chunks"`
	// NextCursor is what to pass as ?after= for what follows, also when nothing has followed yet.
	NextCursor string `json:"next_cursor"`
	// PrevCursor is what to pass as ?before= for what comes before a tail; empty: this is the start.
	PrevCursor string `json:"prev_cursor,omitempty" doc:"Of a page that begins with a tail: what to pass as before for what comes before it; absent: nothing does"`
	Status     Status `json:"status"`
	More       bool   `json:"more"` // there was more to read at once
}

// LogGap says that a stream of logs leaves out what lies between two chunks.
type LogGap struct {
	From string `json:"from,omitempty" doc:"What was left out comes behind this place, as for after; absent: from the start"`
	To   string `json:"to" doc:"The first chunk that comes now, as for before"`
}

// LogStream is how much one attempt has written to one of its streams.
type LogStream struct {
	Attempt int       `json:"attempt"`
	Stream  string    `json:"stream" doc:"stdout, stderr or log"`
	Bytes   int64     `json:"bytes" doc:"How many there are"`
	LastSeq int64     `json:"last_seq" doc:"Of its last chunk, over all streams of the attempt"`
	FirstAt time.Time `json:"first_at" doc:"When its first chunk was written"`
	LastAt  time.Time `json:"last_at" doc:"When its last chunk was written"`
}

// LogSummary is how much an execution has written.
type LogSummary struct {
	Streams []LogStream `json:"streams" doc:"By attempt and stream; those that nothing was written to are left out"`
	Status  Status      `json:"status"`
	More    bool        `json:"more" doc:"There were attempts before these: the latest 50 are summed up, and any one with attempt"`
}

// LogMatch is a line of what one attempt wrote that has what was searched for.
type LogMatch struct {
	Attempt int    `json:"attempt"`
	Seq     int64  `json:"seq"`    // of the chunk in which the line begins
	Stream  string `json:"stream"` // stdout, stderr or log
	Offset  int64  `json:"offset"` // of the first byte of the line, in its stream
	Line    string `json:"line"`   // without its end
	Cut     bool   `json:"cut,omitempty"`
}

// LogMatches is what one call of a search has found. A line that is still being written is searched when it has ended.
type LogMatches struct {
	Matches []LogMatch `json:"matches"`
	// NextCursor is what to pass as ?after= to go on, also when nothing has followed yet.
	NextCursor string `json:"next_cursor"`
	Status     Status `json:"status"`
	More       bool   `json:"more"`     // the search has met its bounds of time, bytes or matches: more may be found
	Searched   int64  `json:"searched"` // bytes looked through for this answer
}

// End is the last message of a stream: the execution has ended and everything has been sent.
type End struct {
	ID     string `json:"id"`
	Status Status `json:"status"`
	Error  *Error `json:"error,omitempty"`
}

// Change says that executions may have changed, or that there may be new ones. It does not say which: the list does.
type Change struct {
	At time.Time `json:"at"` // when the server sent it
}

// The names of the messages on the server-sent streams.
const (
	StreamEvent = "event" // data is an Event, id its seq
	StreamLog   = "log"   // data is a LogChunk, id its attempt.seq
	StreamGap   = "gap"   // data is a LogGap
	StreamTasks = "tasks" // data is Tasks
	// StreamTaskChanges has what has changed since the message before, of streams that ask for that: data is TaskChanges.
	StreamTaskChanges = "task-changes"
	StreamEnd         = "end" // data is an End, of outcomes an OutcomesEnd

	StreamOutcome = "outcome" // data is an Outcome, id its cursor
	StreamChanged = "changed" // of GET /executions and /evaluations: data is a Change

	StreamSignal      = "signal"      // of GET /signals: data is a Signal
	StreamEnforcement = "enforcement" // of GET /enforcements: data is an Enforcement
	StreamInquiry     = "inquiry"     // of GET /inquiries: data is an Inquiry
)
