package simulation

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// reactBugs are planted bugs of signals, waits and questions.
var reactBugs = []bug{
	{name: "rule is passed over", invariant: []int{39, 40}, tune: reactive, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Rules.Enforcements = slices.DeleteFunc(slices.Clone(d.Rules.Enforcements), func(e flow.Enforcement) bool { return e.Rule == "two-of-three" })
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "enforcement names another execution", invariant: []int{39}, tune: reactive, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Rules.Enforcements = slices.Clone(d.Rules.Enforcements)
		for i := range d.Rules.Enforcements {
			if e := &d.Rules.Enforcements[i]; !e.Execution.IsZero() {
				e.Execution[15] ^= 1
			}
		}
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "signal is matched and its rules are not asked", invariant: []int{34, 39, 40, 41}, tune: reactive, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		if len(d.Signals.Matched) > 0 {
			d.Rules.Enforcements = nil
		}
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "signal is acknowledged and not stored", invariant: []int{25, 33, 34, 39, 41}, tune: reactive, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Signals.New = nil
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "wait takes a signal about something else", invariant: []int{42, 43}, tune: reactive, store: func(w *world, s store.Store) store.Store {
		return &misled{Store: s, about: func(string) string { return "s1" }}
	}},
	{name: "wait finds nothing of what came before", invariant: []int{43}, tune: reactive, store: func(w *world, s store.Store) store.Store {
		return &misled{Store: s, about: func(string) string { return "nothing" }}
	}},
	{name: "wait forgets which signal it took", invariant: []int{44, 42, 43}, tune: reactive, tx: reacted(reactTwist{waits: func(all []flow.Wait) []flow.Wait {
		all = slices.Clone(all)
		for i := range all {
			all[i].Signal = 0
		}
		return all
	}})},
	{name: "answer is told and not kept", invariant: []int{44, 46}, tune: reactive, tx: reacted(reactTwist{inquiries: func(all []*flow.Inquiry) []*flow.Inquiry {
		return slices.DeleteFunc(slices.Clone(all), func(i *flow.Inquiry) bool { return i.State == flow.InquiryAnswered })
	}})},
	{name: "answer is overwritten by the default", invariant: []int{44, 46}, tune: reactive, tx: reacted(reactTwist{inquiries: func(all []*flow.Inquiry) []*flow.Inquiry {
		all = slices.Clone(all)
		for n, i := range all {
			if i.State == flow.InquiryAnswered {
				other := *i
				answer := *i.Answer
				answer.By, answer.Defaulted, answer.Value = "", true, i.Default
				other.Answer = &answer
				all[n] = &other
			}
		}
		return all
	}})},
	{name: "question stays open behind its task", invariant: []int{44}, tune: reactive, tx: reacted(reactTwist{inquiries: func(all []*flow.Inquiry) []*flow.Inquiry {
		return slices.DeleteFunc(slices.Clone(all), func(i *flow.Inquiry) bool { return i.State == flow.InquiryExpired || i.State == flow.InquiryWithdrawn })
	}})},
	{name: "signal is kept without its key", invariant: []int{25, 41}, tune: reactive, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Signals.New = slices.Clone(d.Signals.New)
		for i := range d.Signals.New {
			if d.Signals.New[i].Trigger != flow.TriggerEnded {
				d.Signals.New[i].Key = ""
			}
		}
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "end is not said", invariant: []int{41}, tune: reactive, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Signals.New = slices.DeleteFunc(slices.Clone(d.Signals.New), func(s flow.Signal) bool { return s.Trigger == flow.TriggerEnded })
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "what stands for a value is forgotten", invariant: []int{39, 25}, tune: func(p *plan) { reactive(p); p.Retention = 0 }, tx: reacted(reactTwist{once: true})},
	{name: "waits are not asked about a signal", invariant: []int{43}, tune: reactive, tx: reacted(reactTwist{unmet: true})},
	{name: "wait is taken for one that has looked", invariant: []int{43}, tune: reactive, tx: reacted(reactTwist{unmet: true, waits: func(all []flow.Wait) []flow.Wait {
		all = slices.Clone(all)
		for i := range all {
			all[i].Scanned = true
		}
		return all
	}})},
	{name: "window never closes", invariant: []int{34, 48}, tune: reactive, tx: reacted(reactTwist{windows: func(all []store.Window) []store.Window {
		all = slices.Clone(all)
		for i := range all {
			all[i].Wake = all[i].Wake.Add(24 * time.Hour)
		}
		return all
	}})},
	{name: "window forgets how many it holds", invariant: []int{48, 39}, tune: reactive, tx: reacted(reactTwist{windows: func(all []store.Window) []store.Window {
		all = slices.Clone(all)
		for i := range all {
			all[i].Count = 1
		}
		return all
	}})},
	{name: "what was held stands for nothing", invariant: []int{39}, tune: reactive, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Windows.Closed = slices.Clone(d.Windows.Closed)
		for i := range d.Windows.Closed {
			if k := &d.Windows.Closed[i]; !k.Execution.IsZero() {
				k.Execution[15] ^= 1
			}
		}
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "batch stands for signals that it was not given", invariant: []int{39, 48}, tune: reactive, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Windows.Closed = slices.Clone(d.Windows.Closed)
		for i := range d.Windows.Closed {
			if k := &d.Windows.Closed[i]; k.Rule == "gathered" {
				k.Signals, k.Rest = nil, nil // all signals that are held
			}
		}
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "batch is given less than it stands for", invariant: []int{39}, tune: reactive, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		for _, x := range d.Drafts {
			if x.New && slices.Equal(x.Rules, []string{"gathered"}) {
				x.Input = firstOf(x.Input)
			}
		}
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "tick is not kept", invariant: []int{26}, tune: beatingPlan, tx: reacted(reactTwist{ticks: func(all []store.Tick) []store.Tick {
		return slices.DeleteFunc(slices.Clone(all), func(k store.Tick) bool { return k.Schedule == pulse && !k.Execution.IsZero() })
	}})},
	{name: "tick names another execution", invariant: []int{26}, tune: beatingPlan, tx: reacted(reactTwist{ticks: func(all []store.Tick) []store.Tick {
		all = slices.Clone(all)
		for i := range all {
			if !all[i].Execution.IsZero() {
				all[i].Execution[15] ^= 1
			}
		}
		return all
	}})},
	{name: "what a schedule missed is not kept", invariant: []int{26}, tune: beatingPlan, tx: reacted(reactTwist{ticks: func(all []store.Tick) []store.Tick {
		return slices.DeleteFunc(slices.Clone(all), func(k store.Tick) bool { return k.Execution.IsZero() })
	}})},
	{name: "schedule passes over a time", invariant: []int{26, 27}, tune: beatingPlan, tx: reacted(reactTwist{schedules: func(all []store.Schedule) []store.Schedule {
		all = slices.Clone(all)
		for i := range all {
			if k := &all[i]; k.Name == pulse && !k.Next.IsZero() && k.Next.Unix()%2 == 0 && !k.Last.IsZero() {
				k.Next, k.Due = k.Next.Add(9*time.Second), k.Due.Add(9*time.Second)
			}
		}
		return all
	}})},
	{name: "schedule decides about a time again", invariant: []int{26, 27, 34}, tune: beatingPlan, tx: reacted(reactTwist{again: true})},
	{name: "tick is of the other hour", invariant: []int{27}, tune: beatingPlan, tx: reacted(reactTwist{ticks: func(all []store.Tick) []store.Tick {
		all = slices.Clone(all)
		for i := range all {
			if k := &all[i]; k.Schedule == beatName {
				k.Nominal, k.Last = k.Nominal.Add(-time.Hour), k.Last.Add(-time.Hour)
			}
		}
		return all
	}})},
	{name: "repeated content is taken for new", invariant: []int{53}, tune: beatingPlan, tx: reacted(reactTwist{bodies: true})},
}

