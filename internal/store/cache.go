package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Kept is an outcome in the cache. It has a copy of the output, because the execution may be removed.
type Kept struct {
	Hash    [sha256.Size]byte // of everything that determines the outcome
	Origin  flow.ID           // the execution that ran and produced the output
	At      time.Time         // when that execution ended
	Expires time.Time
	Output  json.RawMessage
}

// Cache keeps outcomes by the hash of what determines them.
type Cache interface {
	// Kept returns the unexpired outcomes under the hashes, at a time. It leaves out outputs that would exceed "most" bytes together.
	Kept(ctx context.Context, hashes [][sha256.Size]byte, at time.Time, most int64) (map[[sha256.Size]byte]Kept, error)
}
