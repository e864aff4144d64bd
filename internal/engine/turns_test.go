package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// heavy is an allowed expression that takes some hundredths of a second. Its value is 1000.
const heavy = "lists.range(1000).map(x, lists.range(20).map(y, x * y).size()).size()"

// heavyInput is an input with n of them, under names such as "input". SharedWork allows a part of them.
func heavyInput(n int) string {
	return "{all: [" + strings.TrimSuffix(strings.Repeat(`"${{ `+heavy+` }}", `, n), ", ") + "]}"
}

// fewTurns is how many costly turns may precede cheap work: the loop looks for cheap work before each turn, and the test looks every few
// milliseconds at most.
const fewTurns = 20

// count counts the elements that meet a condition.
func count[T any](all []T, so func(T) bool) (n int) {
	for _, x := range all {
		if so(x) {
			n++
		}
	}
	return n
}

// Waits with a heavy condition take turns after a wait without one, on the same subject and on another one; and end.
func TestCostlyWaitsTakeTurns(t *testing.T) {
	onEachStore(t, func(r *rig) {
		r.define(paid)
		const n = 20
		var bad []flow.ID
		for i := range n {
			bad = append(bad, r.waiting(fmt.Sprintf(`{"signal":"paid","subject":"a","if":"%s + signal.data.n == %d"}`, heavy, 1000+i)))
		}
		for i := range n {
			r.say("paid", "a", fmt.Sprintf(`{"n":%d}`, n-1-i))
		}
		done := func() int { return count(bad, func(id flow.ID) bool { return r.get(id).Stage.Terminal() }) }
		r.within(patience, "no costly wait ends", func() bool { return done() > 0 })
		for _, subject := range []string{"a", "b"} {
			id := r.waiting(fmt.Sprintf(`{"signal":"paid","subject":%q,"if":"signal.data.n == 1000"}`, subject))
			r.say("paid", subject, `{"n":1000}`)
			if r.took(id) != 1000 {
				r.Error("it took another signal")
			}
			if done := done(); done == n {
				r.Errorf("a wait about %q met its signal after all costly ones", subject)
			}
		}
		for _, id := range bad[:3] {
			r.took(id)
		}
		for _, id := range bad { // some have taken their signals
			if _, err := r.e.Cancel(r.ctx, id, ""); err != nil && !errors.Is(err, flow.ErrFinished) {
				r.Fatal(err)
			}
		}
	})
}

// Rules with heavy conditions and inputs, and rules of actions with heavy inputs, take turns after a cheap rule, on the same trigger and on
// another one; and fire.
func TestCostlyRulesTakeTurns(t *testing.T) {
	onEachStore(t, func(r *rig) {
		r.define("name: heavy\nkind: action\naction: noop\nwith: " + heavyInput(3) + "\n")
		r.define("name: note\nkind: action\naction: noop\n")
		var docs []string
		for i := range 5 {
			docs = append(docs,
				fmt.Sprintf("kind: rule\nname: a%d\non: t\nif: %s == 0\nrun: {action: noop}\n", i, heavy),
				fmt.Sprintf("kind: rule\nname: b%d\non: t\nrun: {action: noop, input: %s}\n", i, heavyInput(3)),
				fmt.Sprintf("kind: rule\nname: c%d\non: t\nrun: {action: heavy}\n", i))
		}
		docs = append(docs, "kind: rule\nname: same\non: t\nrun: {action: note}\n", "kind: rule\nname: z\non: u\nrun: {action: note}\n")
		r.apply(strings.Join(docs, "---\n"))
		var bad []flow.ID
		for range 4 {
			bad = append(bad, r.emit(Emission{Trigger: "t", Data: json.RawMessage(`{}`)}).Signal)
		}
		r.within(patience, "nothing takes turns", func() bool { return r.e.rules.turns.Len() > 0 })
		for _, trigger := range []string{"t", "u"} {
			id := r.emit(Emission{Trigger: trigger, Data: json.RawMessage(`{}`)}).Signal
			r.within(patience, "the rule did not fire", func() bool {
				return strings.Contains(r.enforced(id), "same ran") || strings.Contains(r.enforced(id), "z ran")
			})
			if count(bad, func(id flow.ID) bool { return r.signal(id).State == flow.SignalMatched }) == len(bad) {
				r.Errorf("a rule on %s fired after all costly ones", trigger)
			}
		}
		r.within(5*time.Minute, "the costly rules did not fire", func() bool { return r.signal(bad[0]).State == flow.SignalMatched })
		if got := r.enforced(bad[0]); strings.Count(got, " ran") != 11 {
			r.Errorf("fired: %s", got)
		}
		for i := range 5 {
			for _, name := range []string{"a", "b", "c"} {
				if err := r.e.PauseRule(r.ctx, fmt.Sprintf("%s%d", name, i), ""); err != nil {
					r.Fatal(err)
				}
			}
		}
	})
}

// Schedules with heavy inputs take turns after a cheap one, and tick.
func TestCostlySchedulesTakeTurns(t *testing.T) {
	r := newRig(t)
	r.toTheHour()
	var docs, bad []string
	ticked := func(name string) bool { return len(r.ticks(name)) > 0 }
	for i := range 30 {
		bad = append(bad, fmt.Sprint("a", i))
		docs = append(docs, fmt.Sprintf("kind: schedule\nname: a%d\nevery: 1h\nrun: {action: noop, input: %s}\n", i, heavyInput(5)))
	}
	r.define(strings.Join(append(docs, "kind: schedule\nname: z\nevery: 1h\nrun: {action: noop}\n"), "---\n"))
	r.clock.move(0, time.Hour+time.Second, 0)
	r.e.schedules.changed()
	r.within(patience, "the schedule did not tick", func() bool { return ticked("z") })
	if n := count(bad, ticked); n > fewTurns {
		t.Errorf("it ticked after %d costly ones", n)
	}
	for _, name := range bad {
		r.within(5*time.Minute, "a costly schedule did not tick", func() bool { return ticked(name) })
	}
}

// Windows of rules with heavy inputs take turns after a window of a cheap one, and close.
func TestCostlyWindowsTakeTurns(t *testing.T) {
	onEachStore(t, func(r *rig) {
		r.apply("kind: rule\nname: a\non: t\nbatch: {key: '${{ signal.subject }}', size: 2, wait: 1h}\nrun: {action: noop, input: " + heavyInput(5) + "}\n---\n" +
			"kind: rule\nname: z\non: u\nbatch: {key: '${{ signal.subject }}', size: 2, wait: 1h}\nrun: {action: noop, input: {n: '${{ signals.size() }}'}}\n")
		pair := func(trigger, subject string) (id flow.ID) {
			for range 2 {
				id = r.emit(Emission{Trigger: trigger, Subject: subject, Data: json.RawMessage(`{}`)}).Signal
			}
			return id
		}
		var bad []flow.ID
		for i := range 30 {
			bad = append(bad, pair("t", fmt.Sprint(i)))
		}
		closed := func(id flow.ID) bool { return !strings.Contains(r.enforced(id), "held") }
		before := count(bad, closed)
		good := pair("u", "a")
		r.within(patience, "the window did not close", func() bool {
			return strings.Contains(r.enforced(good), "z ran") || strings.Contains(r.enforced(good), "z folded")
		})
		if n := count(bad, closed) - before; n > fewTurns {
			r.Errorf("it closed after %d costly ones", n)
		}
		for _, id := range bad {
			r.within(5*time.Minute, "a costly window did not close", func() bool { return closed(id) })
		}
	})
}
