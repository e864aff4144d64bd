package server

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/flow"
)

// scribble writes two streams of two attempts into the logs of a waiting execution, cut into chunks at random places, and returns the lines
// that contain "7".
func scribble(t *testing.T, h *house, id string, random *rand.Rand) map[string]bool {
	t.Helper()
	xid, err := flow.ParseID(flow.ExecutionPrefix, id)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	var chunks []flow.LogChunk
	for attempt := 1; attempt <= 2; attempt++ {
		texts, at, seq := map[string]string{}, map[string]int{}, int64(0)
		for _, stream := range []string{"stdout", "stderr"} {
			for n := range 150 {
				line := fmt.Sprintf("%s %d%s", stream, n, strings.Repeat(".", random.IntN(40)))
				if strings.Contains(line, "7") {
					want[fmt.Sprintf("%d %s %d %s", attempt, stream, len(texts[stream]), line)] = true
				}
				texts[stream] += line + []string{"\n", "\r\n"}[random.IntN(2)]
			}
			last := "7 without an end"
			want[fmt.Sprintf("%d %s %d %s", attempt, stream, len(texts[stream]), last)] = true
			texts[stream] += last
		}
		for at["stdout"] < len(texts["stdout"]) || at["stderr"] < len(texts["stderr"]) {
			stream := []string{"stdout", "stderr"}[random.IntN(2)]
			from := at[stream]
			to := min(len(texts[stream]), from+1+random.IntN(100))
			if from == to {
				continue
			}
			seq++
			chunks = append(chunks, flow.LogChunk{Execution: xid, Attempt: attempt, Seq: seq, Stream: stream, Offset: int64(from), At: time.Now(),
				Data: []byte(texts[stream][from:to]), Size: int64(to - from)})
			at[stream] = to
		}
	}
	if err := h.store.AppendLogs(t.Context(), chunks); err != nil {
		t.Fatal(err)
	}
	return want
}

// Each line is found once, however chunks cut it and however often the search is continued.
func TestLogSearch(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	x, err := h.client.Submit(t.Context(), api.Submission{Action: "noop"})
	if err != nil {
		t.Fatal(err)
	}
	h.await(t, x.ID, "ended", terminal)
	seed := uint64(time.Now().UnixNano())
	want := scribble(t, h, x.ID, rand.New(rand.NewPCG(seed, 1)))
	for _, s := range []client.LogSearch{{Text: "7"}, {Text: "7", Limit: 1}, {Text: "7", Limit: 7}, {Text: "[7]", Regexp: true, Limit: 20}, {Text: "7", Stream: "stderr", Attempt: 2, Limit: 3}} {
		got := map[string]bool{}
		for m, err := range h.client.AllMatches(t.Context(), x.ID, s) {
			if err != nil {
				t.Fatal(err)
			}
			key := fmt.Sprintf("%d %s %d %s", m.Attempt, m.Stream, m.Offset, m.Line)
			page, err := h.client.Logs(t.Context(), x.ID, client.LogQuery{After: fmt.Sprintf("%d.%d", m.Attempt, m.Seq-1), Limit: 1})
			if err != nil || len(page.Chunks) == 0 || page.Chunks[0].Stream != m.Stream || m.Offset < page.Chunks[0].Offset || m.Offset >= page.Chunks[0].Offset+page.Chunks[0].Size {
				t.Errorf("seed %d: %+v begins in another chunk than %+v (%v)", seed, m, page, err)
			}
			if got[key] || !want[key] || s.Stream != "" && m.Stream != s.Stream || s.Attempt > 0 && m.Attempt != s.Attempt {
				t.Errorf("seed %d: %+v found %q (before: %t, wanted: %t)", seed, s, key, got[key], want[key])
			}
			got[key] = true
		}
		if s.Stream == "" && len(got) != len(want) {
			t.Errorf("seed %d: %+v found %d lines, want %d", seed, s, len(got), len(want))
		}
	}
}

