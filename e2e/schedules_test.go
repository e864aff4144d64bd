package e2e

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// The process is killed again and again while schedules fire every second. At the end every second of each schedule was fired once or is
// among the missed ones, and each execution belongs to one tick.
func TestSchedulesOfKilledServer(t *testing.T) {
	const cycles = 6
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, cycles)
	random := rand.New(rand.NewPCG(seed, 0))
	state := filepath.Join(t.TempDir(), "state")
	s := serve(t, state, "--slots", "4", "--runtime", "process")
	names := []string{}
	for i, overlap := range []string{"allow", "allow", "skip", "queue_one", "queue"} {
		names = append(names, fmt.Sprintf("s%d", i))
		doc := fmt.Sprintf("kind: schedule\nname: s%d\nevery: 1s\noverlap: %s\nrun: {action: noop}\n", i, overlap)
		if _, err := s.client.Define(t.Context(), []byte(doc), "s.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	for range cycles {
		timer := time.NewTimer(time.Duration(800+random.IntN(1500)) * time.Millisecond)
		select {
		case <-timer.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		s.Kill()
		s = serve(t, state, "--slots", "4", "--runtime", "process")
	}
	for _, name := range names {
		// On a slow machine a short-lived process may have had no tick.
		for deadline := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
			ticks, err := s.client.Ticks(t.Context(), name, cycles)
			if err != nil {
				t.Fatal(err)
			}
			if len(ticks) == cycles {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d ticks", name, len(ticks))
			}
		}
		if _, err := s.client.PauseSchedule(t.Context(), name, "the test looks"); err != nil {
			t.Fatal(err)
		}
		ticks, err := s.client.Ticks(t.Context(), name, 1000)
		if err != nil {
			t.Fatal(err)
		}
		fired := map[string]bool{}
		for i, k := range ticks {
			if i > 0 && ticks[i-1].Nominal.Sub(k.Last) != time.Second {
				t.Errorf("%s: %s comes after %s", name, ticks[i-1].Nominal, k.Last)
			}
			if k.Execution != "" {
				fired[k.Execution] = true
			}
		}
		made := 0
		for x, err := range s.client.All(t.Context(), client.Filter{Labels: map[string]string{"pawl.schedule": name}}) {
			if err != nil {
				t.Fatal(err)
			}
			if made++; !fired[x.ID] {
				t.Errorf("%s started %s, which no tick names", name, x.ID)
			}
			if x = *s.wait(t, x.ID); x.Status != api.Completed {
				t.Errorf("%s: %s is %s", name, x.ID, x.Status)
			}
		}
		if made != len(fired) {
			t.Errorf("%s: %d ticks started %d executions", name, len(fired), made)
		}
	}
	if err := s.stop(); err != nil {
		t.Errorf("server: %v", err)
	}
	checkRows(t, filepath.Join(state, "pawl.db"))
}
