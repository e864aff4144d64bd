package task_test

import (
	"context"
	"io"
)

// Input implements task.Host: nobody gives these tasks anything unless the desk has an input.
func (d *desk) Input(ctx context.Context) io.Reader { return &typed{ctx: ctx, from: d.input} }

// typed is what somebody types: each value of the channel is there for one read, and the end is its closing.
type typed struct {
	ctx  context.Context
	from <-chan string
	have string
}

func (t *typed) Read(p []byte) (int, error) {
	for t.have == "" {
		select {
		case s, ok := <-t.from:
			if !ok {
				return 0, io.EOF
			}
			t.have = s
		case <-t.ctx.Done():
			return 0, context.Cause(t.ctx)
		}
	}
	n := copy(p, t.have)
	t.have = t.have[n:]
	return n, nil
}
