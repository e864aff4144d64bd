package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// keepNew stores signals as new, like a server that ends before it has evaluated the rules.
func (r *rig) keepNew(all ...flow.Signal) []flow.ID {
	r.Helper()
	ids, err := inBatch(r.ctx, r.e, nil, func(ctx context.Context, t *transaction) (ids []flow.ID, err error) {
		for _, s := range all {
			s.ID, s.Source, s.State, s.Hash, s.Generation = r.e.opts.NewID(), flow.SourceAPI, flow.SignalNew, [32]byte{1}, r.e.rules.current.Load().Generation
			if err := t.keepSignal(ctx, &s); err != nil {
				return nil, err
			}
			ids = append(ids, s.ID)
		}
		txn.Part[keptSignals](t).unasked = true
		return ids, nil
	})
	if err != nil {
		r.Fatal(err)
	}
	return ids
}

// damaging is a store in which signals about "damaged", and waits with the variable damaged, cannot be decoded.
type damaging struct {
	store.Store
	mended atomic.Bool
}

const plantedDamage = "planted: its detail cannot be decoded"

func (s *damaging) signals(all []flow.Signal, err error) ([]flow.Signal, error) {
	for i := range all {
		if all[i].Subject == "damaged" && !s.mended.Load() {
			all[i].SignalDetail, all[i].Damage = flow.SignalDetail{}, plantedDamage
		}
	}
	return all, err
}

func (s *damaging) waits(all []flow.Wait, err error) ([]flow.Wait, error) {
	for i := range all {
		if strings.Contains(string(all[i].Vars), "damaged") && !s.mended.Load() {
			all[i].WaitDetail, all[i].Damage = flow.WaitDetail{}, plantedDamage
		}
	}
	return all, err
}

func (s *damaging) Signal(ctx context.Context, id flow.ID) (flow.Signal, error) {
	one, err := s.Store.Signal(ctx, id)
	if err != nil {
		return one, err
	}
	all, err := s.signals([]flow.Signal{one}, nil)
	return all[0], err
}

func (s *damaging) NewSignals(ctx context.Context, now time.Time, after store.SignalPlace, n int) ([]flow.Signal, error) {
	return s.signals(s.Store.NewSignals(ctx, now, after, n))
}

func (s *damaging) UncorrelatedSignals(ctx context.Context, now time.Time, after int64, n int) ([]flow.Signal, error) {
	return s.signals(s.Store.UncorrelatedSignals(ctx, now, after, n))
}

func (s *damaging) SignalsAbout(ctx context.Context, trigger, subject string, after store.SignalPlace, n int) ([]flow.Signal, error) {
	return s.signals(s.Store.SignalsAbout(ctx, trigger, subject, after, n))
}

func (s *damaging) BufferedSignals(ctx context.Context, key store.WindowKey, n int) ([]flow.Signal, error) {
	return s.signals(s.Store.BufferedSignals(ctx, key, n))
}

func (s *damaging) UnscannedWaits(ctx context.Context, now time.Time, after flow.ID, n int) ([]flow.Wait, error) {
	return s.waits(s.Store.UnscannedWaits(ctx, now, after, n))
}

func (s *damaging) OpenWaits(ctx context.Context, trigger, subject string, after flow.ID, n int) ([]flow.Wait, error) {
	return s.waits(s.Store.OpenWaits(ctx, trigger, subject, after, n))
}

// onDamagedStore runs a test on each store, wrapped in one that cannot decode some rows.
func onDamagedStore(t *testing.T, test func(*rig, *damaging)) {
	t.Helper()
	s := &damaging{}
	onEachStore(t, func(r *rig) {
		s.mended.Store(false)
		test(r, s)
		s.mended.Store(true)
	}, func(o *Options) { s.Store, o.Store = o.Store, s })
}

// wantAside waits until something is put aside for a reason.
func (r *rig) wantAside(kind store.AsideKind, id flow.ID, reason string) {
	r.Helper()
	var a flow.Aside
	r.within(patience, fmt.Sprintf("%s is not put aside", id), func() bool {
		var err error
		a, err = r.store.Aside(r.ctx, kind, id)
		return err == nil
	})
	if a.Times != 1 || !strings.Contains(a.Reason, reason) || a.Until.Before(time.Now()) {
		r.Errorf("%s is put aside: %+v, want %q", id, a, reason)
	}
	r.within(patience, "it is not counted", func() bool { return r.e.Stats().PutAside > 0 })
}

