package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

const rerunWorkflow = `
name: gated
input: {type: object, required: [ledger, gate], properties: {ledger: {type: string}, gate: {type: string}}}
tasks:
  first:
    foreach: "${{ [0, 1, 2, 3, 4, 5] }}"
    action: code
    with: {language: bash, source: 'echo "first $PAWL_EXECUTION $PAWL_ATTEMPT" >> "$LEDGER"; echo $(( $N * 2 )) > "$PAWL_OUTPUT"', env: {N: "${{ string(item) }}"}}
    env: {LEDGER: "${{ input.ledger }}"}
  last:
    needs: [first]
    foreach: "${{ tasks.first.output.map(o, o.result) }}"
    concurrency: 2
    action: code
    with: {language: bash, source: '[ -e "$GATE" ] || exit 3; sleep 0.02; echo "last $PAWL_EXECUTION $PAWL_ATTEMPT" >> "$LEDGER"; echo $(( $N + 1 )) > "$PAWL_OUTPUT"', env: {N: "${{ string(item) }}"}}
    env: {LEDGER: "${{ input.ledger }}", GATE: "${{ input.gate }}"}
outputs: {r: "${{ tasks.last.output.map(o, o.result) }}"}
`

// askRerun reruns an execution under an idempotency key.
func (p *serverProcess) askRerun(ctx context.Context, id, key string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address+"/api/v1/executions/"+id+"/rerun", nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var x api.Execution
	if err := json.NewDecoder(resp.Body).Decode(&x); err != nil || x.ID == "" {
		return "", fmt.Errorf("%s: %w", resp.Status, err)
	}
	return x.ID, nil
}

// The process is killed again and again while reruns are submitted and run. Each key has one rerun, which ends as it should; a reused task
// never runs again, and each attempt of the other tasks runs once.
func TestRerunsThroughKills(t *testing.T) {
	const cycles = 6
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, cycles)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	ledger, gate, state := filepath.Join(dir, "ledger"), filepath.Join(dir, "gate"), filepath.Join(dir, "state")
	start := func() *serverProcess { return serve(t, state, "--slots", "4", "--runtime", "process") }
	s := start()
	if _, err := s.client.Define(t.Context(), []byte(rerunWorkflow), "gated.yaml"); err != nil {
		t.Fatal(err)
	}
	x, err := s.client.Submit(t.Context(), api.Submission{Action: "gated", Input: fmt.Appendf(nil, `{"ledger":%q,"gate":%q}`, ledger, gate)})
	if err != nil {
		t.Fatal(err)
	}
	if x = s.wait(t, x.ID); x.Status != api.Failed {
		t.Fatalf("the original is %s", x.Status)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const perCycle = 4
	told := map[string]string{} // the rerun, by its key
	ask := func(ctx context.Context, s *serverProcess, cycle, n int) error {
		key := fmt.Sprintf("%d/%d", cycle, n)
		id, err := s.askRerun(ctx, x.ID, key)
		if err != nil {
			return err
		}
		if old := told[key]; old != "" && old != id {
			t.Errorf("key %s gave %s and %s", key, old, id)
		}
		told[key] = id
		return nil
	}
	for cycle := range cycles {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func(s *serverProcess) {
			defer close(over)
			for n := range perCycle {
				if ask(ctx, s, cycle, n) != nil {
					return
				}
			}
		}(s)
		<-time.After(time.Duration(5+random.IntN(250)) * time.Millisecond)
		s.Kill()
		cancel()
		<-over
		s = start()
	}
	for cycle := range cycles {
		for n := range perCycle {
			if err := ask(t.Context(), s, cycle, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	var want []string
	for key, id := range told {
		y := s.wait(t, id)
		if y.Status != api.Completed || string(y.Output) != `{"r":[1,3,5,7,9,11]}` || y.RerunOf != x.ID {
			t.Errorf("rerun %s is %s of %s: %v %s", key, y.Status, y.RerunOf, y.Error, y.Output)
		}
		s.history(t, id)
		want = append(want, id)
	}
	var got []string
	for y, err := range s.client.All(t.Context(), client.Filter{RerunOf: x.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, y.ID)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the reruns are %v, and %v were asked for", got, want)
	}
	firsts := 0
	for entry, n := range readLedger(t, ledger) {
		if n > 1 {
			t.Errorf("attempt %q ran %d times", entry, n)
		}
		if strings.HasPrefix(entry, "first ") {
			firsts++
		}
	}
	if firsts != 6 {
		t.Errorf("%d items ran before the gate, and the original had 6", firsts)
	}
	if err := s.stop(); err != nil {
		t.Errorf("server: %v", err)
	}
	checkRows(t, filepath.Join(state, "pawl.db"))
}

// The process is killed again and again while many executions are rerun together, and so is the client's loop, which then continues by its
// ID. Each execution is rerun once.
func TestBulkRerunThroughKills(t *testing.T) {
	const cycles = 4
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, cycles)
	random := rand.New(rand.NewPCG(seed, 0))
	state := filepath.Join(t.TempDir(), "state")
	start := func() *serverProcess { return serve(t, state, "--slots", "4", "--runtime", "process") }
	s := start()
	const n = 40
	var originals []string
	for i := range n {
		x, err := s.client.Submit(t.Context(), api.Submission{Action: "noop", Input: fmt.Appendf(nil, `{"n":%d}`, i), Labels: map[string]string{"set": "bulk"}})
		if err != nil {
			t.Fatal(err)
		}
		s.wait(t, x.ID)
		originals = append(originals, x.ID)
	}
	f := client.Filter{Where: "label.set = bulk and status = completed"}
	many, err := s.client.RerunMany(t.Context(), f, "")
	if err != nil || len(many.Executions) != n {
		t.Fatalf("%+v %v", many, err)
	}
	for cycle := range cycles + 1 {
		again, err := s.client.RerunMany(t.Context(), f, many.ID)
		if err != nil || !slices.Equal(again.Executions, many.Executions) {
			t.Fatalf("%s selects %d executions again, %v", many.ID, len(again.Executions), err)
		}
		loop, interrupt := context.WithCancel(t.Context())
		ended := make(chan int)
		go func() {
			done := 0
			for r, err := range again.Run(loop, api.RerunRequest{}, 3) {
				if err == nil && (r.Refused != nil || r.New.Status != api.Completed) {
					t.Errorf("%+v", r)
				}
				if err == nil {
					done++
				}
			}
			ended <- done
		}()
		if cycle == cycles {
			if done := <-ended; done != n {
				t.Errorf("%d of %d have ended", done, n)
			}
			interrupt()
			break
		}
		<-time.After(time.Duration(5+random.IntN(60)) * time.Millisecond)
		s.Kill()
		interrupt()
		<-ended
		s = start()
	}
	for _, id := range originals {
		var again []string
		for y, err := range s.client.All(t.Context(), client.Filter{RerunOf: id}) {
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, y.ID)
		}
		if len(again) != 1 {
			t.Errorf("%s was run again as %v", id, again)
		}
	}
	if err := s.stop(); err != nil {
		t.Errorf("server: %v", err)
	}
	checkRows(t, filepath.Join(state, "pawl.db"))
}
