package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// fullEvents checks that a page of events is limited in bytes, regardless of where the events are stored, and that nothing is missing
// between two pages.
func fullEvents(b *bench) {
	const each = 120 // reported together, and then one by one
	session := flow.ID{1}
	id := b.claimed(session)
	say := func(n int) {
		d := b.load(id)
		var all []flow.Event
		for i := range n {
			seq := d.NextSeq + int64(i)
			data := fmt.Appendf(nil, `{"n": %d, "x": %q}`, seq, strings.Repeat("x", flow.MostData-100))
			all = append(all, flow.Event{Seq: seq, Attempt: 1, Type: flow.EvProgress, At: b.now, Data: data})
		}
		if rc := d.Report(session, flow.Report{Execution: id, Attempt: 1, Events: all}, nil, nil, b.later(time.Second), 0); rc.Verdict != flow.Applied {
			b.Fatalf("report: %+v", rc)
		}
		b.apply(d)
	}
	b.report(id, flow.EvRunning)
	say(each)
	for range each {
		say(1)
	}
	last, pages := int64(0), 0
	for {
		page := b.events(id, last, 5000)
		if len(page) == 0 {
			break
		}
		pages++
		var size store.Page
		for i, e := range page {
			last++
			if equal(b, "number", e.Seq, last); size.Full() {
				b.Fatalf("page %d goes on behind %d bytes: it has %d of %d events", pages, size, i+1, len(page))
			}
			size.Event(&e)
			if e.Type == flow.EvProgress && !bytes.HasPrefix(e.Data, fmt.Appendf(nil, `{"n": %d,`, e.Seq)) {
				b.Fatalf("event %d has the data %.20s", e.Seq, e.Data)
			}
		}
	}
	equal(b, "events", last, int64(4+2*each))
	if least := 2 * each * (flow.MostData - 100) / store.PageBytes; pages < least || pages > 2*least+2 {
		b.Errorf("%d pages, where %d are expected", pages, least)
	}
	equal(b, "one event", len(b.events(id, 10, 1)), 1)
}

// fullList checks the same for a list of executions with large fields other than their payload.
func fullList(b *bench) {
	var want []flow.ID
	for i := range 300 {
		id := b.ready(int64(i+1), func(r *flow.Request) {
			r.Retry.MaxAttempts = 2
			for n := range 100 {
				r.Retry.On = append(r.Retry.On, fmt.Sprintf("code_%d_%s", n, strings.Repeat("x", 200)))
			}
			r.Labels = map[string]string{"long": strings.Repeat("x", 5000)}
			r.Input = json.RawMessage(`{}`)
		})
		if i%3 == 0 {
			b.finishSubmitted(id)
		}
		want = append([]flow.ID{id}, want...)
	}
	var got []flow.ID
	var before flow.ID
	for pages := 1; ; pages++ {
		page, err := store.List(b.ctx(), b.s, store.Filter{Before: before, Limit: 1000})
		must(b, err)
		if len(page) == 0 {
			break
		}
		var size store.Page
		for i, x := range page {
			if size.Full() {
				b.Fatalf("page %d goes on behind %d bytes: it has %d of %d executions", pages, size, i+1, len(page))
			}
			size.Execution(x)
			got, before = append(got, x.ID), x.ID
		}
		if len(got) < len(want) && !size.Full() {
			b.Fatalf("page %d ends with %d bytes", pages, size)
		}
	}
	equal(b, "listed", got, want)
}
