package brokerrpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/wire"
)

// ServerOptions configure a Server. Transport and Handoff are required.
type ServerOptions struct {
	Transport Transport
	Handoff   handoff.Handoff
	// Key is the key from which the secrets of sessions are made. Servers with the same key serve each other's sessions.
	Key []byte
	// Tokens are the valid tokens. Without any, every process that can write to the broker may open a session.
	Tokens []string
	Log    *slog.Logger
}

// Server answers the messages of workers behind a broker. Any number of servers read the same lines.
type Server struct {
	transport Transport
	wire      *wire.Server
	tokens    [][]byte
	log       *slog.Logger

	gauge      *gauge
	correlator *correlator
	opening    chan struct{} // one element for each session that is being opened

	mu        sync.Mutex
	transfers int // under way
}

const (
	// mostAsks is how many calls wait at one server: three for each of some ten thousand workers.
	mostAsks = 50_000
	// mostOpens is how many sessions a server opens at once. Further workers are told at once to try again, and do so after a pause. Without a
	// bound, 10,000 workers that ask for sessions at once, of which 330 a second are opened, would ask again before half of them had been
	// served, and again before the repeated calls had been.
	mostOpens = 256
	// mostTells and mostLogs are how many messages of each line a server handles at once.
	mostTells = 64
	mostLogs  = 16
	// mostTransfers bounds the memory that transfers need in the broker, where each has up to window pieces.
	mostTransfers = 32
	// keptTransfers is how many of these are reserved for answers with work, because that work is claimed already.
	keptTransfers = 8
	// lastWords is how long a stopping server still answers calls.
	lastWords = 2 * time.Second
	// voidAfter is the age from which a call is ignored, because its caller has probably asked again. An old call for work
	// would claim work for slots that the worker has filled since. An old call that opens a session would open one that no
	// worker uses, while the worker has sent the next such call; a server that is behind with its work would only fall back
	// further.
	voidAfter     = 20 * time.Second
	voidTakeAfter = 3 * time.Second
	voidOpenAfter = openWithin - 5*time.Second
	// openReserve is how long before its caller gives up a call of Open or Resume ends.
	openReserve = time.Second
)

// validFor is how long a message is useful.
func validFor(line Line, kind string) time.Duration {
	switch {
	case line != Asks:
		return 0
	case kind == wire.Take || kind == wire.Input || kind == wire.Orders:
		return voidTakeAfter
	case kind == wire.Open || kind == wire.Resume:
		return voidOpenAfter
	}
	return voidAfter
}

func NewServer(o ServerOptions) *Server {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Server{
		transport: o.Transport, log: o.Log, gauge: newGauge(), correlator: newCorrelator(o.Transport, nil),
		opening: make(chan struct{}, mostOpens),
	}
	lease := handoff.Lease
	if l, ok := o.Handoff.(handoff.Leased); ok && l.Lease() > 0 {
		lease = l.Lease()
	}
	s.wire = wire.NewServer(o.Handoff, o.Key, wire.Holds{Take: holdFor(lease), Input: holdFor(lease), Orders: holdOrders})
	for _, t := range o.Tokens {
		s.tokens = append(s.tokens, tokenKey([]byte(t)))
	}
	if len(s.tokens) == 0 {
		s.tokens = [][]byte{tokenKey(nil)}
	}
	return s
}

// Run serves until ctx ends and running calls have returned.
func (s *Server) Run(ctx context.Context) error {
	defer s.correlator.stop()
	var wg sync.WaitGroup
	wg.Go(func() { s.watch(ctx) })
	wg.Go(func() { s.transport.Serve(ctx, Asks, mostAsks, s.guarded(Asks, s.answerAsk)) })
	wg.Go(func() { s.transport.Serve(ctx, Tells, mostTells, s.guarded(Tells, s.record)) })
	wg.Go(func() { s.transport.Serve(ctx, Logs, mostLogs, s.guarded(Logs, s.record)) })
	wg.Wait()
	return nil
}

// guarded counts deliveries, and dead-letters messages whose handling panics.
func (s *Server) guarded(line Line, take func(context.Context, Message) error) func(context.Context, Message) error {
	return func(ctx context.Context, l Message) (err error) {
		s.gauge.delivered(line, l)
		defer func() {
			if _, dead := errors.AsType[*Unreadable](err); dead {
				s.gauge.countDead()
			}
		}()
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("handling a message from the broker panicked", "panic", p, "stack", string(debug.Stack()))
				err = &Unreadable{fmt.Sprintf("panic: %v", p)}
			}
		}()
		return take(ctx, l)
	}
}

