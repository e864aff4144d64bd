package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/flow"
)

// follow opens a stream and returns its lines.
func (h *house) follow(t testing.TB, path string, header ...string) (*bufio.Scanner, *http.Response) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", h.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := h.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return bufio.NewScanner(res.Body), res
}

// ids reads a stream to its end and returns the ids of its messages, then the data of the last one.
func ids(t testing.TB, s *bufio.Scanner) (ids []string, end string) {
	t.Helper()
	name := ""
	for s.Scan() {
		field, value, _ := strings.Cut(s.Text(), ": ")
		switch field {
		case "event":
			name = value
		case "id":
			ids = append(ids, value)
		case "data":
			if name == api.StreamEnd {
				end = value
			}
		}
	}
	return ids, end
}

func TestEventsStreamAndResume(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	id := h.code(t, "hello")
	path := "/api/v1/executions/" + id + "/events"
	lines, res := h.follow(t, path)
	if res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("headers %v", res.Header)
	}
	if !lines.Scan() || lines.Text() != "retry: 1000" {
		t.Errorf("first line %q", lines.Text())
	}
	all, end := ids(t, lines)
	if !strings.Contains(end, `"status":"completed"`) {
		t.Errorf("end %q", end)
	}
	for i, got := range all {
		if got != fmt.Sprint(i+1) {
			t.Fatalf("ids %v are not 1, 2, 3 …", all)
		}
	}
	lines, _ = h.follow(t, path, "Last-Event-ID", "3")
	if rest, _ := ids(t, lines); !slices.Equal(rest, all[3:]) {
		t.Errorf("resumed after 3: %v, want %v", rest, all[3:])
	}
	lines, _ = h.follow(t, path+"?after=4")
	if rest, _ := ids(t, lines); !slices.Equal(rest, all[4:]) {
		t.Errorf("after 4: %v, want %v", rest, all[4:])
	}
	page, err := h.client.Events(t.Context(), id, 2, 2)
	if err != nil || len(page.Events) != 2 || page.Events[0].Seq != 3 || !page.More || page.NextCursor != "4" {
		t.Errorf("page %+v, %v", page, err)
	}
	h.problem(t, 400, api.ProblemInvalid, "GET", path+"?after=x", "")
}

// A line that a program writes reaches the readers of its log before a person would notice a delay. The time is that of a synctest bubble:
// only waiting for a timer takes time.
func TestLogsAreLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Options{})
		h.client = client.NewInProcess(h.Handler())
		id := h.code(t, "talk")
		voice := h.voice(id)
		next := make(chan api.LogChunk)
		go func() {
			defer close(next)
			for c, err := range h.client.FollowLogs(t.Context(), id, client.LogQuery{}) {
				if err != nil {
					t.Error(err)
					return
				}
				next <- c
			}
		}()
		var took []time.Duration
		for i := range 40 {
			want := fmt.Sprintf("line %d é\n", i)
			voice <- want
			begun := time.Now()
			c := <-next
			took = append(took, time.Since(begun))
			if string(c.Bytes()) != want || c.Seq != int64(i+1) || c.Stream != "stdout" {
				t.Fatalf("chunk %+v, want %q", c, want)
			}
		}
		close(voice)
		if c, more := <-next; more {
			t.Errorf("something follows the end: %+v", c)
		}
		slices.Sort(took)
		t.Logf("behind by %s (median), %s (slowest of %d)", took[len(took)/2], took[len(took)-1], len(took))
		if median := took[len(took)/2]; median > 250*time.Millisecond {
			t.Errorf("half of the lines came later than %s", median)
		}
	})
}

