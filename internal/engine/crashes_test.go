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
	"github.com/pawl-run/pawl/internal/store"
)

// crashed is a journal after as many deaths, during evaluations of a kind, as make the next one refused.
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
	synctest.Test(t, func(t *testing.T) { // what has died once waits for its turn, here in no time
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

// A wait during whose evaluation the process has died too often is put aside with the reason, and the waits beside it take their signals.
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
	r.wantAside(store.AsideLooking, poisoned, "the server's process ended 3 times in a row while it evaluated the wait of "+
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

// A rule during whose evaluation the process has died too often fails, and the rules beside it run.
func TestCrashedRules(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Crashes = crashed(t, "rule", "w@1") })
	r.apply("kind: rule\nname: w\non: v\nrun: {action: noop}\n---\nkind: rule\nname: x\non: v\nrun: {action: noop}\n")
	id := r.emit(Emission{Trigger: "v", Data: json.RawMessage(`{}`)}).Signal
	r.within(patience, "the rules were not asked", func() bool { return r.enforced(id) == "w failed action, x ran" })
}