// read checks that a message is a call of a session that its writer holds. If it returns a frame without an error, the answer is
// signed with the returned key.
func (s *Server) read(ctx context.Context, l Message) (f *frame, session flow.ID, key []byte, err error) {
	f, err = unpack(l.Body)
	if err != nil {
		return nil, session, nil, &Unreadable{err.Error()}
	}
	if f.V != version {
		err := &Unreadable{fmt.Sprintf("version %d of the messages, and this server speaks %d", f.V, version)}
		s.refuse(ctx, f, fmt.Sprintf("the worker speaks version %d to the broker and the server %d: run the same version of Pawl on both sides", f.V, version))
		return nil, session, nil, err
	}
	if f.Kind == wire.Open {
		for _, token := range s.tokens {
			if f.by(token, byWorker) {
				return f, session, token, nil
			}
		}
		s.refuse(ctx, f, "the server asks for another token: give this worker a valid one")
		return nil, session, nil, &Unreadable{"it opens a session and is not signed with a token of this server"}
	}
	session, err = flow.ParseID(flow.SessionPrefix, f.Session)
	if err != nil {
		return nil, session, nil, &Unreadable{err.Error()}
	}
	key = []byte(s.wire.Secret(session))
	if !f.by(key, byWorker) {
		return nil, session, nil, &Unreadable{"it is not signed by the session's worker"}
	}
	s.gauge.heard(session)
	return f, session, key, nil
}

// refuse answers a call with an unknown signature or version. The answer is not signed.
func (s *Server) refuse(ctx context.Context, f *frame, say string) {
	if f.To == "" {
		return
	}
	if err := s.transport.Put(ctx, f.To, pack(head{ID: f.ID, Kind: kindAnswer, Code: codeRefused, Say: say}, nil, nil, byServer)); err != nil {
		s.log.Debug("a refused caller could not be told", "err", err)
	}
}

// answerAsk answers a call whose caller waits.
func (s *Server) answerAsk(ctx context.Context, l Message) error {
	f, session, key, err := s.read(ctx, l)
	if err != nil {
		if unreadable := (*Unreadable)(nil); errors.As(err, &unreadable) {
			s.log.Warn("a call through the broker is refused", "why", unreadable.Reason)
		}
		return err
	}
	if l.Age >= validFor(Asks, f.Kind) {
		return nil
	}
	r := &reply{s: s, call: f, key: key}
	answering, stop := outlast(ctx, lastWords)
	defer stop()
	switch f.Kind {
	case wire.Open, wire.Resume:
		select {
		case s.opening <- struct{}{}:
			defer func() { <-s.opening }()
		default:
			return r.fail(answering, fmt.Errorf("%w: this server is opening %d sessions already", handoff.ErrUnavailable, mostOpens))
		}
		return s.open(ctx, answering, f, session, r, l.Age)
	case kindPut, kindGet:
		return s.blob(ctx, f, session, r)
	}
	var in wire.Asked
	if err := s.body(ctx, f, key, &in); err != nil {
		return r.fail(answering, err)
	}
	if f.Kind == wire.Take {
		err := s.wire.Take(ctx, session, &in, func(latest context.Context, a wire.Answer) error {
			defer context.AfterFunc(latest, stop)()
			return r.give(answering, a)
		})
		if errors.Is(err, wire.ErrRepeated) {
			s.log.Debug("a call for work has come again", "why", err)
			return nil
		}
		if err != nil {
			return r.fail(answering, err)
		}
		return nil
	}
	out, err := s.wire.Do(ctx, f.Kind, session, &in)
	if err != nil {
		return r.fail(answering, err)
	}
	_ = r.give(answering, out) // a caller that has died or given up does not need it
	return nil
}

// outlast returns a context that ends a while after ctx.
func outlast(ctx context.Context, while time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(while, cancel)
		context.AfterFunc(longer, func() { t.Stop() })
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// body reads the body of a call, from the message itself or from a transfer.
func (s *Server) body(ctx context.Context, f *frame, key []byte, into any) error {
	body := f.body
	if f.Pipe != "" {
		if err := s.transfer(mostTransfers - keptTransfers); err != nil {
			return err
		}
		defer s.transferred()
		from := s.correlator.receive(ctx, f.Pipe, f.To, key, byServer, byWorker)
		defer from.Close()
		var err error
		if body, err = io.ReadAll(io.LimitReader(from, wire.MostBody+1)); err != nil {
			return err
		}
		if len(body) > wire.MostBody {
			return fmt.Errorf("%w: it has more than %d bytes", handoff.ErrBadCall, wire.MostBody)
		}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w: %w", handoff.ErrBadCall, err)
	}
	return nil
}

// transfer counts a transfer, if at most that many are then under way.
func (s *Server) transfer(most int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.transfers >= most {
		return fmt.Errorf("%w: %d transfers are under way through this server", handoff.ErrUnavailable, s.transfers)
	}
	s.transfers++
	return nil
}

func (s *Server) transferred() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transfers--
}

