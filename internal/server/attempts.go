package server

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

func (c *call) attempt() error {
	x, err := c.get()
	if err != nil {
		return err
	}
	text := c.r.PathValue("attempt")
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		return refusal(http.StatusNotFound, api.ProblemNotFound, fmt.Sprintf("there is no attempt %.40q: attempts are numbered from 1 on", text))
	}
	if number > x.Attempt {
		return refusal(http.StatusNotFound, api.ProblemNotFound, fmt.Sprintf("there is no attempt %d: %s has had %d", number, x.ID, x.Attempt))
	}
	a, err := c.Engine.Attempt(c.ctx(), x, number)
	if err != nil {
		return err
	}
	out := api.Attempt{
		Execution: x.ID.String(), Attempt: number, Action: a.Action, Version: a.Version, Kind: string(a.Kind), Workflow: a.Parent.String(), Task: a.Task, Index: a.Index,
		Labels: a.Labels, Timeout: api.Duration(a.Timeout), Chain: a.Chain, Payload: a.Payload(), Began: a.Began, Lost: a.Lost, Status: status(a.Stage),
	}
	if o := a.Outcome; o != nil {
		out.Error, out.Output = renderError(o.Error), o.Output
	}
	return c.json(http.StatusOK, out)
}

// inputBlob answers with the bytes of a blob to which an execution's input refers.
func (c *call) inputBlob() error {
	from := c.number("offset", 0, 0, math.MaxInt64)
	id, err := c.execution()
	if err != nil {
		return err
	}
	name := c.r.PathValue("blob")
	blob, err := c.Engine.OpenInputBlob(c.ctx(), id, name, from)
	switch {
	case errors.Is(err, handoff.ErrBlobRefused):
		return refusal(http.StatusNotFound, api.ProblemNotFound, fmt.Sprintf("the input of %s names no blob %.100q", id, name))
	case errors.Is(err, handoff.ErrNoBlob):
		return refusal(http.StatusNotFound, api.ProblemNotFound, fmt.Sprintf("the blob %.100q is not here: what left it is gone, or it was not in the archive that the execution came with", name))
	case errors.Is(err, handoff.ErrUnavailable):
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case err != nil:
		return err
	}
	defer func() { _ = blob.Close() }()
	c.beginBytes()
	c.pass(blob)
	return nil
}

// beginBytes begins an answer of bytes whose content is unknown.
func (c *call) beginBytes() {
	h := c.w.Header()
	h.Set("Content-Type", mediaFile)
	inert(h)
	h.Set("Cache-Control", "no-store")
	c.w.WriteHeader(http.StatusOK)
}

// typedAtOnce is how many bytes of stdin are read from the store at once.
const typedAtOnce = 256 << 10

// typed answers with the stdin that an execution has received so far.
func (c *call) typed() error {
	x, err := c.reads()
	if err != nil {
		return err
	}
	rc := http.NewResponseController(c.w)
	for from, begun := int64(0), false; ; begun = true {
		data, last, err := c.Engine.Reader().ReadInput(c.ctx(), x.ID, from, typedAtOnce)
		if err != nil && begun {
			panic(http.ErrAbortHandler) // so that the truncated answer does not look complete
		}
		if err != nil {
			return fmt.Errorf("stdin of %s: %w", x.ID, err)
		}
		if !begun {
			c.beginBytes()
		}
		if gone := c.writePieces(rc, data); gone != nil {
			return nil // the client has disconnected
		}
		if from += int64(len(data)); last || len(data) == 0 {
			return nil
		}
	}
}
