package wire

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

const hold = 20 * time.Second

func serving(h handoff.Handoff) *Server {
	return NewServer(h, []byte("secret"), Holds{Take: hold, Input: hold, Orders: hold})
}

// Nothing of workers that die silently is kept, especially not the work kept for them.
func TestSeatsOfTheDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serving(&late{})
		dead, alive := flow.ID{1}, flow.ID{2}
		s.poller(dead, 0).kept = []handoff.Assignment{{Attempt: 1}}
		poller := s.poller(alive, 0)
		for range 10 {
			<-time.After(hold)
			if s.poller(alive, 0) != poller {
				t.Fatal("a worker that asks again and again has lost its poller")
			}
		}
		s.poller(flow.ID{3}, 0)
		if len(s.pollers) != 2 || s.pollers[pollerKey{dead, 0}] != nil {
			t.Errorf("%d pollers, that of the dead is %v", len(s.pollers), s.pollers[pollerKey{dead, 0}])
		}
	})
}

// late is a hand-off in which work comes after a wait, all at once.
type late struct {
	handoff.Handoff
	after time.Duration
	mu    sync.Mutex
	work  []handoff.Assignment
}

func (l *late) Take(ctx context.Context, _ flow.ID, _ int) ([]handoff.Assignment, error) {
	select {
	case <-time.After(l.after):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	work := l.work
	l.work = nil
	return work, nil
}

// The age of claimed work that waits for the next call counts from its claim, not from the beginning of its poll, which may last longer
// than half a lease.
func TestWorkClaimedLateInAPoll(t *testing.T) {
	t.Parallel()
	const each = 9 << 20 // two do not fit into one answer
	payload := json.RawMessage(`"` + strings.Repeat("x", each) + `"`)
	for _, tc := range []struct {
		name         string
		poll, pauses time.Duration // before the claim, and between two calls of the worker
		want         int
	}{
		{"at once", 0, 0, 3},
		{"after 16 s", 16 * time.Second, 0, 3},
		{"after 16 s, taken slowly", 16 * time.Second, handoff.Lease/4 - 1, 3},
		{"too old", 0, handoff.Lease / 2, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := &late{after: tc.poll}
				for i := range 3 {
					from.work = append(from.work, handoff.Assignment{Execution: flow.ID{1, byte(i)}, Attempt: 1, Payload: payload})
				}
				s := serving(from)
				got := map[flow.ID]bool{}
				for range 3 {
					for _, a := range takeOnce(t, t.Context(), s) {
						got[a.Execution] = true
					}
					<-time.After(tc.pauses)
				}
				if len(got) != tc.want {
					t.Errorf("the worker got %d of the 3 executions claimed for it, not %d", len(got), tc.want)
				}
			})
		})
	}
}

// abandoned is a hand-off that claims when its caller has hung up.
type abandoned struct {
	late
	calls int
}

func (a *abandoned) Take(ctx context.Context, _ flow.ID, _ int) ([]handoff.Assignment, error) {
	a.calls++
	<-ctx.Done()
	work := a.work
	a.work = nil
	return work, ctx.Err()
}

// Work of a call that was given up waits for the session's next call, for half a lease after its claim and no longer: the engine may have
// taken it back by then.
func TestAbandonedWork(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		pause time.Duration
		want  int
	}{{"in time", handoff.Lease/2 - 1, 1}, {"too late", handoff.Lease / 2, 0}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := &abandoned{late: late{work: []handoff.Assignment{{Execution: flow.ID{1}, Attempt: 1}}}}
				s := serving(from)
				ctx, hangUp := context.WithCancel(t.Context())
				time.AfterFunc(hold-1, hangUp)
				_ = takeOnce(t, ctx, s) // its answer has no reader
				<-time.After(tc.pause)
				if got := takeOnce(t, t.Context(), s); len(got) != tc.want || from.calls != 2-tc.want {
					t.Errorf("the next call got %d after %d calls of the hand-off", len(got), from.calls)
				}
			})
		})
	}
}

// takeOnce makes one call of Take; a call that was given up has no answer.
func takeOnce(t *testing.T, ctx context.Context, s *Server) (work []handoff.Assignment) {
	t.Helper()
	err := s.Take(ctx, flow.ID{7}, &Asked{N: 10}, func(_ context.Context, a Answer) error {
		work = a.Work
		return ctx.Err()
	})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		t.Fatalf("take: %v", err)
	}
	return work
}

// The parallel calls of one session have separate pollers: the next call of one does not end another.
func TestSeatsOfOneSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := &late{after: time.Second}
		s := serving(from)
		over := make(chan time.Duration, 3)
		began := time.Now()
		ask := func(poller int) {
			_ = s.Take(t.Context(), flow.ID{7}, &Asked{N: 1, Poller: poller}, func(context.Context, Answer) error { return nil })
			over <- time.Since(began)
		}
		go ask(0)
		go ask(1)
		synctest.Wait()
		go ask(1)
		if first := <-over; first != 0 {
			t.Errorf("the call before on the same poller ended after %s, not at once", first)
		}
		for range 2 {
			if d := <-over; d < time.Second {
				t.Errorf("a call ended after %s, and nothing had come", d)
			}
		}
		if err := s.Take(t.Context(), flow.ID{7}, &Asked{N: 1, Poller: mostPollers}, nil); !errors.Is(err, handoff.ErrBadCall) {
			t.Errorf("a poller too many: %v", err)
		}
	})
}

