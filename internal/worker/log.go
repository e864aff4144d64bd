package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Sizes and delays of logs that are sent to the engine.
const (
	chunkMost = 64 << 10
	// pendingMost is how many bytes of one attempt may be in memory until the engine has taken them. Beyond it the output of a program goes to
	// a spool on the local disk, and any other writer waits.
	pendingMost = 2 * chunkMost
	// linger is how long the first byte waits for more. Together with the time of a commit it stays well below the tenth
	// of a second after which readers must see it.
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

type logWriter struct {
	attempt *attempt

	mu      sync.Mutex
	streams []*logStream
	seq     int64         // of the last chunk
	inline  int           // bytes of chunks that were stored in rows
	pending int           // written bytes that the engine has not taken yet
	moved   chan struct{} // closed when pending shrinks, if a writer waits for that
	closed  error         // why no more bytes can be sent
	prompt  bool          // a user may be waiting to answer
	cutAt   time.Time     // when chunks were last made
	hurried bool          // a prompt send has been arranged since

	queued bool // waits in the logUploader's line; guarded by the logUploader
}

type logStream struct {
	log    *logWriter
	name   string
	left   int64 // bytes that may still be written; negative: no bound
	offset int64 // of the first byte in buf
	skip   int64 // next bytes that the engine has already
	buf    []byte
	since  time.Time // when the first byte of buf was written
	spool  spool     // bytes written after buf
	failed error     // why the spool could not keep or return bytes
}

func newLogWriter(a *attempt) *logWriter {
	w := &logWriter{attempt: a}
	if a.resumed != nil {
		w.seq = a.resumed.LogSeq
		for _, kept := range a.resumed.Logs {
			w.inline += int(kept)
		}
	}
	return w
}

func (w *logWriter) stream(name string) io.Writer {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.streams {
		if s.name == name {
			return s
		}
	}
	s := &logStream{log: w, name: name, left: -1}
	if r := w.attempt.resumed; r != nil { // a resumed handler writes the same output again
		s.offset, s.skip = r.Logs[name], r.Logs[name]
	}
	if name == "log" {
		s.left = handlerLogMost
	}
	w.streams = append(w.streams, s)
	return s
}

func (s *logStream) Spool(dir string, most int64) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.spool.dir = dir
	s.spool.most += most
}

func (s *logStream) Write(p []byte) (int, error) {
	all := len(p)
	if p = s.allowed(p); len(p) == 0 {
		return all, nil
	}
	w := s.log
	w.mu.Lock()
	for len(p) > 0 {
		if w.closed != nil {
			defer w.mu.Unlock()
			return all - len(p), w.closed
		}
		n, err := s.keep(p)
		if err != nil {
			defer w.mu.Unlock()
			return all - len(p) + n, err
		}
		if n == 0 {
			w.await()
			continue
		}
		p = p[n:]
		urgent := len(s.buf) >= chunkMost
		urgent = w.hasten() || urgent
		w.mu.Unlock()
		w.attempt.session.logs.add(w, urgent)
		w.mu.Lock()
	}
	w.mu.Unlock()
	return all, nil
}

// keep stores as much of p as fits: in memory, or else in the spool. The caller holds w.mu.
func (s *logStream) keep(p []byte) (int, error) {
	if s.failed != nil {
		return 0, s.failed
	}
	w := s.log
	if room := pendingMost - w.pending; room > 0 && s.spool.waiting() == 0 {
		n := min(room, len(p))
		if len(s.buf) == 0 {
			s.since = time.Now()
		}
		s.buf = append(s.buf, p[:n]...)
		w.pending += n
		return n, nil
	}
	room := min(s.spool.room(), int64(len(p)))
	if room <= 0 {
		return 0, nil
	}
	n, err := s.spool.add(p[:room])
	s.failed = err
	return n, err
}

// hasten reports whether the bytes just written must be sent at once. If not, it arranges that they are sent soon, unless no reader follows
// the log. The caller holds w.mu.
func (w *logWriter) hasten() bool {
	if !w.prompt || w.hurried {
		return false
	}
	w.hurried = true
	left := lingerPrompt - time.Since(w.cutAt)
	if left <= 0 {
		return true
	}
	time.AfterFunc(left, func() { signal(w.attempt.session.logs.hurry) })
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

// await releases w.mu until some bytes have been sent, or no more can be.
func (w *logWriter) await() {
	if w.moved == nil {
		w.moved = make(chan struct{})
	}
	moved := w.moved
	w.mu.Unlock()
	select {
	case <-moved:
	case <-w.attempt.session.ctx.Done():
		w.close(context.Cause(w.attempt.session.ctx))
	}
	w.mu.Lock()
}

func (w *logWriter) close(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed == nil {
		w.closed = fmt.Errorf("write log: %w", err)
	}
}

// flush sends all written bytes and waits for that. It is safe on a nil logWriter.
func (w *logWriter) flush() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.unsent() && w.closed == nil {
		w.mu.Unlock()
		w.attempt.session.logs.add(w, true)
		w.mu.Lock()
		if w.unsent() {
			w.await()
		}
	}
}