func reactive(p *plan) { p.Reacts, p.Beat, p.Ops = true, 0, 2*p.Ops }

// beatingPlan is a plan with schedules and hooks.
func beatingPlan(p *plan) {
	reactive(p)
	p.Beat = 1 + p.Ops%len(beats)
}

// reactTwist is a transaction that changes the writes and reads of signals, schedules and questions.
type reactTwist struct {
	store.Tx
	waits     func([]flow.Wait) []flow.Wait
	inquiries func([]*flow.Inquiry) []*flow.Inquiry
	windows   func([]store.Window) []store.Window
	ticks     func([]store.Tick) []store.Tick
	schedules func([]store.Schedule) []store.Schedule
	unmet     bool // signals are never marked as uncorrelated
	bodies    bool // no signal's body is known
	once      bool // idempotency keys of rules are neither stored nor found
	again     bool // a tick does not advance the schedule and uses its own tag
}

func (t *reactTwist) SignalledBodies(ctx context.Context, bodies [][32]byte) (map[[32]byte]time.Time, error) {
	if t.bodies {
		return nil, nil
	}
	return t.Tx.SignalledBodies(ctx, bodies)
}

func (t *reactTwist) Submitted(ctx context.Context, keys []string) (map[string]store.IdempotencyKey, error) {
	found, err := t.Tx.Submitted(ctx, keys)
	maps.DeleteFunc(found, func(key string, _ store.IdempotencyKey) bool { return t.once && ofRule(key) })
	return found, err
}

