package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Kept is an outcome that is kept for executions with the same to do. It has an output of its own: the execution may be removed.
type Kept struct {
	Hash    [sha256.Size]byte // of what the execution was to do
	Origin  flow.ID           // the execution that ran to put the output out
	At      time.Time         // when that ended
	Expires time.Time
	Output  json.RawMessage
}

// Cache keeps outcomes by what was to be done.
type Cache interface {
	// Kept returns what is kept under the hashes and has not expired at a time. Outputs of more than most bytes together are left out.
	Kept(ctx context.Context, hashes [][sha256.Size]byte, at time.Time, most int64) (map[[sha256.Size]byte]Kept, error)
}
