package api

import (
	"encoding/json"
	"time"
)

// Event is one entry of an execution's history. Seq starts at 1 and has no gaps over all attempts.
type Event struct {
	Seq     int64           `json:"seq" doc:"1, 2, 3 … over all attempts, without gaps"`
	Attempt int             `json:"attempt" doc:"Number of the attempt, from 1"`
	Type    string          `json:"type" doc:"Type of the event (docs/states.md)"`
	At      time.Time       `json:"at" doc:"When it happened"`
	Data    json.RawMessage `json:"data,omitempty" doc:"Fields that depend on the type"`
}

// EventPage is a part of a history, without gaps.
type EventPage struct {
	Events     []Event `json:"events" doc:"Events in order, without gaps"`
	NextCursor string  `json:"next_cursor" doc:"Value for after to continue; present even if there is nothing more yet"`
	Status     Status  `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	More       bool    `json:"more" doc:"More events are available now"`
}

// LogChunk is a piece of the output of one attempt. The bytes are in Text if they are UTF-8 (a chunk may end inside a character), else in
// Data; Bytes returns either.
type LogChunk struct {
	Attempt int       `json:"attempt" doc:"Number of the attempt, from 1"`
	Seq     int64     `json:"seq" doc:"1, 2, 3 … over all streams of the attempt"`
	Stream  string    `json:"stream" doc:"stdout, stderr or log"`
	Offset  int64     `json:"offset" doc:"Offset of the first byte in the stream"`
	Size    int64     `json:"size" doc:"Size in bytes"`
	At      time.Time `json:"at" doc:"When it was written"`
	Text    string    `json:"text,omitempty" doc:"Content, if it is UTF-8"`
	Data    []byte    `json:"data,omitempty" doc:"Content, if it is not UTF-8"`
}

// Bytes returns the bytes of the chunk.
func (c *LogChunk) Bytes() []byte {
	if c.Data != nil {
		return c.Data
	}
	return []byte(c.Text)
}

// LogPage is a piece of an execution's logs.
type LogPage struct {
	Chunks     []LogChunk `json:"chunks" doc:"Chunks in order"`
	NextCursor string     `json:"next_cursor" doc:"Value for after to continue; present even if there is nothing more yet"`
	PrevCursor string     `json:"prev_cursor,omitempty" doc:"Value for before to read further back; absent at the start of the log"`
	Status     Status     `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	More       bool       `json:"more" doc:"More chunks are available now"`
}

// LogGap means that a stream of logs leaves out the chunks between two others.
type LogGap struct {
	From string `json:"from,omitempty" doc:"Place before the gap, in the form of after; absent if the gap begins at the start"`
	To   string `json:"to" doc:"First chunk after the gap, in the form of before"`
}

// LogStream is the amount that one attempt has written to one of its streams.
type LogStream struct {
	Attempt int       `json:"attempt" doc:"Number of the attempt, from 1"`
	Stream  string    `json:"stream" doc:"stdout, stderr or log"`
	Bytes   int64     `json:"bytes" doc:"Number of bytes"`
	LastSeq int64     `json:"last_seq" doc:"Number of the last chunk, counted over all streams of the attempt"`
	FirstAt time.Time `json:"first_at" doc:"When its first chunk was written"`
	LastAt  time.Time `json:"last_at" doc:"When its last chunk was written"`
}

// LogSummary is the amount that an execution has written.
type LogSummary struct {
	Streams []LogStream `json:"streams" doc:"Streams by attempt and name; empty streams are left out"`
	Status  Status      `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	More    bool        `json:"more" doc:"Only the latest 50 attempts are included; ask for earlier ones with attempt"`
}

// LogMatch is a line of an attempt's output that matches the search.
type LogMatch struct {
	Attempt int    `json:"attempt" doc:"Number of the attempt, from 1"`
	Seq     int64  `json:"seq" doc:"Number of the chunk in which the line begins"`
	Stream  string `json:"stream" doc:"stdout, stderr or log"`
	Offset  int64  `json:"offset" doc:"Offset of the line in its stream; a line over 16 KB counts as several"`
	Line    string `json:"line" doc:"Text of the line, without its line ending"`
	Cut     bool   `json:"cut,omitempty" doc:"The line is over 1,000 bytes; only the part around the match is returned"`
}

// LogMatches has the matches that one call of a search found. A line that is still being written is searched once it has ended.
type LogMatches struct {
	Matches    []LogMatch `json:"matches" doc:"Matches, in the order in which their lines were completed"`
	NextCursor string     `json:"next_cursor" doc:"Value for after to continue; present even if there is nothing more yet"`
	Status     Status     `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	More       bool       `json:"more" doc:"The search reached its limit; continue with next_cursor"`
	Searched   int64      `json:"searched" doc:"Bytes searched for this answer"`
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
	Idle bool      `json:"idle,omitempty"` // nothing has changed since the previous message; it only shows that the server is alive
}

// The names of the messages in the streams of server-sent events.
const (
	StreamEvent = "event" // data is an Event, id its seq
	StreamLog   = "log"   // data is a LogChunk, id its attempt.seq
	StreamGap   = "gap"   // data is a LogGap
	StreamTasks = "tasks" // data is Tasks
	// StreamTaskChanges is sent instead of StreamTasks if the request asks for changes: data is TaskChanges since the previous message.
	StreamTaskChanges = "task-changes"
	StreamEnd         = "end" // data is an End, or for outcomes an OutcomesEnd

	StreamOutcome = "outcome" // data is an Outcome, id its cursor
	StreamChanged = "changed" // of GET /executions and /evaluations: data is a Change

	StreamSignal      = "signal"      // of GET /signals: data is a Signal
	StreamEnforcement = "enforcement" // of GET /enforcements: data is an Enforcement
	StreamInquiry     = "inquiry"     // of GET /inquiries: data is an Inquiry
)
