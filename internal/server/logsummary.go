package server

import (
	"fmt"
	"net/http"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// summedAttempts is how many attempts, the latest ones, are included. Each costs two reads for every stream.
const summedAttempts = 50

// logSummary answers with how many bytes each attempt has written to each stream. It reads only the first and last chunk of a
// stream.
func (c *call) logSummary() error {
	only := int(c.number("attempt", 0, 1, 1<<31-1))
	x, err := c.get()
	if err != nil {
		return err
	}
	out := api.LogSummary{Status: status(x.Stage), Streams: []api.LogStream{}}
	first, last := max(1, x.Attempt-summedAttempts+1), x.Attempt
	if only > 0 {
		first, last = only, min(only, x.Attempt)
	}
	out.More = only == 0 && first > 1
	for attempt := first; attempt <= last; attempt++ {
		for _, name := range streams {
			s, err := c.sumStream(x, attempt, name)
			if err != nil {
				return err
			}
			if s.Bytes > 0 {
				out.Streams = append(out.Streams, s)
			}
		}
	}
	return c.json(http.StatusOK, out)
}

// sumStream reads the first and the last chunk of a stream. Offsets have no gaps, so the last chunk gives the length.
func (c *call) sumStream(x *flow.Execution, attempt int, name string) (s api.LogStream, err error) {
	q := store.LogQuery{Execution: x.ID, Attempt: attempt, Stream: name, Limit: 1}
	for _, q.Tail = range []int64{1, 0} {
		chunks, err := c.Engine.Reader().ReadLogs(c.ctx(), q)
		if err != nil {
			return s, fmt.Errorf("read logs: %w", err)
		}
		switch {
		case len(chunks) == 0:
			return s, nil
		case q.Tail > 0:
			l := chunks[len(chunks)-1]
			s = api.LogStream{Attempt: attempt, Stream: name, Bytes: l.Offset + l.Size, LastSeq: l.Seq, LastAt: l.At}
		default:
			s.FirstAt = chunks[0].At
		}
	}
	return s, nil
}
