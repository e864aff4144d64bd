package engine

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// Callers that a commit wakes for an end return together, and the committer waits for them: see linger. Callers that watch every change, or
// whose execution continues, do not count.
func TestACommitCountsTheCallersThatItTellsOfAnEnd(t *testing.T) {
	t.Parallel()
	b := newWatchers()
	ended := &flow.Execution{ID: flow.ID{1}, State: flow.State{Place: flow.Finished}}
	running := &flow.Execution{ID: flow.ID{2}, State: flow.State{Place: flow.Held}}
	b.add(ended.ID, true)
	b.add(ended.ID, true)
	b.add(ended.ID, false)
	b.add(running.ID, true)
	if n := b.changed([]*flow.Execution{ended, running}); n != 2 {
		t.Errorf("%d callers were told of an end; want 2", n)
	}
	if n := b.changed(nil); n != 0 {
		t.Errorf("a commit that changed nothing told %d callers", n)
	}
}

// WatchAll fires when a worker comes and goes, for pauses and for signals: screens of queues and workers need that.
func TestWatchersHearOfWorkersPausesAndSignals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	changed, stop := r.e.WatchAll()
	defer stop()
	var session flow.ID
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"a worker comes", func() (err error) {
			session, err = r.e.Open(r.ctx, handoff.Session{Name: "box", Queues: []string{"default"}, Slots: 1})
			return err
		}},
		{"a queue is paused", func() error {
			_, err := r.e.PauseWork(r.ctx, store.PausedQueue, "default", PauseOrder{By: "ann"})
			return err
		}},
		{"a signal comes", func() error {
			_, err := r.e.Emit(r.ctx, []Emission{{Trigger: "paid", Data: json.RawMessage(`{}`)}})
			return err
		}},
		{"a worker goes", func() error { return r.e.Close(r.ctx, session) }},
	} {
		select {
		case <-changed:
		default:
		}
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the watcher is told nothing", step.name)
		}
	}
}
