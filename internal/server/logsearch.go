package server

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// The bounds of one search of logs. If one of them is reached, the answer has a cursor to continue from.
const (
	searchBytes = 32 << 20
	searchTime  = time.Second
)

const (
	longestLine  = 16 << 10 // bytes; a longer line is searched in pieces of this length
	longestShown = 1000     // bytes of a line in the answer; of a longer line the part around the match
	shownBefore  = 200      // bytes before the match
	longestQuery = 1000     // bytes

	// mostInstructions bounds a compiled expression. A match takes up to instructions × bytes steps: 80 million for the
	// longest line, which is less than a second. Repetitions such as (…){1000} make a short expression long.
	mostInstructions = 5000

	// mostOpen limits how many bytes a cursor can make the server read again; a line and a chunk have fewer.
	mostOpen = 8 << 20
)

func (c *call) searchLogs() error {
	q := store.LogQuery{
		Attempt: int(c.number("attempt", 0, 1, 1<<31-1)), Stream: c.query.Get("stream"), Limit: logsAtOnce,
	}
	if q.Stream != "" && !slices.Contains(streams, q.Stream) {
		c.fault("stream", q.Stream, "there is no such stream", problem.NearestOr(q.Stream, streams, "one of"))
	}
	s := lineSearch{match: c.pattern(), limit: int(c.number("limit", 100, 1, 1000)), until: time.Now().Add(searchTime), open: map[string]*openLine{}}
	from := c.searchCursor()
	if err := c.checked(); err != nil {
		return err
	}
	x, err := c.get() // before the logs, because those of an ended execution are complete
	if err != nil {
		return err
	}
	q.Execution = x.ID
	if err := c.reopen(&s, q, from); err != nil {
		return err
	}
	q.AfterAttempt, q.AfterSeq = from.attempt, from.seq
	more, searched := !s.drainAll(), int64(0)
	for !more {
		chunks, err := c.Engine.Reader().ReadLogs(c.ctx(), q)
		if err != nil {
			return fmt.Errorf("read logs: %w", err)
		}
		if len(chunks) == 0 {
			// No more bytes will come to end these lines.
			more = (x.Stage.Terminal() || s.attempt < x.Attempt) && !s.endLines()
			break
		}
		for i := range chunks {
			l := &chunks[i]
			data, err := c.chunkBytes(*l)
			if err != nil {
				return err
			}
			if l.Attempt != s.attempt && !s.endLines() {
				more = true
				break
			}
			q.AfterAttempt, q.AfterSeq = l.Attempt, l.Seq
			searched += l.Size
			if !s.feed(l, data) || searched >= searchBytes {
				more = true
				break
			}
		}
	}
	out := api.LogMatches{Matches: s.found, NextCursor: s.cursor(), Status: status(x.Stage), More: more, Searched: searched}
	if out.Matches == nil {
		out.Matches = []api.LogMatch{}
	}
	return c.json(http.StatusOK, out)
}

// pattern reads the parameters of a search. It returns a function that returns the start and the end of the first match, or nil if there is
// none.
func (c *call) pattern() func([]byte) []int {
	text, isRegexp := c.query.Get("q"), c.flag("regexp")
	switch {
	case text == "":
		c.fault("q", "", "it is missing", "say what to search for, as in ?q=error")
	case len(text) > longestQuery:
		c.fault("q", problem.Clip(text, 100), fmt.Sprintf("it has %d bytes", len(text)), fmt.Sprintf("search for at most %d bytes", longestQuery))
	case isRegexp:
		return c.expression(text)
	}
	want := []byte(text)
	return func(line []byte) []int {
		i := bytes.Index(line, want)
		if i < 0 {
			return nil
		}
		return []int{i, i + len(want)}
	}
}

func (c *call) expression(text string) func([]byte) []int {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		c.fault("q", text, "it is not a regular expression: "+err.Error(),
			"write it in the syntax of RE2, or leave regexp out to search for the text itself")
		return nil
	}
	if prog, err := syntax.Compile(parsed.Simplify()); err != nil || len(prog.Inst) > mostInstructions {
		c.fault("q", text, "the expression is too large", "use smaller numbers of repetitions, as in {1,20}")
		return nil
	}
	return regexp.MustCompile(text).FindIndex
}

// lineSearch searches the lines of an attempt's streams, whose chunks it gets in the order in which they were written.
type lineSearch struct {
	match func([]byte) []int
	limit int
	until time.Time

	attempt int // of the latest chunk
	seq     int64
	open    map[string]*openLine // by stream
	found   []api.LogMatch
}

// openLine has the bytes of a stream that were read but not searched yet: a line without its end and, after a search that reached a limit,
// the bytes after it.
type openLine struct {
	offset int64 // of the first byte of text
	text   []byte
	parts  []linePart
}

// linePart is the offset at which a chunk begins.
type linePart struct{ offset, seq int64 }

// goesOn reports whether the search is still within its limits.
func (s *lineSearch) goesOn() bool { return len(s.found) < s.limit && time.Now().Before(s.until) }

// feed searches the next chunk. It reports whether the whole chunk has been searched and the search may go on.
func (s *lineSearch) feed(l *flow.LogChunk, data []byte) bool {
	s.attempt, s.seq = l.Attempt, l.Seq
	s.add(l, data)
	return s.drain(l.Stream) && s.goesOn()
}

