package simulation

import (
	"context"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// reactBugs are planted into what happens for signals, waits and questions.
var reactBugs = []bug{
	{name: "rule is passed over", invariant: []int{39, 40}, tune: reactive, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Enforcements = slices.DeleteFunc(slices.Clone(d.Enforcements), func(e flow.Enforcement) bool { return e.Rule == "two-of-three" })
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "enforcement names another execution", invariant: []int{39}, tune: reactive, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Enforcements = slices.Clone(d.Enforcements)
		for i := range d.Enforcements {
			if e := &d.Enforcements[i]; !e.Execution.IsZero() {
				e.Execution[15] ^= 1
			}
		}
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "signal is matched and its rules are not asked", invariant: []int{34, 39, 40, 41}, tune: reactive, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		if len(d.Matched) > 0 {
			d.Enforcements = nil
		}
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "signal is acknowledged and not stored", invariant: []int{33, 34, 39, 41}, tune: reactive, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Signals = nil
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
}

func reactive(p *plan) { p.Reacts, p.Ops = true, 2*p.Ops }

// reactTwist is a transaction that writes waits or questions otherwise than it was told.
type reactTwist struct {
	store.Tx
	waits     func([]flow.Wait) []flow.Wait
	inquiries func([]*flow.Inquiry) []*flow.Inquiry
}

func reacted(pattern reactTwist) func(*world, store.Tx) store.Tx {
	return func(_ *world, tx store.Tx) store.Tx {
		t := pattern
		t.Tx = tx
		return &t
	}
}

func (t *reactTwist) PutWaits(ctx context.Context, all []flow.Wait, drop []flow.ID) error {
	if t.waits != nil {
		all = t.waits(all)
	}
	return t.Tx.PutWaits(ctx, all, drop)
}

func (t *reactTwist) PutInquiries(ctx context.Context, all []*flow.Inquiry) error {
	if t.inquiries != nil {
		all = t.inquiries(all)
	}
	return t.Tx.PutInquiries(ctx, all)
}

// misled is a store that is asked for signals about something, and answers with those about something else.
type misled struct {
	store.Store
	about func(string) string
}

func (m *misled) SignalsAbout(ctx context.Context, trigger, subject string, after store.SignalPlace, n int) ([]flow.Signal, error) {
	return m.Store.SignalsAbout(ctx, trigger, m.about(subject), after, n)
}
