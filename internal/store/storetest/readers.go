package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// list checks every filter, alone and together, in pages.
func list(b *bench) {
	start := b.now
	wf := b.workflow()
	label := func(pairs ...string) func(*flow.Request) {
		return func(r *flow.Request) {
			r.Labels = map[string]string{}
			for p := range slices.Chunk(pairs, 2) {
				r.Labels[p[0]] = p[1]
			}
		}
	}
	all := map[string]flow.ID{"wf": wf}
	b.later(time.Minute)
	all["ready"] = b.ready(2, named("a"), label("team", "red"))
	b.later(time.Minute)
	all["child"] = b.ready(3, named("a"), under(wf, "t", 0), label("team", "red", "env", "ci"))
	b.later(time.Minute)
	all["held"] = b.claimed(flow.ID{1}, named("b"))
	b.later(time.Minute)
	all["done"] = b.finished(named("b"), label("team", "blue"))
	b.later(time.Minute)
	all["gone"] = b.ready(4, named("b"), label("team", "red"))
	b.finishSubmitted(all["gone"])
	newest := []string{"gone", "done", "held", "child", "ready", "wf"}

	for _, c := range []struct {
		say  string
		f    store.Filter
		want []string
	}{
		{"everything", store.Filter{}, newest},
		{"action", store.Filter{Action: "a"}, []string{"child", "ready"}},
		{"unknown action", store.Filter{Action: "x"}, nil},
		{"stage", store.Filter{Stages: []flow.Stage{flow.Scheduled}}, []string{"child", "ready"}},
		{"live stages", store.Filter{Stages: []flow.Stage{flow.Provisioning, flow.Running}}, []string{"held", "wf"}},
		{"completed", store.Filter{Stages: []flow.Stage{flow.Completed}}, []string{"done"}},
		{"ended badly", store.Filter{Stages: []flow.Stage{flow.Failed, flow.Cancelled, flow.TimedOut}}, []string{"gone"}},
		{"mixed stages", store.Filter{Stages: []flow.Stage{flow.Cancelled, flow.Completed, flow.Scheduled}}, []string{"gone", "done", "child", "ready"}},
		{"top level", store.Filter{TopLevel: true}, []string{"gone", "done", "held", "ready", "wf"}},
		{"of a workflow", store.Filter{Workflow: wf}, []string{"child"}},
		{"of no workflow", store.Filter{Workflow: all["ready"]}, nil},
		{"of an unknown workflow", store.Filter{Workflow: b.id()}, nil},
		{"label", store.Filter{Labels: map[string]string{"team": "red"}}, []string{"gone", "child", "ready"}},
		{"labels", store.Filter{Labels: map[string]string{"team": "red", "env": "ci"}}, []string{"child"}},
		{"unknown label", store.Filter{Labels: map[string]string{"team": ""}}, nil},
		{"since", store.Filter{Since: start.Add(4 * time.Minute)}, []string{"gone", "done"}},
		{"until", store.Filter{Until: start.Add(2 * time.Minute)}, []string{"ready", "wf"}},
		{"between", store.Filter{Since: start.Add(time.Minute), Until: start.Add(4 * time.Minute)}, []string{"held", "child", "ready"}},
		{"all at once", store.Filter{Stages: []flow.Stage{flow.Scheduled, flow.Cancelled}, Action: "a", TopLevel: true,
			Labels: map[string]string{"team": "red"}, Since: start, Until: start.Add(time.Hour)}, []string{"ready"}},
	} {
		var want []flow.ID
		for _, name := range c.want {
			want = append(want, all[name])
		}
		c.f.Limit = 100
		got, err := store.List(b.ctx(), b.s, c.f)
		must(b, err)
		equal(b, c.say, ids(got), want)
		var paged []flow.ID
		for c.f.Limit = 1; ; c.f.Before = paged[len(paged)-1] {
			page, err := store.List(b.ctx(), b.s, c.f)
			must(b, err)
			if len(page) == 0 {
				break
			}
			paged = append(paged, ids(page)...)
		}
		equal(b, c.say+", in pages", paged, want)
		c.f.Before, c.f.Limit = flow.ID{}, 3
		equal(b, c.say+", looking at few", bounded(b, c.f, 2), want)
	}
}

