package server

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// eventsAtOnce is how many events a stream reads and sends at a time.
const eventsAtOnce = 500

func (c *call) events() error {
	after := c.afterSeq()
	limit := int(c.number("limit", 1000, 1, 5000))
	id, err := c.execution()
	if err != nil {
		return err
	}
	reader := c.Engine.Reader()
	if c.wantsStream() {
		return c.follow(id, true, func(s *sse, x *flow.Execution) (bool, error) {
			return c.addEvents(s, x, &after, func() string { return strconv.FormatInt(after, 10) })
		})
	}
	x, err := c.get()
	if err != nil {
		return err
	}
	events, err := reader.Events(c.ctx(), id, after, limit+1)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	page := api.EventPage{Events: []api.Event{}, Status: status(x.Stage), More: len(events) > limit}
	var size store.Page
	for _, e := range events[:min(len(events), limit)] {
		page.Events = append(page.Events, renderEvent(e))
		size.Event(&e)
		after = e.Seq
	}
	if !page.More && size.Full() {
		next, err := reader.Events(c.ctx(), id, after, 1)
		if err != nil {
			return fmt.Errorf("read history: %w", err)
		}
		page.More = len(next) > 0
	}
	page.NextCursor = strconv.FormatInt(after, 10)
	return c.json(http.StatusOK, page)
}

// addEvents adds the next piece of a history to the stream. The ids of its messages contain the position of "after".
func (c *call) addEvents(s *sse, x *flow.Execution, after *int64, id func() string) (bool, error) {
	if *after >= x.NextSeq-1 {
		return false, nil
	}
	events, err := c.Engine.Reader().Events(c.ctx(), x.ID, *after, eventsAtOnce)
	if err != nil {
		return false, fmt.Errorf("read history: %w", err)
	}
	var size store.Page
	for _, e := range events {
		*after = e.Seq
		if err := s.add(api.StreamEvent, id(), renderEvent(e)); err != nil {
			return false, err
		}
		size.Event(&e)
	}
	return len(events) == eventsAtOnce || size.Full(), nil
}
