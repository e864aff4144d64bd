// Package remote is the hand-off over HTTP: Handler is the server's side, Client the worker's. Every call but
// those for blobs is a POST of JSON; calls that wait are long polls. A lost answer is harmless: reports and logs may be sent again, and a claim whose
// answer never arrived is recovered.
package remote

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// Protocol is the version of what the two sides say to each other. Either refuses any other.
const Protocol = "1"

// Prefix is where a server mounts the Handler.
const Prefix = "/api/v1/workers/"

const (
	versionHeader = "Pawl-Worker-Protocol"
	// secretHeader proves that a call comes from whoever opened the session: ids of sessions are there for everybody to
	// read.
	secretHeader = "Pawl-Session-Secret"
)

// blobPath is where blobs are put and got: PUT and GET of blobPath?session=…&execution=…&attempt=…&name=…, with
// &from=… for an offset. Their bytes go as pieces do (pieces.go). Servers from before there was this answer 404 without a reason;
// workers from before never ask.
const blobPath = Prefix + "blob"

const (
	// pollFor is how long the server lets a call wait before it answers "nothing yet".
	pollFor = 20 * time.Second
	// answerWithin is how long the worker waits for the answer to a call, beyond what the call may wait.
	answerWithin = 15 * time.Second
	// blobStall is how long either side waits for the next piece of a blob, and for the answer when there is none left.
	blobStall = time.Minute
	// mostBody bounds a request: a report of the largest outputs and a call of the most log bytes stay below it.
	mostBody = 64 << 20
	// mostAnswer bounds an answer: one to a worker that resumes holds the inputs of all that it goes on with.
	mostAnswer = 1 << 30
	// mostWork is about how many bytes of inputs the answer to a Take holds: the rest of what was claimed comes with the next.
	mostWork = 16 << 20
)

// encode writes JSON as it is: what stands for "<" and its like in a page would make an input or output six times as long.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

type opened struct {
	Session string `json:"session"`
	Secret  string `json:"secret"`
	// Work is what a session has taken over from the one before it.
	Work []handoff.Assignment `json:"work,omitempty"`
}

// asked is the body of every call but open; a call uses the fields that it needs.
type asked struct {
	Session string              `json:"session"`
	N       int                 `json:"n,omitempty"`
	Reports []flow.Report       `json:"reports,omitempty"`
	Chunks  []flow.LogChunk     `json:"chunks,omitempty"`
	Input   *handoff.InputQuery `json:"input,omitempty"`
	// Attempts are those that the worker declines.
	Attempts []flow.AttemptID `json:"attempts,omitempty"`
	// Next is the session that takes over from this one, and Keep what it wants of it.
	Next *handoff.Session `json:"next,omitempty"`
	Keep []flow.AttemptID `json:"keep,omitempty"`
}

// answer is the body of every answer but open's.
type answer struct {
	Work     []handoff.Assignment `json:"work,omitempty"`
	Receipts []flow.Receipt       `json:"receipts,omitempty"`
	Orders   []handoff.Order      `json:"orders,omitempty"`
	Lease    time.Duration        `json:"lease,omitempty"`
	Input    *handoff.Input       `json:"input,omitempty"` // nil: nothing yet
	Error    string               `json:"error,omitempty"`
}
