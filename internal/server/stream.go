package server

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// A stream reads the store after each hint of a commit. Without a hint it reads every pollEvery if other replicas' commits give no hints,
// and every hintedPollEvery if all commits give hints: then a hint is lost only if the server that committed crashed.
const (
	pollEvery       = time.Second
	hintedPollEvery = 5 * time.Second
)

// keepAlive is how often a quiet stream sends a sign of life; reconnectAfter is how long a client should wait before it reconnects.
const (
	keepAlive      = 15 * time.Second
	reconnectAfter = time.Second
)

// errGone means that the client has disconnected, or was dropped because it was too slow. It can resume with the last id that it received.
var errGone = errors.New("the reader has gone")

const mediaEvents = "text/event-stream"

// sse writes one stream of server-sent events, or of lines of JSON. It buffers nothing for a slow client: later messages are
// read from the store once the client has taken the earlier ones.
type sse struct {
	call *call
	rc   *http.ResponseController
	buf  bytes.Buffer
	sent time.Time // when the last message was sent
	// lines means that each message is one line with its data.
	lines bool
}

// wantsStream reports whether the request asks for server-sent events.
func (c *call) wantsStream() bool {
	return c.r.Method == http.MethodGet && (c.accepts(mediaEvents) || c.route.onlyEvents())
}

// accepts reports whether the request accepts the media type. A weight of 0 means that it is not accepted.
func (c *call) accepts(media string) bool {
	for part := range strings.SplitSeq(c.r.Header.Get("Accept"), ",") {
		if kind, params, err := mime.ParseMediaType(part); err == nil && kind == media {
			weight, err := strconv.ParseFloat(params["q"], 64)
			return err != nil || weight > 0
		}
	}
	return false
}

// openStream begins the answer: a stream of mediaEvents or mediaLines.
func (c *call) openStream(media string) (*sse, error) {
	h := c.w.Header()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(http.StatusOK)
	s := &sse{call: c, rc: http.NewResponseController(c.w), sent: time.Now(), lines: media == mediaLines}
	if s.lines {
		if s.rc.Flush() != nil {
			return s, errGone
		}
		return s, nil
	}
	fmt.Fprintf(&s.buf, "retry: %d\n\n", reconnectAfter.Milliseconds())
	return s, s.flush()
}

// add adds a message to the next flush.
func (s *sse) add(name, id string, data any) error {
	body, err := encode(data)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	if s.lines {
		s.buf.Write(body)
		return nil
	}
	s.buf.WriteString("event: ")
	s.buf.WriteString(name)
	if id != "" {
		s.buf.WriteString("\nid: ")
		s.buf.WriteString(id)
	}
	s.buf.WriteString("\ndata: ")
	s.buf.Write(body) // one line, with its newline
	s.buf.WriteString("\n")
	return nil
}

// flush sends the messages that were added.
func (s *sse) flush() error {
	if s.buf.Len() == 0 {
		return nil
	}
	if s.call.hold(s.buf.Len()) != nil {
		return errGone // the client asks again from its position
	}
	err := s.call.writePieces(s.rc, s.buf.Bytes())
	if s.buf.Reset(); s.buf.Cap() > 4*logsAtOnce {
		s.buf = bytes.Buffer{} // do not keep the memory of a large output
	}
	s.call.release()
	if err != nil || s.rc.Flush() != nil {
		return errGone
	}
	s.sent = time.Now()
	return nil
}

// alive sends an empty comment, or an empty line, if nothing has been sent for a while, so that proxies and clients keep the
// connection.
func (s *sse) alive() error {
	if time.Since(s.sent) < keepAlive {
		return nil
	}
	if s.lines {
		s.buf.WriteString("\n")
	} else {
		s.buf.WriteString(": alive\n\n")
	}
	return s.flush()
}

// pieceSize is how many bytes a client must read within Options.Patience.
const pieceSize = 64 << 10

// writePieces is writeWithin without a last moment.
func (c *call) writePieces(rc *http.ResponseController, b []byte) error {
	return c.writeWithin(rc, b, time.Time{})
}

