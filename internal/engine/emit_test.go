package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// emit emits one signal, which must be accepted or known.
func (r *rig) emit(m Emission) Emitted {
	r.Helper()
	v := r.tryEmit(m)
	if v.Err != nil {
		r.Fatalf("emit %s: %v", m.Trigger, v.Err)
	}
	return v
}

func (r *rig) tryEmit(m Emission) Emitted {
	r.Helper()
	all, err := r.e.Emit(r.ctx, []Emission{m})
	if err != nil {
		r.Fatalf("emit: %v", err)
	}
	return all[0]
}

func (r *rig) signal(id flow.ID) flow.Signal {
	r.Helper()
	s, err := r.store.Signal(r.ctx, id)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

func TestEmit(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		m := Emission{Trigger: "alert.fired", Data: json.RawMessage(`{"id": 1, "at": [1.0]}`), Key: "k", Subject: "db1", Source: "webhook:w",
			Headers: map[string]string{"x-event": "push"}, Cause: flow.ID{1}, Rules: []string{"a"}}
		v := r.emit(m)
		s := r.signal(v.Signal)
		if v.Existing || s.Trigger != m.Trigger || s.Key != "k" || s.Subject != "db1" || s.Source != "webhook:w" || string(s.Data) != string(m.Data) ||
			s.Headers["x-event"] != "push" || s.Cause != m.Cause || len(s.Rules) != 1 || s.State != flow.SignalMatched || time.Since(s.At).Abs() > time.Minute {
			r.Errorf("%+v of %+v", s, v)
		}

		again := m
		again.Data, again.Headers = json.RawMessage(`{"at":[1],"id":1}`), nil
		if w := r.emit(again); !w.Existing || w.Signal != v.Signal {
			r.Errorf("the same again: %+v, want %s", w, v.Signal)
		}
		for what, change := range map[string]func(*Emission){
			"other data":    func(m *Emission) { m.Data = json.RawMessage(`{"id":2}`) },
			"other subject": func(m *Emission) { m.Subject = "db2" },
		} {
			other := m
			change(&other)
			if w := r.tryEmit(other); !errors.Is(w.Err, ErrIdempotencyMismatch) {
				r.Errorf("%s under the same key: %+v", what, w)
			}
		}
		again.Trigger = "alert.over"
		if w := r.emit(again); w.Existing {
			r.Errorf("the key of another trigger: %+v", w)
		}

		plain := r.signal(r.emit(Emission{Trigger: "t"}).Signal)
		if string(plain.Data) != "{}" || plain.Source != flow.SourceAPI {
			r.Errorf("without anything: %+v", plain)
		}
		if w := r.emit(Emission{Trigger: "t"}); w.Existing || w.Signal == plain.ID {
			r.Errorf("without a key: %+v", w)
		}
	})
}

// In one call, the same key twice is one signal, and a refused signal does not affect the others.
func TestEmitMany(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		all, err := r.e.Emit(r.ctx, []Emission{{Trigger: "t", Key: "k"}, {Trigger: "t", Key: "k"}, {Trigger: "T"}, {Trigger: "t", Key: "k", Subject: "x"}, {Trigger: "t"}})
		if err != nil {
			r.Fatal(err)
		}
		var refused *fault.Invalid
		if all[0].Err != nil || all[0].Existing || !all[1].Existing || all[1].Signal != all[0].Signal || !errors.As(all[2].Err, &refused) ||
			!errors.Is(all[3].Err, ErrIdempotencyMismatch) || all[4].Err != nil {
			r.Errorf("%+v", all)
		}
		if n := r.e.Stats().Signals[flow.SourceAPI]; n != 2 {
			r.Errorf("%d signals counted, want 2", n)
		}
	})
}

func TestEmitRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	long := strings.Repeat("x", 5000)
	for path, m := range map[string]Emission{
		"trigger":   {},
		"data":      {Trigger: "t", Data: json.RawMessage(`{"a":`)},
		"key":       {Trigger: "t", Key: long},
		"subject":   {Trigger: "t", Subject: "a\x00b"},
		"source":    {Trigger: "t", Source: long},
		"headers.x": {Trigger: "t", Headers: map[string]string{"x": long}},
	} {
		var refused *fault.Invalid
		if v := r.tryEmit(m); !errors.As(v.Err, &refused) || refused.Problems[0].Path != path || refused.Problems[0].Fix == "" {
			t.Errorf("%s: %v", path, v.Err)
		}
	}
	for _, name := range []string{"Alert", ".a", "a b", "a\n", "execution.ended", "schedule.nightly", "inquiry.x", "rule.paused", long} {
		var refused *fault.Invalid
		if v := r.tryEmit(Emission{Trigger: name}); !errors.As(v.Err, &refused) || refused.Problems[0].Path != "trigger" {
			t.Errorf("trigger %.20q: %v", name, v.Err)
		}
	}
	big := json.RawMessage(`"` + strings.Repeat("x", signalLimit) + `"`)
	if v := r.tryEmit(Emission{Trigger: "t", Data: big}); v.Err == nil {
		t.Error("more data than allowed were accepted")
	}
	if all, err := r.store.Signals(r.ctx, store.SignalFilter{Limit: 10}); err != nil || len(all) > 0 {
		t.Errorf("stored: %v, %v", all, err)
	}
}

