package flow

import (
	"bytes"
	"errors"
	"fmt"
)

// Input is how much input an interactive execution has got. The input is kept until the execution is removed, so that
// every attempt reads it from the beginning.
type Input struct {
	Pieces int   // in which it came
	Size   int64 // bytes, and so the offset of the next piece
	Closed bool  // nothing follows
}

// Bounds of the input of one execution: it is kept with the execution.
const (
	InputLimit  = 16 << 20 // bytes
	inputPieces = 1 << 16
)

var (
	// ErrInputOffset means that a piece does not begin at the end of the input: it leaves a gap, or has other bytes than
	// the stored ones.
	ErrInputOffset = errors.New("wrong place in the input")
	// ErrInputClosed means that the input has been closed.
	ErrInputClosed = errors.New("the input is closed")
	// ErrInputFull means that the input has reached its bound.
	ErrInputFull = errors.New("the input is full")
)

// Repeats is how many of a piece's n bytes at an offset are in the input already.
func (input Input) Repeats(at int64, n int) int { return int(min(max(input.Size-at, 0), int64(n))) }

// Feed decides about a piece at an offset; last means that it is the last one. stored are the bytes of the input from there on, as many as
// [Input.Repeats] says: a repeated piece changes nothing, and one that begins with stored bytes adds the rest. It returns the new bytes and
// the input with them.
func (input Input) Feed(at int64, piece []byte, last bool, stored []byte) ([]byte, Input, error) {
	if at > input.Size {
		return nil, input, fmt.Errorf("%w: a piece for offset %d, and the input has %d bytes so far: go on from there", ErrInputOffset, at,
			input.Size)
	}
	n := input.Repeats(at, len(piece))
	if !bytes.Equal(piece[:n], stored) {
		return nil, input, fmt.Errorf("%w: offset %d holds other bytes, and the input has %d so far: another client feeds it, too",
			ErrInputOffset, at, input.Size)
	}
	fresh, end := piece[n:], at+int64(len(piece))
	switch {
	case last && end < input.Size:
		return nil, input, fmt.Errorf("%w: it is to end at offset %d and has %d bytes so far: another client feeds it, too", ErrInputOffset, end,
			input.Size)
	case input.Closed && len(fresh) > 0:
		return nil, input, fmt.Errorf("%w at offset %d", ErrInputClosed, input.Size)
	case len(fresh) == 0 && (!last || input.Closed):
		return nil, input, nil
	case end > InputLimit:
		return nil, input, fmt.Errorf("%w: it has %d bytes and may have %d: give what is larger as stdin or as a file, when you submit",
			ErrInputFull, input.Size, int64(InputLimit))
	case input.Pieces >= inputPieces && len(fresh) > 0:
		return nil, input, fmt.Errorf("%w: it came in %d pieces, which is the most: send more in each", ErrInputFull, input.Pieces)
	}
	return fresh, Input{Pieces: input.Pieces + 1, Size: end, Closed: last}, nil
}
