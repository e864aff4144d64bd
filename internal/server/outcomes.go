package server

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// endsAtOnce is how many outcomes a stream reads and sends at once; fewer if their outputs fill a page.
const endsAtOnce = 500

const mediaLines = "application/x-ndjson"

func (c *call) executionOutcomes() error  { return c.outcomes("") }
func (c *call) evaluationOutcomes() error { return c.outcomes(string(flow.KindCode)) }

// outcomes streams the outcomes of executions with a label, until all of them have ended.
func (c *call) outcomes(action string) error {
	l := store.Label{Action: action}
	if text := c.query.Get("label"); text == "" {
		c.fault("label", "", "it is missing", "name the executions by a label, as in ?label=run=17")
	} else {
		l.Name, l.Value, _ = c.label(text)
	}
	outputs, after := c.flag("outputs"), c.afterEnd()
	if err := c.checked(); err != nil {
		return err
	}
	changed, stop := c.Engine.WatchAll() // before the first read, so that no change is missed
	defer stop()
	page, open, err := c.Engine.NumberedEnds(c.ctx(), l, after, endsAtOnce)
	if err != nil {
		return fmt.Errorf("read outcomes: %w", err)
	}
	media := mediaLines
	if c.wantsStream() {
		media = mediaEvents
	}
	s, err := c.openStream(media)
	for begun := time.Now(); err == nil; page, open, err = c.Engine.NumberedEnds(c.ctx(), l, after, endsAtOnce) {
		if len(page) > 0 {
			after, err = c.sendEnds(s, page, outputs)
		} else if !open {
			if err = s.add(api.StreamEnd, "", api.OutcomesEnd{End: true, Cursor: strconv.FormatInt(after, 10)}); err == nil {
				err = s.flush()
			}
			break
		} else if !c.pauseUntil(time.Now().Add(max(setPause, setPauseRatio*time.Since(begun)))) {
			break
		} else if err = c.untilNews(s, changed); err == nil {
			begun = time.Now()
		}
		if err != nil || c.draining.Err() != nil {
			break
		}
	}
	return c.ended(err)
}

// sendEnds sends outcomes, and returns the cursor after the last one sent. It ends early if their outputs fill a page.
func (c *call) sendEnds(s *sse, page []store.Ended, outputs bool) (after int64, err error) {
	found := make([]*flow.Execution, len(page))
	for i := range page {
		found[i] = page[i].Execution
	}
	rows, err := c.rows(found, shown{outputs: outputs})
	if err != nil {
		return 0, err
	}
	for i := range rows {
		after = page[i].Number
		cursor := strconv.FormatInt(after, 10)
		if err := s.add(api.StreamOutcome, cursor, api.Outcome{Cursor: cursor, Execution: rows[i]}); err != nil {
			return 0, err
		}
	}
	return after, s.flush()
}

// untilNews waits for a hint, or for pollEvery, and sends keep-alives in a quiet stream.
func (c *call) untilNews(s *sse, changed <-chan struct{}) error {
	if _, goesOn := c.untilChanged(changed, pollEvery, nil); !goesOn {
		return errGone
	}
	return s.alive()
}

// afterEnd reads a cursor of outcomes.
func (c *call) afterEnd() int64 {
	name, text := c.resume()
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		c.fault(name, text, "it is not the cursor of an outcome", "pass the cursor of the last outcome seen")
	}
	return n
}
