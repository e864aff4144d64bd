package judge0

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/server/compat"
)

// box is a server whose evaluations never end, or are in the state of execution; without a store, calls wait until their context ends.
type box struct {
	execution *api.Execution
	noStore   bool
	refuse    *api.Problem // answer to all submissions after the first takes
	takes     int
	noLogs    bool   // calls for logs wait until their context ends
	log       string // content of every stream
	torn      bool   // logs break off
	slowKills bool   // kills wait until their context ends

	mu        sync.Mutex
	killed    []string
	submitted []api.Evaluation

	requests      []api.Submission // callbacks
	refuseRequest *api.Problem     // answer to them
}

func (b *box) Evaluate(ctx context.Context, e api.Evaluation) (*api.Execution, error) {
	if b.submitted = append(b.submitted, e); b.noStore {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if b.refuse != nil && len(b.submitted) > b.takes {
		return nil, b.refuse
	}
	return &api.Execution{ID: "ex_1", Status: api.Scheduled, Labels: e.Labels}, nil
}

func (b *box) Submit(_ context.Context, s api.Submission) (*api.Execution, error) {
	if b.requests = append(b.requests, s); b.refuseRequest != nil {
		return nil, b.refuseRequest
	}
	return &api.Execution{ID: "ex_callback", Status: api.Requested}, nil
}

func (b *box) Get(ctx context.Context, id string) (*api.Execution, error) {
	if b.noStore {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if b.execution == nil || b.execution.ID != id {
		return nil, &api.Problem{Status: http.StatusNotFound}
	}
	return b.execution, nil
}

func (b *box) Wait(ctx context.Context, _ string) (*api.Execution, error) {
	if b.execution != nil {
		return b.execution, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (b *box) Kill(ctx context.Context, id, _ string, _ time.Duration) (*api.Execution, error) {
	b.mu.Lock()
	b.killed = append(b.killed, id)
	b.mu.Unlock()
	if b.slowKills {
		<-ctx.Done()
	}
	return nil, ctx.Err()
}

func (b *box) RawLog(ctx context.Context, _, _ string, _ int, _ int64) (io.ReadCloser, error) {
	if b.noLogs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if b.log == "" {
		return nil, errors.New("there is no log")
	}
	if b.torn {
		return io.NopCloser(io.MultiReader(strings.NewReader(b.log), iotest.ErrReader(io.ErrUnexpectedEOF))), nil
	}
	return io.NopCloser(strings.NewReader(b.log)), nil
}

func (b *box) File(context.Context, string, string) (io.ReadCloser, error) {
	return nil, errors.New("there is no file")
}

// ask sends a request to a wire in front of b, and returns the status, the body and the counted outcomes.
func (b *box) ask(ctx context.Context, method, path, body string) (string, []string) {
	var counted []string
	h := New(compat.Options{Pawl: b, Count: func(outcome string) { counted = append(counted, outcome) }, Languages: language.BuiltIn().Known()})
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return http.StatusText(w.Code) + " " + w.Body.String(), counted
}

const program = `{"source_code": "print(1)", "language_id": 71, "expected_output": "1"}`

// A request with wait=true is held for ten minutes, and then gets the token of a submission that continues.
func TestHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, begun := &box{}, time.Now()
		got, counted := b.ask(t.Context(), "POST", "/submissions?wait=true", program)
		if !strings.HasPrefix(got, "Created ") || !strings.Contains(got, `"token":"ex_1"`) || !strings.Contains(got, `"description":"In Queue"`) {
			t.Errorf("got %s", got)
		}
		if took := time.Since(begun); took != held || len(b.killed) > 0 || !slices.Equal(counted, []string{compat.Late}) {
			t.Errorf("it took %v; killed %v, counted %v", took, b.killed, counted)
		}
	})
}

// If a client disconnects before it has a token, its program is killed.
func TestGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { leave(context.Canceled) })
		b := &box{}
		if _, counted := b.ask(ctx, "POST", "/submissions?wait=true", program); len(b.killed) != 1 || !slices.Equal(counted, []string{compat.Gone}) {
			t.Errorf("killed %v, counted %v", b.killed, counted)
		}
	})
}