// In a running execution, an unfinished line is found once it has ended, and only once.
func TestLogSearchWhileRunning(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	id := h.code(t, "talk")
	voice := h.voice(id)
	after, found := "", []string{}
	say := func(text string, lines ...string) {
		t.Helper()
		voice <- text
		waitFor(t, fmt.Sprintf("%q to be found", lines), func() bool {
			m, err := h.client.SearchLogs(t.Context(), id, client.LogSearch{Text: "e", After: after})
			if err != nil {
				t.Fatal(err)
			}
			after = m.NextCursor
			for _, m := range m.Matches {
				found = append(found, m.Line)
			}
			return slices.Equal(found, lines)
		})
	}
	say("one\ntwo\nthr", "one")
	say("ee\n"+strings.Repeat("x", 20<<10)+"e\xff", "one", "three")
	close(voice)
	h.await(t, id, "ended", terminal)
	m, err := h.client.SearchLogs(t.Context(), id, client.LogSearch{Text: "e", After: after})
	if err != nil || len(m.Matches) != 1 || !m.Matches[0].Cut || len(m.Matches[0].Line) > longestShown+3 || !strings.HasSuffix(m.Matches[0].Line, "xe\uFFFD") || m.More {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestLogSearchRefusals(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	path := "/api/v1/executions/" + h.code(t, "hello") + "/logs/search"
	for query, says := range map[string]string{
		"": "it is missing", "q=" + strings.Repeat("x", 1001): "1001 bytes", "q=(&regexp=true": "missing closing", "q=" + url.QueryEscape("(abcdefgh){900}") + "&regexp=true": "too large",
		"q=a&after=1": "next_cursor", "q=a&after=1.2,stdin:4": "next_cursor", "q=a&after=1.2,stdout:-4": "next_cursor", "q=a&stream=out": "no such stream", "q=a&limit=1001": "range", "q=a&attempt=0": "range",
	} {
		if p := h.problem(t, 400, api.ProblemInvalid, "GET", path+"?"+query, ""); !strings.Contains(fmt.Sprintf("%+v", p), says) {
			t.Errorf("%s: %+v does not say %q", query, p, says)
		}
	}
}

// A search that takes too long stops after at most one more line, and continues from its cursor.
func TestLogSearchIsBounded(t *testing.T) {
	t.Parallel()
	s := lineSearch{match: func([]byte) []int { return nil }, limit: 10, open: map[string]*openLine{}}
	data := []byte(strings.Repeat("line\n", 100))
	if s.feed(&flow.LogChunk{Attempt: 1, Seq: 1, Stream: "stdout", Size: int64(len(data))}, data) || s.cursor() != "1.1,stdout:0" {
		t.Errorf("without time it went on to %s", s.cursor())
	}
	s.until = time.Now().Add(time.Hour)
	if !s.drainAll() || s.cursor() != "1.1" {
		t.Errorf("with time it stopped at %s", s.cursor())
	}
}

// A chunk with missing bytes ends the line before it and begins none: the lines after it are found at their own offsets.
func TestLogSearchOverMissingBytes(t *testing.T) {
	t.Parallel()
	s := lineSearch{match: func(line []byte) []int { return []int{0, len(line)} }, limit: 10, until: time.Now().Add(time.Hour), open: map[string]*openLine{}}
	for i, c := range []struct {
		offset, size int64
		data         string
	}{{0, 6, "one\ntw"}, {6, 100, "[100 bytes are missing]\n"}, {106, 6, "three\n"}} {
		s.feed(&flow.LogChunk{Attempt: 1, Seq: int64(i + 1), Stream: "stdout", Offset: c.offset, Size: c.size}, []byte(c.data))
	}
	want := []api.LogMatch{{Attempt: 1, Seq: 1, Stream: "stdout", Line: "one"}, {Attempt: 1, Seq: 3, Stream: "stdout", Offset: 106, Line: "three"}}
	if !slices.Equal(s.found, want) {
		t.Errorf("%+v, want %+v", s.found, want)
	}
}
