package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// Inputs stores the input that interactive executions receive while they run. Pieces are added through Delta.Input.
type Inputs interface {
	// FedInput returns how much input an execution has received; zero for an unknown one.
	FedInput(ctx context.Context, id flow.ID) (flow.Input, error)
	// ReadInput returns input from an offset on, and whether these are the last bytes of a closed input. It returns whole pieces until it has
	// at least limit bytes, and fewer only if the input ends or has very many pieces.
	ReadInput(ctx context.Context, id flow.ID, from, limit int64) (data []byte, last bool, err error)
}

// InputPiece is a piece of an execution's input.
type InputPiece struct {
	Execution flow.ID
	Number    int   // 1, 2, 3 …
	Offset    int64 // of the first byte
	Data      []byte
	Last      bool // the input is closed after this piece
}
