package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// mostRefused is how often a call with logs is made if the engine refuses its content. The call may have been damaged in transit. If it was
// not, repeating it for ever would keep back all later output.
const mostRefused = 3

// send sends chunks to the engine until it takes them; false if the session has ended. Chunks that the engine refuses are
// dropped.
func (s *logUploader) send(chunks []flow.LogChunk) bool {
	var tries backoff
	for refused := 0; s.session.ctx.Err() == nil; {
		err := s.session.w.Handoff.Log(s.session.ctx, s.session.id, chunks)
		if err == nil {
			return true
		}
		if errors.Is(err, handoff.ErrSessionLost) {
			s.session.end(err)
			return false
		}
		if errors.Is(err, handoff.ErrBadCall) {
			if refused++; refused == mostRefused {
				return s.sendHalves(chunks, err)
			}
		}
		s.session.w.Log.Warn("send logs: trying again", "chunks", len(chunks), telemetry.Err, err)
		tries.wait(s.session.ctx, s.session.w.Random)
	}
	s.keepUnsent(chunks)
	return false
}

// sendHalves sends the halves of refused chunks, and halves again those that are refused, until one bad chunk is left, which is
// dropped.
func (s *logUploader) sendHalves(chunks []flow.LogChunk, why error) bool {
	if n := len(chunks) / 2; n > 0 {
		if !s.send(chunks[:n]) {
			s.keepUnsent(chunks[n:])
			return false
		}
		return s.send(chunks[n:])
	}
	return s.sendNote(s.session.ctx, chunks[0], why)
}

// sendNote sends a note in place of a chunk that the engine refuses, until the engine takes or refuses the note; false if the
// session has ended.
func (s *logUploader) sendNote(ctx context.Context, c flow.LogChunk, why error) bool {
	s.session.w.Log.Error("the engine refuses a part of a log: dropping it", telemetry.Execution, c.Execution, telemetry.Attempt, c.Attempt,
		"stream", c.Stream, "offset", c.Offset, "bytes", c.Size, telemetry.Err, why)
	note := []flow.LogChunk{noteFor(c)}
	var tries backoff
	for ctx.Err() == nil {
		err := s.session.w.Handoff.Log(ctx, s.session.id, note)
		switch {
		case err == nil || errors.Is(err, handoff.ErrBadCall):
			return true
		case errors.Is(err, handoff.ErrSessionLost):
			s.session.end(err)
			return false
		}
		s.session.w.Log.Warn("send a note in place of a refused part of a log: trying again", telemetry.Err, err)
		tries.wait(ctx, s.session.w.Random)
	}
	s.keepUnsent(note)
	return false
}

// noteFor is a chunk whose bytes are replaced by a note. The note has the same length, so later offsets stay right.
func noteFor(c flow.LogChunk) flow.LogChunk {
	c.Blob, c.Data = "", note(c.Size, "of the log were refused by the server")
	return c
}

// note is a line of the given size about the fate of that many bytes.
func note(size int64, what string) []byte {
	line := fmt.Sprintf("\n[%d bytes %s]", size, what)
	line += strings.Repeat(" ", int(max(0, size-int64(len(line))-1))) + "\n"
	return []byte(line)[:min(int64(len(line)), size)]
}

// keepUnsent keeps chunks for sendUnsent.
func (s *logUploader) keepUnsent(chunks []flow.LogChunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsent = append(s.unsent, chunks...)
}

// sendUnsent sends the output of attempts whose session could not be renewed in time; it must be sent before their end is reported.
// It returns false if the engine does not take it any more.
func (s *logUploader) sendUnsent(ctx context.Context, as []*attempt) bool {
	s.mu.Lock()
	chunks := s.unsent
	s.unsent = nil
	s.mu.Unlock()
	if !s.sendAll(ctx, chunks) {
		return false
	}
	for _, a := range as {
		a.mu.Lock()
		w := a.log
		a.mu.Unlock()
		if w == nil {
			continue
		}
		for chunks := w.cut(); len(chunks) > 0; chunks = w.cut() {
			if !s.sendAll(ctx, chunks) {
				return false
			}
		}
	}
	return true
}

// sendAll sends chunks for a session that has ended. It returns false if the engine does not take them any more.
func (s *logUploader) sendAll(ctx context.Context, chunks []flow.LogChunk) bool {
	var tries backoff
	refused := 0       // refusals of the first chunk alone
	most := uploadMost // bytes in one call
	for len(chunks) > 0 {
		n, size := 0, 0
		for n < len(chunks) && size < most {
			size += len(chunks[n].Data)
			n++
		}
		err := s.session.w.Handoff.Log(ctx, s.session.id, chunks[:n])
		switch {
		case errors.Is(err, handoff.ErrSessionLost) || ctx.Err() != nil:
			return false
		case errors.Is(err, handoff.ErrBadCall) && n > 1:
			most = 1
		case errors.Is(err, handoff.ErrBadCall) && refused+1 < mostRefused:
			refused++
			tries.wait(ctx, s.session.w.Random)
		case errors.Is(err, handoff.ErrBadCall):
			if !s.sendNote(ctx, chunks[0], err) {
				return false
			}
			chunks, refused, tries = chunks[1:], 0, backoff{}
		case err != nil:
			tries.wait(ctx, s.session.w.Random)
		default:
			chunks, refused, tries = chunks[n:], 0, backoff{}
		}
	}
	return true
}
