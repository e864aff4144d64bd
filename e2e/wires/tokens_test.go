package wires

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/pgpool/pgpooltest"
)

// judged returns the states of submissions to Judge0's wire by their ids, or nil when the server does not answer.
func (p *process) judged(t *testing.T, tokens []string) []int {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, p.url+"/compat/judge0/submissions/batch?fields=status&tokens="+strings.Join(tokens, ","), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := p.send(req)
	if got.err != nil || got.status == http.StatusServiceUnavailable {
		return nil
	}
	var out struct {
		Submissions []struct{ Status struct{ ID int } }
	}
	if err := json.Unmarshal([]byte(got.body), &out); err != nil || len(out.Submissions) != len(tokens) {
		t.Fatalf("%v, %v", got, err)
	}
	var states []int
	for _, s := range out.Submissions {
		states = append(states, s.Status.ID)
	}
	return states
}

// untilJudged waits until the executions of all tokens have ended, by the server's own API, and then asks for them as a client does: all
// are accepted. A status of the wire does not change once its execution has ended.
func (p *process) untilJudged(t *testing.T, tokens []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, token := range tokens {
		if _, err := p.client.Wait(ctx, token); err != nil {
			t.Fatalf("wait for %s: %v", token, err)
		}
	}
	if states := p.judged(t, tokens); len(states) != len(tokens) || slices.ContainsFunc(states, func(id int) bool { return id != 3 }) {
		t.Fatalf("the submissions are %v", states)
	}
}

// submitted returns the tokens of n programs that sleep and are right.
func (p *process) submitted(t *testing.T, n int) []string {
	t.Helper()
	one := `{"source_code": "import time; time.sleep(1); print(6*7)", "language_id": 71, "expected_output": "42"}`
	got := p.post("/compat/judge0/submissions/batch", `{"submissions": [`+strings.Repeat(one+",", n-1)+one+`]}`)
	var tokens []struct{ Token string }
	if err := json.Unmarshal([]byte(got.body), &tokens); err != nil || got.status != http.StatusCreated || len(tokens) != n {
		t.Fatalf("%v, %v", got, err)
	}
	var all []string
	for _, s := range tokens {
		all = append(all, s.Token)
	}
	return all
}

// The server is killed in the middle of a batch: the tokens are valid at the next server, and each program is judged.
func TestTokensOutliveTheServer(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	s := serve(t, state)
	tokens := s.submitted(t, 6)
	s.running(t, "judge0", 1)
	s.Kill()
	again := serve(t, state)
	again.untilJudged(t, tokens)
	again.counted(t, "judge0", "accepted", 0)
}

// Workers are killed in the middle of a batch: clients see only waiting programs until other workers have judged them.
func TestTokensOutliveWorkers(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--no-worker", "--lease", "1s")
	tokens := s.submitted(t, 3)
	for range 2 {
		w := work(t, s)
		s.running(t, "judge0", 1)
		w.Kill()
	}
	if states := s.judged(t, tokens); slices.ContainsFunc(states, func(id int) bool { return id > 3 }) {
		t.Errorf("without a worker the submissions are %v", states)
	}
	work(t, s)
	s.untilJudged(t, tokens)
	s.counted(t, "judge0", "accepted", 3)
}

// The database goes away: a client that asks with its tokens gets an error and no verdict, until it is back.
func TestTokensWithoutDatabase(t *testing.T) {
	t.Parallel()
	dsn := os.Getenv("PAWL_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("NOT TESTED: PAWL_TEST_POSTGRES names no PostgreSQL")
	}
	proxy, through := pgpooltest.New(t, database(t, dsn))
	s := serve(t, t.TempDir(), "--store", through)
	tokens := s.submitted(t, 2)
	s.running(t, "judge0", 1)
	proxy.Refuse(true)
	proxy.Cut()
	if states := s.judged(t, tokens); states != nil {
		t.Errorf("without a database the submissions are %v", states)
	}
	if got := s.post("/compat/judge0/submissions", `{"source_code": "print(1)", "language_id": 71}`); got.status != http.StatusServiceUnavailable || !strings.Contains(fmt.Sprint(got), `"error"`) {
		t.Errorf("without a database a submission gets %v", got)
	}
	proxy.Refuse(false)
	s.untilJudged(t, tokens)
}