// open answers a call that opens a session. age is the age of its message; if the broker does not report it, the greatest possible age is
// used. The answer is encrypted for the caller.
func (s *Server) open(ctx, answering context.Context, f *frame, before flow.ID, r *reply, age time.Duration) error {
	age = cmp.Or(age, voidOpenAfter)
	ends := time.Now().Add(openWithin - age) // then the caller gives up and asks again
	opening, cancel := context.WithDeadline(ctx, ends.Add(-openReserve))
	defer cancel()
	var out wire.Opened
	var err error
	if f.Kind == wire.Open {
		var session handoff.Session
		if err = s.body(opening, f, r.key, &session); err == nil {
			out, err = s.wire.Open(opening, session)
		}
	} else {
		var in wire.Asked
		if err = s.body(opening, f, r.key, &in); err == nil {
			out, err = s.wire.Resume(opening, before, &in)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("%w: the session could not be opened in time: %w", handoff.ErrUnavailable, err)
	}
	if err != nil {
		return r.fail(answering, err)
	}
	if !time.Now().Before(ends) {
		return s.close(answering, out.Session)
	}
	plain, err := wire.Encode(out)
	if err != nil {
		return r.fail(answering, err)
	}
	own := newKey()
	c, err := sealer(own, f.Key, f.ID)
	if err != nil {
		return r.fail(answering, fmt.Errorf("%w: %w", handoff.ErrBadCall, err))
	}
	err = r.send(answering, head{Key: own.PublicKey().Bytes()}, sealOnce(c, plain))
	switch {
	case errors.Is(err, ErrNoReplyQueue): // the caller is gone
		return s.close(answering, out.Session)
	case err != nil: // The caller may have got it nevertheless: attempts of an open session are not given to another.
		s.log.Warn("a session was opened but its worker did not get the answer: it expires", "session", out.Session, "err", err)
	}
	return nil
}

// close closes a session that no worker knows. Its inherited attempts are handed back and begin again.
func (s *Server) close(ctx context.Context, session string) error {
	id, err := flow.ParseID(flow.SessionPrefix, session)
	if err == nil {
		_, err = s.wire.Do(ctx, wire.Close, id, &wire.Asked{})
	}
	if err != nil {
		s.log.Warn("a session was opened that no worker knows and could not be closed: it expires", "session", session, "err", err)
	}
	return nil
}

// record commits a report or log chunks. The message is deleted only after the commit and the answer; if this process dies in between,
// another server gets the message and finds it recorded. While the store is unavailable, the message is not given back, because a message
// that is delivered too often is dead-lettered as unreadable.
func (s *Server) record(ctx context.Context, l Message) error {
	f, session, key, err := s.read(ctx, l)
	if err != nil {
		return err
	}
	if f.Kind != wire.Report && f.Kind != wire.Log {
		return &Unreadable{fmt.Sprintf("it is a call %.40q, in a line for reports and logs", f.Kind)}
	}
	r := &reply{s: s, call: f, key: key}
	answering, stop := outlast(ctx, lastWords)
	defer stop()
	var in wire.Asked
	if err := json.Unmarshal(f.body, &in); err != nil {
		_ = r.fail(answering, fmt.Errorf("%w: %w", handoff.ErrBadCall, err)) // a worker that gets no answer sends the call again
		return &Unreadable{err.Error()}
	}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		out, err := s.wire.Do(ctx, f.Kind, session, &in)
		switch {
		case err == nil:
			_ = r.give(answering, out) // a worker that gets no answer sends the call again
			failpoint.Hit(failpoint.BeforeSettle)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !passing(err):
			if !errors.Is(err, handoff.ErrSessionLost) {
				s.log.Warn("a worker's report or log is refused, and dropped", "call", f.Kind, "session", f.Session, "err", err)
			}
			return r.fail(answering, err)
		}
		Pause(ctx, pause+spread(pause/4, f))
	}
}

// spread is a part of most that depends on the frame. A commit that fails fails every message in it; with the same pause for
// all, they would be tried again in the same instant. It is not random, so that a simulated run can be repeated.
func spread(most time.Duration, f *frame) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(f.Session))
	_, _ = h.Write(f.body)
	return time.Duration(float64(h.Sum64()>>11) / (1 << 53) * float64(most))
}

// DrainBroker waits until the reports that were in the broker at the call have been taken out.
func (s *Server) DrainBroker(ctx context.Context) error {
	began := time.Now()
	for {
		lines, err := s.transport.Backlog(ctx)
		if err != nil {
			return fmt.Errorf("look for reports in the broker: %w", err)
		}
		if tells := lines[Tells]; tells.Messages == 0 || tells.Oldest < time.Since(began) {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
