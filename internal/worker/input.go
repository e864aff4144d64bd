package worker

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// input reads the input of an interactive attempt. It holds one piece at a time, so a program that reads slowly slows down the
// sender.
type input struct {
	attempt *attempt
	ctx     context.Context
	next    int64  // offset of the next piece to request
	have    []byte // received and not yet read
	last    bool   // nothing follows have
}

func (a *attempt) Input(ctx context.Context) io.Reader {
	w := a.logWriter()
	w.mu.Lock()
	w.prompt = true
	w.mu.Unlock()
	return &input{attempt: a, ctx: ctx}
}

// Read implements io.Reader. It retries while the engine cannot be reached.
func (in *input) Read(p []byte) (int, error) {
	for len(in.have) == 0 {
		if in.last {
			return 0, io.EOF
		}
		if err := in.ask(); err != nil {
			return 0, fmt.Errorf("read input: %w", err)
		}
	}
	n := copy(p, in.have)
	in.have = in.have[n:]
	return n, nil
}

func (in *input) ask() error {
	a := in.attempt
	q := handoff.InputQuery{Execution: a.task.Execution, Attempt: a.task.Attempt, From: in.next}
	var tries backoff
	for in.ctx.Err() == nil {
		got, err := a.session.w.Handoff.Input(in.ctx, a.session.id, q)
		switch {
		case err == nil:
			in.have, in.last = got.Data, got.Last
			in.next += int64(len(got.Data))
			return nil
		case errors.Is(err, handoff.ErrSessionLost):
			a.session.end(err)
			return err
		case errors.Is(err, handoff.ErrNotHeld):
			return err
		case in.ctx.Err() == nil:
			a.session.w.Log.Warn("ask for input: trying again", telemetry.Execution, q.Execution, telemetry.Attempt, q.Attempt, telemetry.Err, err)
			tries.wait(in.ctx, a.session.w.Random)
		}
	}
	return context.Cause(in.ctx)
}
