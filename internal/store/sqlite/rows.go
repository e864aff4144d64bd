package sqlite

import (
	"cmp"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qNumber = sql(`SELECT n FROM ids WHERE id = ?`)

	qLive = sql(`SELECT ` + requestRead.names("e.") + `, ` + liveRead.names("l.") + fromLive)

	qLivePayload = sql(`SELECT ` + requestRead.names("e.") + `, ` + liveRead.names("l.") + `, ` + payloads.names("e.") + fromLive)

	qEnded = sql(`SELECT ` + requestRead.names("e.") + `, ` + endedRead.names("d.") + fromEnded)

	qEndedPayload = sql(`SELECT ` + requestRead.names("e.") + `, ` + endedRead.names("d.") + `, ` + outcomes.names("d.") + `, ` + payloads.names("e.") + fromEnded)

	qCreated = sql(`SELECT created_at FROM executions WHERE n = ?`)

	qEvents = sql(`SELECT k, attempt, type, after, data FROM events WHERE k >= ? AND k < ? ORDER BY k LIMIT ?`)

	qInbox = sql(`SELECT seq, event FROM inbox WHERE n = ? ORDER BY seq`)
)

const (
	fromLive  = ` FROM live l JOIN executions e ON e.n = l.n WHERE l.n = ?`
	fromEnded = ` FROM ended d JOIN executions e ON e.n = d.n WHERE d.n = ?`
)

func (c *conn) number(id flow.ID) (int64, bool, error) {
	s := c.use(qNumber).id(id)
	var n int64
	found := s.next()
	if found {
		n = s.getInt()
	}
	return n, found, s.done()
}

// load reads one execution by its number, or returns nil if there is none.
func (c *conn) load(n int64, p store.Payload) (*flow.Execution, error) {
	x, err := c.loadLive(n, p)
	if x != nil || err != nil {
		return x, err
	}
	q, more := qEnded, executions(nil)
	if p {
		q, more = qEndedPayload, complete
	}
	s := c.use(q).int(n)
	if s.next() {
		x, err = s.ended(more)
	}
	if e := s.done(); e != nil {
		return nil, e
	}
	return x, err
}

func (c *conn) loadLive(n int64, p store.Payload) (x *flow.Execution, err error) {
	q := qLive
	if p {
		q = qLivePayload
	}
	s := c.use(q).int(n)
	if s.next() {
		x, err = s.live(bool(p))
	}
	if e := s.done(); e != nil {
		return nil, e
	}
	return x, err
}

// seqBits is how many bits of an event's key hold its sequence number: an execution has at most maxEvents events.
const (
	seqBits   = 22
	maxEvents = 1<<seqBits - 1
)

func eventKey(n, seq int64) int64 { return n<<seqBits | min(max(seq, 0), maxEvents) }

// events reads the applied events of an execution with from <= seq < to: at most limit, and until the page is full; page may be nil.
func (c *conn) events(n, from, to int64, limit int, page *store.Page) ([]flow.Event, error) {
	s := c.use(qCreated).int(n)
	var created int64
	if s.next() {
		created = s.getInt()
	}
	if err := s.done(); err != nil {
		return nil, err
	}
	var all []flow.Event
	s = c.use(qEvents).int(eventKey(n, from)).int(eventKey(n, to)).int(int64(limit))
	for (page == nil || !page.Full()) && s.next() {
		e := flow.Event{Seq: s.getInt() & maxEvents, Attempt: int(s.getInt())}
		e.Type = s.eventType()
		e.At = time.UnixMicro(created + s.getInt()).UTC()
		e.Data = s.getBlob()
		if page != nil {
			page.Event(&e)
		}
		all = append(all, e)
	}
	return all, s.done()
}

func (s *stmt) eventType() flow.EventType {
	if t, ok := row.EventType(uint64(max(s.getInt(), 0))); ok {
		return t
	}
	s.skip(-1)
	return flow.EventType(s.getText())
}

// eventTypeParam binds the next parameter.
func (s *stmt) eventTypeParam(t flow.EventType) *stmt {
	if n := row.EventNumber(t); n > 0 {
		return s.int(int64(n))
	}
	return s.text(string(t))
}

func (c *conn) inbox(n int64) ([]flow.Event, error) {
	var all []flow.Event
	var bad error
	s := c.use(qInbox).int(n)
	for s.next() {
		e, err := row.DecodeKept(s.getInt(), s.peekBlob())
		if err != nil {
			bad = fmt.Errorf("read kept event %d: %w", e.Seq, err)
		}
		all = append(all, e)
	}
	return all, cmp.Or(s.done(), bad)
}

func (s *stmt) numbers() ([]int64, error) {
	var all []int64
	for s.next() {
		all = append(all, s.getInt())
	}
	return all, s.done()
}

// loadWithin reads the first executions with payload, and stops after the one with which the payloads reach size bytes.
func (c *conn) loadWithin(numbers []int64, size int) ([]*flow.Execution, error) {
	all := make([]*flow.Execution, 0, len(numbers))
	for i := 0; i < len(numbers) && size > 0; i++ {
		x, err := c.loadLive(numbers[i], store.WithPayload)
		if err != nil {
			return all, err
		}
		if x == nil {
			return nil, fmt.Errorf("execution number %d is in a queue and not there", numbers[i])
		}
		size -= x.PayloadSize()
		all = append(all, x)
	}
	return all, nil
}

// loadAll reads unfinished executions, in the order of the numbers. With an error it returns those before the one that could not be read.
func (c *conn) loadAll(numbers []int64, p store.Payload) ([]*flow.Execution, error) {
	all := make([]*flow.Execution, 0, len(numbers))
	for _, n := range numbers {
		x, err := c.loadLive(n, p)
		if err != nil {
			return all, err
		}
		if x != nil {
			all = append(all, x)
		}
	}
	return all, nil
}