const called = `{"source_code": "print(1)", "language_id": 71, "callback_url": "https://judge.example/done?of=7"}`

// The callback waits for its submission, because both have the same concurrency key.
func TestCallbackWaits(t *testing.T) {
	t.Parallel()
	b := &box{}
	got, _ := b.ask(t.Context(), "POST", "/submissions", called)
	if !strings.HasPrefix(got, "Created ") || !strings.Contains(got, `"token":"ex_1"`) || len(b.requests) != 1 {
		t.Fatalf("%s, and %d requests", got, len(b.requests))
	}
	r, key := b.requests[0], b.submitted[0].Concurrency
	if key == nil || key.Key == "" || key.Limit != 1 || *r.Concurrency != *key || r.Labels[CallbackLabel] != "ex_1" || r.Queue != CallbackQueue || r.WorkerLabels["pawl"] != CallbackQueue {
		t.Errorf("%+v beside %+v", r, key)
	}
	if want := `{"method":"PUT","timeout":"5s","url":"https://judge.example/done?of=7"}`; r.Action != "http" || string(r.Input) != want {
		t.Errorf("%s %s", r.Action, r.Input)
	}
	if got, _ := b.ask(t.Context(), "POST", "/submissions", strings.Replace(called, "{", `{"max_file_size": 4097, `, 1)); !strings.Contains(got, `{"max_file_size":["must be at most 4096 kilobytes with callback_url"]}`) {
		t.Error(got)
	}
}

// If a client disconnects, its callback is still sent. If it gets no token, there is no callback: the callback is killed before the
// submission, whose end would send it.
func TestCallbackWithoutToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { leave(context.Canceled) })
		b := &box{}
		if _, counted := b.ask(ctx, "POST", "/submissions?wait=true", called); len(b.killed) > 0 || !slices.Equal(counted, []string{compat.Gone}) {
			t.Errorf("killed %v, counted %v", b.killed, counted)
		}
	})
	b := &box{refuse: &api.Problem{Status: http.StatusServiceUnavailable}, takes: 1}
	if _, _ = b.ask(t.Context(), "POST", "/submissions/batch", `{"submissions": [`+called+`, `+called+`]}`); !slices.Equal(b.killed, []string{"ex_callback", "ex_1"}) {
		t.Errorf("killed %v", b.killed)
	}
	b = &box{refuseRequest: &api.Problem{Status: http.StatusUnprocessableEntity, Errors: []api.FieldError{{Path: "input.url", Message: "it is not one"}}}}
	if got, _ := b.ask(t.Context(), "POST", "/submissions", called); !strings.HasSuffix(got, `{"callback_url":["it is not one"]}`+"\n") || !slices.Equal(b.killed, []string{"ex_1"}) {
		t.Errorf("%s, killed %v", got, b.killed)
	}
}

// The body of a callback is in base64, even for a submission in plain text. If the log of a long output cannot be read, Callback returns an
// error, so that the callback is retried later.
func TestCallbackBody(t *testing.T) {
	t.Parallel()
	body := func(b *box, token string) (string, error) {
		raw, err := Callback(compat.Options{Pawl: b, Languages: language.BuiltIn().Known()})(t.Context(), token)
		return string(raw), err
	}
	x := api.Execution{ID: "ex_1", Labels: map[string]string{"wire": Name}, Status: api.Completed, Output: []byte(`{"verdict": "ok", "stdout": "é", "stdout_bytes": 2, "cpu_ms": 5}`)}
	want := `{"compile_output":null,"memory":0,"message":null,"status":{"id":3,"description":"Accepted"},"stderr":null,"stdout":"w6k=\n","time":"0.005","token":"ex_1"}`
	if got, err := body(&box{execution: &x}, "ex_1"); got != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := body(&box{execution: logged(200_000)}, "ex_1"); !errors.Is(err, compat.ErrLate) {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := body(&box{}, "ex_2"); err == nil {
		t.Errorf("%s, %v", got, err)
	}
}

// While the store is unreachable there is an error, and no token and no status.
func TestNoStore(t *testing.T) {
	t.Parallel()
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/submissions", program}, {"POST", "/submissions?wait=true", program}, {"POST", "/submissions/batch", `{"submissions": [` + program + `]}`},
		{"GET", "/submissions/ex_1", ""}, {"GET", "/submissions/batch?tokens=ex_1,ex_2", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &box{noStore: true}
			if got, _ := b.ask(t.Context(), r.method, r.path, r.body); !strings.HasPrefix(got, "Service Unavailable ") || !strings.Contains(got, `"error"`) {
				t.Errorf("%s %s: %s", r.method, r.path, got)
			}
		})
	}
}

