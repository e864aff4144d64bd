package engine

import (
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/pawl-run/pawl/internal/crashloop"
	"github.com/pawl-run/pawl/internal/engine/waits"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// crashed is a journal after so many deaths, during evaluations of a kind, that the next one is refused.
func crashed(t *testing.T, kind string, names ...string) *crashloop.Journal {
	path := filepath.Join(t.TempDir(), "evaluating")
	open := func(t *testing.T) *crashloop.Journal {
		j, err := crashloop.Open(path, "1", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		return j
	}
	synctest.Test(t, func(t *testing.T) { // an evaluation that has died once waits for its turn, here in no time
		for range crashloop.Most {
			j := open(t)
			for _, name := range names {
				if _, err := j.Begin(kind, name, ""); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	return open(t)
}

// A wait whose evaluation has ended the process too often is put aside with the reason, and other waits take their signals.
func TestCrashedWaits(t *testing.T) {
	t.Parallel()
	var ids atomic.Uint32
	nth := func(n uint32) (id flow.ID) {
		binary.BigEndian.PutUint32(id[:], n)
		return id
	}
	const bad = 40
	var names []string
	for n := range uint32(bad) {
		names = append(names, nth(n+1).String())
	}
	r := newRig(t, func(o *Options) {
		o.NewID = func() flow.ID { return nth(ids.Add(1)) }
		o.Crashes = crashed(t, waits.CrashKind, names...)
	})
	r.define(paid)
	poisoned := r.waiting(`{"signal":"paid","subject":"a"}`)
	r.wantAside(store.AsideScan, poisoned, "the server's process ended 3 times in a row while it evaluated the wait of "+
		poisoned.String()+", which is therefore left out: another version of it, or of Pawl, is tried again")
	ids.Store(bad)
	good := r.waiting(`{"signal":"paid","subject":"a"}`)
	r.say("paid", "a", `{"n":2}`)
	if n := r.took(good); n != 2 {
		t.Errorf("took %d", n)
	}
	if _, err := r.e.Cancel(r.ctx, poisoned, ""); err != nil {
		t.Fatal(err)
	}
}

// A rule whose evaluation has ended the process too often fails, and other rules run.
func TestCrashedRules(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Crashes = crashed(t, "rule", "w@1") })
	r.apply("kind: rule\nname: w\non: v\nrun: {action: noop}\n---\nkind: rule\nname: x\non: v\nrun: {action: noop}\n")
	id := r.emit(Emission{Trigger: "v", Data: json.RawMessage(`{}`)}).Signal
	r.within(patience, "the rules were not asked", func() bool { return r.enforced(id) == "w failed action, x ran" })
}

// died is a journal after the death of a process, during an evaluation if evaluating is set.
func died(t testing.TB, evaluating bool) *crashloop.Journal {
	path := filepath.Join(t.TempDir(), "evaluating")
	var j *crashloop.Journal
	for n := range 2 {
		var err error
		if j, err = crashloop.Open(path, "1", slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		if n == 0 && evaluating {
			if _, err := j.Begin("rule", "bad", ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	return j
}

// On a shared database, the worker of the next process names the session of the process before.
func TestResumedBesideACrash(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		evaluating, embedded bool
		spent                int
	}{{true, true, 1}, {true, false, 2}, {false, true, 2}} {
		onEachStore(t, func(r *rig) {
			s := handoff.Session{Name: "w", Embedded: c.embedded, Queues: []string{flow.DefaultQueue}, Slots: 1}
			before, err := r.e.Open(r.ctx, s)
			if err != nil {
				t.Fatal(err)
			}
			id := r.submit(Submission{Action: "noop"})
			(&hand{r, before}).take(1)
			if _, _, err := r.e.Resume(r.ctx, s, before, nil); err != nil {
				t.Fatal(err)
			}
			if x := r.get(id); x.Attempt != 2 || x.Spent() != c.spent {
				t.Errorf("%+v: attempt %d, of which %d count", c, x.Attempt, x.Spent())
			}
		}, func(o *Options) { o.Crashes = died(t, c.evaluating) })
	}
}

// A process that returns after its worker's lease has expired finds the session among the lost ones.
func TestExpiredBesideACrash(t *testing.T) {
	t.Parallel()
	for evaluating, want := range map[bool]int{true: 1, false: 2} {
		r := newRig(t, func(o *Options) { o.Exclusive = false })
		before, err := r.e.Open(r.ctx, handoff.Session{Name: "w", Embedded: true, Queues: []string{flow.DefaultQueue}, Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		id := r.submit(Submission{Action: "noop"})
		if work := (&hand{r, before}).take(1); len(work) != 1 {
			t.Fatalf("%+v", work)
		}
		r.restart(func(o *Options) { o.Crashes, o.Before = died(t, evaluating), before })
		r.lapse(handoff.Lease)
		if err := r.e.recoverExpired(r.ctx); err != nil {
			t.Fatal(err)
		}
		if x := r.get(id); x.Attempt != 2 || x.Spent() != want {
			t.Errorf("evaluating: %v: attempt %d, of which %d count, want %d", evaluating, x.Attempt, x.Spent(), want)
		}
	}
}
