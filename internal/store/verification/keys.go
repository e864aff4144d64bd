package verification

import (
	"context"
	"math"

	"github.com/pawl-run/pawl/internal/store"
)

// keysMost is how many keys are checked, the fullest first.
const keysMost = 1_000_000

// Keys compares the number of holders of each concurrency key with its limit. If the holders were submitted with different limits, the
// highest counts, because lowering a limit takes no slot away. The holders of a key are read in one snapshot.
func (f *Findings) Keys(ctx context.Context, r store.QueueReader) error {
	keys, err := r.Keys(ctx, keysMost)
	if err != nil {
		return err
	}
	for key, use := range keys {
		if use.Holders < 2 { // no limit is lower than 1
			continue
		}
		holders, err := r.KeyHolders(ctx, key, math.MaxInt)
		if err != nil {
			return err
		}
		limit := 0
		for _, x := range holders {
			limit = max(limit, x.KeyLimit)
		}
		if limit > 0 && len(holders) > limit {
			f.Add(12, holders[0].ID, "its key %q has %d holders: at most %d", key, len(holders), limit)
		}
	}
	return nil
}