// An evaluation that ended without a result for its program is an Internal Error, by which Judge0's clients recognize a broken sandbox.
func TestLostIsInternalError(t *testing.T) {
	t.Parallel()
	code := func(verdict string) []byte { return []byte(`{"verdict": "` + verdict + `"}`) }
	for name, x := range map[string]api.Execution{
		"workers lost":     {Status: api.Failed, Error: &api.Error{Code: "worker_lost", Message: "the worker is gone"}},
		"infrastructure":   {Status: api.Failed, Error: &api.Error{Code: "infra_error", Message: "no space"}, Output: code("infra_error")},
		"queued too long":  {Status: api.TimedOut, Error: &api.Error{Code: "queue_timeout", Message: "no worker"}},
		"killed by people": {Status: api.Cancelled, Error: &api.Error{Code: "killed", Message: "enough"}, Output: code("killed")},
		"idle":             {Status: api.Failed, Error: &api.Error{Code: "idle", Message: "?"}, Output: code("idle")},
	} {
		x.ID, x.Labels = "ex_1", map[string]string{"wire": Name, languageLabel: "71"}
		b := &box{execution: &x}
		for _, path := range []string{"/submissions/ex_1", "/submissions/batch?tokens=ex_1"} {
			if got, _ := b.ask(t.Context(), "GET", path, ""); !strings.HasPrefix(got, "OK ") || !strings.Contains(got, `"status":{"id":13,"description":"Internal Error"}`) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// logged returns an execution that has written n bytes to its log.
func logged(n int) *api.Execution {
	return &api.Execution{ID: "ex_1", Labels: map[string]string{"wire": Name}, Status: api.Completed,
		Output: fmt.Appendf(nil, `{"verdict": "ok", "stdout": "a", "stdout_bytes": %d, "stdout_truncated": true}`, n)}
}

// If the log cannot be read, a request for outputs gets no verdict, and a request for the verdict alone gets it. A store that does not
// answer is waited for as long as in other requests.
func TestLogAway(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{false, true} {
		for path, want := range map[string]string{
			"GET /submissions/ex_1": "Service Unavailable ", "GET /submissions/batch?tokens=ex_1,ex_1": "Service Unavailable ", "POST /submissions?wait=true": "Service Unavailable ",
			"GET /submissions/ex_1?fields=status,time": "OK ", "GET /submissions/batch?tokens=ex_1&fields=token,status": "OK ",
			"POST /submissions?wait=true&fields=token,status": "Created ",
		} {
			synctest.Test(t, func(t *testing.T) {
				b, begun := &box{execution: logged(200_000), noLogs: waits}, time.Now()
				method, path, _ := strings.Cut(path, " ")
				if got, _ := b.ask(t.Context(), method, path, program); !strings.HasPrefix(got, want) || time.Since(begun) > prompt {
					t.Errorf("%s %s after %v: %s", method, path, time.Since(begun), got)
				}
			})
		}
	}
}

// A log that breaks off may be complete at the next request; a log that ends too early will not be.
func TestLogTorn(t *testing.T) {
	t.Parallel()
	for torn, want := range map[bool]string{true: "Service Unavailable ", false: "OK "} {
		b := &box{execution: logged(9), log: "abc", torn: torn}
		if got, _ := b.ask(t.Context(), "GET", "/submissions/ex_1", ""); !strings.HasPrefix(got, want) || !torn && !strings.Contains(got, "Internal Error") {
			t.Errorf("torn=%t: %s", torn, got)
		}
	}
}

// The whole answer is in memory, so its size is limited.
func TestBatchOfLargeOutputs(t *testing.T) {
	t.Parallel()
	b := &box{execution: logged(8 << 20), log: strings.Repeat("x", 8<<20)}
	eight := "/submissions/batch?tokens=ex_1" + strings.Repeat(",ex_1", 8)
	if got, _ := b.ask(t.Context(), "GET", eight, ""); !strings.HasPrefix(got, "Bad Request ") || !strings.Contains(got, "ask for fewer tokens") {
		t.Errorf("%.200s", got)
	}
	if got, _ := b.ask(t.Context(), "GET", strings.TrimSuffix(eight, ",ex_1,ex_1"), ""); !strings.HasPrefix(got, "OK ") || strings.Count(got, "xxx") == 0 {
		t.Errorf("%.200s", got)
	}
}

// An execution that did not come over this wire is not found.
func TestOnlyOwnTokens(t *testing.T) {
	t.Parallel()
	b := &box{execution: &api.Execution{ID: "ex_1", Status: api.Running}}
	if got, _ := b.ask(t.Context(), "GET", "/submissions/ex_1", ""); !strings.HasPrefix(got, "Not Found ") {
		t.Errorf("got %s", got)
	}
	b.execution.Labels = map[string]string{"wire": Name}
	if got, _ := b.ask(t.Context(), "GET", "/submissions/ex_1", ""); !strings.Contains(got, `"description":"Processing"`) {
		t.Errorf("got %s", got)
	}
}

// If the store stops accepting in the middle of a batch, the client has to send the whole batch again: the accepted part is killed.
func TestBatchTakenInPart(t *testing.T) {
	t.Parallel()
	b := &box{refuse: &api.Problem{Status: http.StatusServiceUnavailable}, takes: 1}
	got, counted := b.ask(t.Context(), "POST", "/submissions/batch", `{"submissions": [`+program+`, `+program+`]}`)
	if !strings.HasPrefix(got, "Service Unavailable ") || len(b.killed) != 1 || !slices.Equal(counted, []string{compat.Accepted, compat.Late}) {
		t.Errorf("%s, killed %v, counted %v", got, b.killed, counted)
	}
}

// If kills are not answered, the client of a batch waits as long as for one kill, not for all of them.
func TestBatchTakenInPartSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, begun := &box{refuse: &api.Problem{Status: http.StatusServiceUnavailable}, takes: 3, slowKills: true}, time.Now()
		got, _ := b.ask(t.Context(), "POST", "/submissions/batch", `{"submissions": [`+strings.Repeat(program+",", 3)+program+`]}`)
		if took := time.Since(begun); !strings.HasPrefix(got, "Service Unavailable ") || len(b.killed) != 3 || took > 5*time.Second {
			t.Errorf("%s after %v, killed %v", got, took, b.killed)
		}
	})
}

