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

// logsAtOnce is approximately how many bytes of logs are read and sent at once.
const logsAtOnce = 256 << 10

var streams = []string{"stdout", "stderr", "log"}

func (c *call) logs() error {
	q := c.logQuery()
	place := c.query.Has("offset")
	raw := c.accepts("text/plain") || (place && !c.wantsStream() && !c.accepts("application/json"))
	if (raw || place) && q.Stream == "" {
		c.fault("stream", "", "plain text, and what begins at an offset, is given for one stream at a time", problem.OneOf(streams))
	}
	if place && c.wantsStream() {
		c.fault("offset", c.query.Get("offset"), "it is for pages and plain text", "send Accept: text/plain, or use ?after=")
	}
	if q.Tail > 0 && q.Offset > 0 {
		c.fault("tail", c.query.Get("tail"), "the request has an offset as well", "give one of them")
	}
	if q.BeforeAttempt > 0 && (raw || c.wantsStream()) {
		c.fault("before", c.query.Get("before"), "it is for pages of chunks", "send Accept: application/json, or leave it out")
	}
	skip := c.skip()
	q.AfterAttempt, q.AfterSeq = c.afterChunk()
	id, err := c.execution()
	if err != nil {
		return err
	}
	q.Execution = id
	if c.wantsStream() {
		q.Limit = logsAtOnce
		return c.follow(id, true, func(s *sse, _ *flow.Execution) (bool, error) {
			return c.addChunks(s, &q, skip, func() string { return chunkID(q.AfterAttempt, q.AfterSeq) })
		})
	}
	x, err := c.get()
	if err != nil {
		return err
	}
	if (raw || place) && q.Attempt == 0 {
		q.Attempt = x.Attempt
	}
	if raw {
		return c.rawLog(q)
	}
	page, err := c.logPage(q)
	if err != nil {
		return err
	}
	page.Status = status(x.Stage)
	return c.json(http.StatusOK, page)
}

// logQuery reads which part of the logs is requested, except its beginning.
func (c *call) logQuery() store.LogQuery {
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
	if text := c.query.Get("before"); text != "" {
		var ok bool
		if q.BeforeAttempt, q.BeforeSeq, ok = parseChunkID(text); !ok || q.BeforeAttempt == 0 {
			c.fault("before", text, "it is not a place in the logs", "pass prev_cursor, or the place of a chunk, as in 1.42")
		}
	}
	return q
}

// skip reports whether a stream of logs leaves out older bytes when it falls behind by more than the tail.
func (c *call) skip() bool {
	skip := c.flag("skip")
	if skip && (!c.wantsStream() || !c.query.Has("tail")) {
		c.fault("skip", c.query.Get("skip"), "it is for streams with a tail", "send Accept: text/event-stream, and say how much is wanted as tail=262144")
	}
	return skip
}

// logPage reads a page of chunks. With BeforeAttempt, and without AfterAttempt, it reads backwards from that position.
func (c *call) logPage(q store.LogQuery) (page api.LogPage, err error) {
	page.Chunks = []api.LogChunk{}
	fromEnd := q.AfterAttempt == 0 && q.AfterSeq == 0 && (q.Tail > 0 || q.BeforeAttempt > 0)
	if fromEnd && q.Tail == 0 {
		q.Tail = q.Limit
	}
	chunks, err := c.Engine.Reader().ReadLogs(c.ctx(), q)
	if err != nil {
		return page, fmt.Errorf("read logs: %w", err)
	}
	for _, l := range chunks {
		data, err := c.chunkBytes(l)
		if err != nil {
			return page, err
		}
		page.Chunks = append(page.Chunks, renderChunk(l, data))
		q.AfterAttempt, q.AfterSeq = l.Attempt, l.Seq
	}
	if fromEnd && len(chunks) > 0 {
		before := q
		before.AfterAttempt, before.AfterSeq, before.Tail, before.Limit = 0, 0, 0, 1
		before.BeforeAttempt, before.BeforeSeq = chunks[0].Attempt, chunks[0].Seq
		earlier, err := c.Engine.Reader().ReadLogs(c.ctx(), before)
		if err != nil {
			return page, fmt.Errorf("read logs: %w", err)
		}
		if len(earlier) > 0 {
			page.PrevCursor = chunkID(before.BeforeAttempt, before.BeforeSeq)
		}
	}
	q.Limit = 1
	next, err := c.Engine.Reader().ReadLogs(c.ctx(), q)
	if err != nil {
		return page, fmt.Errorf("read logs: %w", err)
	}
	page.More = len(next) > 0 && len(chunks) > 0
	page.NextCursor = chunkID(q.AfterAttempt, q.AfterSeq)
	return page, nil
}