// A signal for which the rules cannot be evaluated is put aside with the reason; other signals are matched in the same round.
func TestMatchingBesideWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	onDamagedStore(t, func(r *rig, _ *damaging) {
		r.apply("kind: rule\nname: a\non: t\nrun: {action: noop, input: {v: '${{ signal.data.n }}'}}\n")
		var all []flow.Signal
		for i := range 5 {
			all = append(all, flow.Signal{Trigger: "t", Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
		}
		all[0].Subject, all[2].Data = "damaged", json.RawMessage(`{`)
		ids := r.keepNew(all...)
		for _, i := range []int{1, 3, 4} {
			r.within(patience, "a neighbour was not matched", func() bool { return r.signal(ids[i]).State == flow.SignalMatched })
		}
		r.of("noop", 3)
		for i, reason := range map[int]string{0: plantedDamage, 2: "JSON"} {
			r.wantAside(store.AsideMatching, ids[i], reason)
			_, aside, err := r.e.WhySignal(r.ctx, ids[i], "")
			if say := strings.Join(aside, "; "); err != nil || !strings.Contains(say, "the rules could not be asked about it (") || !strings.Contains(say, reason) {
				r.Errorf("why: %q, %v", aside, err)
			}
		}
	})
}

// An unreadable signal or wait is put aside; other signals and waits are correlated in the same round.
func TestMeetingBesideWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	onDamagedStore(t, func(r *rig, _ *damaging) {
		r.define(paid)
		const with = `{"signal":"paid","subject":"%s","since":"1h"%s}`
		bad := r.waiting(fmt.Sprintf(with, "a", `,"vars":{"damaged":1},"if":"signal.data.n >= vars.damaged"`))
		good := r.waiting(fmt.Sprintf(with, "a", ""))
		about := r.waiting(fmt.Sprintf(with, "damaged", ""))
		r.wantAside(store.AsideScan, bad, plantedDamage)
		broken := r.say("paid", "damaged", `{"n":1}`)
		r.say("paid", "a", `{"n":2}`)
		if n := r.took(good); n != 2 {
			r.Errorf("took %d", n)
		}
		r.wantAside(store.AsideCorrelation, broken, plantedDamage)
		if x := r.get(about); x.Stage.Terminal() {
			r.Errorf("it took a signal that cannot be read: %s", x.Outcome.Output)
		}
		if w, err := r.e.Why(r.ctx, bad); err != nil || !strings.Contains(strings.Join(w.Facts, "; "), "the engine could not look for its signal ("+plantedDamage) {
			r.Errorf("why: %+v, %v", w, err)
		}
		if _, aside, err := r.e.WhySignal(r.ctx, broken, ""); err != nil || !strings.Contains(strings.Join(aside, "; "), "could not be asked about it ("+plantedDamage) {
			r.Errorf("why: %q, %v", aside, err)
		}
		for _, id := range []flow.ID{bad, about} {
			if _, err := r.e.Cancel(r.ctx, id, ""); err != nil {
				r.Fatal(err)
			}
		}
	})
}

// asideOver ends the time of something that was put aside.
func (r *rig) asideOver(kind store.AsideKind, id flow.ID) {
	r.Helper()
	err := r.store.Update(r.ctx, func(ctx context.Context, tx store.Tx) error {
		return tx.Apply(ctx, store.Delta{Asides: []store.Aside{{Kind: kind, ID: id, Aside: flow.Aside{Until: time.Now().Add(-time.Second), Times: 1}}}})
	})
	if err != nil {
		r.Fatal(err)
	}
}

// A wait whose end the store refuses is put aside, and other waits end in the same round. It ends with its signal as soon as the store
// accepts that.
func TestWaitsBesideWhatIsRefused(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		r.define(paid)
		var all []flow.ID
		for range 3 {
			all = append(all, r.waiting(`{"signal":"paid","subject":"a"}`))
		}
		for _, id := range all {
			r.until(func() bool {
				w, err := r.store.Wait(r.ctx, id)
				return err == nil && w.Scanned
			})
		}
		s.set(func(d *flow.Draft) bool { return d.ID == all[1] && d.Stage == flow.Completed })
		said := r.say("paid", "a", `{"n":1}`)
		for _, i := range []int{0, 2} {
			if n := r.took(all[i]); n != 1 {
				r.Errorf("wait %d took %d", i, n)
			}
		}
		r.wantAside(store.AsideScan, all[1], errPlanted.Error())
		r.wantAside(store.AsideCorrelation, said, errPlanted.Error())
		s.set(func(*flow.Draft) bool { return false })
		r.asideOver(store.AsideScan, all[1])
		r.asideOver(store.AsideCorrelation, said)
		r.e.waits.Wake()
		if n := r.took(all[1]); n != 1 {
			r.Errorf("the wait that was refused took %d", n)
		}
	})
}

// unwilling is a store that cannot put anything aside.
type unwilling struct{ store.Store }

