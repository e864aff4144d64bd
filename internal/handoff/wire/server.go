package wire

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// Holds are how long calls may wait before they are answered with "nothing yet".
type Holds struct{ Take, Input, Orders time.Duration }

// Server answers the calls of workers in other processes. It is safe for concurrent use.
type Server struct {
	handoff handoff.Handoff
	key     []byte
	holds   Holds

	mu      sync.Mutex
	pollers map[pollerKey]*poller
}

// NewServer serves h. The secrets of sessions are made from key, so that no other process can speak for them: servers with the
// same key serve each other's sessions. An empty key is replaced by a random one: then sessions end with the Server.
func NewServer(h handoff.Handoff, key []byte, holds Holds) *Server {
	if len(key) == 0 {
		key = make([]byte, 32)
		rand.Read(key) // never fails on the systems that Go supports
	}
	return &Server{handoff: h, key: key, holds: holds, pollers: map[pollerKey]*poller{}}
}

// Carrier carries blobs; nil if the hand-off carries none.
func (s *Server) Carrier() handoff.BlobCarrier {
	carrier, _ := s.handoff.(handoff.BlobCarrier)
	return carrier
}

// Secret is the secret that the opener of a session has got.
func (s *Server) Secret(session flow.ID) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(session[:])
	return hex.EncodeToString(mac.Sum(nil))
}

// Lease is how long the engine waits for an attempt to begin.
func (s *Server) Lease() time.Duration {
	if l, ok := s.handoff.(handoff.Leased); ok && l.Lease() > 0 {
		return l.Lease()
	}
	return handoff.Lease
}

// Open answers Open. A session whose answer is lost expires.
func (s *Server) Open(ctx context.Context, session handoff.Session) (Opened, error) {
	if err := checked(session); err != nil {
		return Opened{}, err
	}
	id, err := s.handoff.Open(ctx, session)
	if err != nil {
		return Opened{}, err
	}
	return Opened{Session: id.Text(flow.SessionPrefix), Secret: s.Secret(id)}, nil
}

// Bounds of a session. Its names are shown in lists of workers.
const (
	mostNames = 1000 // queues, and kinds
	mostName  = 512  // bytes of one name, and of the session's own

	mostStream = 64 // bytes of the name of a stream of logs
)

func checked(s handoff.Session) error {
	if s.Slots < 1 || len(s.Queues) == 0 {
		return fmt.Errorf("%w: a session with %d slots for queues %.200q: it needs at least one of each", handoff.ErrBadCall, s.Slots, s.Queues)
	}
	if len(s.Queues) > mostNames || len(s.Kinds) > mostNames {
		return fmt.Errorf("%w: a session with %d queues and %d kinds: it may have %d of each", handoff.ErrBadCall, len(s.Queues), len(s.Kinds), mostNames)
	}
	for _, name := range slices.Concat([]string{s.Name}, s.Queues, s.Kinds) {
		if len(name) > mostName || strings.ContainsRune(name, 0) {
			return fmt.Errorf("%w: a session that says %.80q, with %d bytes: a name has at most %d, and no NUL", handoff.ErrBadCall, name, len(name), mostName)
		}
	}
	if err := flow.CheckKinds(s.Kinds); err != nil {
		return fmt.Errorf("%w: %w", handoff.ErrBadCall, err)
	}
	return nil
}

// Resume opens a session in place of another one, whose secret the caller has proved to know.
func (s *Server) Resume(ctx context.Context, before flow.ID, in *Asked) (Opened, error) {
	err := fmt.Errorf("%w: it resumes a session and does not say as which", handoff.ErrBadCall)
	if in.Next != nil {
		err = checked(*in.Next)
	}
	if err != nil {
		return Opened{}, err
	}
	s.forget(before)
	id, work, err := s.handoff.Resume(ctx, *in.Next, before, in.Keep)
	if err != nil {
		return Opened{}, err
	}
	return Opened{Session: id.Text(flow.SessionPrefix), Secret: s.Secret(id), Work: work}, nil
}

var calls = map[string]func(*Server, context.Context, flow.ID, *Asked) (Answer, error){
	Missed: (*Server).missed, Report: (*Server).report, Decline: (*Server).decline, Log: (*Server).log,
	Input: (*Server).input, Renew: (*Server).renew, Orders: (*Server).orders, Close: (*Server).close,
}

// Calls lists the names of the calls that Do answers.
func Calls() []string {
	return slices.Collect(maps.Keys(calls))
}

