package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// largeText is a text that fills a transaction of these tests together with four others.
var largeText = strings.Repeat("x", 20_000)

// boundedMost is how many bytes a transaction of these tests takes.
const boundedMost = 100_000

// bounded runs a test on each store with small transactions, and checks that they keep their bound.
func bounded(t *testing.T, test func(*rig)) {
	t.Helper()
	m := &measuring{}
	onEachStore(t, func(r *rig) {
		m.largest.Store(0)
		test(r)
		if got, most := m.largest.Load(), int64(boundedMost+2*len(largeText)); got > most || got < int64(len(largeText)) {
			r.Errorf("one transaction created executions of %d bytes: at most %d", got, most)
		}
	}, func(o *Options) { o.Bytes = boundedMost; m.Store, o.Store = o.Store, m })
}

// The executions that rules start for new signals are bounded in bytes per transaction.
func TestMatchingIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	bounded(t, func(r *rig) {
		r.apply("kind: rule\nname: a\non: t\nrun: {action: noop, input: {v: '${{ signal.data.text }}'}}\n")
		var all []flow.Signal
		for range 20 {
			all = append(all, flow.Signal{Trigger: "t", Data: json.RawMessage(`{"text":"` + largeText + `"}`)})
		}
		r.keepNew(all...)
		r.of("noop", len(all))
	})
}

// wideTrigger is rules that all fire on one trigger.
func wideTrigger(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\nkind: rule\nname: r%03d\non: t\nrun: {action: noop, input: {v: '${{ signal.data.text }}'}}\n", i)
	}
	return b.String()
}

// A signal with more rules than fit into one transaction is enforced in parts, each rule once.
func TestWideSignal(t *testing.T) {
	t.Parallel()
	bounded(t, func(r *rig) {
		r.apply(wideTrigger(30))
		out := r.emit(Emission{Trigger: "t", Data: json.RawMessage(`{"text":"` + largeText + `"}`), Key: "k"})
		if len(out.Enforcements) > 0 {
			r.Errorf("%d enforcements in the transaction of the signal", len(out.Enforcements))
		}
		r.of("noop", 30)
		r.within(patience, "the signal is still new", func() bool { return r.signal(out.Signal).State == flow.SignalMatched })
		if again := r.emit(Emission{Trigger: "t", Data: json.RawMessage(`{"text":"` + largeText + `"}`), Key: "k"}); !again.Existing || again.Signal != out.Signal {
			r.Errorf("sent again: %+v", again)
		}
		found, err := r.store.Enforcements(r.ctx, store.EnforcementFilter{Limit: 100})
		if err != nil || len(found) != 30 {
			r.Errorf("%d enforcements, %v", len(found), err)
		}
	})
}

// The replay of a rule for past signals uses transactions of bounded bytes.
func TestReplayIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	bounded(t, func(r *rig) {
		for range 20 {
			r.emit(Emission{Trigger: "t", Data: json.RawMessage(`{"text":"` + largeText + `"}`)})
		}
		r.apply("kind: rule\nname: a\non: t\nrun: {action: noop, input: {v: '${{ signal.data.text }}'}}\n")
		p, err := r.e.ReplayRule(r.ctx, "a", time.Time{}, false)
		if err != nil || p.Ran != 20 || p.Signals != 20 {
			r.Errorf("%+v, %v", p, err)
		}
		r.of("noop", 20)
	})
}

// Late ticks, and those of a backfill, are fired in transactions of bounded bytes, each once and in order.
func TestTicksAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	m := &measuring{}
	r := newRig(t, func(o *Options) { o.Bytes = boundedMost; m.Store, o.Store = o.Store, m })
	r.toTheHour()
	r.define("kind: schedule\nname: s\nevery: 1h\ncatch_up: {policy: all, at_most: 20, within: 4d}\noverlap: allow\nrun: {action: noop, input: {v: " + largeText + "}}\n")
	r.tick(30*time.Hour + time.Minute)
	r.of("noop", 21) // 20 late ones and one in time
	k := r.schedule("s")
	ticks, err := r.store.Ticks(r.ctx, "s", time.Time{}, 100)
	if err != nil || len(ticks) < 20 || !ticks[0].Nominal.Equal(k.Last) || !k.Next.Equal(k.Last.Add(time.Hour)) {
		t.Errorf("%d ticks, last %s, next %s, %v", len(ticks), k.Last, k.Next, err)
	}
	fired, missed := 0, 0
	for _, tick := range ticks {
		if tick.Execution.IsZero() {
			missed += tick.Count
		} else {
			fired++
		}
	}
	if fired != 21 || missed != 10 {
		t.Errorf("%d fired, %d missed", fired, missed)
	}
	if n, skipped := r.backfill(Backfill{From: k.Last.Add(-30 * time.Hour), To: k.Last}); n != 10 || skipped != 20 {
		t.Errorf("backfilled %d, skipped %d", n, skipped)
	}
	if got, most := m.largest.Load(), int64(boundedMost+2*len(largeText)); got > most || got < int64(len(largeText)) {
		t.Errorf("one transaction created executions of %d bytes: at most %d", got, most)
	}
}

// A document that a transaction reads is cached only after the commit: the transaction may have written it.
func TestScheduleOfAnUncommittedTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("kind: schedule\nname: s\nevery: 1h\nrun: {action: noop}\n")
	read := func(then error) error {
		r.e.schedules.mu.Lock()
		clear(r.e.schedules.all)
		r.e.schedules.mu.Unlock()
		return r.e.do(r.ctx, nil, func(ctx context.Context, t *transaction) error {
			if _, err := t.scheduleDocument(ctx, "s", 1); err != nil {
				return err
			}
			return then
		})
	}
	if err := read(errPlanted); err == nil || r.e.schedules.known("s@1") != nil {
		t.Errorf("after a transaction that was not committed (%v) the document is known: %v", err, r.e.schedules.known("s@1"))
	}
	if err := read(nil); err != nil || r.e.schedules.known("s@1") == nil {
		t.Errorf("after one that was: %v", err)
	}
}

// If the cache is full, a document replaces one other: with one schedule more than are cached, all but one are known
// when they are due again.
func TestSchedulesKept(t *testing.T) {
	t.Parallel()
	s, d := newSchedules(), &definition.Definition{}
	for i := range schedulesKept + 1 {
		s.keep(catalog.VersionKey(fmt.Sprint(i), 1), d)
	}
	s.keep(catalog.VersionKey(fmt.Sprint(schedulesKept), 1), d)
	known := 0
	for i := range schedulesKept + 1 {
		if s.known(catalog.VersionKey(fmt.Sprint(i), 1)) != nil {
			known++
		}
	}
	if known != schedulesKept {
		t.Errorf("%d of %d documents are known", known, schedulesKept+1)
	}
}