// bounded returns the executions that a filter selects, found by searches with a small reach; no page may come twice.
func bounded(b *bench, f store.Filter, reach int) (all []flow.ID) {
	b.Helper()
	f.Reach = reach
	for n := 0; n < 300; n++ {
		found, err := b.s.Search(b.ctx(), f)
		must(b, err)
		all = append(all, ids(found.Executions)...)
		switch {
		case !found.Searched.IsZero():
			back := !f.Oldest && !f.Before.IsZero() && bytes.Compare(found.Searched[:], f.Before[:]) >= 0 || f.Oldest && bytes.Compare(found.Searched[:], f.After[:]) <= 0
			if back || found.At.IsZero() || len(found.Executions) == f.Limit {
				b.Fatalf("searched to %s at %v with %d found, before %s, after %s", found.Searched, found.At, len(found.Executions), f.Before, f.After)
			}
			f = f.Beyond(found.Searched)
		case len(found.Executions) == 0:
			return all
		default:
			f = f.Beyond(all[len(all)-1])
		}
	}
	b.Fatalf("a search does not end: %v", all)
	return nil
}

// ranges checks searches within ranges of ids, from both ends, by given ids, in small pages and with a small reach: nothing between ended
// and unfinished executions is left out, and nothing comes twice.
func ranges(b *bench) {
	random := rand.New(rand.NewPCG(7, 11))
	type one struct {
		id     flow.ID
		wanted bool
		set    string
	}
	var all []one
	for i := range 40 {
		x := one{wanted: random.IntN(3) > 0, set: []string{"a", "b"}[random.IntN(2)]}
		like := func(r *flow.Request) {
			if r.Labels = map[string]string{"set": x.set}; x.wanted {
				r.Action = "wanted"
			}
		}
		switch random.IntN(3) {
		case 0:
			x.id = b.ready(int64(1+i), like)
		case 1:
			x.id = b.finished(like)
		default:
			x.id = b.ready(int64(1+i), like)
			b.finishSubmitted(x.id)
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(x, y one) int { return bytes.Compare(x.id[:], y.id[:]) })
	anywhere := func() (id flow.ID) {
		if random.IntN(3) > 0 {
			id = all[random.IntN(len(all))].id
		}
		return id
	}
	for range 80 {
		f := store.Filter{Oldest: random.IntN(2) == 0, Before: anywhere(), After: anywhere(), Limit: 1 + random.IntN(9), Rare: random.IntN(40)}
		if random.IntN(3) > 0 {
			f.Action = "wanted"
		}
		if random.IntN(3) == 0 {
			f.Labels = map[string]string{"set": "a"}
		}
		if random.IntN(4) == 0 {
			for range 1 + random.IntN(20) {
				f.IDs = append(f.IDs, all[random.IntN(len(all))].id)
			}
			f.IDs = append(f.IDs, b.id())
		}
		var want []flow.ID
		for _, x := range all {
			if (f.Action == "" || x.wanted) && (f.Labels == nil || x.set == "a") && (f.IDs == nil || slices.Contains(f.IDs, x.id)) &&
				bytes.Compare(x.id[:], f.After[:]) > 0 && (f.Before.IsZero() || bytes.Compare(x.id[:], f.Before[:]) < 0) {
				want = append(want, x.id)
			}
		}
		if !f.Oldest {
			slices.Reverse(want)
		}
		reach := 1 + random.IntN(12)
		equal(b, fmt.Sprintf("%+v, looking at %d", f, reach), bounded(b, f, reach), want)
	}
}

// reach checks that a search that finds too little gives up after f.Reach executions and reports where, unless a condition has few rows.
func reach(b *bench) {
	labelled := func(name string) func(*flow.Request) {
		return func(r *flow.Request) { r.Labels = map[string]string{"set": name} }
	}
	rare := b.ready(1, labelled("rare"), func(r *flow.Request) { r.Action = "wanted" })
	for i := range 40 {
		b.ready(int64(2+i), labelled("common"))
	}
	for say, c := range map[string]struct {
		f      store.Filter
		gaveUp bool
		found  int
	}{
		"an action":      {store.Filter{Action: "wanted", Reach: 20}, true, 0},
		"a common label": {store.Filter{Action: "wanted", Labels: map[string]string{"set": "common"}, Reach: 20}, true, 0},
		"a rare label":   {store.Filter{Labels: map[string]string{"set": "rare"}, Reach: 20}, false, 1},
		"both":           {store.Filter{Labels: map[string]string{"set": "rare"}, Stages: []flow.Stage{flow.Scheduled}, Reach: 20}, false, 1},
		"far enough":     {store.Filter{Action: "wanted", Reach: 50}, false, 1},
		"rare by choice": {store.Filter{Action: "wanted", Labels: map[string]string{"set": "common"}, Reach: 20, Rare: 40}, false, 0},
		"no condition":   {store.Filter{Reach: 20}, false, 10},
	} {
		c.f.Limit = 10
		found, err := b.s.Search(b.ctx(), c.f)
		must(b, err)
		if found.Searched.IsZero() == c.gaveUp || len(found.Executions) != c.found {
			b.Errorf("%s: %d found, searched to %q", say, len(found.Executions), found.Searched)
		}
	}
	all, err := store.List(b.ctx(), b.s, store.Filter{Action: "wanted", Reach: 20, Limit: 10})
	must(b, err)
	equal(b, "however far", ids(all), []flow.ID{rare})
}

func ahead(b *bench) {
	var line, wait []*flow.Execution
	for i, p := range []int{2, 1, 1, 1, 0} {
		line = append(line, b.get(b.ready(int64(10+i), priority(p))))
		d := b.submit(withKey("k", 1), priority(p))
		must(b, d.Wait(int64(10+i), b.now))
		b.apply(d)
		wait = append(wait, b.get(d.ID))
	}
	b.ready(1, onQueue("other"), priority(9))
	other := b.submit(withKey("k2", 1), priority(9))
	must(b, other.Wait(1, b.now))
	b.apply(other)
	for i := range line {
		for what, x := range map[string]*flow.Execution{"queue": line[i], "key": wait[i]} {
			n, err := b.s.Ahead(b.ctx(), x)
			must(b, err)
			equal(b, fmt.Sprintf("ahead of %d in its %s", i, what), n, i)
		}
	}
	n, err := b.s.Ahead(b.ctx(), b.get(b.claimed(flow.ID{1})))
	must(b, err)
	equal(b, "ahead of what is held", n, 0)
}

func measures(b *bench) {
	size := func() int64 {
		n, err := b.s.Size(b.ctx())
		must(b, err)
		return n
	}
	before := size()
	oldest := b.now
	b.ready(1, onQueue("a"))
	b.later(time.Hour)
	b.ready(2, onQueue("a"), priority(1))
	b.ready(3, onQueue("b"))
	b.claimed(flow.ID{1}, onQueue("c"))
	b.finished()
	b.apply(b.submit(func(r *flow.Request) { r.NotBefore = b.now.Add(time.Hour) }))
	queues, err := b.s.Queues(b.ctx())
	must(b, err)
	slices.SortFunc(queues, func(x, y store.QueueDepth) int { return slices.Compare([]byte(x.Queue), []byte(y.Queue)) })
	equal(b, "queues", queues, []store.QueueDepth{{Queue: "a", Ready: 2, Oldest: oldest}, {Queue: "b", Ready: 1, Oldest: b.now}})
	sums, err := b.s.Survey(b.ctx())
	must(b, err)
	equal(b, "counts", sums.Stages(), map[flow.Stage]int{flow.Scheduled: 3, flow.Provisioning: 1, flow.Requested: 1})
	noise := make([]byte, 5_000_000) // random, so that no store can compress it
	rand.NewChaCha8([32]byte{1}).Read(noise)
	b.ready(9, func(r *flow.Request) { r.Input = noise })
	if after := size(); after < before+2_000_000 {
		b.Errorf("the store took %d bytes, and %d with 5 MB more", before, after)
	}
}
