package engine

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

// halted is a store whose transactions wait while a channel is set.
type halted struct {
	store.Store
	until atomic.Pointer[chan struct{}]
}

func (s *halted) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	if c := s.until.Load(); c != nil {
		<-*c
	}
	return s.Store.Update(ctx, decide)
}

// A stalled committer makes the replica not ready, even if the store answers and takes writes.
func TestReadyWhileNothingIsCommitted(t *testing.T) {
	t.Parallel()
	h := &halted{}
	r := newRig(t, func(o *Options) {
		h.Store, o.Lease = o.Store, leastLease
		o.Store = h
	})
	r.submit(Submission{Action: "noop"})
	if err := r.e.Ready(r.ctx); err != nil {
		t.Fatalf("at first: %v", err)
	}
	c := make(chan struct{})
	h.until.Store(&c)
	submitted := make(chan error, 1)
	go func() {
		_, err := r.e.Submit(r.ctx, []Submission{{Action: "noop"}})
		submitted <- err
	}()
	r.within(20*time.Second, "it stays ready", func() bool { return r.e.Ready(r.ctx) != nil })
	if err := r.e.Ready(r.ctx); err == nil || !strings.Contains(err.Error(), "no transaction has ended") {
		t.Errorf("while the committer stands: %v", err)
	}
	h.until.Store(nil)
	close(c)
	if err := <-submitted; err != nil {
		t.Fatal(err)
	}
	r.within(20*time.Second, "it stays not ready", func() bool { return r.e.Ready(r.ctx) == nil })
}

// A slow decision is logged with the name of the document whose expressions cost most in it.
func TestSlowDecisionIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := &Engine{opts: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	w := &transaction{costliest: costliest{name: "nightly", work: 12}}
	e.noteSlow(w, nil, slowDecision-1)
	if lines := log.String(); strings.Contains(lines, "nightly") {
		t.Errorf("it logs what was quick: %s", lines)
	}
	e.noteSlow(w, nil, slowDecision)
	e.noteSlow(w, nil, slowDecision-1)
	if longest := e.counters.longest.Load(); longest != int64(slowDecision) {
		t.Errorf("the longest is %d ns", longest)
	}
	if lines := log.String(); !strings.Contains(lines, "document=nightly") {
		t.Errorf("it does not name the document: %s", lines)
	}
}
