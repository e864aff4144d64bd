package s3

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// silent never answers a request, or answers with a body that never comes.
type silent struct{ answers bool }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.answers {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{Body: silence{r.Context()}, Header: http.Header{}}, nil
}

type silence struct{ ctx context.Context }

func (s silence) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func (silence) Close() error { return nil }

// Every wait ends at its own limit, and not because the caller's context ended.
func TestPatience(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, query, body string
		want                time.Duration
	}{
		{http.MethodGet, "", "", headerTimeout},
		{http.MethodPut, "partNumber=1", "content", bodyTimeout},
		{http.MethodPost, "uploadId=1", "parts", assembleTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			r, err := http.NewRequestWithContext(t.Context(), c.method, "http://h/b?"+c.query, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			p := &patience{RoundTripper: silent{}}
			if _, err := p.RoundTrip(r); !errors.Is(err, errSilent) || time.Since(begun) != c.want {
				t.Errorf("%s ?%s ended after %s with %v, want %s", c.method, c.query, time.Since(begun), err, c.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://h/b", nil)
		if err != nil {
			t.Fatal(err)
		}
		p := &patience{RoundTripper: silent{answers: true}}
		resp, err := p.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // the reader is slow, which is not a silence of the service
		begun := time.Now()
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, errSilent) || time.Since(begun) != headerTimeout {
			t.Errorf("a silent body ended after %s with %v", time.Since(begun), err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	})
}

// slowly reads a body in pieces, with pauses in between, and does not answer.
type slowly struct {
	pause time.Duration
	taken *int64
}

func (s slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	for piece := make([]byte, 1<<10); ; {
		n, err := r.Body.Read(piece)
		*s.taken += int64(n)
		if err != nil {
			break
		}
		select {
		case <-time.After(s.pause):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A slowly read body is not ended while it is read, but only by a silence of the service. The end of one request does not end another.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	for pause, whole := range map[time.Duration]bool{bodyTimeout - time.Second: true, bodyTimeout + time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			const size = 20 << 10
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://h/b?partNumber=1", strings.NewReader(strings.Repeat("x", size)))
			if err != nil {
				t.Fatal(err)
			}
			var taken int64
			begun := time.Now()
			p := &patience{RoundTripper: slowly{pause, &taken}}
			if _, err := p.RoundTrip(r); !errors.Is(err, errSilent) {
				t.Error(err)
			}
			if took := time.Since(begun); whole && (taken != size || took != 19*pause+bodyTimeout) || !whole && (taken == size || took != bodyTimeout) {
				t.Errorf("with pauses of %s %d bytes were taken, and it ended after %s", pause, taken, took)
			}
		})
	}
}