func (s *unwilling) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return decide(ctx, &unwillingTx{tx}) })
}

type unwillingTx struct{ store.Tx }

func (t *unwillingTx) Apply(ctx context.Context, d store.Delta) error {
	if len(d.Asides) > 0 {
		return errPlanted
	}
	return t.Tx.Apply(ctx, d)
}

// A signal that can neither be matched nor be put aside waits for the next round.
func TestMatchingOfWhatCannotBePutAside(t *testing.T) {
	t.Parallel()
	s := &damaging{}
	r := newRig(t, func(o *Options) { s.Store, o.Store = &unwilling{o.Store}, s })
	defer s.mended.Store(true)
	r.apply("kind: rule\nname: a\non: t\nrun: {action: noop}\n")
	r.keepNew(flow.Signal{Trigger: "t", Subject: "damaged", Data: json.RawMessage(`{}`)})
	for range 3 {
		if more, err := r.e.matchNew(r.ctx); more || err != nil {
			t.Errorf("more %t, %v", more, err)
		}
	}
}

// locking is a store that counts the reads of new signals.
type locking struct {
	store.Store
	looks atomic.Int64
}

func (s *locking) NewSignals(ctx context.Context, now time.Time, after store.SignalPlace, n int) ([]flow.Signal, error) {
	s.looks.Add(1)
	return s.Store.NewSignals(ctx, now, after, n)
}

// While another server is matching new signals, this one waits for its next round.
func TestMatchingBesideALock(t *testing.T) {
	t.Parallel()
	s := &locking{}
	r := newPostgresRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	r.apply("kind: rule\nname: a\non: t\nrun: {action: noop}\n")
	locked, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 2)
	id := r.e.opts.NewID()
	go func() {
		done <- s.Store.Update(context.Background(), func(ctx context.Context, tx store.Tx) error {
			one := flow.Signal{ID: id, Number: 1 << 50, Trigger: "t", Source: flow.SourceAPI, State: flow.SignalNew, At: time.Now(), Hash: [32]byte{1}, Data: json.RawMessage(`{}`)}
			return tx.Apply(ctx, store.Delta{Signals: store.SignalRows{New: []flow.Signal{one}}})
		})
		done <- s.Store.Update(context.Background(), func(ctx context.Context, tx store.Tx) error {
			_, err := tx.LockSignals(ctx, []int64{1 << 50})
			close(locked)
			<-release
			return err
		})
	}()
	<-locked
	before := s.looks.Load()
	for range 20 {
		r.e.rules.wakeMatching()
		if more, err := r.e.matchNew(r.ctx); err != nil || more {
			t.Fatalf("more %t, %v", more, err)
		}
	}
	if n := s.looks.Load() - before; n > 60 {
		t.Errorf("%d looks in 20 rounds", n)
	}
	close(release)
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	r.e.rules.wakeMatching()
	r.within(patience, "it was not matched", func() bool { return r.signal(id).State == flow.SignalMatched })
}

// An unreadable past signal, or one whose execution the store refuses, does not keep a replay from the others.
func TestReplayBesideWhatIsRefused(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		r.apply("kind: rule\nname: other\non: none\nrun: {action: noop}\n")
		var all []flow.Signal
		for i := range 4 {
			all = append(all, flow.Signal{Trigger: "t", Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
		}
		all[1].Trigger, all[1].Data = "u", json.RawMessage(`{`)
		ids := r.keepNew(all...)
		for _, id := range ids { // no rule listened, so none of them was read
			r.within(patience, "a signal was not matched", func() bool { return r.signal(id).State == flow.SignalMatched })
		}
		s.set(func(d *flow.Draft) bool { return d.New && string(d.Input) == `{"v":2}` })
		r.apply("kind: rule\nname: a\non: [t, u]\nrun: {action: noop, input: {v: '${{ signal.data.n }}'}}\n")
		p, err := r.e.ReplayRule(r.ctx, "a", time.Time{}, false)
		if err != nil || p.Ran != 2 || p.Failed != 2 {
			r.Errorf("%+v, %v", p, err)
		}
		defs, err := definition.Parse("r.yaml", []byte("kind: rule\nname: b\non: [t, u]\nrun: {action: noop}\n"))
		if err != nil {
			r.Fatal(err)
		}
		past, err := r.e.TestRules(r.ctx, defs, time.Time{})
		if err != nil || len(past) != 1 || past[0].Ran != 3 || past[0].Failed != 1 {
			r.Errorf("%+v, %v", past, err)
		}
		if _, why, err := r.e.WhyRule(r.ctx, "a"); err != nil || !strings.Contains(strings.Join(why.Facts, "; "), "cannot be asked") {
			r.Errorf("%+v, %v", why, err)
		}
	})
}
