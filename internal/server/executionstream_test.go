package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/flow"
)

// write appends n chunks of 1,000 bytes, after the first from chunks, to the stdout of an execution's first attempt in one call.
func (h *house) write(t testing.TB, id string, from, n int) {
	t.Helper()
	x, err := flow.ParseID(flow.ExecutionPrefix, id)
	if err != nil {
		t.Fatal(err)
	}
	var all []flow.LogChunk
	for i := from; i < from+n; i++ {
		data := fmt.Sprintf("%999d\n", i)
		all = append(all, flow.LogChunk{Execution: x, Attempt: 1, Seq: int64(i + 1), Stream: "stdout", Offset: int64(i) * 1000, At: time.Now(), Data: []byte(data), Size: 1000})
	}
	if err := h.store.AppendLogs(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

// Logs are read backwards from their end, page by page, with each byte exactly once.
func TestLogsBackwards(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	id := h.code(t, "fail")
	h.await(t, id, "ended", terminal)
	const chunks = 57
	h.write(t, id, 0, chunks)
	next := int64(chunks)
	q := client.LogQuery{Tail: 5000}
	for pages := 1; ; pages++ {
		page, err := h.client.Logs(t.Context(), id, q)
		if err != nil || len(page.Chunks) == 0 || page.More {
			t.Fatalf("page %d: %+v, %v", pages, page, err)
		}
		for i := len(page.Chunks) - 1; i >= 0; i-- {
			if c := page.Chunks[i]; c.Seq != next || strings.TrimSpace(c.Text) != fmt.Sprint(next-1) {
				t.Fatalf("chunk %d: %.1010v", next, c)
			}
			next--
		}
		if (page.PrevCursor == "") != (next == 0) {
			t.Fatalf("prev_cursor %q with %d chunks left", page.PrevCursor, next)
		}
		if next == 0 {
			if pages != 6 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		q = client.LogQuery{Before: page.PrevCursor, Limit: 11_000}
	}
	page, err := h.client.Logs(t.Context(), id, client.LogQuery{After: "1.10", Before: "1.13"})
	if err != nil || len(page.Chunks) != 2 || page.Chunks[0].Seq != 11 || page.NextCursor != "1.12" || page.PrevCursor != "" || page.More {
		t.Errorf("between two places: %+v, %v", page, err)
	}
	if page, err := h.client.Logs(t.Context(), id, client.LogQuery{Before: "1.1"}); err != nil || len(page.Chunks) > 0 || page.PrevCursor != "" || page.More {
		t.Errorf("before the start: %+v, %v", page, err)
	}
	path := "/api/v1/executions/" + id + "/logs"
	// A page of chunks may begin with the chunk that contains a given byte of its stream.
	var at api.LogPage
	_, answer := h.do(t, "GET", path+"?stream=stdout&offset=10500&limit=1", "", "Accept", "application/json")
	if err := json.Unmarshal(answer, &at); err != nil || len(at.Chunks) != 1 || at.Chunks[0].Seq != 11 || !at.More || at.NextCursor != "1.11" {
		t.Errorf("at a byte: %.300s, %v", answer, err)
	}
	if _, answer := h.do(t, "GET", path+"?stream=stdout&offset=57000", "", "Accept", "application/json"); !strings.Contains(string(answer), `"chunks":[]`) {
		t.Errorf("behind the last byte: %.300s", answer)
	}
	h.problem(t, 400, api.ProblemInvalid, "GET", path+"?offset=7", "", "Accept", "application/json")
	h.problem(t, 400, api.ProblemInvalid, "GET", path+"?stream=stdout&offset=7", "", "Accept", "text/event-stream")
	for _, query := range []string{"?before=x", "?before=0.1", "?skip=true", "?skip=true&tail=1"} {
		h.problem(t, 400, api.ProblemInvalid, "GET", path+query, "")
	}
	h.problem(t, 400, api.ProblemInvalid, "GET", path+"?before=1.3&stream=stdout", "", "Accept", "text/plain")
	h.problem(t, 400, api.ProblemInvalid, "GET", path+"?before=1.3", "", "Accept", "text/event-stream")
	h.problem(t, 400, api.ProblemInvalid, "GET", path+"?skip=true", "", "Accept", "text/event-stream")
}

// A stream of logs reports what it leaves out: before its tail, and with skip when its reader has fallen further behind.
func TestStreamsOfLogsSayGaps(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for _, skip := range []bool{false, true} {
		id := h.code(t, "hang")
		h.await(t, id, "running", running)
		h.write(t, id, 0, 20)
		var got []string
		for m, err := range h.client.Follow(t.Context(), id, client.FollowQuery{Logs: true, Written: client.LogQuery{Tail: 2500, Skip: skip}}) {
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case m.Gap != nil:
				got = append(got, "gap "+m.Gap.From+" "+m.Gap.To)
			case m.Log != nil:
				got = append(got, fmt.Sprint(m.Log.Seq))
				switch m.Log.Seq {
				case 20:
					h.write(t, id, 20, 30)
				case 50:
					if _, err := h.client.Kill(t.Context(), id, "", 0); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		want := "gap  1.18 18 19 20 gap 1.20 1.48 48 49 50"
		if !skip {
			want = "gap  1.18"
			for i := 18; i <= 50; i++ {
				want += fmt.Sprint(" ", i)
			}
		}
		if said := strings.Join(got, " "); said != want {
			t.Errorf("skip %v: %s, want %s", skip, said, want)
		}
	}
}

// One stream has the history, the logs and the tasks of an execution, and continues after the last id.
func TestOneStreamOfAnExecution(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	id := h.code(t, "fail")
	h.await(t, id, "ended", terminal)
	h.write(t, id, 0, 3)
	path := "/api/v1/executions/" + id + "/stream"
	lines, res := h.follow(t, path)
	if res.Header.Get("Content-Type") != mediaEvents {
		t.Errorf("%s %v", res.Status, res.Header)
	}
	all, end := ids(t, lines)
	if !strings.Contains(end, `"status":"failed"`) || len(all) < 7 || all[0] != "e1,l0.0" || !strings.HasSuffix(all[len(all)-1], ",l1.3") {
		t.Fatalf("%v, then %s", all, end)
	}
	for i := range all {
		lines, _ := h.follow(t, path, "Last-Event-ID", all[i])
		if rest, end := ids(t, lines); strings.Join(rest, " ") != strings.Join(all[i+1:], " ") || end == "" {
			t.Errorf("behind %s: %v, want %v", all[i], rest, all[i+1:])
		}
	}
	lines, _ = h.follow(t, path+"?of=logs&after="+all[len(all)-2])
	if rest, _ := ids(t, lines); len(rest) != 1 {
		t.Errorf("of the logs alone: %v", rest)
	}
	for _, query := range []string{"?of=tasks,log", "?of=,", "?after=12", "?after=1.42", "?after=e1", "?after=e-1,l1.1", "?after=e1,l1"} {
		h.problem(t, 400, api.ProblemInvalid, "GET", path+query, "")
	}
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/executions/"+flow.ID{1}.String()+"/stream", "")
}

// The changes of tasks in a stream add up to the server's state of all tasks.
func TestStreamOfChangedTasks(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	if _, err := h.client.Define(t.Context(), []byte(diamond), ""); err != nil {
		t.Fatal(err)
	}
	wf, err := h.client.Submit(t.Context(), api.Submission{Action: "diamond", Input: json.RawMessage(`{"items":[1,2,3]}`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, listed := range []int{0, -1} {
		var last *api.Tasks
		seq := int64(0)
		for m, err := range h.client.Follow(t.Context(), wf.ID, client.FollowQuery{Tasks: true, Events: true, Items: listed}) {
			switch {
			case err != nil:
				t.Fatal(err)
			case m.Tasks != nil:
				last = m.Tasks
			case m.Event == nil || m.Event.Seq != seq+1:
				t.Fatalf("behind event %d: %+v", seq, m)
			default:
				seq++
			}
		}
		whole, err := h.client.Tasks(t.Context(), wf.ID, listed)
		if err != nil || last == nil {
			t.Fatal(err)
		}
		got, want := marshalled(t, last), marshalled(t, whole)
		if got != want || seq == 0 {
			t.Errorf("after %d events %s, want %s", seq, got, want)
		}
		for _, task := range whole.Tasks {
			if n := len(task.Executions); n != task.Created && (listed == 0 || !task.Foreach) || listed < 0 && task.Foreach && n > 0 {
				t.Errorf("of %d executions of %s %d are listed", task.Created, task.Name, n)
			}
		}
	}
	// The first message of a stream has all tasks, later ones only the changed tasks.
	if _, err := h.client.Define(t.Context(), []byte("name: long\ntasks: {t0: {action: noop}, t1: {action: sleep, with: {for: 1h}}}"), ""); err != nil {
		t.Fatal(err)
	}
	if wf, err = h.client.Submit(t.Context(), api.Submission{Action: "long"}); err != nil {
		t.Fatal(err)
	}
	lines, _ := h.follow(t, "/api/v1/executions/"+wf.ID+"/tasks?changes=true")
	said := map[string]int{}
	for lines.Scan() {
		name, ok := strings.CutPrefix(lines.Text(), "event: ")
		if !ok {
			continue
		}
		if said[name]++; said[api.StreamTasks] == 1 && len(said) == 1 {
			if _, err := h.client.Cancel(t.Context(), wf.ID, "", 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if said[api.StreamTasks] != 1 || said[api.StreamTaskChanges] == 0 || said[api.StreamEnd] != 1 {
		t.Errorf("messages: %v", said)
	}
	h.problem(t, 400, api.ProblemInvalid, "GET", "/api/v1/executions/"+wf.ID+"/tasks?changes=true", "")
}

func marshalled(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every execution of a task is found, by pages and by status, even if there are many.
func TestItemsOfATask(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	const items = 1100
	if _, err := h.client.Define(t.Context(), []byte(strings.Replace(wide(1, items), "with: {for: 1ms}}\n  each", "with: {for: 1ms}}\n  eacg: {action: noop}\n  each", 1)+"  eaci: {action: noop}\n"), ""); err != nil {
		t.Fatal(err)
	}
	wf, err := h.client.Submit(t.Context(), api.Submission{Action: "wide"})
	if err == nil {
		wf, err = h.client.Wait(t.Context(), wf.ID)
	}
	if err != nil || wf.Status != api.Completed {
		t.Fatalf("%+v, %v", wf, err)
	}
	for _, limit := range []int{0, 1, 300, items, 10_000} {
		cursor, next := "", 0
		for pages := 0; pages == 0 || cursor != ""; pages++ {
			page, err := h.client.TaskItems(t.Context(), wf.ID, "each", []api.Status{api.Completed, api.Running}, cursor, limit)
			if err != nil || page.Task != "each" || page.Workflow != wf.ID || page.Attempt != 1 || !page.Since.Equal(wf.CreatedAt) {
				t.Fatalf("%+v, %v", page, err)
			}
			for i := range page.Items {
				it := &page.Items[i]
				if it.Index != next || it.Status != api.Completed || it.ID == "" || it.FinishedMS == nil || *it.FinishedMS < it.CreatedMS {
					t.Fatalf("item %d: %+v", next, it)
				}
				next++
			}
			if cursor = page.NextCursor; limit == 1 && next == 30 {
				next = items
				break
			}
		}
		if next != items {
			t.Errorf("in pages of %d: %d items", limit, next)
		}
	}
	if page, err := h.client.TaskItems(t.Context(), wf.ID, "each", []api.Status{api.Failed}, "", 0); err != nil || len(page.Items) > 0 || page.NextCursor != "" {
		t.Errorf("failed ones: %+v, %v", page, err)
	}
	if page, err := h.client.TaskItems(t.Context(), wf.ID, "t0", nil, "", 0); err != nil || len(page.Items) != 1 || page.Items[0].Index != 0 {
		t.Errorf("of a task that has one: %+v, %v", page, err)
	}
	path := "/api/v1/executions/" + wf.ID + "/tasks/"
	h.problem(t, 404, api.ProblemNotFound, "GET", path+"other/items", "")
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/executions/"+h.code(t, "hello")+"/tasks/each/items", "")
	for _, query := range []string{"cursor=x", "status=done", "limit=0", "limit=10001"} {
		h.problem(t, 400, api.ProblemInvalid, "GET", path+"each/items?"+query, "")
	}
}
