// Package wire has the messages of workers in other processes and servers, which HTTP and brokers carry alike: the calls and their answers
// as JSON, and a server's side of them. The hand-offs over HTTP and over brokers are ways to carry it.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// The calls. Each is named as the method of handoff.Handoff that it carries.
const (
	Open    = "open"
	Resume  = "resume"
	Take    = "take"
	Missed  = "missed"
	Report  = "report"
	Decline = "decline"
	Log     = "log"
	Input   = "input"
	Renew   = "renew"
	Orders  = "orders"
	Close   = "close"
)

const (
	// MostTaken bounds how many executions one answer hands over.
	MostTaken = 1000
	// MostWork is about how many bytes of inputs one answer holds: the rest of what was claimed comes with the next.
	MostWork = 16 << 20
	// MostBody bounds a call: a report of the largest outputs and a call of the most log bytes stay below it.
	MostBody = 64 << 20
	// MostAnswer bounds an answer: one to a worker that resumes holds the inputs of all that it goes on with.
	MostAnswer = 1 << 30
)

// ErrRepeated means that a call of Take has come before, or that its poller has made another since. The worker has the answer of
// the first delivery, or does not wait for one any more.
var ErrRepeated = errors.New("the call has come before")

// Opened answers Open and Resume.
type Opened struct {
	Session string `json:"session"`
	Secret  string `json:"secret"`
	// Work is what a session has taken over from the one before it.
	Work []handoff.Assignment `json:"work,omitempty"`
}

// Asked is the body of every call but Open, whose body is the session; a call uses the fields that it needs.
type Asked struct {
	Session string `json:"session"`
	N       int    `json:"n,omitempty"`
	Poller  int    `json:"seat,omitempty"` // which of the session's calls of Take this is; see Holds
	// Number is greater than those of the poller's calls before, on ways on which calls may come again; 0: on none that may
	Number int64 `json:"number,omitempty"`
	// Answered is the number of the poller's last call whose answer has come.
	Answered int64               `json:"answered,omitempty"`
	Reports  []flow.Report       `json:"reports,omitempty"`
	Chunks   []flow.LogChunk     `json:"chunks,omitempty"`
	Input    *handoff.InputQuery `json:"input,omitempty"`
	// Attempts are those that the worker declines, or, of Missed, those that it has.
	Attempts []flow.AttemptID `json:"attempts,omitempty"`
	// Next is the session that takes over from this one, and Keep what it wants of it.
	Next *handoff.Session `json:"next,omitempty"`
	Keep []flow.AttemptID `json:"keep,omitempty"`
}

// Answer is the body of every answer but that to Open and Resume.
type Answer struct {
	Work     []handoff.Assignment `json:"work,omitempty"`
	Receipts []flow.Receipt       `json:"receipts,omitempty"`
	Orders   []handoff.Order      `json:"orders,omitempty"`
	Lease    time.Duration        `json:"lease,omitempty"`
	Input    *handoff.Input       `json:"input,omitempty"` // nil: nothing yet
	Error    string               `json:"error,omitempty"`
}

// Encode writes JSON as it is: what stands for "<" and its like in a page would make an input or output six times as long.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
