package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

const crashWorkflow = `
name: crashy
input: {type: object, properties: {items: {type: array}}}
tasks:
  start: {action: noop, with: {n: "${{ size(input.items) }}"}}
  each:
    needs: [start]
    foreach: ${{ input.items }}
    concurrency: 3
    action: code
    with: {language: bash, source: 'sleep 0.05; echo "$PAWL_EXECUTION $PAWL_ATTEMPT" >> "$LEDGER"; echo $(( $N * 2 )) > "$PAWL_OUTPUT"', env: {N: "${{ string(item) }}"}}
    env: {LEDGER: "${{ input.ledger }}"}
  nap: {needs: [start], action: sleep, with: {for: 0.3}}
  all: {needs: [each, nap], action: noop, with: {r: "${{ tasks.each.output.map(o, o.result) }}"}}
outputs: {r: "${{ tasks.all.output.r }}"}
`

// The process is killed again and again in the middle of its work, and restarted on the same state. At the end every accepted execution has
// ended as it should, once; no attempt ran twice; the histories have no gaps; and the rows keep every promise.
func TestKilledAgainAndAgain(t *testing.T) {
	const cycles = 8
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, cycles)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	ledger := filepath.Join(dir, "ledger")
	state := filepath.Join(dir, "state")
	start := func() *serverProcess {
		return serve(t, state, "--slots", "4", "--runtime", "process")
	}
	s := start()
	if _, err := s.client.Define(t.Context(), []byte(crashWorkflow), "crashy.yaml"); err != nil {
		t.Fatal(err)
	}
	var workflows, singles []string
	items := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	input, err := json.Marshal(map[string]any{"items": items, "ledger": ledger})
	if err != nil {
		t.Fatal(err)
	}
	for cycle := range cycles {
		// Each request has a key, so that it can be repeated when the kill lost its answer.
		ctx, cancel := context.WithCancel(t.Context())
		accepted := make(chan [2]string, 100)
		take := func(a [2]string) {
			if a[0] == "workflow" {
				workflows = append(workflows, a[1])
			} else {
				singles = append(singles, a[1])
			}
		}
		go func() {
			defer close(accepted)
			for i := range 20 {
				s := s
				key := fmt.Sprintf("k-%d-%d", cycle, i)
				sub := api.Submission{Action: "code", IdempotencyKey: key, Input: json.RawMessage(fmt.Sprintf(
					`{"language":"bash","source":"echo $PAWL_EXECUTION $PAWL_ATTEMPT >> %s"}`, ledger))}
				kind := "single"
				if i%5 == 0 {
					kind, sub = "workflow", api.Submission{Action: "crashy", Input: input, IdempotencyKey: key}
				}
				if x, err := s.client.Submit(ctx, sub); err == nil {
					accepted <- [2]string{kind, x.ID}
				}
			}
		}()
		timer := time.NewTimer(time.Duration(50+random.IntN(600)) * time.Millisecond)
		for running := true; running; {
			select {
			case a, open := <-accepted:
				if !open {
					accepted = nil
					continue
				}
				take(a)
			case <-timer.C:
				running = false
			}
		}
		s.Kill()
		cancel()
		if accepted != nil {
			for a := range accepted {
				take(a)
			}
		}
		s = start()
	}
	for _, id := range singles {
		x := s.wait(t, id)
		if x.Status != api.Completed {
			t.Errorf("%s: %s %v", id, x.Status, x.Error)
		}
		s.history(t, id)
	}
	want := `{"r":[2,4,6,8,10,12,14,16,18,20]}`
	for _, id := range workflows {
		x := s.wait(t, id)
		if x.Status != api.Completed || string(x.Output) != want {
			t.Errorf("%s: %s %v %s", id, x.Status, x.Error, x.Output)
		}
		s.history(t, id)
	}
	lost := 0
	for x, err := range s.client.All(t.Context(), client.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !x.Status.Terminal() { // accepted, but the kill lost the answer: it is in neither list
			x = *s.wait(t, x.ID)
		}
		lost += x.Attempt - 1
	}
	lines := readLedger(t, ledger)
	for entry, n := range lines {
		if n > 1 {
			t.Errorf("attempt %q ran %d times", entry, n)
		}
	}
	t.Logf("%d executions and %d workflows accepted, %d attempts lost to kills and repeated, %d side effects", len(singles), len(workflows), lost, len(lines))
	if len(singles)+len(workflows) == 0 {
		t.Error("nothing was accepted: the test has tested nothing")
	}
	if err := s.stop(); err != nil {
		t.Errorf("server: %v", err)
	}
	checkRows(t, filepath.Join(state, "pawl.db"))
}

func readLedger(t *testing.T, path string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for _, l := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		lines[l]++
	}
	return lines
}

// checkRows checks whether the rows of a store without a server keep their promises.
func checkRows(t *testing.T, path string) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	broken, err := st.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range broken {
		t.Errorf("invariant %d: %s: %s", v.Invariant, v.Execution, v.Say)
	}
}