// Do answers any call of a session except Open, Resume and Take. The caller has proved to know the session's secret.
func (s *Server) Do(ctx context.Context, call string, session flow.ID, in *Asked) (Answer, error) {
	do := calls[call]
	if do == nil {
		return Answer{}, fmt.Errorf("%w: there is no call %.40q", handoff.ErrBadCall, call)
	}
	return do(s, ctx, session, in)
}

func (s *Server) missed(ctx context.Context, session flow.ID, in *Asked) (Answer, error) {
	work, err := s.handoff.Missed(ctx, session, in.Attempts)
	return Answer{Work: work[:portion(work)]}, err // the rest is returned by the next Missed
}

func (s *Server) report(ctx context.Context, session flow.ID, in *Asked) (Answer, error) {
	receipts, err := s.handoff.Report(ctx, session, in.Reports)
	return Answer{Receipts: receipts}, err
}

func (s *Server) decline(ctx context.Context, session flow.ID, in *Asked) (Answer, error) {
	if len(in.Attempts) > mostTaken {
		return Answer{}, fmt.Errorf("%w: decline %d attempts: a session gets at most %d at once", handoff.ErrBadCall, len(in.Attempts), mostTaken)
	}
	return Answer{}, s.handoff.Decline(ctx, session, in.Attempts)
}

func (s *Server) log(ctx context.Context, session flow.ID, in *Asked) (Answer, error) {
	for i := range in.Chunks {
		c := &in.Chunks[i]
		if c.Blob != "" { // the name might be that of another execution's blob, which would then be read as this one's
			return Answer{}, fmt.Errorf("%w: chunk %d of %s names blob %.80s: send the bytes themselves", handoff.ErrBadCall, c.Seq, c.Execution, c.Blob)
		}
		if c.Size != int64(len(c.Data)) {
			return Answer{}, fmt.Errorf("%w: chunk %d of %s says that it has %d bytes and has %d", handoff.ErrBadCall, c.Seq, c.Execution, c.Size, len(c.Data))
		}
		if c.Attempt < 1 || c.Attempt > math.MaxInt32 || c.Seq < 1 || c.Offset < 0 || c.Offset > flow.MostOffset {
			return Answer{}, fmt.Errorf("%w: chunk %d at offset %d of attempt %d of %s: chunks and attempts count from 1, offsets from 0", handoff.ErrBadCall, c.Seq, c.Offset, c.Attempt, c.Execution)
		}
		if c.Size > flow.MostChunk {
			return Answer{}, fmt.Errorf("%w: chunk %d of %s has %d bytes: send at most %d at once", handoff.ErrBadCall, c.Seq, c.Execution, c.Size, flow.MostChunk)
		}
		if c.Stream == "" || len(c.Stream) > mostStream || strings.ContainsRune(c.Stream, 0) || !utf8.ValidString(c.Stream) {
			return Answer{}, fmt.Errorf("%w: chunk %d of %s is of stream %.80q: the name of a stream is text of up to %d bytes", handoff.ErrBadCall, c.Seq, c.Execution, c.Stream, mostStream)
		}
	}
	return Answer{}, s.handoff.Log(ctx, session, in.Chunks)
}

func (s *Server) input(ctx context.Context, session flow.ID, asks *Asked) (Answer, error) {
	if asks.Input == nil || asks.Input.From < 0 {
		return Answer{}, fmt.Errorf("%w: it asks for input and does not say of which attempt, from which offset on", handoff.ErrBadCall)
	}
	ctx, cancel := context.WithTimeout(ctx, s.holds.Input)
	defer cancel()
	in, err := s.handoff.Input(ctx, session, *asks.Input)
	if err != nil || in.Empty() {
		return Answer{}, nothingYet(ctx, err)
	}
	return Answer{Input: &in}, nil
}

func (s *Server) renew(ctx context.Context, session flow.ID, _ *Asked) (Answer, error) {
	r, err := s.handoff.Renew(ctx, session)
	return Answer{Orders: r.Orders, Lease: r.Lease}, err
}

func (s *Server) orders(ctx context.Context, session flow.ID, _ *Asked) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.holds.Orders)
	defer cancel()
	orders, err := s.handoff.Orders(ctx, session)
	return Answer{Orders: orders}, nothingYet(ctx, err)
}

func (s *Server) close(ctx context.Context, session flow.ID, _ *Asked) (Answer, error) {
	s.forget(session)
	return Answer{}, s.handoff.Close(ctx, session)
}

// nothingYet drops the error of a call that has waited long enough.
func nothingYet(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
