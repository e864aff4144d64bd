package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// Inputs keeps the input that interactive executions are given while they run. Pieces are added through Delta.Input.
type Inputs interface {
	// FedInput returns how much input an execution has been given; none for an unknown one.
	FedInput(ctx context.Context, id flow.ID) (flow.Input, error)
	// ReadInput returns input from an offset on, and whether these are the last bytes of a closed input. It returns whole
	// pieces until there are limit bytes or more; fewer only if the input ends or has very many pieces.
	ReadInput(ctx context.Context, id flow.ID, from, limit int64) (data []byte, last bool, err error)
}

// InputPiece is a piece of an execution's input.
type InputPiece struct {
	Execution flow.ID
	Number    int   // 1, 2, 3 …
	Offset    int64 // of the first byte
	Data      []byte
	Last      bool // nothing follows this piece
}