func TestLogPagesAndText(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	id := h.code(t, "talk")
	voice := h.voice(id)
	var want []byte
	for i := range 30 {
		line := fmt.Sprintf("%d:", i)
		if i == 7 {
			line = "\xff\x00\xfe" // not text
		}
		voice <- line
		want = append(want, line...)
	}
	close(voice)
	h.await(t, id, "ended", terminal)

	var got []byte
	var before, last api.LogChunk
	for q := (client.LogQuery{Limit: 20}); ; {
		page, err := h.client.Logs(t.Context(), id, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Chunks {
			got = append(got, c.Bytes()...)
			before, last = last, c
		}
		q.After = page.NextCursor
		if len(page.Chunks) == 0 {
			break
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("pages give %q, want %q", got, want)
	}
	for _, offset := range []int{0, 1, 5, 17, len(want), len(want) + 5} {
		raw, err := h.client.RawLog(t.Context(), id, "stdout", 0, int64(offset))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(raw)
		_ = raw.Close()
		if rest := want[min(offset, len(want)):]; err != nil || !bytes.Equal(b, rest) {
			t.Errorf("text from %d: %q, want %q (%v)", offset, b, rest, err)
		}
	}
	path := "/api/v1/executions/" + id + "/logs"
	if res, body := h.do(t, "GET", path+"?stream=stdout&offset=2", ""); !bytes.Equal(body, want[2:]) || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("offset without Accept: %s %q", res.Header.Get("Content-Type"), body)
	}
	for _, tc := range []struct {
		query string
		want  []byte
	}{
		{"?stream=stdout&offset=2&limit=5", want[2:7]}, {"?stream=stdout&offset=0&limit=4000000", want},
		{"?stream=stdout&tail=3", want[last.Offset:]}, {"?stream=stdout&tail=" + itoa(int(last.Size)+1), want[before.Offset:]},
		{"?stream=stdout&tail=1&limit=2", want[last.Offset : last.Offset+2]}, {"?stream=stdout&tail=1000", want},
	} {
		if res, body := h.do(t, "GET", path+tc.query, "", "Accept", "text/plain"); !bytes.Equal(body, tc.want) {
			t.Errorf("%s: %s %q, want %q", tc.query, res.Status, body, tc.want)
		}
	}
	// A stream that begins at the tail continues after its last id like any other.
	for from, chunks := range map[string]int64{"": 1, "1.0": last.Seq} {
		if _, body := h.do(t, "GET", path+"?tail=1", "", "Accept", "text/event-stream", "Last-Event-ID", from); int64(bytes.Count(body, []byte("event: log\n"))) != chunks {
			t.Errorf("a stream of the tail, behind %q: %s", from, body)
		}
	}
	h.problem(t, 400, api.ProblemInvalid, "GET", path+"?stream=stdout&offset=3&tail=3", "")
	h.problem(t, 400, api.ProblemInvalid, "GET", path+"?tail=0", "")
	h.problem(t, 400, api.ProblemInvalid, "GET", path+"?stream=stdoutt", "")
	h.problem(t, 400, api.ProblemInvalid, "GET", path, "", "Accept", "text/plain")
	h.problem(t, 400, api.ProblemInvalid, "GET", path+"?after=12", "")
}

// A reader that does not read loses its connection, and gets what it missed when it reconnects with its last id.
func TestSlowReaderIsDroppedToResume(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Patience: 300 * time.Millisecond})
	id := h.code(t, "hang")
	h.await(t, id, "running", running)
	const chunks, size = 160, 64 << 10
	big := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	xid, err := flow.ParseID(flow.ExecutionPrefix, id)
	if err != nil {
		t.Fatal(err)
	}
	for i := range chunks {
		if err := h.store.AppendLogs(t.Context(), []flow.LogChunk{{Execution: xid, Attempt: 1, Seq: int64(i + 1), Stream: "stdout",
			Offset: int64(i) * size, At: time.Now(), Data: big, Size: size}}); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	fmt.Fprintf(conn, "GET /api/v1/executions/%s/logs HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", id)

	// Another reader is served meanwhile, and gets everything.
	n := int64(0)
	for c, err := range h.client.FollowLogs(t.Context(), id, client.LogQuery{}) {
		if err != nil || c.Seq != n+1 {
			t.Fatalf("chunk %d after %d: %v", c.Seq, n, err)
		}
		if n++; n == chunks {
			break
		}
	}

	// The slow reader reads shortly after its deadline: the bytes in the buffers, and then the end of the connection.
	waitFor(t, "the slow reader's stream to end", func() bool { return openStreams(t, h) == 0 })
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	lines := bufio.NewReader(conn)
	last := ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		if v, ok := strings.CutPrefix(line, "id: "); ok {
			last = strings.TrimSpace(v)
		}
	}
	if last == "" {
		t.Fatal("the slow reader saw nothing")
	}
	t.Logf("the slow reader saw up to %s of %d", last, chunks)
	page, err := h.client.Logs(t.Context(), id, client.LogQuery{After: last, Limit: 1})
	if err != nil || len(page.Chunks) == 0 {
		t.Fatalf("resume after %s: %+v, %v", last, page, err)
	}
	if got := client.AfterLog(page.Chunks[0]); got <= last && len(got) <= len(last) {
		t.Errorf("resumed after %s at %s", last, got)
	}
	if _, err := h.client.Kill(t.Context(), id, "", 20*time.Second); err != nil {
		t.Fatal(err)
	}
}

// openStreams reads the number of open streams from the metrics.
func openStreams(t testing.TB, h *house) int {
	t.Helper()
	page := httptest.NewRecorder() // without a connection, which the server may drop on a busy machine
	h.Handler().ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		var n int
		if _, err := fmt.Sscanf(line, "pawl_streams_open %d", &n); err == nil {
			return n
		}
	}
	t.Fatal("no pawl_streams_open in the metrics")
	return 0
}