// A call that is still being answered when the next one comes to its poller is ended, and the next one gets the work.
func TestSupersededWhileAnswering(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const hold = 5 * time.Second
		s := NewServer(&late{work: []handoff.Assignment{{Attempt: 1}}}, nil, Holds{Take: hold})
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = s.Take(t.Context(), flow.ID{7}, &Asked{N: 1}, func(latest context.Context, _ Answer) error {
				<-latest.Done() // like a transfer whose receiver is gone
				return latest.Err()
			})
		}()
		synctest.Wait()
		time.Sleep(2 * hold) // an answer may take longer than a call waits for work
		select {
		case <-over:
			t.Error("the answer was broken off while its caller waited")
		default:
		}
		if work := takeOnce(t, t.Context(), s); len(work) != 1 {
			t.Errorf("the next call got %d executions", len(work))
		}
		<-over
	})
}

// Log chunks that no store accepts are refused, so that they are not sent again and again.
func TestLogRefused(t *testing.T) {
	t.Parallel()
	good := flow.LogChunk{Execution: flow.ID{1}, Attempt: 1, Seq: 1, Stream: "stdout", Data: []byte("x"), Size: 1}
	for name, spoil := range map[string]func(*flow.LogChunk){
		"no stream":                   func(c *flow.LogChunk) { c.Stream = "" },
		"a NUL in the stream":         func(c *flow.LogChunk) { c.Stream = "a\x00" },
		"a stream that is not a text": func(c *flow.LogChunk) { c.Stream = "\xff" },
		"a long stream":               func(c *flow.LogChunk) { c.Stream = strings.Repeat("x", 65) },
		"number 0":                    func(c *flow.LogChunk) { c.Seq = 0 },
		"a negative offset":           func(c *flow.LogChunk) { c.Offset = -1 },
		"attempt 0":                   func(c *flow.LogChunk) { c.Attempt = 0 },
		"a huge offset":               func(c *flow.LogChunk) { c.Offset = math.MaxInt64 },
		"a huge chunk":                func(c *flow.LogChunk) { c.Data, c.Size = make([]byte, flow.MostChunk+1), flow.MostChunk+1 },
		"a huge attempt":              func(c *flow.LogChunk) { c.Attempt = 1 << 40 },
	} {
		bad := good
		spoil(&bad)
		if _, err := serving(nil).Do(t.Context(), Log, flow.ID{7}, &Asked{Chunks: []flow.LogChunk{bad}}); !errors.Is(err, handoff.ErrBadCall) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A call that is repeated, or older than a later one of its poller, is not answered, and does not end the later one.
func TestRepeatedTake(t *testing.T) {
	t.Parallel()
	s := serving(&late{work: []handoff.Assignment{{Attempt: 1}}})
	for _, tc := range []struct {
		number int64
		poller int
		want   error
	}{{5, 0, nil}, {5, 0, ErrRepeated}, {4, 0, ErrRepeated}, {4, 1, nil}, {6, 0, nil}, {0, 0, nil}} {
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Take(ctx, flow.ID{7}, &Asked{N: 1, Poller: tc.poller, Number: tc.number}, func(context.Context, Answer) error {
			return nil
		})
		cancel()
		if !errors.Is(err, tc.want) {
			t.Errorf("call %d on poller %d: %v", tc.number, tc.poller, err)
		}
	}
}

// An answer may arrive although the server gives it up, because the next call of its poller comes before the broker has confirmed the
// answer. That call tells whether the answer has arrived: if so it gets other work, and otherwise the same again.
func TestAnswerCameAllTheSame(t *testing.T) {
	t.Parallel()
	first, second := handoff.Assignment{Execution: flow.ID{1}, Attempt: 1}, handoff.Assignment{Execution: flow.ID{2}, Attempt: 1}
	for answered, want := range map[int64]handoff.Assignment{1: second, 0: first} {
		from := &late{work: []handoff.Assignment{first}}
		s := serving(from)
		got := func(number int64, verdict error) (work []handoff.Assignment) {
			if err := s.Take(t.Context(), flow.ID{7}, &Asked{N: 1, Number: number, Answered: answered}, func(_ context.Context, a Answer) error {
				work = a.Work
				return verdict
			}); err != nil {
				t.Errorf("call %d: %v", number, err)
			}
			return work
		}
		if work := got(1, context.Canceled); len(work) != 1 || work[0].Execution != first.Execution {
			t.Fatalf("the first call got %+v", work)
		}
		from.work = []handoff.Assignment{second}
		if work := got(2, nil); len(work) != 1 || work[0].Execution != want.Execution {
			t.Errorf("where call %d was answered the next one got %+v", answered, work)
		}
	}
}
