package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Sizes and times of logs on their way to the engine.
const (
	// chunkMost is the most bytes of a chunk.
	chunkMost = 64 << 10
	// pendingMost is how many bytes of one attempt may be on their way. Beyond it a writer waits, and so does the program
	// at the other end of its pipe.
	pendingMost = 2 * chunkMost
	// linger is how long the first byte waits for more to go with it. Together with the time of a commit it stays well
	// below the tenth of a second after which readers are to see it.
	linger = 40 * time.Millisecond
	// lingerPrompt is the least time between two sends while a user may be waiting to answer. Output that comes after a
	// pause is sent at once.
	lingerPrompt = 5 * time.Millisecond
	// blobLeast is the size from which a chunk goes to the blob store, once the attempt has used up its inline bytes.
	// Smaller ones are cheaper as rows.
	blobLeast = 4 << 10
	// handlerLogMost is the most bytes of the stream "log"; the streams of programs have their output limit.
	handlerLogMost = 64 << 20
)

// logWriter writes the log of one attempt.
type logWriter struct {
	attempt *attempt

	mu      sync.Mutex
	streams []*logStream
	seq     int64         // of the last chunk
	inline  int           // bytes of chunks that were kept in rows
	pending int           // bytes written that the engine has not taken yet
	moved   chan struct{} // closed when pending shrinks, if a writer waits for that
	closed  error         // why no more bytes can be sent
	prompt  bool          // a user may be waiting to answer
	cutAt   time.Time     // when chunks were last made
	hurried bool          // since then a prompt send has been arranged

	queued bool // waits in the logUploader's line; guarded by the logUploader
}

type logStream struct {
	log    *logWriter
	name   string
	left   int64 // bytes that may still be written; negative: no bound
	offset int64 // of the first byte in buf
	skip   int64 // bytes to come that the engine has already
	buf    []byte
	since  time.Time // when the first byte of buf was written
}

func newLogWriter(a *attempt) *logWriter {
	j := &logWriter{attempt: a}
	if a.resumed != nil {
		j.seq = a.resumed.LogSeq
		for _, kept := range a.resumed.Logs {
			j.inline += int(kept)
		}
	}
	return j
}

func (j *logWriter) stream(name string) io.Writer {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.streams {
		if s.name == name {
			return s
		}
	}
	s := &logStream{log: j, name: name, left: -1}
	if r := j.attempt.resumed; r != nil { // a resumed handler writes the same output again
		s.offset, s.skip = r.Logs[name], r.Logs[name]
	}
	if name == "log" {
		s.left = handlerLogMost
	}
	j.streams = append(j.streams, s)
	return s
}

// Write implements io.Writer.
func (s *logStream) Write(p []byte) (int, error) {
	all := len(p)
	if p = s.allowed(p); len(p) == 0 {
		return all, nil
	}
	j := s.log
	j.mu.Lock()
	for len(p) > 0 {
		if j.closed != nil {
			defer j.mu.Unlock()
			return all - len(p), j.closed
		}
		room := pendingMost - j.pending
		if room <= 0 {
			j.await()
			continue
		}
		n := min(room, len(p))
		if len(s.buf) == 0 {
			s.since = time.Now()
		}
		s.buf = append(s.buf, p[:n]...)
		j.pending += n
		p = p[n:]
		urgent := len(s.buf) >= chunkMost
		urgent = j.hasten() || urgent
		j.mu.Unlock()
		j.attempt.session.logs.add(j, urgent)
		j.mu.Lock()
	}
	j.mu.Unlock()
	return all, nil
}

// hasten reports whether the bytes just written are to be sent at once. If not, it arranges that they are sent soon. For a log
// that no reader follows it does neither. The caller holds j.mu.
func (j *logWriter) hasten() bool {
	if !j.prompt || j.hurried {
		return false
	}
	j.hurried = true
	left := lingerPrompt - time.Since(j.cutAt)
	if left <= 0 {
		return true
	}
	time.AfterFunc(left, func() { signal(j.attempt.session.logs.hurry) })
	return false
}

// allowed cuts p to the bytes that the stream may still take. It ends a full stream with a line that says so.
func (s *logStream) allowed(p []byte) []byte {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	again := min(s.skip, int64(len(p)))
	s.skip -= again
	p = p[again:]
	switch {
	case s.left < 0:
		return p
	case s.left == 0:
		return nil
	case int64(len(p)) < s.left:
		s.left -= int64(len(p))
		return p
	}
	p = fmt.Appendf(bytes.Clone(p[:s.left]), "\n[the log is full: %d bytes are kept]\n", int64(handlerLogMost))
	s.left = 0
	return p
}