func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func TestStreamsEndWhenTheServerStops(t *testing.T) {
	t.Parallel()
	polled := make(chan error, 1)
	h := start(t, Options{Workers: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done() // a worker in another process that waits for work
		polled <- r.Context().Err()
	})})
	id := h.code(t, "hang")
	h.await(t, id, "running", running)
	go func() {
		if res, err := h.http.Post(h.url+"/api/v1/workers/take", "application/json", nil); err == nil {
			_ = res.Body.Close()
		}
	}()
	lines, _ := h.follow(t, "/api/v1/executions/"+id+"/events")
	if !lines.Scan() {
		t.Fatal("no stream")
	}
	waited := make(chan int, 1)
	go func() {
		res, err := h.http.Get(h.url + "/api/v1/executions/" + id + "?wait=60s")
		if err != nil {
			waited <- 0
			return
		}
		_ = res.Body.Close()
		waited <- res.StatusCode
	}()
	waitFor(t, "both to be under way", func() bool { return openStreams(t, h) == 2 })
	begun := time.Now()
	h.Drain()
	if res, body := h.do(t, "GET", "/readyz", ""); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("ready while draining: %s %s", res.Status, body)
	}
	if res, _ := h.do(t, "GET", "/healthz", ""); res.StatusCode != 200 {
		t.Errorf("not alive while draining: %s", res.Status)
	}
	h.stop()
	if _, end := ids(t, lines); end != "" {
		t.Errorf("a stream that broke off said its end: %s", end)
	}
	if got := <-waited; got != 200 {
		t.Errorf("the waiting request got %d", got)
	}
	<-polled
	h.http.CloseIdleConnections()
	if err := <-h.served; err != nil {
		t.Error(err)
	}
	h.served <- nil // for the clean-up
	if took := time.Since(begun); took > 45*time.Second {
		t.Errorf("stopping took %s", took)
	}
}

func TestTasksOfAWorkflow(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	if _, err := h.client.Define(t.Context(), []byte(diamond), "diamond.yaml"); err != nil {
		t.Fatal(err)
	}
	x, err := h.client.Submit(t.Context(), api.Submission{Action: "diamond", Input: json.RawMessage(`{"items":[1,2,3]}`)})
	if err != nil {
		t.Fatal(err)
	}
	var last api.Tasks
	n := 0
	for tasks, err := range h.client.FollowTasks(t.Context(), x.ID, 2) {
		if err != nil {
			t.Fatal(err)
		}
		last = tasks
		n++
	}
	if last.Status != api.Completed || len(last.Tasks) != 4 {
		t.Fatalf("ended as %+v", last)
	}
	byName := map[string]api.Task{}
	for _, task := range last.Tasks {
		byName[task.Name] = task
	}
	if e := byName["each"]; !e.Foreach || e.Status != api.Completed || e.Total != 3 || e.Ended != 3 || e.Counts[api.Completed] != 3 || len(e.Executions) != 2 || !slices.Equal(e.Needs, []string{"first"}) {
		t.Errorf("each: %+v", e)
	}
	if s := byName["never"]; s.Status != api.TaskSkipped {
		t.Errorf("never: %+v", s)
	}
	if f := byName["first"]; f.Status != api.Completed || len(f.Executions) != 1 || f.StartedAt.IsZero() || f.FinishedAt.IsZero() {
		t.Errorf("first: %+v", f)
	}
	once, err := h.client.Tasks(t.Context(), x.ID, 0)
	if err != nil || len(once.Tasks) != 4 {
		t.Errorf("tasks: %+v, %v", once, err)
	}
	children, err := h.client.List(t.Context(), client.Filter{Workflow: x.ID})
	if err != nil || len(children.Executions) != 5 {
		t.Errorf("%d children, want 5 (%v)", len(children.Executions), err)
	}
	noop, err := h.client.Submit(t.Context(), api.Submission{Action: "noop"})
	if err != nil {
		t.Fatal(err)
	}
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/executions/"+noop.ID+"/tasks", "")
}

const diamond = `
name: diamond
input:
  type: object
  properties:
    items: {type: array}
tasks:
  first:
    action: input
    with: {n: 1}
  each:
    needs: [first]
    foreach: ${{ input.items }}
    action: input
    with: {item: "${{ item }}"}
  never:
    needs: [first]
    if: tasks.first.output.n == 2
    action: input
  last:
    needs: [each]
    action: output
    with: {all: "${{ tasks.each.output }}"}
`

// A media type of weight 0 is not accepted.
func TestStreamIsNotAccepted(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"text/event-stream": true, "application/json, text/event-stream": true, "text/event-stream;q=0.5": true, "text/event-stream; q=1, */*": true,
		"text/event-stream;q=0": false, "application/json, text/event-stream; q=0.000": false, "text/plain": false, "": false,
	} {
		c := &call{r: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), route: &route{}}
		c.r.Header.Set("Accept", accept)
		if got := c.wantsStream(); got != want {
			t.Errorf("Accept %q: a stream %t, want %t", accept, got, want)
		}
	}
}
