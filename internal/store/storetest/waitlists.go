package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// waitLists lets many transactions submit to few keys, and many finish admitted executions, on both stores: holders never exceed the limit,
// and waiting executions are admitted in order of ticket.
func waitLists(s *shared) {
	const each, limit = 40, 2
	names := []string{"key a", "key b"}
	var mu sync.Mutex
	holding := map[string]int{}
	admitted := map[string][]int64{} // tickets of the executions that waited, in the order of admission
	note := func(key string, change int, ticket int64) {
		mu.Lock()
		defer mu.Unlock()
		if holding[key] += change; holding[key] > limit {
			s.Errorf("%q has %d holders", key, holding[key])
		}
		if ticket > 0 {
			admitted[key] = append(admitted[key], ticket)
		}
	}
	// Commits for one key are in the order of its lock, so this is recorded while the lock is held, before the commit.
	var drafts [2 * 3][]*flow.Draft
	for w := range drafts {
		for i := range each {
			drafts[w] = append(drafts[w], s.submit(withKey(names[i%2], limit)))
		}
	}
	submit := func(on store.Store, d *flow.Draft) error {
		return decided(s.ctx(), on, func(ctx context.Context, t store.Tx) error {
			x := flow.Submit(d.ID, d.Request)
			uses, err := t.LockKeys(ctx, []string{d.Key})
			if err != nil {
				return err
			}
			ticket, err := t.Tickets(ctx, 1)
			if err != nil {
				return err
			}
			u := uses[d.Key]
			if u.Holders < d.KeyLimit && u.Waiting == 0 {
				err = x.Schedule(ticket, s.now)
			} else {
				err = x.Wait(ticket, s.now)
			}
			if err != nil {
				return err
			}
			if err := t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{x}}); err != nil {
				return err
			}
			if _, err := t.Lock(ctx, []flow.ID{x.ID}, store.WithoutPayload); err != nil { // it has been written by now
				return err
			}
			if x.Place == flow.Ready {
				note(d.Key, 1, 0)
			}
			return nil
		})
	}
	var over atomic.Int32
	finish := func(on store.Store, session flow.ID) error {
		return decided(s.ctx(), on, func(ctx context.Context, t store.Tx) error {
			got, err := t.Take(ctx, []string{"default"}, 1)
			if err != nil || len(got) == 0 {
				return err
			}
			d := flow.Load(got[0])
			if err := d.Claim(session, "w", s.now); err != nil {
				return err
			}
			rc := d.Report(session, flow.Report{Execution: d.ID, Attempt: 1, Events: []flow.Event{
				{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: s.now}, {Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvCompleted, At: s.now}}},
				nil, nil, s.now, 0)
			if rc.Verdict != flow.Applied {
				return errors.New(rc.Reason)
			}
			if err := t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}}); err != nil {
				return err
			}
			uses, err := t.LockKeys(ctx, []string{d.Key})
			if err != nil {
				return err
			}
			u := uses[d.Key]
			next, err := t.WaitList(ctx, d.Key, max(0, min(d.KeyLimit-u.Holders, u.Waiting)))
			if err != nil {
				return err
			}
			var change store.Delta
			waited := make([]int64, len(next))
			for i, x := range next {
				waited[i] = x.Ticket
				ticket, err := t.Tickets(ctx, 1)
				if err != nil {
					return err
				}
				n := flow.Load(x)
				if err := n.Schedule(ticket, s.now); err != nil {
					return err
				}
				change.Drafts = append(change.Drafts, n)
			}
			if err := t.Apply(ctx, change); err != nil {
				return err
			}
			if _, err := t.Lock(ctx, []flow.ID{d.ID}, store.WithoutPayload); err != nil {
				return err
			}
			note(d.Key, -1, 0)
			for _, ticket := range waited {
				note(d.Key, 1, ticket)
			}
			over.Add(1)
			return nil
		})
	}
	total := int32(len(drafts) * each)
	s.race(len(drafts), func(on store.Store, i int) error {
		if i < len(drafts) {
			for _, d := range drafts[i] {
				if err := submit(on, d); err != nil {
					return err
				}
			}
			return nil
		}
		for over.Load() < total {
			if err := finish(on, flow.ID{byte(i + 1)}); err != nil {
				return err
			}
		}
		return nil
	})
	for key, tickets := range admitted {
		if !slices.IsSorted(tickets) {
			s.Errorf("%q admitted tickets in the order %v", key, tickets)
		}
	}
	if len(admitted) == 0 {
		s.Error("nobody ever waited: the test tells nothing")
	}
	equal(s.bench, "holders in the end", holding, map[string]int{names[0]: 0, names[1]: 0})
}

