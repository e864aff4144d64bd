package engine

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// startled is a store that panics when it is asked for "startling".
type startled struct {
	store.Store
	on atomic.Bool
}

const plantedPanic = "a decision panicked, which is a defect of Pawl: planted"

func (s *startled) about(what string) {
	if s.on.Load() && what == "startling" {
		panic("planted")
	}
}

func (s *startled) Definition(ctx context.Context, name string, version int) (store.Definition, error) {
	s.about(name)
	return s.Store.Definition(ctx, name, version)
}

func (s *startled) SignalsAbout(ctx context.Context, trigger, subject string, after store.SignalPlace, n int) ([]flow.Signal, error) {
	s.about(subject)
	return s.Store.SignalsAbout(ctx, trigger, subject, after, n)
}

func (s *startled) OpenWaits(ctx context.Context, trigger, subject string, after flow.ID, n int) ([]flow.Wait, error) {
	s.about(subject)
	return s.Store.OpenWaits(ctx, trigger, subject, after, n)
}

func (s *startled) BufferedSignals(ctx context.Context, key store.WindowKey, n int) ([]flow.Signal, error) {
	s.about(key.Key)
	return s.Store.BufferedSignals(ctx, key, n)
}

// A panic about one signal, wait or window in a loop of the engine puts that one aside, and the others continue. It used to end the server,
// and again after each restart.
func TestPanicsInLoops(t *testing.T) {
	t.Parallel()
	s := &startled{}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	defer s.on.Store(false)
	r.define("name: startling\nkind: action\naction: noop\n")
	r.define(paid)
	r.apply("kind: rule\nname: a\non: t\nrun: {action: startling}\n---\nkind: rule\nname: b\non: u\nrun: {action: noop}\n---\n" +
		"kind: rule\nname: w\non: v\nbatch: {key: '${{ signal.subject }}', size: 3, wait: 1h}\nrun: {action: noop, input: '${{ signals.map(s, s.data.n) }}'}\n")
	s.on.Store(true)
	r.e.catalog.Forget()

	ids := r.keepNew(flow.Signal{Trigger: "t", Data: json.RawMessage(`{}`)}, flow.Signal{Trigger: "u", Data: json.RawMessage(`{}`)})
	r.within(patience, "the neighbour was not matched", func() bool { return r.signal(ids[1]).State == flow.SignalMatched })
	r.wantAside(store.AsideMatching, ids[0], plantedPanic)

	bad, good := r.waiting(`{"signal":"paid","subject":"startling"}`), r.waiting(`{"signal":"paid","subject":"a"}`)
	r.wantAside(store.AsideScan, bad, plantedPanic)
	said := r.say("paid", "startling", `{"n":1}`)
	r.wantAside(store.AsideCorrelation, said, plantedPanic)
	r.say("paid", "a", `{"n":2}`)
	if n := r.took(good); n != 2 {
		t.Errorf("took %d", n)
	}

	held := map[string]flow.ID{}
	for _, subject := range []string{"startling", "a"} {
		held[subject] = r.emit(Emission{Trigger: "v", Subject: subject, Data: json.RawMessage(`{"n":1}`)}).Signal
	}
	aside := r.e.Stats().PutAside
	r.clock.move(0, 61*time.Minute, 0)
	loop.Wake(r.e.rules.windowOpened)
	r.within(patience, "the neighbour was not closed", func() bool { return r.enforced(held["a"]) == "w ran" })
	r.within(patience, "the window was not put aside", func() bool { return r.e.Stats().PutAside > aside })
	s.on.Store(false)
	r.clock.move(0, 2*windowsAside, 0)
	loop.Wake(r.e.rules.windowOpened)
	r.within(patience, "the window was not closed", func() bool { return strings.HasSuffix(r.enforced(held["startling"]), " ran") })
	r.asideOver(store.AsideMatching, ids[0])
	r.e.rules.wakeMatching()
	r.within(patience, "what was put aside was not matched", func() bool { return r.signal(ids[0]).State == flow.SignalMatched })
	if _, err := r.e.Cancel(r.ctx, bad, ""); err != nil {
		t.Fatal(err)
	}
}
