// Package row has the compact encodings in which backends of the store keep what needs no column of its own: rarely used
// fields of a request, the lesser part of a state, errors, histories. Fields that most executions leave empty cost one
// bit. All of it is pure; a backend decides what goes into which column.
package row

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// layout is the first byte of a request, so that a later layout can be told apart.
const layout = 1

// Micros is a time as it is stored; the zero time is 0.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromMicros is the reverse of Micros.
func FromMicros(v int64) time.Time {
	if v == 0 {
		return time.Time{}
	}
	return time.UnixMicro(v).UTC()
}

// writer appends to a buffer.
type writer struct{ b []byte }

func (w *writer) uint(v uint64)    { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) int(v int64)      { w.b = binary.AppendVarint(w.b, v) }
func (w *writer) text(s string)    { w.uint(uint64(len(s))); w.b = append(w.b, s...) }
func (w *writer) bytes(p []byte)   { w.uint(uint64(len(p))); w.b = append(w.b, p...) }
func (w *writer) id(id flow.ID)    { w.b = append(w.b, id[:]...) }
func (w *writer) since(t, c int64) { w.int(t - c) }
func (w *writer) duration(d dur)   { w.int(int64(d)) }
func (w *writer) float(v float64)  { w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(v)) }

type dur = time.Duration

// ErrDamaged means that a row's bytes cannot be decoded.
var ErrDamaged = errors.New("stored row cannot be decoded")

var errShort = fmt.Errorf("%w: it is cut short or of another layout", ErrDamaged)