func (s *lineSearch) add(l *flow.LogChunk, data []byte) {
	if int64(len(data)) != l.Size { // its bytes are missing
		delete(s.open, l.Stream)
		return
	}
	o := s.open[l.Stream]
	if o == nil || o.offset+int64(len(o.text)) != l.Offset {
		o = &openLine{offset: l.Offset}
		s.open[l.Stream] = o
	}
	o.text = append(o.text, data...)
	o.parts = append(o.parts, linePart{l.Offset, l.Seq})
}

// drain searches the complete lines of a stream, and reports whether it has searched all of them.
func (s *lineSearch) drain(stream string) bool {
	for o := s.open[stream]; o != nil; {
		n := bytes.IndexByte(o.text, '\n')
		if n < 0 && len(o.text) < longestLine {
			break
		}
		end := n + 1
		if n < 0 || n > longestLine {
			n, end = longestLine, longestLine
		}
		if !s.goesOn() {
			return false
		}
		s.line(stream, o, n, end)
	}
	return true
}

func (s *lineSearch) drainAll() bool {
	return !slices.ContainsFunc(streams, func(stream string) bool { return !s.drain(stream) })
}

// endLines searches the open lines when no more bytes can come, and reports whether it has searched all of them.
func (s *lineSearch) endLines() bool {
	if !s.drainAll() {
		return false
	}
	for _, stream := range streams {
		if o := s.open[stream]; o != nil && len(o.text) > 0 {
			if !s.goesOn() {
				return false
			}
			s.line(stream, o, len(o.text), len(o.text))
		}
		delete(s.open, stream)
	}
	return true
}

// line searches the first n bytes of an open line, and removes the bytes before end.
func (s *lineSearch) line(stream string, o *openLine, n, end int) {
	for len(o.parts) > 1 && o.parts[1].offset <= o.offset {
		o.parts = o.parts[1:]
	}
	text := bytes.TrimSuffix(o.text[:n], []byte("\r"))
	if at := s.match(text); at != nil {
		m := api.LogMatch{Attempt: s.attempt, Seq: o.parts[0].seq, Stream: stream, Offset: o.offset}
		if len(text) > longestShown {
			from := max(0, min(at[0]-shownBefore, len(text)-longestShown))
			text, m.Cut = text[from:from+longestShown], true
		}
		m.Line = strings.ToValidUTF8(string(text), "\uFFFD")
		s.found = append(s.found, m)
	}
	o.text, o.offset = o.text[end:], o.offset+int64(end)
}

// cursor returns the position at which the search continues: after the last chunk, and for a stream with an open line at the beginning of
// that line, for example 1.42,stdout:1029.
func (s *lineSearch) cursor() string {
	text := chunkID(s.attempt, s.seq)
	for _, stream := range streams {
		if o := s.open[stream]; o != nil && len(o.text) > 0 {
			text += "," + stream + ":" + strconv.FormatInt(o.offset, 10)
		}
	}
	return text
}

type searchPlace struct {
	attempt int
	seq     int64
	open    map[string]int64
}

func (c *call) searchCursor() searchPlace {
	p := searchPlace{open: map[string]int64{}}
	text := c.query.Get("after")
	if text == "" {
		return p
	}
	parts := strings.Split(text, ",")
	attempt, seq, ok := parseChunkID(parts[0])
	p.attempt, p.seq = attempt, seq
	for _, part := range parts[1:] {
		stream, offset, _ := strings.Cut(part, ":")
		n, err := strconv.ParseUint(offset, 10, 62)
		if ok = ok && err == nil && slices.Contains(streams, stream); ok {
			p.open[stream] = int64(n)
		}
	}
	if !ok {
		c.fault("after", text, "it is not a place in a search", "pass next_cursor of the answer before")
	}
	return p
}

// reopen reads the open lines of a cursor again.
func (c *call) reopen(s *lineSearch, q store.LogQuery, p searchPlace) error {
	s.attempt, s.seq = p.attempt, p.seq
	for stream, offset := range p.open {
		q.Attempt, q.Stream, q.Offset, q.AfterAttempt, q.AfterSeq = p.attempt, stream, offset, 0, 0
		for size, over := int64(0), false; !over; {
			chunks, err := c.Engine.Reader().ReadLogs(c.ctx(), q)
			if err != nil {
				return fmt.Errorf("read logs: %w", err)
			}
			over = len(chunks) == 0
			for i := range chunks {
				l := chunks[i]
				if over = l.Seq > p.seq; over {
					break
				}
				data, err := c.chunkBytes(l)
				if err != nil {
					return err
				}
				if skip := offset - l.Offset; skip > 0 && skip <= int64(len(data)) {
					data, l.Offset, l.Size = data[skip:], offset, l.Size-skip
				}
				s.add(&l, data)
				q.AfterAttempt, q.AfterSeq = l.Attempt, l.Seq
				if size += l.Size; size > mostOpen {
					c.fault("after", c.query.Get("after"), "it is not a place in a search", "pass next_cursor of the answer before")
					return c.checked()
				}
			}
		}
	}
	return nil
}
