package api

import (
	"encoding/json"
	"time"
)

// Event is one entry of an execution's history. Seq starts at 1 and has no gaps over all attempts.
type Event struct {
	Seq     int64           `json:"seq" doc:"1, 2, 3 … without gaps over all attempts"`
	Attempt int             `json:"attempt" doc:"Number of the attempt, from 1"`
	Type    string          `json:"type" doc:"What happened (docs/states.md)"`
	At      time.Time       `json:"at" doc:"When it happened"`
	Data    json.RawMessage `json:"data,omitempty" doc:"Depends on the type"`
}

// EventPage is a gap-free piece of a history.
type EventPage struct {
	Events []Event `json:"events" doc:"In order, without gaps"`
	// NextCursor is what to pass as ?after= for what follows, also when nothing has followed yet.
	NextCursor string `json:"next_cursor" doc:"Pass it as after to read on, also when there is nothing more yet"`
	Status     Status `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	More       bool   `json:"more" doc:"There was more to read at once"`
}

// LogChunk is a piece of what one attempt wrote. Its bytes are in Text when they are UTF-8 (a chunk may end inside a
// character), else in Data; Bytes gives them either way.
type LogChunk struct {
	Attempt int       `json:"attempt" doc:"Number of the attempt, from 1"`
	Seq     int64     `json:"seq" doc:"1, 2, 3 … over all streams of the attempt"`
	Stream  string    `json:"stream" doc:"stdout, stderr or log"`
	Offset  int64     `json:"offset" doc:"Offset of its first byte in its stream"`
	Size    int64     `json:"size" doc:"In bytes"`
	At      time.Time `json:"at" doc:"When it was written"`
	Text    string    `json:"text,omitempty" doc:"Its bytes, where they are UTF-8"`
	Data    []byte    `json:"data,omitempty" doc:"Its bytes, where they are not UTF-8"`
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
	Chunks []LogChunk `json:"chunks" doc:"In order"`
	// NextCursor is what to pass as ?after= for what follows, also when nothing has followed yet.
	NextCursor string `json:"next_cursor" doc:"Pass it as after to read on, also when there is nothing more yet"`
	// PrevCursor is what to pass as ?before= for what comes before a tail; empty: this is the start.
	PrevCursor string `json:"prev_cursor,omitempty" doc:"Of a page that begins with a tail: what to pass as before for what comes before it; absent: nothing does"`
	Status     Status `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	More       bool   `json:"more" doc:"There was more to read at once"`
}

// LogGap says that a stream of logs leaves out what lies between two chunks.
type LogGap struct {
	From string `json:"from,omitempty" doc:"What was left out comes behind this place, as for after; absent: from the start"`
	To   string `json:"to" doc:"The first chunk that comes now, as for before"`
}

// LogStream is how much one attempt has written to one of its streams.
type LogStream struct {
	Attempt int       `json:"attempt" doc:"Number of the attempt, from 1"`
	Stream  string    `json:"stream" doc:"stdout, stderr or log"`
	Bytes   int64     `json:"bytes" doc:"How many there are"`
	LastSeq int64     `json:"last_seq" doc:"Of its last chunk, over all streams of the attempt"`
	FirstAt time.Time `json:"first_at" doc:"When its first chunk was written"`
	LastAt  time.Time `json:"last_at" doc:"When its last chunk was written"`
}

// LogSummary is how much an execution has written.
type LogSummary struct {
	Streams []LogStream `json:"streams" doc:"By attempt and stream; those that nothing was written to are left out"`
	Status  Status      `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	More    bool        `json:"more" doc:"There were attempts before these: the latest 50 are summed up, and any one with attempt"`
}

// LogMatch is a line of what one attempt wrote that has what was searched for.
type LogMatch struct {
	Attempt int    `json:"attempt" doc:"Number of the attempt, from 1"`
	Seq     int64  `json:"seq" doc:"Number of the chunk in which the line begins"`
	Stream  string `json:"stream" doc:"stdout, stderr or log"`
	Offset  int64  `json:"offset" doc:"Offset of the line's first byte in its stream; a line of more than 16 KB counts as several"`
	Line    string `json:"line" doc:"Its text, without its end"`
	Cut     bool   `json:"cut,omitempty" doc:"The line has more than 1000 bytes, of which line has those around the match"`
}

// LogMatches is what one call of a search has found. A line that is still being written is searched when it has ended.
type LogMatches struct {
	Matches []LogMatch `json:"matches" doc:"In the order in which the lines ended"`
	// NextCursor is what to pass as ?after= to go on, also when nothing has followed yet.
	NextCursor string `json:"next_cursor" doc:"Pass it as after to go on, also when there is nothing more yet"`
	Status     Status `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	More       bool   `json:"more" doc:"The search has reached its bounds: more may be found after next_cursor"`
	Searched   int64  `json:"searched" doc:"Bytes looked through for this answer"`
}

// End is the last message of a stream: the execution has ended and everything has been sent.
type End struct {
	ID     string `json:"id"`
	Status Status `json:"status"`
	Error  *Error `json:"error,omitempty"`
}

// Change says that executions may have changed, or that there may be new ones. It does not say which: the list does. It
// is also sent when a worker comes or goes, when something is paused or resumed, and for new signals.
type Change struct {
	At   time.Time `json:"at"`             // when the server sent it
	Idle bool      `json:"idle,omitempty"` // a sign of life: the server has heard of no change since the message before
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