// unsent reports whether the engine has not taken all written bytes. The caller holds w.mu.
func (w *logWriter) unsent() bool { return w.pending > 0 || w.spooled() }

// spooled reports whether written bytes are on disk. The caller holds w.mu.
func (w *logWriter) spooled() bool {
	return slices.ContainsFunc(w.streams, func(s *logStream) bool { return s.spool.waiting() > 0 })
}

// cut turns the written bytes into chunks; from the disk it takes the oldest spoolLoad bytes of each stream.
func (w *logWriter) cut() []flow.LogChunk {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []flow.LogChunk
	w.cutAt, w.hurried = time.Now(), false
	for _, s := range w.streams {
		out = append(out, s.chunks(s.buf, []time.Time{s.since})...)
		s.buf = nil
		if s.spool.waiting() == 0 {
			continue
		}
		loaded, times, err := s.spool.load()
		if err != nil {
			w.attempt.session.w.Log.Error("a part of a log cannot be read from the local disk: a note is sent in its place", telemetry.Execution, w.attempt.task.Execution,
				telemetry.Attempt, w.attempt.task.Attempt, "stream", s.name, "offset", s.offset, "bytes", len(loaded), telemetry.Err, err)
		}
		w.pending += len(loaded)
		out = append(out, s.chunks(loaded, times)...)
	}
	return out
}

// chunks are the next bytes of the stream, which were written at the given times: one for each chunkMost bytes, or one for all.
func (s *logStream) chunks(buf []byte, times []time.Time) (out []flow.LogChunk) {
	w := s.log
	for i := 0; len(buf) > 0; i++ {
		n := min(len(buf), chunkMost)
		w.seq++
		out = append(out, flow.LogChunk{
			Execution: w.attempt.task.Execution, Attempt: w.attempt.task.Attempt, Seq: w.seq, Stream: s.name, Offset: s.offset,
			At: times[min(i, len(times)-1)].UTC().Truncate(time.Microsecond), Data: buf[:n:n], Size: int64(n), Prompt: w.prompt,
		})
		s.offset += int64(n)
		buf = buf[n:]
	}
	return out
}

// taken records that the engine has taken n bytes, and reports whether more of the log is on disk.
func (w *logWriter) taken(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending -= n
	if w.moved != nil {
		close(w.moved)
		w.moved = nil
	}
	return w.spooled()
}

// release frees the disk. It is safe on a nil logWriter.
func (w *logWriter) release() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.streams {
		s.spool.close()
	}
}

// logUploader sends the logs of a session to the engine. Output written during a call goes together in the next call.
type logUploader struct {
	session *session
	mu      sync.Mutex
	line    []*logWriter
	unsent  []flow.LogChunk // chunks that were not sent before the session ended
	signal  chan struct{}   // capacity 1: the line is not empty
	hurry   chan struct{}   // capacity 1: send now, without linger
}

func (s *logUploader) init(of *session) {
	s.session, s.signal, s.hurry = of, make(chan struct{}, 1), make(chan struct{}, 1)
}

func (s *logUploader) add(w *logWriter, urgent bool) {
	s.mu.Lock()
	if !w.queued {
		w.queued = true
		s.line = append(s.line, w)
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
		for _, w := range line {
			w.queued = false
		}
		s.mu.Unlock()
		if !s.upload(line) {
			return
		}
	}
}

// uploadMost is about how many bytes one call carries.
const uploadMost = 2 << 20

// upload sends the chunks of logs and reports whether the session continues.
func (s *logUploader) upload(line []*logWriter) bool {
	for len(line) > 0 {
		var chunks []flow.LogChunk
		sizes := make([]int, 0, len(line))
		for all := 0; len(sizes) < len(line) && all < uploadMost; {
			n := 0
			w := line[len(sizes)]
			for _, c := range w.cut() {
				n += len(c.Data)
				chunks = append(chunks, s.storeLarge(w, c))
			}
			all += n
			sizes = append(sizes, n)
		}
		if len(chunks) > 0 && !s.send(chunks) {
			return false
		}
		for i, n := range sizes {
			if line[i].taken(n) {
				s.add(line[i], true)
			}
		}
		line = line[len(sizes):]
	}
	return true
}

// storeLarge puts the bytes of a chunk into the blob store if the attempt has used up its inline bytes. If that fails they stay
// inline, so that no output is lost.
func (s *logUploader) storeLarge(w *logWriter, c flow.LogChunk) flow.LogChunk {
	blobs := s.session.w.Blobs
	if blobs == nil || s.session.w.InlineLogs || len(c.Data) < blobLeast || w.inline+len(c.Data) <= blob.InlineLimit {
		w.inline += len(c.Data)
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
