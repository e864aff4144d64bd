package remote

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// Handler serves workers elsewhere over h; mount it at Prefix, behind whatever checks the caller's token. It is safe for
// concurrent use. key makes the secrets that sessions are told, so that nobody else can speak for them: servers with the
// same key serve each other's sessions. An empty key is a random one: then sessions end with the Handler.
func Handler(h handoff.Handoff, key []byte) http.Handler {
	if len(key) == 0 {
		key = make([]byte, 32)
		rand.Read(key) // never fails on the systems that Go supports
	}
	s := &server{handoff: h, key: key, seats: map[flow.ID]*seat{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Prefix+"open", s.open)
	mux.HandleFunc("POST "+Prefix+"resume", s.resume)
	mux.HandleFunc("POST "+Prefix+"take", s.take)
	mux.HandleFunc("POST "+Prefix+"report", s.call(s.report))
	mux.HandleFunc("POST "+Prefix+"decline", s.call(s.decline))
	mux.HandleFunc("POST "+Prefix+"log", s.call(s.log))
	mux.HandleFunc("POST "+Prefix+"input", s.call(s.input))
	mux.HandleFunc("POST "+Prefix+"renew", s.call(s.renew))
	mux.HandleFunc("POST "+Prefix+"orders", s.call(s.orders))
	mux.HandleFunc("POST "+Prefix+"close", s.call(s.close))
	mux.HandleFunc("PUT "+blobPath, s.putBlob)
	mux.HandleFunc("GET "+blobPath, s.getBlob)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(versionHeader, Protocol)
		waits(w) // whatever the connection's call before has left
		if v := r.Header.Get(versionHeader); v != Protocol {
			refuse(w, http.StatusUpgradeRequired, fmt.Sprintf("this server speaks worker protocol %s and the worker speaks %q: run the same version of Pawl on both sides", Protocol, v))
			return
		}
		if r.URL.Path != blobPath {
			r.Body = http.MaxBytesReader(w, r.Body, mostBody)
		}
		mux.ServeHTTP(w, r)
	})
}

type server struct {
	handoff handoff.Handoff
	key     []byte

	mu    sync.Mutex
	seats map[flow.ID]*seat
}

// secret is what only the opener of a session was told.
func (s *server) secret(session flow.ID) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(session[:])
	return hex.EncodeToString(mac.Sum(nil))
}

func (s *server) open(w http.ResponseWriter, r *http.Request) {
	var session handoff.Session
	if !read(w, r, &session) {
		return
	}
	if err := checked(session); err != nil {
		fail(w, err)
		return
	}
	id, err := s.handoff.Open(r.Context(), session)
	if err != nil {
		fail(w, err)
		return
	}
	_ = write(w, http.StatusOK, opened{Session: id.Text(flow.SessionPrefix), Secret: s.secret(id)}) // a session that nobody hears of expires
}

// Bounds of a session: lists of workers show the names that it gives.
const (
	mostNames = 1000 // queues, and kinds
	mostName  = 512  // bytes of one, and of the session's own
)

func checked(s handoff.Session) error {
	if s.Slots < 1 || len(s.Queues) == 0 {
		return fmt.Errorf("%w: a session with %d slots for queues %.200q: it needs at least one of each", errAsked, s.Slots, s.Queues)
	}
	if len(s.Queues) > mostNames || len(s.Kinds) > mostNames {
		return fmt.Errorf("%w: a session with %d queues and %d kinds: it may have %d of each", errAsked, len(s.Queues), len(s.Kinds), mostNames)
	}
	for _, name := range slices.Concat([]string{s.Name}, s.Queues, s.Kinds) {
		if len(name) > mostName || strings.ContainsRune(name, 0) {
			return fmt.Errorf("%w: a session that says %.80q, with %d bytes: a name has at most %d, and no NUL", errAsked, name, len(name), mostName)
		}
	}
	if err := flow.CheckKinds(s.Kinds); err != nil {
		return fmt.Errorf("%w: %w", errAsked, err)
	}
	return nil
}

// resume opens a session in the place of another, whose secret the caller must know.
func (s *server) resume(w http.ResponseWriter, r *http.Request) {
	var in asked
	before, ok := s.begin(w, r, &in)
	if !ok {
		return
	}
	err := fmt.Errorf("%w: it resumes a session and does not say as which", errAsked)
	if in.Next != nil {
		err = checked(*in.Next)
	}
	if err != nil {
		fail(w, err)
		return
	}
	s.forget(before)
	id, work, err := s.handoff.Resume(r.Context(), *in.Next, before, in.Keep)
	if err != nil {
		fail(w, err)
		return
	}
	_ = write(w, http.StatusOK, opened{Session: id.Text(flow.SessionPrefix), Secret: s.secret(id), Work: work}) // a session that nobody hears of expires
}

// call is a call of a session that answers with what do returns.
func (s *server) call(do func(ctx context.Context, session flow.ID, in *asked) (answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in asked
		id, ok := s.begin(w, r, &in)
		if !ok {
			return
		}
		out, err := do(r.Context(), id, &in)
		if err != nil {
			fail(w, err)
			return
		}
		_ = write(w, http.StatusOK, out) // a caller that is gone asks again
	}
}

