package engine

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
)

// A client that lost an answer sends its bytes again, in other pieces than the first time.
func TestFeedAgainFromWithinAPiece(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		id := r.submit(Submission{Action: "noop"})
		text := make([]byte, 3000)
		for i := range text {
			text[i] = byte(i % 251)
		}
		for at := 0; at < 2000; at += 1000 {
			if _, err := r.e.Feed(r.ctx, id, int64(at), text[at:at+1000], false); err != nil {
				r.Fatal(err)
			}
		}
		for _, c := range [][2]int{{500, 1005}, {500, 1100}, {999, 1001}, {0, 2000}, {1, 2000}, {1999, 2000}, {500, 2500}} {
			if _, err := r.e.Feed(r.ctx, id, int64(c[0]), text[c[0]:c[1]], false); err != nil {
				r.Errorf("bytes %d to %d sent again: %v", c[0], c[1], err)
			}
		}
		other := bytes.Repeat([]byte("?"), 600)
		if _, err := r.e.Feed(r.ctx, id, 500, other, false); !errors.Is(err, flow.ErrInputOffset) {
			r.Errorf("other bytes for the same offset: %v, want %v", err, flow.ErrInputOffset)
		}
		input, err := r.store.FedInput(r.ctx, id)
		if err != nil || input.Size != 2500 {
			r.Errorf("the input has %d bytes (%v): want 2500", input.Size, err)
		}
	})
}

// Repeated input that came in more pieces than a page of the store has is compared completely.
func TestFeedAgainOverManyPieces(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		id := r.submit(Submission{Action: "noop"})
		var text []byte
		for i := range 1100 {
			piece := fmt.Appendf(nil, "%d,", i)
			if _, err := r.e.Feed(r.ctx, id, int64(len(text)), piece, false); err != nil {
				r.Fatal(err)
			}
			text = append(text, piece...)
		}
		if _, err := r.e.Feed(r.ctx, id, 1, text[1:], false); err != nil {
			r.Errorf("the same bytes in one piece: %v", err)
		}
	})
}
