package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// handOff hands one attempt to one worker, and keeps the worker's reports.
type handOff struct {
	*Recorded
	work  chan handoff.Assignment // capacity 1: the attempt, until it is taken
	ended chan struct{}           // closed when the worker has reported the end
	input input

	mu  sync.Mutex
	end *End
}

var (
	_ handoff.Handoff     = (*handOff)(nil)
	_ handoff.BlobCarrier = (*handOff)(nil)
)

// session is the id of the only session: there is one worker, and it opens one.
var session = flow.ID{1}

func newHandOff(r *Recorded) *handOff {
	h := &handOff{Recorded: r, work: make(chan handoff.Assignment, 1), ended: make(chan struct{}), input: newInput(r.Stdin)}
	h.work <- r.Assignment
	return h
}

func (h *handOff) outcome() *End {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end
}

func (h *handOff) Open(context.Context, handoff.Session) (flow.ID, error) { return session, nil }

// Resume implements handoff.Handoff: there is no earlier process.
func (h *handOff) Resume(context.Context, handoff.Session, flow.ID, []flow.AttemptID) (flow.ID, []handoff.Assignment, error) {
	return session, nil, nil
}

func (h *handOff) Take(ctx context.Context, _ flow.ID, _ int) ([]handoff.Assignment, error) {
	select {
	case w := <-h.work:
		return []handoff.Assignment{w}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Missed implements handoff.Handoff: no answer can be lost.
func (h *handOff) Missed(context.Context, flow.ID, []flow.AttemptID) ([]handoff.Assignment, error) {
	return nil, nil
}

func (h *handOff) Report(_ context.Context, _ flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
	receipts := make([]flow.Receipt, len(reports))
	for i, r := range reports {
		last := r.Events[len(r.Events)-1]
		receipts[i] = flow.Receipt{Execution: r.Execution, Attempt: r.Attempt, Verdict: flow.Applied, Next: last.Seq + 1}
		if last.Outcome != nil {
			h.endAs(&last)
		}
	}
	return receipts, nil
}

func (h *handOff) endAs(e *flow.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if stage, err := flow.ParseStage(string(e.Type)); err == nil && h.end == nil {
		h.end = &End{Stage: stage, Outcome: *e.Outcome}
		close(h.ended)
	}
}

// Decline implements handoff.Handoff: a worker with a free slot and the handler declines nothing.
func (h *handOff) Decline(context.Context, flow.ID, []flow.AttemptID) error {
	return errors.New("the attempt was given back")
}

// Log implements handoff.Handoff. Output that cannot be written, for example to a closed pipe, does not end the program.
func (h *handOff) Log(_ context.Context, _ flow.ID, chunks []flow.LogChunk) error {
	for i := range chunks {
		if h.Out != nil {
			_, _ = h.Out(chunks[i].Stream).Write(chunks[i].Data)
		}
	}
	return nil
}

// Input implements handoff.Handoff. One goroutine of the worker calls it, for one piece after another.
func (h *handOff) Input(ctx context.Context, _ flow.ID, _ handoff.InputQuery) (handoff.Input, error) {
	return h.input.next(ctx)
}

func (h *handOff) Renew(context.Context, flow.ID) (handoff.Renewal, error) {
	return handoff.Renewal{}, nil
}

// Orders implements handoff.Handoff: there are none.
func (h *handOff) Orders(ctx context.Context, _ flow.ID) ([]handoff.Order, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (h *handOff) Close(context.Context, flow.ID) error { return nil }

// PutBlob implements handoff.BlobCarrier: the program's files are discarded.
func (h *handOff) PutBlob(_ context.Context, _ flow.ID, _ handoff.BlobQuery, r io.Reader) (int64, error) {
	return io.Copy(io.Discard, r)
}

func (h *handOff) GetBlob(ctx context.Context, _ flow.ID, q handoff.BlobQuery) (io.ReadCloser, error) {
	return h.Blobs(ctx, q.Name, q.From)
}

const inputAtOnce = 64 << 10

// input reads one piece ahead, so that a blocked read, for example from a terminal, does not delay the end.
type input struct {
	pieces chan handoff.Input
	failed chan error
}

func newInput(from io.Reader) input {
	in := input{pieces: make(chan handoff.Input), failed: make(chan error, 1)}
	if from == nil {
		return in
	}
	go func() {
		for {
			buf := make([]byte, inputAtOnce)
			n, err := from.Read(buf)
			if err != nil && err != io.EOF {
				in.failed <- fmt.Errorf("%w: read stdin: %w", handoff.ErrNotHeld, err)
				return
			}
			if n > 0 || err == io.EOF {
				in.pieces <- handoff.Input{Data: buf[:n], Last: err == io.EOF}
			}
			if err == io.EOF {
				return
			}
		}
	}()
	return in
}

// next waits for the next piece. After the last one it waits until ctx ends.
func (in input) next(ctx context.Context) (handoff.Input, error) {
	select {
	case piece := <-in.pieces:
		return piece, nil
	case err := <-in.failed:
		return handoff.Input{}, err
	case <-ctx.Done():
		return handoff.Input{}, ctx.Err()
	}
}
