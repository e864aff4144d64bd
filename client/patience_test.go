package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/api"
)

// network is a server that may be unreachable: its clients reach it through pipes.
type network struct {
	away     atomic.Bool
	listener pipes
}

type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// client makes a client of handler h over the network. The function that it returns stops the server.
func (n *network) client(t *testing.T, h http.Handler, options ...Option) (*Client, func()) {
	t.Helper()
	n.listener = make(pipes)
	s := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(n.listener) }()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if n.away.Load() {
			return nil, errors.New("no route to host")
		}
		here, there := net.Pipe()
		n.listener <- there
		return here, nil
	}}
	c, err := New("http://pawl.example", append([]Option{WithHTTPClient(&http.Client{Transport: transport})}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c, func() {
		close(n.listener)
		_ = s.Close()
		<-done
	}
}

// The client waits for a server that is unreachable for half a minute, such as one that restarts, but not for an hour; the end of the
// caller's context ends the wait.
func TestPatience(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id":"ex_1"}`) })
	for _, tc := range []struct {
		name          string
		away, context time.Duration
		call          func(context.Context, *Client) error
		least, most   time.Duration
		fails         string
	}{
		{"a submission", 30 * time.Second, time.Hour, submitNoop, 30 * time.Second, 33 * time.Second, ""},
		{"a query", 30 * time.Second, time.Hour, getOne, 30 * time.Second, 33 * time.Second, ""},
		{"away for good", time.Hour, time.Hour, submitNoop, 55 * time.Second, time.Minute, "no route to host"},
		{"a deadline", time.Hour, 5 * time.Second, submitNoop, 5 * time.Second, 5 * time.Second, "deadline"},
		{"not safe to repeat", time.Hour, time.Hour, func(ctx context.Context, c *Client) error { c.keys = false; return submitNoop(ctx, c) }, 0, 0, "no route to host"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n network
				var told, last time.Time
				c, stop := n.client(t, h, WithOnRetry(func(_ error, since, until time.Time) { told, last = since, until }))
				defer stop()
				n.away.Store(true)
				back := time.AfterFunc(tc.away, func() { n.away.Store(false) })
				defer back.Stop()
				ctx, cancel := context.WithTimeout(t.Context(), tc.context)
				defer cancel()
				begun := time.Now()
				err := tc.call(ctx, c)
				if took := time.Since(begun); took < tc.least || took > tc.most {
					t.Errorf("took %s, want %s to %s", took, tc.least, tc.most)
				}
				if repeats := tc.most > 0; repeats == told.IsZero() || repeats && (!told.Equal(begun) || !last.Equal(begun.Add(DefaultPatience))) {
					t.Errorf("told that it fails since %s and is tried until %s, want %s and a minute later", told, last, begun)
				}
				if (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%v, want %q", err, tc.fails)
				}
			})
		})
	}
}

func submitNoop(ctx context.Context, c *Client) error {
	_, err := c.Submit(ctx, api.Submission{Action: "noop"})
	return err
}

func getOne(ctx context.Context, c *Client) error {
	_, err := c.Get(ctx, "ex_1")
	return err
}

// A stream is reopened after half a minute, even if it had been quiet; if the server is unreachable for longer, the stream ends with an
// error.
func TestPatienceOfStreams(t *testing.T) {
	for _, away := range []time.Duration{30 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var n network
			var opened atomic.Int32
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				after := r.Header.Get("Last-Event-ID")
				if opened.Add(1); after == "" {
					_, _ = io.WriteString(w, "event: outcome\nid: 7\ndata: {\"cursor\":\"7\"}\n\n")
					for range 8 { // two minutes
						w.(http.Flusher).Flush()
						time.Sleep(15 * time.Second)
						_, _ = io.WriteString(w, ": alive\n\n")
					}
					n.away.Store(true)
					time.AfterFunc(away, func() { n.away.Store(false) })
					return
				}
				_, _ = fmt.Fprintf(w, "event: outcome\nid: 8\ndata: {\"cursor\":\"8 after %s\"}\n\nevent: end\ndata: {}\n\n", after)
			})
			var told bool
			c, stop := n.client(t, h, WithOnRetry(func(_ error, since, until time.Time) {
				told = told || time.Since(since) > 2*time.Second && time.Since(since) < time.Minute && until.After(time.Now())
			}))
			defer stop()
			var seen []string
			for o, err := range c.FollowOutcomes(t.Context(), OutcomeQuery{Name: "run", Value: "x"}) {
				if err != nil {
					seen = append(seen, "error")
					continue
				}
				seen = append(seen, o.Cursor)
			}
			want := "[7 8 after 7]"
			if away > DefaultPatience {
				want = "[7 error]"
			}
			if fmt.Sprint(seen) != want {
				t.Errorf("away for %s: %v, want %s", away, seen, want)
			}
			if !told {
				t.Errorf("away for %s: not told that it is tried again", away)
			}
		})
	}
}

type order struct {
	Customer string `json:"customer"`
}

type receipt struct {
	Total int `json:"total"`
}

func TestTypedSubmissions(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			var s api.Submission
			var in order
			if err := errors.Join(json.NewDecoder(r.Body).Decode(&s), json.Unmarshal(s.Input, &in)); err != nil || s.Action != "charge" {
				refuse(w, 422, api.ProblemInvalid)
				return
			}
			_, _ = fmt.Fprintf(w, `{"id":"ex_%s","status":"requested"}`, in.Customer)
			return
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "ex_ada"):
			_, _ = io.WriteString(w, `{"id":"ex_ada","status":"completed","output":{"total":3}}`)
		case strings.HasSuffix(r.URL.Path, "ex_bob"):
			_, _ = io.WriteString(w, `{"id":"ex_bob","status":"failed","output":{"total":1},"error":{"code":"declined","message":"no money"}}`)
		case strings.HasSuffix(r.URL.Path, "ex_cyd"):
			_, _ = io.WriteString(w, `{"id":"ex_cyd","status":"completed","output":[1]}`)
		}
	})
	both(t, h, func(t *testing.T, c *Client) {
		charge := api.Submission{Action: "charge"}
		if got, err := Run[order, receipt](t.Context(), c, charge, order{"ada"}); err != nil || got.Total != 3 {
			t.Errorf("%+v, %v", got, err)
		}
		var why *api.Error
		if got, err := Run[order, receipt](t.Context(), c, charge, order{"bob"}); !errors.As(err, &why) || why.Code != "declined" || got.Total != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := Run[order, receipt](t.Context(), c, charge, order{"cyd"}); err == nil || !strings.Contains(err.Error(), "decode the output of ex_cyd") {
			t.Errorf("%v", err)
		}
		if _, err := Run[chan int, receipt](t.Context(), c, charge, nil); err == nil || !strings.Contains(err.Error(), "encode the input of charge") {
			t.Errorf("%v", err)
		}
		if _, err := Run[int, receipt](t.Context(), c, charge, 1); err == nil || !strings.Contains(err.Error(), "it is missing") {
			t.Errorf("%v", err)
		}
		x, err := Submit(t.Context(), c, charge, order{"ada"})
		if err != nil || x.ID != "ex_ada" {
			t.Errorf("%+v, %v", x, err)
		}
		if _, err := Output[receipt](x); err == nil || !strings.Contains(err.Error(), "no output yet") {
			t.Errorf("%v", err)
		}
	})
}