func (t *reactTwist) Apply(ctx context.Context, d store.Delta) error {
	if t.once {
		d.Keys = slices.DeleteFunc(slices.Clone(d.Keys), func(k store.IdempotencyKey) bool { return ofRule(k.Key) })
	}
	if t.unmet {
		d.Signals.Uncorrelated = nil
	}
	d.Windows.Open, d.Schedules.Ticks, d.Schedules.Written = changed(t.windows, d.Windows.Open), changed(t.ticks, d.Schedules.Ticks), changed(t.schedules, d.Schedules.Written)
	d.Waits.Written, d.Inquiries = changed(t.waits, d.Waits.Written), changed(t.inquiries, d.Inquiries)
	if t.again {
		d.Schedules.Ticks, d.Schedules.Written = slices.Clone(d.Schedules.Ticks), slices.Clone(d.Schedules.Written)
		for i := range d.Schedules.Ticks {
			d.Schedules.Ticks[i].Tag = name(d.Schedules.Ticks[i].Execution)
		}
		for i := range d.Schedules.Written {
			if k := &d.Schedules.Written[i]; k.Name == pulse && k.Last.Unix()%2 == 0 {
				k.Next, k.Due = k.Last, k.Last
			}
		}
	}
	return t.Tx.Apply(ctx, d)
}

// changed returns the rows that a bug writes in place of the real ones.
func changed[T any](by func([]T) []T, all []T) []T {
	if by == nil || len(all) == 0 {
		return all
	}
	return by(all)
}

func ofRule(key string) bool { return strings.HasPrefix(key, "rule:") }

func reacted(pattern reactTwist) func(*world, store.Tx) store.Tx {
	return func(_ *world, tx store.Tx) store.Tx {
		t := pattern
		t.Tx = tx
		return &t
	}
}

// firstOf returns a batch's input with only its first signal.
func firstOf(input json.RawMessage) json.RawMessage {
	var fields map[string]any
	if json.Unmarshal(input, &fields) != nil {
		return input
	}
	if all, ok := fields["of"].([]any); ok && len(all) > 1 {
		fields["of"] = all[:1]
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return input
	}
	return out
}

// misled is a store that answers a query for signals about one subject with those about another.
type misled struct {
	store.Store
	about func(string) string
}

func (m *misled) SignalsAbout(ctx context.Context, trigger, subject string, after store.SignalPlace, n int) ([]flow.Signal, error) {
	return m.Store.SignalsAbout(ctx, trigger, m.about(subject), after, n)
}
