package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// echoes answers and counts every line, so that a lost or repeated line shows.
const echoes = `import sys
for n, line in enumerate(sys.stdin, 1):
    print(n, line.rstrip())
print("over")
`

func (p *serverProcess) echoes(t *testing.T, attempts int) string {
	t.Helper()
	x, err := p.client.Evaluate(t.Context(), api.Evaluation{Retry: &api.Retry{MaxAttempts: attempts, Delay: api.Duration(10 * time.Millisecond)},
		Code: api.Code{Language: "python", Source: echoes, Interactive: true, Limits: api.CodeLimits{Wall: api.Duration(5 * time.Minute)}}})
	if err != nil {
		t.Fatal(err)
	}
	return x.ID
}

// follow reads the lines of one attempt of an execution, as they are written.
func follow(t *testing.T, c *client.Client, id string, attempt int) *bufio.Scanner {
	r, w := io.Pipe()
	ctx := t.Context()
	go func() {
		for chunk, err := range c.FollowLogs(ctx, id, client.LogQuery{Attempt: attempt, Stream: "stdout"}) {
			if err != nil {
				_ = w.CloseWithError(err)
				return
			}
			if _, err := w.Write(chunk.Bytes()); err != nil {
				return
			}
		}
		_ = w.Close()
	}()
	t.Cleanup(func() { _ = r.Close() })
	return bufio.NewScanner(r)
}

func line(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	if !lines.Scan() || lines.Text() != want {
		t.Fatalf("it wrote %q (%v), want %q", lines.Text(), lines.Err(), want)
	}
}

// A client types to a program while it runs, and the program answers without a noticeable delay.
func TestInteractiveRoundTrip(t *testing.T) {
	p := serve(t, t.TempDir())
	id := p.echoes(t, 1)
	w, lines := p.client.WriteStdin(t.Context(), id, 0), follow(t, p.client, id, 0)
	var took []time.Duration
	for n := 1; n <= 100; n++ {
		began := time.Now()
		if _, err := fmt.Fprintf(w, "line %d\n", n); err != nil {
			t.Fatal(err)
		}
		line(t, lines, fmt.Sprintf("%d line %d", n, n))
		took = append(took, time.Since(began))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	line(t, lines, "over")
	slices.Sort(took)
	t.Logf("typed and answered: p50 %s, p95 %s", took[49], took[94])
	if took[49] > 100*time.Millisecond { // 5 ms on an idle machine; this one may be busy
		t.Errorf("the answer to a line takes %s", took[49])
	}
}

// Typed lines survive a server's death: the next attempt reads all of them again, and the conversation continues.
func TestInteractiveSurvivesItsServer(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, dir)
	id := p.echoes(t, 2)
	w, lines := p.client.WriteStdin(t.Context(), id, 0), follow(t, p.client, id, 1)
	for n := 1; n <= 3; n++ {
		if _, err := fmt.Fprintf(w, "line %d\n", n); err != nil {
			t.Fatal(err)
		}
		line(t, lines, fmt.Sprintf("%d line %d", n, n))
	}
	p.Kill()

	p = serve(t, dir)
	at, err := p.client.Stdin(t.Context(), id)
	if err != nil || at.Offset != w.Offset() || at.Closed {
		t.Fatalf("stdin %+v, %v; want an offset of %d", at, err, w.Offset())
	}
	again := follow(t, p.client, id, 2)
	for n := 1; n <= 3; n++ {
		line(t, again, fmt.Sprintf("%d line %d", n, n))
	}
	w = p.client.WriteStdin(t.Context(), id, at.Offset)
	if _, err := io.WriteString(w, "line 4\n"); err != nil {
		t.Fatal(err)
	}
	line(t, again, "4 line 4")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	x := p.wait(t, id)
	if out := codeResult(t, x).Stdout; x.Status != api.Completed || x.Attempt != 2 || !strings.HasSuffix(out, "4 line 4\nover\n") {
		t.Errorf("%s in attempt %d with %q", x.Status, x.Attempt, out)
	}
}

// A server is killed in the middle of a dialogue between a program and an interactor: the next attempt begins a new dialogue, and the
// evaluation has one outcome.
func TestDialogueSurvivesItsServer(t *testing.T) {
	t.Parallel()
	state, dir := t.TempDir(), t.TempDir()
	p := serve(t, state, "--runtime", "process")
	judge := fmt.Sprintf("read x; echo ask; echo $PAWL_ATTEMPT >> %[1]s/begun; while [ ! -e %[1]s/go ]; do sleep 0.02; done; echo go; read y; test $x$y = onetwo", dir)
	x, err := p.client.Evaluate(t.Context(), api.Evaluation{
		Code: api.Code{Language: "bash", Source: "echo one; read a; read b; echo two", Cases: []api.Case{{}}, Limits: api.CodeLimits{Wall: api.Duration(5 * time.Minute)},
			Compare: &api.Comparison{Interactor: &api.Interactor{Language: "bash", Source: judge}}},
		Retry: &api.Retry{MaxAttempts: 2}, Labels: map[string]string{"run": "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	appears(t, filepath.Join(dir, "begun"))
	p.Kill()

	p = serve(t, state, "--runtime", "process")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	end := p.wait(t, x.ID)
	var r api.CodeResult
	if err := json.Unmarshal(end.Output, &r); err != nil || end.Status != api.Completed || len(r.Cases) != 1 || len(r.Cases[0].Transcript) != 3 {
		t.Errorf("%s %+v, %v: %s", end.Status, end.Error, err, end.Output)
	}
	outcomes := 0
	for o, err := range p.client.FollowOutcomes(t.Context(), client.OutcomeQuery{Name: "run", Value: "1"}) {
		if err != nil || o.ID != x.ID {
			t.Fatalf("%+v, %v", o, err)
		}
		outcomes++
	}
	if outcomes != 1 {
		t.Errorf("%d outcomes", outcomes)
	}
}
