package simulation

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"

	"github.com/pawl-run/pawl/internal/handoff/remote"
)

// transport carries the calls of a remote hand-off to the engine that a call is on its way to. The link decides which messages get lost;
// the fault that is left for HTTP is one side that hangs up while the other works.
type transport struct{ w *world }

// dial is the remote hand-off of one process.
func dial(w *world) *remote.Client {
	c, err := remote.Dial("http://any.of.the.servers", "")
	if err != nil {
		panic(err)
	}
	c.Over(transport{w})
	return c
}

type visitKey struct{}

// towards notes the destination of a call.
func towards(ctx context.Context, to *visit) context.Context {
	return context.WithValue(ctx, visitKey{}, to)
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	to, ok := ctx.Value(visitKey{}).(*visit)
	if !ok {
		return nil, errors.New("a call to nobody")
	}
	serving, hangUp := context.WithCancel(to.alive)
	stop := context.AfterFunc(ctx, hangUp) // a server sees that its caller has left, but not why
	answer, over := httptest.NewRecorder(), make(chan struct{})
	t.w.spawn(func() {
		defer close(over)
		defer hangUp()
		defer stop()
		to.web.ServeHTTP(answer, r.WithContext(serving))
	})
	select {
	case <-over:
		return answer.Result(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
