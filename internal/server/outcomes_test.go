package server

import (
	"bufio"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
)

// line is a line of the stream of outcomes: an outcome or the end.
type line struct {
	api.Outcome
	End bool `json:"end"`
}

// lines reads most messages of a stream of lines; -1: to its end.
func lines(t testing.TB, s *bufio.Scanner, most int) (all []line) {
	t.Helper()
	for most != len(all) && s.Scan() {
		var l line
		if len(s.Bytes()) == 0 {
			continue
		}
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatalf("%v: %.300s", err, s.Bytes())
		}
		all = append(all, l)
	}
	return all
}

const asLines = "application/x-ndjson"

// One stream has every outcome of a label as it comes, and ends when all executions have ended.
func TestOutcomesStream(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	run := h.run(t, "x", "talk", "measured", "exit 3")
	h.run(t, "other", "measured")
	s, res := h.follow(t, "/api/v1/evaluations:outcomes?outputs=true&"+ofRun+"x", "Accept", asLines)
	if got := res.Header.Get("Content-Type"); got != asLines {
		t.Errorf("content type %q", got)
	}
	first := lines(t, s, 2) // the third has not ended
	seen := []string{first[0].ID, first[1].ID}
	slices.Sort(seen)
	if want := []string{run[1], run[2]}; !slices.Equal(seen, want) {
		t.Fatalf("%v, want %v", seen, want)
	}
	for _, l := range first {
		if l.Verdict == "" || l.CPUMS == 0 || !strings.Contains(string(l.Output), `"cpu_ms"`) || l.Cursor == "" {
			t.Errorf("%+v", l)
		}
	}
	h.await(t, run[0], "running", running)
	close(h.voice(run[0]))
	rest := lines(t, s, -1)
	if len(rest) != 2 || rest[0].ID != run[0] || rest[0].End || !rest[1].End || rest[1].Cursor != rest[0].Cursor {
		t.Fatalf("%+v", rest)
	}
	// The same as server-sent events, and from any cursor the rest.
	events, _ := h.follow(t, "/api/v1/executions:outcomes?"+ofRun+"x")
	cursors := []string{first[0].Cursor, first[1].Cursor, rest[0].Cursor}
	got, end := ids(t, events)
	if !slices.Equal(got, cursors) || !strings.Contains(end, `"end":true`) {
		t.Errorf("%v and %s, want %v", got, end, cursors)
	}
	for i, cursor := range cursors {
		events, _ = h.follow(t, "/api/v1/evaluations:outcomes?"+ofRun+"x", "Last-Event-ID", cursor)
		if got, _ = ids(t, events); !slices.Equal(got, cursors[i+1:]) {
			t.Errorf("behind %s: %v", cursor, got)
		}
	}
	// Executions submitted later come after them.
	late := h.run(t, "x", "measured")
	s, _ = h.follow(t, "/api/v1/evaluations:outcomes?"+ofRun+"x&after="+cursors[2], "Accept", asLines)
	if more := lines(t, s, -1); len(more) != 2 || more[0].ID != late[0] || more[0].Output != nil {
		t.Errorf("%+v", more)
	}
	s, _ = h.follow(t, "/api/v1/evaluations:outcomes?"+ofRun+"nothing", "Accept", asLines)
	if none := lines(t, s, -1); len(none) != 1 || !none[0].End || none[0].Cursor != "0" {
		t.Errorf("%+v", none)
	}
	for _, query := range []string{"", "label=run", "label=a%3Db&label=c%3Dd", "label=a%3Db&after=x", "label=a%3Db&outputs=yes"} {
		h.problem(t, 400, api.ProblemInvalid, "GET", "/api/v1/evaluations:outcomes?"+query, "")
	}
}

// A reader that is disconnected after any number of outcomes, many times, gets each of them once.
func TestOutcomesResume(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	sources := make([]string, 300)
	for i := range sources {
		sources[i] = "measured"
	}
	want := h.run(t, "x", sources...)
	seen := map[string]int{}
	cursor, ended := "", false
	for cut := 1; !ended; cut = cut%7 + 1 {
		s, res := h.follow(t, "/api/v1/evaluations:outcomes?"+ofRun+"x&after="+cursor, "Accept", asLines)
		for _, l := range lines(t, s, 10*cut) {
			if cursor = l.Cursor; l.End {
				ended = true
				break
			}
			seen[l.ID]++
		}
		_ = res.Body.Close()
	}
	for _, id := range want {
		if seen[id] != 1 {
			t.Errorf("%s came %d times", id, seen[id])
		}
	}
	if len(seen) != len(want) {
		t.Errorf("%d outcomes of %d", len(seen), len(want))
	}
}

// Large outputs are complete, and only a limited part of them is in memory at a time.
func TestOutcomesOfLargeOutputs(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	const all = 25 // two pages
	h.wordy(t, all, 200_000)
	s, _ := h.follow(t, "/api/v1/evaluations:outcomes?outputs=true&"+ofRun+"x", "Accept", asLines)
	s.Buffer(nil, 1<<20)
	got := lines(t, s, -1)
	if len(got) != all+1 || !got[all].End {
		t.Fatalf("%d lines", len(got))
	}
	for i, l := range got[:all] {
		if l.CPUMS != float64(i+1) || len(l.Output) < 200_000 {
			t.Errorf("line %d: cpu %v, %d bytes of output", i, l.CPUMS, len(l.Output))
		}
	}
}

// A server that is stopping ends the stream without an end message, so that the reader reconnects.
func TestOutcomesWhenDraining(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	h.run(t, "x", "hang")
	s, _ := h.follow(t, "/api/v1/evaluations:outcomes?"+ofRun+"x", "Accept", asLines)
	h.Drain()
	if got := lines(t, s, -1); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
