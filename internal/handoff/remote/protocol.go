// Package remote is the hand-off over HTTP: Handler is the server's side, Client the worker's. Every call except those for
// blobs is a POST of JSON (package wire); calls that wait are long polls. A lost answer is harmless: reports and logs may be
// sent again, and a claim whose answer is lost is returned by Missed, or recovered.
package remote

import (
	"time"

	"github.com/pawl-run/pawl/internal/handoff/wire"
)

// Protocol is the version of the protocol. Each side refuses other versions.
const Protocol = "1"

// Prefix is where a server mounts the Handler.
const Prefix = "/api/v1/workers/"

const (
	versionHeader = "Pawl-Worker-Protocol"
	// secretHeader proves that a call comes from the worker that opened the session: the ids of sessions are shown to every client.
	secretHeader = "Pawl-Session-Secret"
)

// blobPath is the path for blobs: PUT and GET of blobPath?session=…&execution=…&attempt=…&name=…, with &from=… for an offset.
// Their bytes are sent in pieces (pieces.go). Older servers answer 404 without a reason; older workers do not call it.
const blobPath = Prefix + "blob"

const (
	// pollFor is how long the server lets a call wait before it answers "nothing yet".
	pollFor = 20 * time.Second
	// answerWithin is how long the worker waits for an answer, beyond the time that the call may wait.
	answerWithin = 15 * time.Second
	// blobStall is how long each side waits for the next piece of a blob, and for the answer after the last one.
	blobStall = time.Minute
)

var holds = wire.Holds{Take: pollFor, Input: pollFor, Orders: pollFor}
