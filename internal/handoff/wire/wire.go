// Package wire has the messages between servers and workers in other processes, and the server's answers to them. The calls and
// their answers are JSON. The hand-offs over HTTP and over brokers carry the same messages.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// The calls. Each has the name of its method in handoff.Handoff.
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
	// mostTaken is how many executions one answer hands over at most.
	mostTaken = 1000
	// mostWork is about how many bytes of input one answer holds; the rest of the claimed work comes with the next one.
	mostWork = 16 << 20
	// MostBody is the most bytes of a call. A report of the largest outputs and a call with the most log bytes are smaller.
	MostBody = 64 << 20
	// MostAnswer is the most bytes of an answer. The answer to Resume holds the inputs of all attempts that the worker
	// continues.
	MostAnswer = 1 << 30
)

// ErrRepeated means that a call of Take has come before, or that its poller has made a later one. The worker has the answer to the first
// delivery, or does not wait for it any more.
var ErrRepeated = errors.New("the call has come before")

// Opened answers Open and Resume.
type Opened struct {
	Session string `json:"session"`
	Secret  string `json:"secret"`
	// Work is the work that a session has inherited from the previous one.
	Work []handoff.Assignment `json:"work,omitempty"`
}

// Asked is the body of every call but Open, whose body is the session. A call sets the fields that it needs.
type Asked struct {
	Session string `json:"session"`
	N       int    `json:"n,omitempty"`
	Poller  int    `json:"seat,omitempty"` // number of the poller: which of the session's calls of Take this is
	// Number is greater than those of the poller's earlier calls. It is 0 over HTTP, where a call cannot come again.
	Number int64 `json:"number,omitempty"`
	// Answered is the number of the poller's last call whose answer has come.
	Answered int64               `json:"answered,omitempty"`
	Reports  []flow.Report       `json:"reports,omitempty"`
	Chunks   []flow.LogChunk     `json:"chunks,omitempty"`
	Input    *handoff.InputQuery `json:"input,omitempty"`
	// Attempts are those that the worker declines or, in a call of Missed, those that it has.
	Attempts []flow.AttemptID `json:"attempts,omitempty"`
	// Next is the session that takes over from this one, and Keep the attempts that go to it.
	Next *handoff.Session `json:"next,omitempty"`
	Keep []flow.AttemptID `json:"keep,omitempty"`
}

// Answer is the body of every answer except those to Open and Resume.
type Answer struct {
	Work     []handoff.Assignment `json:"work,omitempty"`
	Receipts []flow.Receipt       `json:"receipts,omitempty"`
	Orders   []handoff.Order      `json:"orders,omitempty"`
	Lease    time.Duration        `json:"lease,omitempty"`
	Input    *handoff.Input       `json:"input,omitempty"` // nil: nothing yet
	Error    string               `json:"error,omitempty"`
}

// Encode writes JSON without escaping "<" and the like for HTML, which would make an input or output up to six times as long.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
