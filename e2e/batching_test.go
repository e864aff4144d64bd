package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

const batchingRules = `
kind: rule
name: gather
on: reading
batch: {key: "${{ signal.subject }}", size: 5, wait: 50ms}
run: {action: noop, input: "${{ signals.map(s, s.key) }}", labels: {of: gather}}
`

// The process is killed again and again while signals are gathered and batches close. Each acknowledged signal is in one batch.
func TestBatchesThroughKills(t *testing.T) {
	const cycles = 6
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, cycles)
	random := rand.New(rand.NewPCG(seed, 0))
	state := filepath.Join(t.TempDir(), "state")
	s := serve(t, state, "--slots", "1", "--runtime", "process")
	if _, err := s.client.Define(t.Context(), []byte(batchingRules), "gather.yaml"); err != nil {
		t.Fatal(err)
	}
	const perCycle = 60
	emit := func(ctx context.Context, c *client.Client, cycle, n int) error {
		_, err := c.Emit(ctx, api.Emission{Trigger: "reading", Subject: fmt.Sprint(n % 3), Key: fmt.Sprintf("%02d/%02d", cycle, n)})
		return err
	}
	for cycle := range cycles {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		c := s.client
		go func() {
			defer close(over)
			for n := range perCycle {
				if emit(ctx, c, cycle, n) != nil {
					return
				}
			}
		}()
		<-time.After(time.Duration(20+random.IntN(150)) * time.Millisecond)
		s.Kill()
		cancel()
		<-over
		s = serve(t, state, "--slots", "1", "--runtime", "process")
	}
	var want []string
	for cycle := range cycles {
		for n := range perCycle {
			want = append(want, fmt.Sprintf("%02d/%02d", cycle, n))
			if err := emit(t.Context(), s.client, cycle, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got []string
	for deadline := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		got = got[:0]
		for x, err := range s.client.All(t.Context(), client.Filter{Labels: map[string]string{"of": "gather"}, Status: []api.Status{api.Completed}, Outputs: true}) {
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			if err := json.Unmarshal(x.Output, &keys); err != nil || len(keys) == 0 || len(keys) > 5 {
				t.Fatalf("%s: %s, %v", x.ID, x.Output, err)
			}
			got = append(got, keys...)
		}
		if len(got) >= len(want) || time.Now().After(deadline) {
			break
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d signals in batches, want %d: %v", len(got), len(want), got)
	}
	if err := s.stop(); err != nil {
		t.Errorf("server: %v", err)
	}
	checkRows(t, filepath.Join(state, "pawl.db"))
}
