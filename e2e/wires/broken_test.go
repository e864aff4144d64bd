package wires

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/pgpool/pgpooltest"
)

// asked is a request over a wire whose program sleeps and is right.
type asked struct {
	wire, path, body string
	right            *regexp.Regexp // status and body when the result is not known in time
	late             *regexp.Regexp // the server holds it for longer than a test waits
	long             bool           // it is held for longer than a test waits
}

func requests() []asked {
	const sleeper = `import time; time.sleep(1); print(6*7)`
	return []asked{
		{"run_code", "/compat/run_code/run_code", `{"code": "` + sleeper + `", "compile_timeout": 0.5, "run_timeout": 3}`,
			regexp.MustCompile(`^200 .*"status":"Success".*"stdout":"42\\n"`), regexp.MustCompile(`^504 `), false},
		{"test_program", "/compat/test_program/test_program", `{"program": "` + sleeper + `", "tests": ["assert True"], "max_execution_time": 3}`,
			regexp.MustCompile(`^200 {"results":\[1\]`), regexp.MustCompile(`^504 `), false},
		{"piston", "/compat/piston/api/v2/execute", `{"language": "python", "version": "*", "files": [{"content": "` + sleeper + `"}], "compile_timeout": 500}`,
			regexp.MustCompile(`^200 {"run":{"stdout":"42\\n".*"code":0`), regexp.MustCompile(`^200 {"run":.*"code":null,.*"status":"XX"`), false},
		{"judge0", "/compat/judge0/submissions?wait=true", `{"source_code": "` + sleeper + `", "language_id": 71, "expected_output": "42"}`,
			regexp.MustCompile(`^201 .*"status":{"id":3,"description":"Accepted"}.*"stdout":"42\\n"`), regexp.MustCompile(`^201 .*"status":{"id":1,.*"token":"ex_`), true},
	}
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.status, strings.TrimSpace(r.body)) }

// orphaned sends a request to a server whose only worker dies while it runs.
func orphaned(t *testing.T, a asked) (s *process, answer <-chan reply, x api.Execution) {
	t.Helper()
	s = serve(t, t.TempDir(), "--no-worker", "--lease", "1s")
	w := work(t, s)
	answer = s.later(a.path, a.body)
	x = s.running(t, a.wire, 1)
	w.Kill()
	return s, answer, x
}

// A worker dies in the middle of a run: another one runs the program again, and the client notices nothing.
func TestWorkerKilledIsRerun(t *testing.T) {
	t.Parallel()
	for _, a := range requests() {
		t.Run(a.wire, func(t *testing.T) {
			t.Parallel()
			s, answer, _ := orphaned(t, a)
			work(t, s)
			if got := <-answer; got.err != nil || !a.right.MatchString(got.String()) {
				t.Errorf("got %s, %v", got, got.err)
			}
			s.counted(t, a.wire, "answered", 1)
		})
	}
}

// The only worker dies, and no other starts: at the end of its time the client gets an answer that says so, and never that the program
// failed.
func TestNoWorkerIsLate(t *testing.T) {
	t.Parallel()
	for _, a := range requests() {
		if a.long {
			continue // what it is answered in the end: judge0.TestHeld
		}
		t.Run(a.wire, func(t *testing.T) {
			t.Parallel()
			s, answer, x := orphaned(t, a)
			if got := <-answer; got.err != nil || !a.late.MatchString(got.String()) {
				t.Errorf("got %s, %v", got, got.err)
			}
			s.counted(t, a.wire, "late", 1)
			if x, err := s.client.Wait(t.Context(), x.ID); err != nil || x.Status == "completed" {
				t.Errorf("the evaluation that nobody waits for: %+v, %v", x, err)
			}
		})
	}
}

// The server is killed in the middle of a run: the client's connection breaks without anything that looks like an answer.
func TestServerKilledAnswersNothing(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	s := serve(t, state)
	answers := map[string]<-chan reply{}
	for _, a := range requests() {
		answers[a.wire] = s.later(a.path, a.body)
		s.running(t, a.wire, 1)
	}
	s.Kill()
	for wire, answer := range answers {
		if got := <-answer; got.err == nil {
			t.Errorf("%s: got %s", wire, got)
		}
	}
	again := serve(t, state)
	for _, a := range requests() {
		if got := again.post(a.path, a.body); got.err != nil || !a.right.MatchString(got.String()) {
			t.Errorf("%s, sent again: got %s, %v", a.wire, got, got.err)
		}
	}
}

// A server that shuts down tells its clients to try again.
func TestServerStoppedIsLate(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--no-worker")
	answers := map[string]<-chan reply{}
	for _, a := range requests() {
		answers[a.wire] = s.later(a.path, a.body)
	}
	s.waiting(t, len(answers))
	s.Signal(syscall.SIGINT)
	for _, a := range requests() {
		if got := <-answers[a.wire]; got.err != nil || !a.late.MatchString(got.String()) {
			t.Errorf("%s: got %s, %v", a.wire, got, got.err)
		}
	}
}

// The database goes away in the middle of a run. If it is back in time, the answer is the program's; otherwise the client gets the answer
// that its time is up.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	dsn := os.Getenv("PAWL_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("NOT TESTED: PAWL_TEST_POSTGRES names no PostgreSQL")
	}
	for _, a := range requests() {
		for _, returns := range []bool{true, false} {
			if a.long && !returns {
				continue // TestTokensWithoutDatabase
			}
			t.Run(fmt.Sprintf("%s/returns=%t", a.wire, returns), func(t *testing.T) {
				t.Parallel()
				proxy, through := pgpooltest.New(t, database(t, dsn))
				s := serve(t, t.TempDir(), "--store", through)
				answer := s.later(a.path, a.body)
				s.running(t, a.wire, 1)
				proxy.Refuse(true)
				proxy.Cut()
				want := a.late
				if returns {
					want = a.right
					if got := s.post("/api/v1/executions", `{"action": "noop"}`); got.status != 503 {
						t.Errorf("without a database a submission gets %s", got)
					}
					proxy.Refuse(false)
				}
				if got := <-answer; got.err != nil || !want.MatchString(got.String()) {
					t.Errorf("got %s, %v", got, got.err)
				}
			})
		}
	}
}

// database creates a database of the test's own.
func database(t *testing.T, dsn string) string {
	t.Helper()
	name := "wires_" + strings.ToLower(rand.Text())
	execute := func(sql string) {
		conn, err := pgx.Connect(context.Background(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	execute("CREATE DATABASE " + name)
	t.Cleanup(func() { execute("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)") })
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}
