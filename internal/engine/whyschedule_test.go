package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

func (r *rig) whySchedule(name, waiting string, wants ...string) {
	r.Helper()
	w, err := r.e.WhySchedule(r.ctx, name)
	if err != nil {
		r.Fatal(err)
	}
	all := w.Summary + "\n" + strings.Join(w.Facts, "\n") + "\n" + fmt.Sprint(w.Unblock)
	if w.Waiting != waiting {
		r.Errorf("waits for %q, want %q: %s", w.Waiting, waiting, all)
	}
	for _, want := range wants {
		if !strings.Contains(all, want) {
			r.Errorf("no %q in\n%s", want, all)
		}
	}
}

func TestWhySchedule(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.toTheHour()
	r.define("kind: schedule\nname: s\nevery: 1h\npause_after: 3\nrun: {action: noop}\n---\nkind: schedule\nname: once\nat: '2020-01-01T00:00:00Z'\nrun: {action: noop}\n" +
		"---\nname: strict\ninput: {type: object, required: [a]}\naction: noop\n" +
		"---\nkind: schedule\nname: refused\nevery: 1h\nrun: {action: strict, input: {b: '${{ tick.zone }}'}}\n")
	r.whySchedule("s", "time", "its next time is", "0 of its last executions failed in a row; it pauses itself after 3")
	r.whySchedule("once", "nothing", "no time comes any more")
	r.tick(time.Hour)
	r.tick(time.Hour)
	r.whySchedule("s", "time", "was missed: the execution before had not ended", "was fired (catch_up) and started ex_", "has not ended; a tick that comes meanwhile is missed")
	r.whySchedule("refused", "time", "its execution was refused", "what its execution was refused for is corrected: input")
	if _, err := r.e.PauseSchedule(r.ctx, "s", "the database is being moved"); err != nil {
		t.Fatal(err)
	}
	r.whySchedule("s", "resume", "paused since", "the database is being moved", "pawl schedules resume s")
	if _, err := r.e.WhySchedule(r.ctx, "nobody"); err == nil {
		t.Error("a schedule that there is not was explained")
	}
}

// countingStore counts the definitions that are read one at a time.
type countingStore struct {
	store.Store
	reads int
}

func (s *countingStore) Definition(ctx context.Context, name string, version int) (store.Definition, error) {
	s.reads++
	return s.Store.Definition(ctx, name, version)
}

// A list of schedules takes two reads for any number of schedules, even on a replica that knows none of them.
func TestSchedulesInTwoReads(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 30 {
		r.define(fmt.Sprintf("kind: schedule\nname: s%02d\nevery: 1h\nrun: {action: noop}\n", i))
	}
	r.define("kind: schedule\nname: s07\nevery: 2h\nrun: {action: noop}\n")
	counting := &countingStore{Store: r.store}
	fresh, err := New(Options{Store: counting})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		all, err := fresh.Schedules(r.ctx, "s04", 20)
		if err != nil || len(all) != 20 || all[0].Name != "s05" || all[2].Version != 2 || all[2].Document.Schedule.Every != 2*time.Hour || counting.reads > 0 {
			t.Errorf("%d schedules, %d reads one by one, %v", len(all), counting.reads, err)
		}
	}
}