func chunkID(attempt int, seq int64) string {
	return strconv.Itoa(attempt) + "." + strconv.FormatInt(seq, 10)
}

// skipAhead moves the cursor of a stream to the tail of the logs, if the tail begins later, and tells the client what is left out.
func (c *call) skipAhead(s *sse, q *store.LogQuery, id func() string) error {
	at := *q
	at.AfterAttempt, at.AfterSeq, at.Limit = 0, 0, 1
	tail, err := c.Engine.Reader().ReadLogs(c.ctx(), at)
	if err != nil {
		return fmt.Errorf("read logs: %w", err)
	}
	if len(tail) == 0 {
		return nil
	}
	between := *q
	between.Tail, between.Limit = 0, 1
	between.BeforeAttempt, between.BeforeSeq = tail[0].Attempt, tail[0].Seq
	left, err := c.Engine.Reader().ReadLogs(c.ctx(), between)
	if err != nil {
		return fmt.Errorf("read logs: %w", err)
	}
	if len(left) == 0 {
		return nil
	}
	gap := api.LogGap{To: chunkID(tail[0].Attempt, tail[0].Seq)}
	if q.AfterAttempt > 0 {
		gap.From = chunkID(q.AfterAttempt, q.AfterSeq)
	}
	q.AfterAttempt, q.AfterSeq = tail[0].Attempt, tail[0].Seq-1
	return s.add(api.StreamGap, id(), gap)
}

// addChunks adds the next piece of the logs to the stream. The ids of its messages contain the position of q. Before its first message, and
// with skip at any time, it leaves out everything before the tail that q asks for.
func (c *call) addChunks(s *sse, q *store.LogQuery, skip bool, id func() string) (bool, error) {
	if q.Tail > 0 && (skip || q.AfterAttempt == 0 && q.AfterSeq == 0) {
		if err := c.skipAhead(s, q, id); err != nil {
			return false, err
		}
	}
	chunks, err := c.Engine.Reader().ReadLogs(c.ctx(), *q)
	if err != nil {
		return false, fmt.Errorf("read logs: %w", err)
	}
	for _, l := range chunks {
		data, err := c.chunkBytes(l)
		if err != nil {
			return false, err
		}
		q.AfterAttempt, q.AfterSeq = l.Attempt, l.Seq
		if err := s.add(api.StreamLog, id(), renderChunk(l, data)); err != nil {
			return false, err
		}
		if s.buf.Len() > 2*logsAtOnce {
			if err := s.flush(); err != nil {
				return false, err
			}
		}
	}
	return len(chunks) > 0, nil
}

// chunkBytes returns the bytes of a chunk, from its row or from the blob store. If the blob is gone, a note replaces them.
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
	data, err := io.ReadAll(io.LimitReader(from, min(l.Size, flow.MostChunk)))
	if err != nil {
		return nil, fmt.Errorf("read log chunk: %w", err)
	}
	return data, nil
}

// rawLog answers with the bytes of one stream of one attempt from an offset on, or with its tail: all bytes written so far, or as many as
// the request's limit allows.
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
			panic(http.ErrAbortHandler) // so that the truncated answer does not look complete
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
				return nil // the client has disconnected
			}
		}
	}
	return nil
}
