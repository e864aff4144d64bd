package worker

import "github.com/pawl-run/pawl/internal/store"

// chunk is a piece of an attempt's output in the form that the hand-off carries.
type chunk = store.LogChunk