// Eight callers emit the same signal at once, on engines that share a store: one is stored, and all callers get it.
func TestEmitReplicas(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		other := r.replica(func(o *Options) { o.Uptime = nil })
		for range 10 {
			key := r.e.opts.NewID().String()
			ids := make([]flow.ID, 8)
			var wg sync.WaitGroup
			for i := range ids {
				on := []*Engine{r.e, other}[i%2]
				wg.Go(func() {
					all, err := on.Emit(r.ctx, []Emission{{Trigger: "t", Key: key}})
					if err != nil || all[0].Err != nil {
						r.Errorf("emit: %v, %+v", err, all)
						return
					}
					ids[i] = all[0].Signal
				})
			}
			wg.Wait()
			for _, id := range ids {
				if id != ids[0] {
					r.Errorf("signals %v of one key", ids)
					break
				}
			}
		}
	})
}

// A trigger's document can keep its signals for a shorter or longer time than others, even if all others are kept for ever.
func TestTriggerKeeps(t *testing.T) {
	t.Parallel()
	for _, retention := range []time.Duration{24 * time.Hour, 0} {
		r := newRig(t, func(o *Options) { o.SignalRetention = retention })
		r.apply("kind: trigger\nname: short\nkeep: 1h\n---\nkind: trigger\nname: long\nkeep: 30d\n")
		ids := map[string]flow.ID{}
		for _, name := range []string{"short", "long", "other"} {
			ids[name] = r.emit(Emission{Trigger: name}).Signal
		}
		left := func() (names string) {
			if _, err := r.e.dropSignals(r.ctx); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"long", "other", "short"} {
				if _, err := r.store.Signal(r.ctx, ids[name]); err == nil {
					names += name + " "
				}
			}
			return names
		}
		if got := left(); got != "long other short " {
			t.Error(got)
		}
		r.clock.move(0, 2*time.Hour, 0)
		if got := left(); got != "long other " {
			t.Error(got)
		}
		want := "long other "
		if retention > 0 {
			want = "long "
		}
		r.clock.move(0, 48*time.Hour, 0)
		if got := left(); got != want {
			t.Error(got)
		}
		r.apply("kind: trigger\nname: long\nkeep: 1h\n")
		if got := left(); got != strings.TrimPrefix(want, "long ") {
			t.Error(got)
		}
	}
}

func TestSignalRetention(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.SignalRetention = time.Hour })
	id := r.emit(Emission{Trigger: "t", Key: "k"}).Signal
	if n, err := r.e.dropSignals(r.ctx); n != 0 || err != nil {
		t.Errorf("dropped %d before the time (%v)", n, err)
	}
	r.clock.move(0, time.Hour+time.Second, 0)
	if _, err := r.e.dropSignals(r.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Signal(r.ctx, id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
	if v := r.emit(Emission{Trigger: "t", Key: "k"}); v.Existing {
		t.Errorf("its key is known: %+v", v)
	}
}

// A repeated body under another id is kept as a replay while it is remembered; under its own id it is the first signal.
func TestReplayedBody(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		m := Emission{Trigger: "push", Key: "1", Data: json.RawMessage(`{"a":1}`), Body: [32]byte{1}, Replay: time.Hour}
		first := r.emit(m)
		if again := r.emit(m); !again.Existing || again.Replayed || again.Signal != first.Signal {
			r.Errorf("the same id: %+v", again)
		}
		m.Key = "2"
		replay := r.emit(m)
		if !replay.Replayed || replay.Existing || replay.Signal == first.Signal || !r.signal(replay.Signal).Replayed || r.signal(first.Signal).Replayed {
			r.Errorf("another id: %+v", replay)
		}
		all, err := r.e.Emit(r.ctx, []Emission{{Trigger: "push", Key: "3", Body: [32]byte{2}, Replay: time.Hour}, {Trigger: "push", Key: "4", Body: [32]byte{2}, Replay: time.Hour}})
		if err != nil || all[0].Replayed || !all[1].Replayed {
			r.Errorf("together: %+v, %v", all, err)
		}
		m.Key, m.Replay = "5", time.Microsecond // by now
		if v := r.emit(m); v.Replayed {
			r.Errorf("remembered for too long: %+v", v)
		}
		m.Key, m.Replay, m.Body = "6", time.Hour, [32]byte{}
		if v := r.emit(m); v.Replayed {
			r.Errorf("without a body: %+v", v)
		}
		m.Key, m.Data = "1", json.RawMessage(`{"a":2}`)
		if v := r.tryEmit(m); !errors.Is(v.Err, ErrIdempotencyMismatch) || v.Signal != first.Signal {
			r.Errorf("other content: %+v", v)
		}
		m.Data = json.RawMessage(`"` + strings.Repeat("x", 2<<20) + `"`)
		if v := r.tryEmit(Emission{Trigger: "push", Data: m.Data}); v.Err == nil {
			r.Error("2 MB were accepted")
		}
		if v := r.tryEmit(Emission{Trigger: "push", Data: m.Data, Most: 3 << 20}); v.Err != nil {
			r.Errorf("2 MB of 3: %v", v.Err)
		}
	})
}

