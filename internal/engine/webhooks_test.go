package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/pawl-run/pawl/internal/store"
)

// looking is a store that counts the reads of definitions.
type looking struct {
	store.Store
	looks atomic.Int64
	lists atomic.Int64 // of all definitions
}

func (s *looking) Definition(ctx context.Context, name string, version int) (store.Definition, error) {
	s.looks.Add(1)
	return s.Store.Definition(ctx, name, version)
}

func (s *looking) Definitions(ctx context.Context, after string, n int) ([]store.Definition, error) {
	s.looks.Add(1)
	s.lists.Add(1)
	return s.Store.Definitions(ctx, after, n)
}

// Requests to unknown webhooks do not each cost a read of the store, and are not cached.
func TestUnknownWebhooks(t *testing.T) {
	t.Parallel()
	s := &looking{}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	r.define("kind: webhook\nname: known\nverify: {scheme: none}\ntrigger: t\n")
	if _, err := r.e.Webhook(r.ctx, "known"); err != nil {
		t.Fatal(err)
	}
	before := s.looks.Load()
	for n := range 5000 {
		if _, err := r.e.Webhook(r.ctx, fmt.Sprint("no", n)); !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if n := s.looks.Load() - before; n > 50 { // one in each latestFor
		t.Errorf("%d looks for 5000 names", n)
	}
	r.e.webhooks.mu.Lock()
	kept := len(r.e.webhooks.all)
	r.e.webhooks.mu.Unlock()
	if kept != 1 {
		t.Errorf("%d webhooks are kept", kept)
	}
	if _, err := r.e.Webhook(r.ctx, "late"); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	r.define("kind: webhook\nname: late\nverify: {scheme: none}\ntrigger: t\n")
	if w, err := r.e.Webhook(r.ctx, "late"); err != nil || w.Version != 1 {
		t.Errorf("one that was just defined: %+v, %v", w, err)
	}
}