// begin reads and checks what all calls of a session have in common.
func (s *server) begin(w http.ResponseWriter, r *http.Request, in *asked) (flow.ID, bool) {
	if !read(w, r, in) {
		return flow.ID{}, false
	}
	id, ok := s.session(w, r, in.Session)
	if !ok {
		return flow.ID{}, false
	}
	waits(w) // its body may have taken a while
	return id, true
}

// waits lets the answer to a call wait: a server's own write deadline is meant for answers that do not. Not every writer has
// one to set.
func waits(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(pollFor + answerWithin))
}

// session is the session of that name, if the caller is the one that opened it.
func (s *server) session(w http.ResponseWriter, r *http.Request, name string) (flow.ID, bool) {
	id, err := flow.ParseID(flow.SessionPrefix, name)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return flow.ID{}, false
	}
	if !hmac.Equal([]byte(r.Header.Get(secretHeader)), []byte(s.secret(id))) {
		fail(w, handoff.ErrSessionLost)
		return flow.ID{}, false
	}
	return id, true
}

func (s *server) report(ctx context.Context, session flow.ID, in *asked) (answer, error) {
	receipts, err := s.handoff.Report(ctx, session, in.Reports)
	return answer{Receipts: receipts}, err
}

func (s *server) decline(ctx context.Context, session flow.ID, in *asked) (answer, error) {
	if len(in.Attempts) > mostTaken {
		return answer{}, fmt.Errorf("%w: decline %d attempts: a session gets at most %d at once", errAsked, len(in.Attempts), mostTaken)
	}
	return answer{}, s.handoff.Decline(ctx, session, in.Attempts)
}

func (s *server) log(ctx context.Context, session flow.ID, in *asked) (answer, error) {
	for i := range in.Chunks {
		c := &in.Chunks[i]
		if c.Blob != "" { // it might be another execution's, and is read as this one's
			return answer{}, fmt.Errorf("%w: chunk %d of %s names blob %.80s: hand in the bytes themselves", errAsked, c.Seq, c.Execution, c.Blob)
		}
		if c.Size != int64(len(c.Data)) {
			return answer{}, fmt.Errorf("%w: chunk %d of %s says that it has %d bytes and has %d", errAsked, c.Seq, c.Execution, c.Size, len(c.Data))
		}
	}
	return answer{}, s.handoff.Log(ctx, session, in.Chunks)
}

func (s *server) input(ctx context.Context, session flow.ID, asks *asked) (answer, error) {
	if asks.Input == nil || asks.Input.From < 0 {
		return answer{}, fmt.Errorf("%w: it asks for input and does not say of which attempt, from which offset on", errAsked)
	}
	ctx, cancel := context.WithTimeout(ctx, pollFor)
	defer cancel()
	in, err := s.handoff.Input(ctx, session, *asks.Input)
	if err != nil || in.Empty() {
		return answer{}, nothingYet(ctx, err)
	}
	return answer{Input: &in}, nil
}

func (s *server) renew(ctx context.Context, session flow.ID, _ *asked) (answer, error) {
	r, err := s.handoff.Renew(ctx, session)
	return answer{Orders: r.Orders, Lease: r.Lease}, err
}

func (s *server) orders(ctx context.Context, session flow.ID, _ *asked) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, pollFor)
	defer cancel()
	orders, err := s.handoff.Orders(ctx, session)
	return answer{Orders: orders}, nothingYet(ctx, err)
}

func (s *server) close(ctx context.Context, session flow.ID, _ *asked) (answer, error) {
	s.forget(session)
	return answer{}, s.handoff.Close(ctx, session)
}

// nothingYet drops the error of a poll that has waited long enough.
func nothingYet(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// errAsked means that the call itself is at fault.
var errAsked = errors.New("bad call")

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); media != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "send application/json")
		return false
	}
	err := json.NewDecoder(r.Body).Decode(into)
	if err == nil {
		return true
	}
	status := http.StatusBadRequest
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		status = http.StatusRequestEntityTooLarge
	}
	refuse(w, status, fmt.Sprintf("read the call: %v", err))
	return false
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, handoff.ErrSessionLost):
		status = http.StatusGone
	case errors.Is(err, handoff.ErrNotHeld):
		status = http.StatusConflict
	case errors.Is(err, handoff.ErrNoBlob):
		status = http.StatusNotFound
	case errors.Is(err, handoff.ErrBlobRefused):
		status = http.StatusUnprocessableEntity
	case errors.Is(err, errAsked):
		status = http.StatusBadRequest
	case errors.Is(err, handoff.ErrUnavailable), errors.Is(err, context.Canceled):
		status = http.StatusServiceUnavailable
	}
	refuse(w, status, err.Error())
}

func refuse(w http.ResponseWriter, status int, say string) {
	_ = write(w, status, answer{Error: say}) // a caller that is gone needs no reason
}

func write(w http.ResponseWriter, status int, body any) error {
	b, err := encode(body)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"the answer has no JSON form"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	failpoint.Hit(failpoint.BeforeAnswer)
	_, err = w.Write(b)
	failpoint.Hit(failpoint.AfterAnswer)
	return err
}
