package storetest

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// Views compares the views that people read by SQL with the results of the port, and runs the statements of docs/operations.md. query
// returns rows as text; null is "".
func Views(t *testing.T, s store.Store, query func(sql string) [][]string) {
	b := &bench{tester: t, tb: t, s: s, now: time.Now().UTC().Truncate(time.Microsecond)}
	labelled := func(team, queue string) func(*flow.Request) {
		return func(r *flow.Request) {
			r.Labels, r.Queue, r.Action = map[string]string{"team": team, "run": "7"}, queue, "grade"
		}
	}
	waits := b.ready(1, labelled("x", "gpu"))
	b.ready(2, labelled("y", "gpu"))
	done := b.finished(labelled("x", "default"))
	fail := func(code, message string) flow.ID {
		id := b.claimed(flow.ID{9}, labelled("x", "gpu"))
		for _, part := range []string{"a", "b", "ä"} { // more than fits into a row
			b.say(id, flow.Event{Type: flow.EvProgress, Data: json.RawMessage(`"` + strings.Repeat(part, 700) + `"`)})
		}
		b.say(id, flow.Event{Type: flow.EvFailed, Outcome: &flow.Outcome{Error: &flow.Error{Code: code, Message: message}}})
		return id
	}
	long := strings.Repeat("große ", 20000)
	bad, worse, odd := fail("nonzero_exit", "it ended with 1"), fail("nonzero_exit", long), fail(strings.Repeat("c", 130), "")

	every := b.submit(labelled("y", "default")) // every type of event that is stored as a number, and one that is stored as text
	for n := uint64(1); ; n++ {
		typ, numbered := row.EventType(n)
		if !numbered {
			typ = "later"
		}
		every.Events = append(every.Events, flow.Event{Seq: every.NextSeq, Attempt: 1, Type: typ, At: b.now})
		every.NextSeq++
		if !numbered {
			break
		}
	}
	b.apply(every)

	got := map[string]string{}
	for _, r := range query(`SELECT id, status, queue, action, key, attempts, error_code, error_message FROM overview`) {
		got[r[0]] = strings.Join(r[1:], "|")
	}
	for id, want := range map[flow.ID]string{
		waits: "scheduled|gpu|grade||1||", done: "completed|default|grade||1||", bad: "failed|gpu|grade||1|nonzero_exit|it ended with 1",
		worse: "failed|gpu|grade||1|nonzero_exit|" + long, odd: "failed|gpu|grade||1|" + strings.Repeat("c", 130) + "|",
	} {
		equal(b, "overview of "+id.String(), got[id.String()], want)
	}
	equal(b, "executions", len(got), 7)

	for _, id := range []flow.ID{waits, done, bad, every.ID} {
		events, err := s.Events(b.ctx(), id, 0, 100)
		must(b, err)
		var want []string
		for _, e := range events {
			want = append(want, fmt.Sprint(e.Seq, "|", e.Attempt, "|", e.Type, "|", string(e.Data)))
		}
		var all []string
		for _, r := range query(`SELECT h.seq, h.attempt, h.type, h.data FROM overview o JOIN history h ON h.ref = o.ref WHERE o.id = '` + id.String() + `' ORDER BY h.seq`) {
			all = append(all, strings.Join(r, "|"))
		}
		equal(b, "history of "+id.String(), all, want)
	}

	doc, err := os.ReadFile("../../../docs/operations.md")
	must(b, err)
	statements := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	if len(statements) != 3 {
		b.Fatalf("docs/operations.md has %d statements, want 3", len(statements))
	}
	read := func(n int) [][]string {
		return query(strings.ReplaceAll(statements[n][1], "ex_069mrpkv215116h0000000000c", bad.String()))
	}
	if rows := read(0); len(rows) != 1 || rows[0][0] != waits.String() || rows[0][1] != "scheduled" {
		b.Errorf("what waits for team x: %v, want %s", rows, waits)
	}
	if rows := read(1); len(rows) != 2 || strings.Join(rows[0][:4], " ") != "gpu grade nonzero_exit 2" {
		b.Errorf("what failed today: %.200v", rows)
	}
	if rows := read(2); len(rows) != 8 || rows[7][2] != "failed" || !strings.HasPrefix(rows[7][3], b.now.Format("2006-01-02")) {
		b.Errorf("events of %s: %v", bad, rows)
	}
}

// say reports one event as the owner.
func (b *bench) say(id flow.ID, e flow.Event) {
	b.Helper()
	d := b.load(id)
	e.Seq, e.Attempt, e.At = d.NextSeq, d.Attempt, b.now
	events := []flow.Event{e}
	if d.Stage == flow.Provisioning {
		events = []flow.Event{{Seq: e.Seq, Attempt: e.Attempt, Type: flow.EvRunning, At: b.now}, e}
		events[1].Seq++
	}
	if rc := d.Report(d.Owner, flow.Report{Execution: id, Attempt: d.Attempt, Events: events}, nil, nil, b.now, 0); rc.Verdict != flow.Applied {
		b.Fatalf("report %s of %s: %+v", e.Type, id, rc)
	}
	b.apply(d)
}
