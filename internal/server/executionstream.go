package server

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

var parts = []string{"tasks", "events", "logs"}

// stream sends the tasks, the history and the logs of an execution on one connection, because a browser opens only six connections to a
// host.
func (c *call) stream() error {
	of := c.parts()
	q, skip := c.logQuery(), c.skip()
	q.Limit = logsAtOnce
	tasks := taskStream{items: int(c.number("items", 100, 0, 1000)), changes: true}
	var after int64
	after, q.AfterAttempt, q.AfterSeq = c.afterAll()
	id, err := c.execution()
	if err != nil {
		return err
	}
	q.Execution = id
	at := func() string { return "e" + strconv.FormatInt(after, 10) + ",l" + chunkID(q.AfterAttempt, q.AfterSeq) }
	return c.follow(id, !of["tasks"], func(s *sse, x *flow.Execution) (more bool, err error) {
		if of["events"] {
			if more, err = c.addEvents(s, x, &after, at); err != nil {
				return false, err
			}
		}
		if of["logs"] {
			moreLogs, err := c.addChunks(s, &q, skip, at)
			if err != nil {
				return false, err
			}
			more = more || moreLogs
		}
		if more || !of["tasks"] || x.Kind != flow.KindWorkflow {
			return more, nil
		}
		if err := s.flush(); err != nil { // logs and events must not wait for the next message about the tasks
			return false, err
		}
		return false, c.addTasks(s, x, &tasks, at())
	})
}

// parts reads which parts a stream has; without the parameter it has all.
func (c *call) parts() map[string]bool {
	of := map[string]bool{}
	text := cmp.Or(c.query.Get("of"), strings.Join(parts, ","))
	for part := range strings.SplitSeq(text, ",") {
		if !slices.Contains(parts, part) {
			c.fault("of", part, "a stream has no such part", problem.NearestOr(part, parts, "one or more of"))
		}
		of[part] = true
	}
	return of
}

// afterAll reads the position at which a stream of several parts continues: e12,l1.42 means after event 12 and after chunk 42 of attempt 1.
// The tasks are always sent in full again.
func (c *call) afterAll() (event int64, attempt int, seq int64) {
	name, text := c.resume()
	if text == "" {
		return 0, 0, 0
	}
	events, logs, ok := strings.Cut(text, ",l")
	number, isEvents := strings.CutPrefix(events, "e")
	event, err := strconv.ParseInt(number, 10, 64)
	attempt, seq, isChunk := parseChunkID(logs)
	if !ok || !isEvents || err != nil || event < 0 || !isChunk {
		c.fault(name, text, "it is not a place in this stream", "pass the id of the last message seen, as in e12,l1.42")
	}
	return event, attempt, seq
}