// holding is a store that cannot remove the signals of one trigger.
type holding struct {
	store.Store
	trigger string
}

func (s *holding) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return decide(ctx, &holdingTx{tx, s}) })
}

type holdingTx struct {
	store.Tx
	s *holding
}

func (t *holdingTx) DropSignals(ctx context.Context, trigger string, before time.Time, n int) (int, error) {
	if trigger == t.s.trigger {
		return 0, errPlanted
	}
	return t.Tx.DropSignals(ctx, trigger, before, n)
}

// scanning counts how often the triggers are read for old signals.
type scanning struct {
	store.Store
	looks atomic.Int64
}

func (s *scanning) OldestSignals(ctx context.Context, after string, n int) ([]store.OldestSignal, error) {
	s.looks.Add(1)
	return s.Store.OldestSignals(ctx, after, n)
}

// Triggers with more old signals than one transaction removes are emptied in one pass, which reads each trigger once.
func TestSignalRetentionLooksOnce(t *testing.T) {
	t.Parallel()
	s := &scanning{}
	r := newRig(t, func(o *Options) { s.Store, o.Store, o.SignalRetention = o.Store, s, 24*time.Hour })
	for _, trigger := range []string{"a", "b"} {
		if _, err := r.e.Emit(r.ctx, slices.Repeat([]Emission{{Trigger: trigger}}, 2*signalsAtOnce+1)); err != nil {
			t.Fatal(err)
		}
	}
	r.clock.move(0, 25*time.Hour, 0)
	before := s.looks.Load()
	dropped, err := r.e.dropSignals(r.ctx)
	if looks := s.looks.Load() - before; err != nil || dropped != 2*(2*signalsAtOnce+1) || looks != 1 {
		t.Errorf("%d signals removed in %d looks (%v)", dropped, looks, err)
	}
}

// Signals that cannot be removed do not keep signals of other triggers.
func TestSignalRetentionBesideWhatIsRefused(t *testing.T) {
	t.Parallel()
	s := &holding{trigger: "b"}
	r := newRig(t, func(o *Options) { s.Store, o.Store, o.SignalRetention = o.Store, s, time.Hour })
	ids := map[string]flow.ID{}
	for _, trigger := range []string{"a", "b", "c"} {
		ids[trigger] = r.emit(Emission{Trigger: trigger}).Signal
	}
	r.clock.move(0, 2*time.Hour, 0)
	if _, err := r.e.dropSignals(r.ctx); err != nil {
		t.Fatal(err)
	}
	for trigger, id := range ids {
		if _, err := r.store.Signal(r.ctx, id); (err == nil) != (trigger == "b") {
			t.Errorf("signal of %s: %v", trigger, err)
		}
	}
	if r.e.Stats().Skipped == 0 {
		t.Error("what was passed over is not counted")
	}
}

// A panic while a signal is prepared, in a goroutine of its own, is the verdict on that signal.
func TestPanicWhileASignalIsPrepared(t *testing.T) {
	t.Parallel()
	var on atomic.Bool
	r := newRig(t, func(o *Options) {
		id := o.NewID
		o.NewID = func() flow.ID {
			if on.Load() {
				panic("a defect")
			}
			return id()
		}
	})
	on.Store(true)
	all, err := r.e.Emit(r.ctx, []Emission{{Trigger: "t"}})
	on.Store(false)
	if err != nil || len(all) != 1 || all[0].Err == nil || !strings.Contains(all[0].Err.Error(), "a defect") {
		t.Errorf("%+v, %v", all, err)
	}
}
