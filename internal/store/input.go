package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// Inputs keeps what interactive executions are given to read while they run. Pieces come through Delta.Input.
type Inputs interface {
	// Given tells how much input an execution has been given; one that is unknown has been given none.
	Given(ctx context.Context, id flow.ID) (flow.Input, error)
	// ReadInput returns input from an offset on, and whether it is closed and these are its last bytes. It returns whole
	// pieces until there are limit bytes or more, and fewer only where the input ends or comes in very many pieces.
	ReadInput(ctx context.Context, id flow.ID, from, limit int64) (data []byte, last bool, err error)
}

// InputPiece is a piece of what an execution is given to read.
type InputPiece struct {
	Execution flow.ID
	Number    int   // 1, 2, 3 …
	Offset    int64 // of the first byte
	Data      []byte
	Last      bool // nothing follows
}