// follow streams the messages that more adds, until the execution has ended and more has nothing to add. more adds one piece of limited
// size, and reports whether there may be more at once. hinted means that more reads only rows of the execution itself: changes of a
// workflow's tasks by another replica give no hint.
func (c *call) follow(id flow.ID, hinted bool, more func(*sse, *flow.Execution) (bool, error)) error {
	changed, stop := c.Engine.Watch(id) // before the first read, so that no change is missed
	defer stop()
	view := c.Engine.View(id)
	if _, err := view.Look(c.ctx()); err != nil {
		return err
	}
	s, err := c.openStream(mediaEvents)
	if err == nil {
		err = c.pump(s, view, changed, hinted, more)
	}
	return c.ended(err)
}

// ended handles the error of a stream. The status line has been sent, so the client cannot be told of the error: the connection is closed,
// and the client gets the error when it asks again.
func (c *call) ended(err error) error {
	if err != nil && !errors.Is(err, errGone) && c.ctx().Err() == nil {
		c.log.Warn("stream broken off", telemetry.Path, c.r.URL.Path, telemetry.Err, err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (c *call) pump(s *sse, view *engine.View, changed <-chan struct{}, hinted bool, more func(*sse, *flow.Execution) (bool, error)) error {
	every := func() time.Duration {
		if hinted && c.Engine.HearsPeers() {
			return hintedPollEvery
		}
		return pollEvery
	}
	tick, quiet := time.NewTimer(every()), time.NewTicker(keepAlive)
	defer tick.Stop()
	defer quiet.Stop()
	for {
		// The state is read before more is called, so after the execution's end more finds everything.
		x, err := view.Look(c.ctx())
		if err != nil {
			return err
		}
		for again := true; again; {
			if again, err = more(s, x); err != nil {
				return err
			}
			if s.buf.Len() > 0 {
				quiet.Reset(keepAlive)
			}
			if err := s.flush(); err != nil {
				return err
			}
			if c.draining.Err() != nil {
				return nil
			}
		}
		if x.Stage.Terminal() {
			end := api.End{ID: x.ID.String(), Status: status(x.Stage)}
			if x.Outcome != nil {
				end.Error = renderError(x.Outcome.Error)
			}
			if err := s.add(api.StreamEnd, "", end); err != nil {
				return err
			}
			return s.flush()
		}
		tick.Reset(every())
		select {
		case <-changed:
		case <-tick.C:
		case <-quiet.C:
			s.buf.WriteString(": alive\n\n")
			if err := s.flush(); err != nil {
				return err
			}
		case <-c.draining.Done():
			return nil
		case <-c.ctx().Done():
			return errGone
		}
	}
}

// resume returns the cursor at which a stream continues: the last id that the client received, or ?after=.
func (c *call) resume() (name, value string) {
	if last := c.r.Header.Get("Last-Event-ID"); last != "" && c.wantsStream() {
		return "Last-Event-ID", last
	}
	return "after", c.query.Get("after")
}

// afterSeq reads a cursor of events.
func (c *call) afterSeq() int64 {
	name, text := c.resume()
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		c.fault(name, text, "it is not the number of an event", "pass the id of the last event seen, or 0")
	}
	return n
}

// afterChunk reads a cursor of logs.
func (c *call) afterChunk() (attempt int, seq int64) {
	name, text := c.resume()
	if text == "" {
		return 0, 0
	}
	attempt, seq, ok := parseChunkID(text)
	if !ok {
		c.fault(name, text, "it is not a place in the logs", "pass the id of the last chunk seen, as in 1.42")
	}
	return attempt, seq
}

func parseChunkID(text string) (attempt int, seq int64, ok bool) {
	a, s, ok := strings.Cut(text, ".")
	n, err := strconv.ParseUint(a, 10, 31)
	m, err2 := strconv.ParseUint(s, 10, 63)
	return int(n), int64(m), ok && err == nil && err2 == nil
}
