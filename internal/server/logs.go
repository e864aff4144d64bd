package server

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// logsAtOnce is how many bytes of logs are read and sent at a time, about.
const logsAtOnce = 256 << 10

var streams = []string{"stdout", "stderr", "log"}

func (c *call) logs() error {
	q := store.LogQuery{
		Attempt: int(c.number("attempt", 0, 1, 1<<31-1)),
		Stream:  c.query.Get("stream"),
		Offset:  c.number("offset", 0, 0, 1<<62),
		Tail:    c.number("tail", 0, 1, 1<<40),
		Limit:   c.number("limit", logsAtOnce, 1, 4<<20),
	}
	if q.Stream != "" && !slices.Contains(streams, q.Stream) {
		c.fault("stream", q.Stream, "there is no such stream", problem.NearestOr(q.Stream, streams, "one of"))
	}
	raw := c.accepts("text/plain") || (c.query.Has("offset") && !c.wantsStream())
	if raw && q.Stream == "" {
		c.fault("stream", "", "plain text is given for one stream at a time", problem.OneOf(streams))
	}
	if q.Offset > 0 && !raw {
		c.fault("offset", c.query.Get("offset"), "it is for plain text only", "send Accept: text/plain, or use ?after=")
	}
	if q.Tail > 0 && q.Offset > 0 {
		c.fault("tail", c.query.Get("tail"), "the request has an offset as well", "give one of them")
	}
	q.AfterAttempt, q.AfterSeq = c.afterChunk()
	if err := c.checked(); err != nil {
		return err
	}
	id, err := c.execution()
	if err != nil {
		return err
	}
	q.Execution = id
	if c.wantsStream() {
		q.Limit = logsAtOnce
		return c.follow(id, func(s *sse, _ *flow.Execution) (bool, error) { return c.addChunks(s, &q) })
	}
	x, err := c.get()
	if err != nil {
		return err
	}
	if raw {
		if q.Attempt == 0 {
			q.Attempt = x.Attempt
		}
		return c.rawLog(q)
	}
	chunks, err := c.Engine.Reader().ReadLogs(c.ctx(), q)
	if err != nil {
		return fmt.Errorf("read logs: %w", err)
	}
	page := api.LogPage{Chunks: []api.LogChunk{}, Status: status(x.Stage)}
	for _, l := range chunks {
		data, err := c.chunkBytes(l)
		if err != nil {
			return err
		}
		page.Chunks = append(page.Chunks, renderChunk(l, data))
		q.AfterAttempt, q.AfterSeq = l.Attempt, l.Seq
	}
	q.Limit = 1
	next, err := c.Engine.Reader().ReadLogs(c.ctx(), q)
	if err != nil {
		return fmt.Errorf("read logs: %w", err)
	}
	page.More = len(next) > 0
	page.NextCursor = chunkID(q.AfterAttempt, q.AfterSeq)
	return c.json(http.StatusOK, page)
}

func chunkID(attempt int, seq int64) string {
	return strconv.Itoa(attempt) + "." + strconv.FormatInt(seq, 10)
}

// addChunks adds the next piece of the logs to the stream.
func (c *call) addChunks(s *sse, q *store.LogQuery) (bool, error) {
	chunks, err := c.Engine.Reader().ReadLogs(c.ctx(), *q)
	if err != nil {
		return false, fmt.Errorf("read logs: %w", err)
	}
	for _, l := range chunks {
		data, err := c.chunkBytes(l)
		if err != nil {
			return false, err
		}
		if err := s.add(api.StreamLog, chunkID(l.Attempt, l.Seq), renderChunk(l, data)); err != nil {
			return false, err
		}
		q.AfterAttempt, q.AfterSeq = l.Attempt, l.Seq
		if s.buf.Len() > 2*logsAtOnce {
			if err := s.flush(); err != nil {
				return false, err
			}
		}
	}
	return len(chunks) > 0, nil
}

// chunkBytes are the bytes of a chunk, from its row or from the blob store. Where the blob is gone, a note stands in their place.
func (c *call) chunkBytes(l flow.LogChunk) ([]byte, error) {
	if l.Blob == "" {
		return l.Data, nil
	}
	missing := fmt.Appendf(nil, "[%d bytes are missing]\n", l.Size)
	if c.Engine.Blobs() == nil {
		return missing, nil
	}
	from, err := c.Engine.Blobs().Get(c.ctx(), l.Blob, 0)
	if errors.Is(err, blob.ErrNotFound) {
		return missing, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open log chunk: %w", err)
	}
	defer func() { _ = from.Close() }()
	data, err := io.ReadAll(io.LimitReader(from, l.Size))
	if err != nil {
		return nil, fmt.Errorf("read log chunk: %w", err)
	}
	return data, nil
}

// rawLog answers with the bytes of one stream of one attempt from an offset on, or its tail: as many as there are now, or as the
// request's limit allows.
func (c *call) rawLog(q store.LogQuery) error {
	h := c.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	inert(h)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Pawl-Attempt", strconv.Itoa(q.Attempt))
	rc := http.NewResponseController(c.w)
	left := int64(math.MaxInt64)
	if c.query.Has("limit") {
		left = q.Limit
	}
	q.Limit = min(left, logsAtOnce)
	sent := false
	for at := q.Offset; left > 0; {
		q.Offset = at
		chunks, err := c.Engine.Reader().ReadLogs(c.ctx(), q)
		if err != nil && sent {
			panic(http.ErrAbortHandler) // a cut-off answer must not look whole
		}
		if err != nil {
			return fmt.Errorf("read logs: %w", err)
		}
		if len(chunks) == 0 {
			return nil
		}
		for _, l := range chunks {
			data, err := c.chunkBytes(l)
			if err != nil && sent {
				panic(http.ErrAbortHandler)
			}
			if err != nil {
				return err
			}
			q.AfterAttempt, q.AfterSeq = l.Attempt, l.Seq
			data = data[min(max(at-l.Offset, 0), int64(len(data))):]
			data = data[:min(left, int64(len(data)))]
			at, left = max(at, l.Offset+l.Size), left-int64(len(data))
			sent = true
			if err := c.writePieces(rc, data); err != nil {
				return nil // the reader has gone
			}
		}
	}
	return nil
}