func TestBatchOfTooMany(t *testing.T) {
	t.Parallel()
	b := &box{}
	many := strings.Repeat(program+",", batchLimit) + program
	if got, _ := b.ask(t.Context(), "POST", "/submissions/batch", `{"submissions": [`+many+`]}`); !strings.HasPrefix(got, "Bad Request ") || len(b.submitted) > 0 {
		t.Errorf("%s, %d submitted", got, len(b.submitted))
	}
}

// An archive is unpacked in memory, so its size is limited; only regular files are used.
func TestArchives(t *testing.T) {
	t.Parallel()
	archive := func(size int, headers ...zip.FileHeader) string {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, header := range headers {
			w, err := z.CreateHeader(&header)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(b.Bytes())
	}
	regular := zip.FileHeader{Name: "d/a.sh", Method: zip.Deflate}
	regular.SetMode(0o755)
	link := zip.FileHeader{Name: "l"}
	link.SetMode(fs.ModeSymlink | 0o777)
	const most = 1000
	for name, c := range map[string]struct{ archive, say string }{
		"regular": {archive(most, regular), ""},
		"bomb":    {archive(most+1, regular), "d/a.sh: the files have more than 1000 bytes"},
		"links":   {archive(1, link, link), "l is not a regular file"},
		"twice":   {archive(1, regular, regular), "d/a.sh is there twice"},
		"no zip":  {"QUJD", "it is not a .zip"},
	} {
		r := reader{wrong: &compat.Refused{}}
		files := r.unzipped(c.archive, most)
		switch {
		case c.say != "":
			if len(r.wrong.Errors) != 1 || !strings.Contains(r.wrong.Error(), c.say) {
				t.Errorf("%s: %v", name, r.wrong)
			}
		case len(r.wrong.Errors) > 0 || len(files["d/a.sh"].Bytes) != most || files["d/a.sh"].Mode != 0o755:
			t.Errorf("%s: %v, %d files", name, r.wrong, len(files))
		}
	}
}

// The expected output is compared outside of the sandbox: it is in a case, and in nothing that a program can read.
func TestExpectedOutputStaysOutside(t *testing.T) {
	t.Parallel()
	b := &box{}
	b.ask(t.Context(), "POST", "/submissions?base64_encoded=false", `{"source_code": "x", "language_id": 71, "stdin": "in", "expected_output": "secret", "number_of_runs": 3}`)
	e := b.submitted[0]
	if len(e.Cases) != 3 || string(e.Cases[2].Expect.Bytes) != "secret" || string(e.Cases[0].Stdin.Bytes) != "in" || !e.StopOnFailure || e.Files != nil || e.Env != nil {
		t.Errorf("%+v", e)
	}
}

// A client that checks its token has already passed the server's guard; it has no administrator's token.
func TestAuthenticate(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/authenticate": "OK ", "/authorize/": "Forbidden "} {
		if got, _ := (&box{}).ask(t.Context(), "POST", path, ""); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"":                      nil,
		"  a  b\tc ":            {"a", "b", "c"},
		`'a b' "c d" e\ f`:      {"a b", "c d", "e f"},
		`"a\"b" "a\b" 'a\b' ''`: {`a"b`, `a\b`, `a\b`, ""},
		`a'b'"c"`:               {"abc"},
		`$HOME *.c ;`:           {"$HOME", "*.c", ";"},
		"é 'ü ñ'":               {"é", "ü ñ"},
	} {
		r := reader{wrong: &compat.Refused{}}
		got := r.words("command_line_arguments", in)
		if !slices.Equal(got, want) || len(r.wrong.Errors) > 0 {
			t.Errorf("%q: %q, %v", in, got, r.wrong)
		}
		if again := r.words("", line(got)); !slices.Equal(again, got) {
			t.Errorf("%q is written as %q, which is %q", got, line(got), again)
		}
	}
	for _, bad := range []string{`'a`, `"a`, `a\`, strings.Repeat("a", 513)} {
		r := reader{wrong: &compat.Refused{}}
		if r.words("x", bad); len(r.wrong.Errors) != 1 {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestBase64(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", "ab", "abc", strings.Repeat("The quick brown fox. ", 20)} {
		w := wrapped([]byte(text))
		for line := range strings.Lines(w) {
			if len(line) > 61 || !strings.HasSuffix(line, "\n") {
				t.Errorf("line %q", line)
			}
		}
		if got, err := decoded(w); err != nil || string(got) != text {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		if got, err := decoded(strings.TrimRight(w, "=\n")); err != nil || string(got) != text {
			t.Errorf("%q without padding: %q, %v", text, got, err)
		}
	}
	if got, err := decoded("/w=="); err == nil || len(got) != 1 {
		t.Errorf("a byte that is not text: %q, %v", got, err)
	}
}
