package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
)

// stdinPiece is how many bytes of a body are stored at once.
const stdinPiece = 64 << 10

// mediaBytes includes the type that curl sends by default.
var mediaBytes = []string{"application/octet-stream", "text/plain", "", "application/x-www-form-urlencoded"}

// stdin answers with how many bytes of stdin an execution has received.
func (c *call) stdin() error {
	x, err := c.reads()
	if err != nil {
		return err
	}
	in, err := c.Engine.Reader().FedInput(c.ctx(), x.ID)
	if err != nil {
		return fmt.Errorf("execution %s: %w", x.ID, err)
	}
	return c.sendInputState(x, in)
}

func (c *call) sendInputState(x *flow.Execution, in flow.Input) error {
	return c.json(http.StatusOK, api.Stdin{ID: x.ID.String(), Status: status(x.Stage), Offset: in.Size, Closed: in.Closed})
}

// reads loads the execution in the path, which must be interactive.
func (c *call) reads() (*flow.Execution, error) {
	x, err := c.get()
	if err != nil {
		return nil, err
	}
	var code struct{ Interactive bool }
	if x.Kind != flow.KindCode || json.Unmarshal(x.Payload(), &code) != nil || !code.Interactive {
		return nil, refusal(http.StatusConflict, api.ProblemNotInteractive,
			`it was not submitted to read anything while it runs: submit an evaluation with "interactive": true`)
	}
	return x, nil
}

// feed appends the body to an execution's stdin, piece by piece as the body arrives. Stored pieces stay, even if the connection breaks
// later.
func (c *call) feed() error {
	at, last := c.number("offset", engine.AtEnd, 0, flow.InputLimit), c.flag("eof")
	x, err := c.reads()
	if err != nil {
		return err
	}
	if _, err := c.mediaType(mediaBytes); err != nil {
		return err
	}
	// A body of unknown size may come from a person, who may pause for long; a body of known size must arrive in time.
	if c.r.ContentLength >= 0 {
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(bodyTimeout))
	} else {
		defer c.letGoAtEnd(x.ID)()
	}
	in, err := c.feedFrom(c.r.Body, x.ID, at, last)
	if err != nil {
		c.w.Header().Set("Connection", "close") // the rest of the body is not read
		return err
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	return c.sendInputState(x, in)
}

func (c *call) feedFrom(body io.Reader, id flow.ID, at int64, last bool) (in flow.Input, err error) {
	buf := make([]byte, stdinPiece)
	for {
		n, fault := body.Read(buf)
		over := errors.Is(fault, io.EOF)
		if n > 0 || over {
			if in, err = c.Engine.Feed(c.ctx(), id, at, bytes.Clone(buf[:n]), over && last); err != nil {
				return in, fmt.Errorf("stdin of %s: %w", id, err)
			}
			if at != engine.AtEnd {
				at += int64(n)
			}
		}
		switch {
		case over:
			return in, nil
		case fault == nil:
		case c.draining.Err() != nil:
			return in, fmt.Errorf("stdin of %s: %w: go on at another server, or later", id, engine.ErrClosed)
		default:
			return in, c.cutOff(id, fault)
		}
	}
}

// cutOff returns why the rest of a body was not read. Usually the execution has ended.
func (c *call) cutOff(id flow.ID, fault error) error {
	x, err := c.Engine.Reader().Get(context.WithoutCancel(c.ctx()), id)
	if err == nil && x.Stage.Terminal() {
		return fmt.Errorf("stdin of %s: %w", id, flow.ErrFinished)
	}
	return unreadable(api.FieldError{Message: "the body did not arrive to its end: " + fault.Error(),
		Fix: "ask for the offset with GET, and go on from there"})
}

// letGoAtEnd stops reading the request's body when the execution ends or draining begins, until stop is called.
func (c *call) letGoAtEnd(id flow.ID) (stop func()) {
	ctx, cancel := context.WithCancel(c.ctx())
	waiting := &call{Server: c.Server, w: c.w, r: c.r.WithContext(ctx), route: c.route}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			end := c.Engine.WaitForEnd(id)
			x, err := waiting.ending(end, maxWait)
			end.Close()
			if ctx.Err() == nil && (err != nil || x.Stage.Terminal() || c.draining.Err() != nil) {
				// If there are no deadlines, the client is in this process and ends the body itself.
				_ = http.NewResponseController(c.w).SetReadDeadline(time.Unix(1, 0))
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