// readWaitLists checks reading the wait lists of keys: the head is found without locking any.
func readWaitLists(b *bench) {
	wait := func(key string, limit int, ticket int64, change ...func(*flow.Request)) flow.ID {
		d := b.submit(append([]func(*flow.Request){withKey(key, limit)}, change...)...)
		must(b, d.Wait(ticket, b.now))
		b.apply(d)
		return d.ID
	}
	b.ready(1, withKey("held", 1))
	b.ready(2, withKey("both", 2))
	b.claimed(flow.ID{1}, withKey("both", 2))
	wait("both", 1, 3)
	both := wait("both", 2, 4, priority(5))
	free := wait("free", 3, 5)
	wait("free", 1, 6)
	accent := wait("é", 1, 7)
	type line struct {
		key     string
		head    flow.ID
		limit   int
		holders int
	}
	read := func(after string, n int) (all []line) {
		ls, err := b.s.WaitLists(b.ctx(), after, n)
		must(b, err)
		for _, l := range ls {
			all = append(all, line{l.Key, l.Head.ID, l.Head.KeyLimit, l.Holders})
		}
		return all
	}
	want := []line{{"both", both, 2, 2}, {"free", free, 3, 0}, {"é", accent, 1, 0}}
	for _, c := range []struct {
		after string
		n     int
		want  []line
	}{{"", 9, want}, {"", 2, want[:2]}, {"both", 9, want[1:]}, {"c", 1, want[1:2]}, {"é", 9, nil}} {
		if got := read(c.after, c.n); !slices.Equal(got, c.want) {
			b.Errorf("%d lines beyond %q: %+v, want %+v", c.n, c.after, got, c.want)
		}
	}
}

// readWaiting checks that a wait list is read in its order, as a whole and in parts.
func readWaiting(b *bench) {
	wait := func(key string, ticket int64, change ...func(*flow.Request)) flow.ID {
		d := b.submit(append([]func(*flow.Request){withKey(key, 1)}, change...)...)
		must(b, d.Wait(ticket, b.now))
		b.apply(d)
		return d.ID
	}
	b.ready(1, withKey("k", 1))
	third, first, fourth, second := wait("k", 3), wait("k", 9, priority(7)), wait("k", 4), wait("k", 2)
	last := wait("k", 1, priority(-7))
	wait("other", 5)
	far, near := b.ready(12, onQueue("gpu")), b.ready(11, onQueue("gpu"))
	urgent := b.ready(13, onQueue("gpu"), priority(1))
	b.ready(14, onQueue("gpu@cuda"))
	for _, c := range []struct {
		line store.WaitListQuery
		want []flow.ID
	}{
		{store.WaitListQuery{Key: "k"}, []flow.ID{first, second, third, fourth, last}},
		{store.WaitListQuery{RoutingKey: "gpu"}, []flow.ID{urgent, near, far}},
		{store.WaitListQuery{Key: "unused"}, []flow.ID{}},
	} {
		c.line.Limit = 9
		whole, err := b.s.Waiting(b.ctx(), c.line)
		must(b, err)
		equal(b, fmt.Sprintf("the line of %q", c.line.RoutingKey+c.line.Key), ids(whole), c.want)
		parts := []flow.ID{}
		for c.line.Limit = 2; ; {
			part, err := b.s.Waiting(b.ctx(), c.line)
			must(b, err)
			parts = append(parts, ids(part)...)
			if len(part) < 2 {
				break
			}
			c.line.After = part[1]
		}
		equal(b, fmt.Sprintf("the line of %q in parts", c.line.RoutingKey+c.line.Key), parts, c.want)
	}
}

// readHeld checks reading the executions that sessions hold.
func readHeld(b *bench) {
	mine := []flow.ID{b.claimed(flow.ID{1}), b.claimed(flow.ID{1}), b.claimed(flow.ID{1})}
	other := b.claimed(flow.ID{2})
	b.ready(1)
	slices.SortFunc(mine, func(a, b flow.ID) int { return bytes.Compare(a[:], b[:]) })
	read := func(each, n int, sessions ...flow.ID) (first [][]flow.ID, counts []int) {
		all, err := b.s.LeasedBy(b.ctx(), sessions, each, n)
		must(b, err)
		for _, h := range all {
			first, counts = append(first, ids(h.First)), append(counts, h.Count)
		}
		return first, counts
	}
	none := []flow.ID{}
	for _, c := range []struct {
		what    string
		each, n int
		want    [][]flow.ID
	}{
		{"all", 9, 9, [][]flow.ID{{other}, none, mine}},
		{"two of each", 2, 9, [][]flow.ID{{other}, none, mine[:2]}},
		{"three of all", 9, 3, [][]flow.ID{{other}, none, mine[:2]}},
		{"one of all", 9, 1, [][]flow.ID{{other}, none, none}},
		{"none", 0, 9, [][]flow.ID{none, none, none}},
	} {
		first, counts := read(c.each, c.n, flow.ID{2}, flow.ID{3}, flow.ID{1})
		equal(b, c.what, first, c.want)
		equal(b, c.what+": counts", counts, []int{1, 0, 3})
	}
	if first, _ := read(9, 9); len(first) != 0 {
		b.Errorf("of no session: %v", first)
	}
	b.report(mine[0], flow.EvRunning)
	b.report(mine[0], flow.EvCompleted)
	first, counts := read(9, 9, flow.ID{1})
	equal(b, "after one has ended", first, [][]flow.ID{mine[1:]})
	equal(b, "after one has ended: counts", counts, []int{2})
}