// reader takes from a buffer. The first error sticks.
type reader struct {
	b   []byte
	err error
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.err, r.b = errShort, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.err, r.b = errShort, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// take returns the next n bytes, not copied.
func (r *reader) take(n uint64) []byte {
	if uint64(len(r.b)) < n {
		r.err, r.b = errShort, nil
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) text() string { return string(r.take(r.uint())) }

func (r *reader) bytes() []byte {
	p := r.take(r.uint())
	if len(p) == 0 {
		return nil
	}
	return slices.Clone(p)
}

func (r *reader) id() (id flow.ID) {
	copy(id[:], r.take(uint64(len(id))))
	return id
}

func (r *reader) since(c int64) time.Time { return time.UnixMicro(c + r.int()).UTC() }
func (r *reader) duration() time.Duration { return time.Duration(r.int()) }

func (r *reader) float() float64 {
	p := r.take(8)
	if len(p) < 8 {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(p))
}

// Bits of a request: which fields follow, in this order.
const (
	hasParent uint64 = 1 << iota
	hasVersion
	hasKind  // otherwise it is the action's name
	hasQueue // otherwise it is "default"
	hasPriority
	hasKey
	hasTimeout
	hasQueueTimeout
	hasTotalTimeout
	hasRetry
	hasLabels
	hasIdempotencyKey
	hasTraceparent
	hasNotBefore
)

const defaultQueue = "default"

// AppendRequest appends the fields of a request that have no column of their own: all but Action, CreatedAt, Input and
// With.
func AppendRequest(b []byte, r *flow.Request) []byte {
	w := writer{b: append(b, layout)}
	created := Micros(r.CreatedAt)
	retries := r.Retry.MaxAttempts != 0 || r.Retry.Backoff != "" || r.Retry.Delay != 0 || r.Retry.MaxDelay != 0 ||
		r.Retry.Jitter != 0 || len(r.Retry.On) > 0
	var has uint64
	for bit, is := range [...]bool{!r.Parent.IsZero(), r.Version != 0, string(r.Kind) != r.Action, r.Queue != defaultQueue,
		r.Priority != 0, r.Key != "" || r.KeyLimit != 0 || r.WhenFull != "", r.Timeout != 0, r.QueueTimeout != 0,
		r.TotalTimeout != 0, retries, len(r.Labels) > 0, r.IdempotencyKey != "", r.Traceparent != "", !r.NotBefore.IsZero()} {
		if is {
			has |= 1 << bit
		}
	}
	w.uint(has)
	if has&hasParent != 0 {
		w.id(r.Parent)
		w.int(int64(r.ParentAttempt))
		w.text(r.Task)
		w.int(int64(r.Index))
		w.int(int64(r.Depth))
	}
	if has&hasVersion != 0 {
		w.int(int64(r.Version))
	}
	if has&hasKind != 0 {
		w.text(string(r.Kind))
	}
	if has&hasQueue != 0 {
		w.text(r.Queue)
	}
	if has&hasPriority != 0 {
		w.int(int64(r.Priority))
	}
	if has&hasKey != 0 {
		w.text(r.Key)
		w.int(int64(r.KeyLimit))
		w.text(string(r.WhenFull))
	}
	if has&hasTimeout != 0 {
		w.duration(r.Timeout)
	}
	if has&hasQueueTimeout != 0 {
		w.duration(r.QueueTimeout)
	}
	if has&hasTotalTimeout != 0 {
		w.duration(r.TotalTimeout)
	}
	if has&hasRetry != 0 {
		w.retry(&r.Retry)
	}
	if has&hasLabels != 0 {
		w.uint(uint64(len(r.Labels)))
		for k, v := range r.Labels {
			w.text(k)
			w.text(v)
		}
	}
	if has&hasIdempotencyKey != 0 {
		w.text(r.IdempotencyKey)
	}
	if has&hasTraceparent != 0 {
		w.text(r.Traceparent)
	}
	if has&hasNotBefore != 0 {
		w.since(Micros(r.NotBefore), created)
	}
	return w.b
}

func (w *writer) retry(p *flow.Retry) {
	w.int(int64(p.MaxAttempts))
	w.text(string(p.Backoff))
	w.duration(p.Delay)
	w.duration(p.MaxDelay)
	w.float(p.Jitter)
	w.uint(uint64(len(p.On)))
	for _, on := range p.On {
		w.text(on)
	}
}

// KindWithin is how many bytes of a request's detail hold its kind: names have up to 100 bytes.
const KindWithin = 1000

// DecodeKind reads the kind from what AppendRequest wrote, or from its first KindWithin bytes.
func DecodeKind(action string, detail []byte) (flow.Kind, error) {
	r := flow.Request{Action: action}
	d := reader{b: detail}
	if _, err := d.beginning(&r); err != nil {
		return "", err
	}
	return r.Kind, d.err
}

// beginning reads the fields of a request up to its kind, and returns which follow.
func (r *reader) beginning(q *flow.Request) (has uint64, err error) {
	if v := r.take(1); len(v) == 1 && v[0] != layout {
		return 0, fmt.Errorf("%w: the request has layout %d, and this program knows %d", ErrDamaged, v[0], layout)
	}
	has = r.uint()
	if has&hasParent != 0 {
		q.Parent = r.id()
		q.ParentAttempt = int(r.int())
		q.Task = r.text()
		q.Index = int(r.int())
		q.Depth = int(r.int())
	}
	if has&hasVersion != 0 {
		q.Version = int(r.int())
	}
	q.Kind = flow.Kind(q.Action)
	if has&hasKind != 0 {
		q.Kind = flow.Kind(r.text())
	}
	return has, nil
}

// DecodeRequest fills r from what AppendRequest wrote; Action and CreatedAt are set already.
func DecodeRequest(r *flow.Request, detail []byte) error {
	d := reader{b: detail}
	has, err := d.beginning(r)
	if err != nil {
		return err
	}
	created := Micros(r.CreatedAt)
	r.Queue = defaultQueue
	if has&hasQueue != 0 {
		r.Queue = d.text()
	}
	if has&hasPriority != 0 {
		r.Priority = int(d.int())
	}
	if has&hasKey != 0 {
		r.Key = d.text()
		r.KeyLimit = int(d.int())
		r.WhenFull = flow.WhenFull(d.text())
	}
	if has&hasTimeout != 0 {
		r.Timeout = d.duration()
	}
	if has&hasQueueTimeout != 0 {
		r.QueueTimeout = d.duration()
	}
	if has&hasTotalTimeout != 0 {
		r.TotalTimeout = d.duration()
	}
	if has&hasRetry != 0 {
		d.retry(&r.Retry)
	}
	if has&hasLabels != 0 {
		n := d.uint()
		r.Labels = make(map[string]string, min(n, 64))
		for ; n > 0 && d.err == nil; n-- {
			k := d.text()
			r.Labels[k] = d.text()
		}
	}
	if has&hasIdempotencyKey != 0 {
		r.IdempotencyKey = d.text()
	}
	if has&hasTraceparent != 0 {
		r.Traceparent = d.text()
	}
	if has&hasNotBefore != 0 {
		r.NotBefore = d.since(created)
	}
	return d.err
}

func (r *reader) retry(p *flow.Retry) {
	p.MaxAttempts = int(r.int())
	p.Backoff = flow.Backoff(r.text())
	p.Delay = r.duration()
	p.MaxDelay = r.duration()
	p.Jitter = r.float()
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		p.On = append(p.On, r.text())
	}
}

// Bits of a state.
const (
	// hasFirst is QueuedAt in a row that has ended; live rows have a column for that. In a live row it is EventAt, which comes
	// last, and only where it differs from usualEvent.
	hasFirst uint64 = 1 << iota
	hasWakeAt
	hasClaimed
	hasStarted
	hasGap
	hasInbox
	hasCancel
	hasHandedBack
	hasAside
)

// AppendState appends the part of a state that has no column of its own; nothing when there is nothing to say. Of what has
// ended it holds Attempt, NextSeq and QueuedAt as well, and no EventAt. created is the execution's CreatedAt.
func AppendState(b []byte, s *flow.State, created int64, ended bool) []byte {
	w := writer{b: b}
	var has uint64
	first := ended && !s.QueuedAt.IsZero() || !ended && Micros(s.EventAt) != usualEvent(s, created)
	for bit, is := range [...]bool{first, !s.WakeAt.IsZero(), !s.ClaimedAt.IsZero(),
		!s.StartedAt.IsZero(), !s.GapSince.IsZero(), s.Inbox != 0, s.Cancel != nil, s.HandedBack != 0, s.Aside != nil} {
		if is {
			has |= 1 << bit
		}
	}
	if ended {
		w.uint(uint64(s.Attempt))
		w.uint(uint64(s.NextSeq))
	} else if has == 0 {
		return b
	}
	w.uint(has)
	for bit, t := range times(s, ended) {
		if t != nil && has&(1<<bit) != 0 {
			w.since(Micros(*t), created)
		}
	}
	if has&hasInbox != 0 {
		w.uint(uint64(s.Inbox))
	}
	if c := s.Cancel; c != nil {
		w.uint(uint64(c.As))
		w.text(c.Code)
		w.text(c.Reason)
		w.since(Micros(c.At), created)
	}
	if s.HandedBack != 0 {
		w.uint(uint64(s.HandedBack))
	}
	if a := s.Aside; a != nil {
		w.since(Micros(a.Until), created)
		w.uint(uint64(a.Times))
		w.text(a.Reason)
	}
	if !ended && has&hasFirst != 0 {
		w.since(Micros(s.EventAt), usualEvent(s, created))
	}
	return w.b
}

// times are the times of a state in the order of their bits; nil for the first bit of a live row, which is EventAt's.
func times(s *flow.State, ended bool) [5]*time.Time {
	all := [...]*time.Time{nil, &s.WakeAt, &s.ClaimedAt, &s.StartedAt, &s.GapSince}
	if ended {
		all[0] = &s.QueuedAt
	}
	return all
}

// usualEvent is the time of the latest event of nearly everything that lives: it was created or handed off, or its work
// began. Where it holds, EventAt takes no bytes.
func usualEvent(s *flow.State, created int64) int64 {
	return max(created, Micros(s.ClaimedAt), Micros(s.StartedAt))
}

// DecodeState fills s from what AppendState wrote.
func DecodeState(s *flow.State, b []byte, created int64, ended bool) error {
	if len(b) == 0 {
		s.EventAt = FromMicros(created)
		return nil
	}
	d := reader{b: b}
	if ended {
		s.Attempt = int(d.uint())
		s.NextSeq = int64(d.uint())
	}
	has := d.uint()
	for bit, t := range times(s, ended) {
		if t != nil && has&(1<<bit) != 0 {
			*t = d.since(created)
		}
	}
	if has&hasInbox != 0 {
		s.Inbox = int(d.uint())
	}
	if has&hasCancel != 0 {
		s.Cancel = &flow.CancelOrder{As: flow.Stage(d.uint()), Code: d.text(), Reason: d.text()}
		s.Cancel.At = d.since(created)
	}
	if has&hasHandedBack != 0 {
		s.HandedBack = int(d.uint())
	}
	if has&hasAside != 0 {
		s.Aside = &flow.Aside{Until: d.since(created)}
		s.Aside.Times, s.Aside.Reason = int(d.uint()), d.text()
	}
	switch {
	case ended:
	case has&hasFirst != 0:
		s.EventAt = d.since(usualEvent(s, created))
	default:
		s.EventAt = FromMicros(usualEvent(s, created))
	}
	return d.err
}

// AppendError appends an error; nil is nothing.
func AppendError(b []byte, e *flow.Error) []byte {
	if e == nil {
		return b
	}
	w := writer{b: b}
	w.text(e.Code)
	w.text(e.Message)
	w.bytes(e.Details)
	return w.b
}

// AppendErrorCode appends what the encoding of every error with the code begins with, and of no other error.
func AppendErrorCode(b []byte, code string) []byte {
	w := writer{b: b}
	w.text(code)
	return w.b
}

// DecodeErrorCode reads the code from what AppendError wrote, or from no more than AppendErrorCode would have written.
func DecodeErrorCode(b []byte) (string, error) {
	if len(b) == 0 {
		return "", nil
	}
	d := reader{b: b}
	return d.text(), d.err
}

// DecodeError reads what AppendError wrote.
func DecodeError(b []byte) (*flow.Error, error) {
	if len(b) == 0 {
		return nil, nil
	}
	d := reader{b: b}
	e := &flow.Error{Code: d.text(), Message: d.text(), Details: d.bytes()}
	return e, d.err
}

// AppendKept appends an event of the inbox, outcome included, number excluded.
func AppendKept(b []byte, e *flow.Event) []byte {
	w := writer{b: b}
	w.uint(uint64(e.Attempt))
	w.text(string(e.Type))
	w.int(Micros(e.At))
	w.bytes(e.Data)
	if e.Outcome == nil {
		w.uint(0)
		return w.b
	}
	if e.Outcome.Error == nil {
		w.uint(1)
	} else {
		w.uint(2)
		w.text(e.Outcome.Error.Code)
		w.text(e.Outcome.Error.Message)
		w.bytes(e.Outcome.Error.Details)
	}
	w.bytes(e.Outcome.Output)
	return w.b
}

// DecodeKept reads what AppendKept wrote of event seq.
func DecodeKept(seq int64, b []byte) (flow.Event, error) {
	d := reader{b: b}
	e := flow.Event{Seq: seq, Attempt: int(d.uint()), Type: flow.EventType(d.text())}
	e.At = FromMicros(d.int())
	e.Data = d.bytes()
	switch d.uint() {
	case 1:
		e.Outcome = &flow.Outcome{}
	case 2:
		e.Outcome = &flow.Outcome{Error: &flow.Error{Code: d.text(), Message: d.text(), Details: d.bytes()}}
	}
	if e.Outcome != nil {
		e.Outcome.Output = d.bytes()
	}
	return e, d.err
}

// eventNumbers are the types that are stored as a number: their place in this list, from 1. Only ever append.
var eventNumbers = []flow.EventType{flow.EvRequested, flow.EvScheduling, flow.EvScheduled, flow.EvProvisioning, flow.EvRunning,
	flow.EvCompleted, flow.EvFailed, flow.EvCancelled, flow.EvTimedOut, flow.EvWaiting, flow.EvLost, flow.EvAdvanced, flow.EvProgress}

// EventNumber is the number that stands for a type; 0 where there is none, and the type is stored as text.
func EventNumber(t flow.EventType) uint64 { return uint64(slices.Index(eventNumbers, t) + 1) }

// EventType is the reverse of EventNumber; false where no type has the number.
func EventType(n uint64) (flow.EventType, bool) {
	if n == 0 || n > uint64(len(eventNumbers)) {
		return "", false
	}
	return eventNumbers[n-1], true
}