// await releases j.mu until some bytes have been sent, or none can be any more.
func (j *logWriter) await() {
	if j.moved == nil {
		j.moved = make(chan struct{})
	}
	moved := j.moved
	j.mu.Unlock()
	select {
	case <-moved:
	case <-j.attempt.session.ctx.Done():
		j.close(context.Cause(j.attempt.session.ctx))
	}
	j.mu.Lock()
}

func (j *logWriter) close(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed == nil {
		j.closed = fmt.Errorf("write log: %w", err)
	}
}

// flush sends all that was written and waits for it. It is safe on a nil logWriter.
func (j *logWriter) flush() {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.pending > 0 && j.closed == nil {
		j.mu.Unlock()
		j.attempt.session.logs.add(j, true)
		j.mu.Lock()
		if j.pending > 0 {
			j.await()
		}
	}
}

// cut turns the bytes written so far into chunks.
func (j *logWriter) cut() []flow.LogChunk {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []flow.LogChunk
	j.cutAt, j.hurried = time.Now(), false
	for _, s := range j.streams {
		buf := s.buf
		s.buf = nil
		for len(buf) > 0 {
			n := min(len(buf), chunkMost)
			j.seq++
			out = append(out, flow.LogChunk{
				Execution: j.attempt.task.Execution, Attempt: j.attempt.task.Attempt, Seq: j.seq, Stream: s.name,
				Offset: s.offset, At: s.since.UTC().Truncate(time.Microsecond), Data: buf[:n:n], Size: int64(n), Prompt: j.prompt,
			})
			s.offset += int64(n)
			buf = buf[n:]
		}
	}
	return out
}

// handedIn notes that the engine has taken n bytes.
func (j *logWriter) handedIn(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending -= n
	if j.moved != nil {
		close(j.moved)
		j.moved = nil
	}
}

// logUploader sends the logs of a session to the engine. Output written during a call goes together in the next call.
type logUploader struct {
	session *session
	mu      sync.Mutex
	line    []*logWriter
	unsent  []flow.LogChunk // chunks made but not sent when the session ended
	signal  chan struct{}   // capacity 1: the line is not empty
	hurry   chan struct{}   // capacity 1: send now, without linger
}

func (s *logUploader) init(of *session) {
	s.session, s.signal, s.hurry = of, make(chan struct{}, 1), make(chan struct{}, 1)
}

func (s *logUploader) add(j *logWriter, urgent bool) {
	s.mu.Lock()
	if !j.queued {
		j.queued = true
		s.line = append(s.line, j)
		signal(s.signal)
	}
	s.mu.Unlock()
	if urgent {
		signal(s.hurry)
	}
}

// signal puts a value into a channel of capacity 1, unless there is one already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *logUploader) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-s.signal:
		case <-s.session.ctx.Done():
			return
		}
		timer.Reset(linger)
		select {
		case <-timer.C:
		case <-s.hurry:
		case <-s.session.ctx.Done():
			return
		}
		s.mu.Lock()
		line := s.line
		s.line = nil
		for _, j := range line {
			j.queued = false
		}
		s.mu.Unlock()
		if !s.upload(line) {
			return
		}
	}
}

// uploadMost is about how many bytes one call carries.
const uploadMost = 2 << 20

// upload sends the chunks of logs and reports whether the session goes on.
func (s *logUploader) upload(line []*logWriter) bool {
	for len(line) > 0 {
		var chunks []flow.LogChunk
		sizes := make([]int, 0, len(line))
		for all := 0; len(sizes) < len(line) && all < uploadMost; {
			n := 0
			j := line[len(sizes)]
			for _, c := range j.cut() {
				n += len(c.Data)
				chunks = append(chunks, s.place(j, c))
			}
			all += n
			sizes = append(sizes, n)
		}
		if len(chunks) > 0 && !s.hand(chunks) {
			return false
		}
		for i, n := range sizes {
			line[i].handedIn(n)
		}
		line = line[len(sizes):]
	}
	return true
}

// place puts the bytes of a chunk into the blob store if the attempt has used up its inline bytes. If that fails they stay
// inline, so that no output is lost.
func (s *logUploader) place(j *logWriter, c flow.LogChunk) flow.LogChunk {
	blobs := s.session.w.Blobs
	if blobs == nil || s.session.w.InlineLogs || len(c.Data) < blobLeast || j.inline+len(c.Data) <= blob.InlineLimit {
		j.inline += len(c.Data)
		return c
	}
	name := fmt.Sprintf("logs/%s/%d/%d", c.Execution, c.Attempt, c.Seq)
	if _, err := blobs.Put(s.session.ctx, name, bytes.NewReader(c.Data)); err != nil {
		s.session.w.Log.Warn("store a log chunk as a blob: keeping it inline", "blob", name, telemetry.Err, err)
		return c
	}
	c.Blob, c.Data = name, nil
	return c
}
