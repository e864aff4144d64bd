package neighbour

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

// smallMemory is that of a small machine: the server takes about 60 MB of it.
const smallMemory = 256 << 20

// takesAll are programs that take all memory: as process memory, as a file in memory, and as an endless text.
var takesAll = []string{"tail -n 1 /dev/zero", "head -c 2G /dev/zero > all", "x=y; while true; do x=$x$x; done"}

// smallMachine returns a cgroup with smallMemory, whose processes the kernel kills when they need more. It skips the test where no cgroup
// can be made.
func smallMachine(t *testing.T) string {
	t.Helper()
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skipf("NOT TESTED: no cgroups: %v", err)
	}
	var dir, limit string
	for line := range strings.Lines(string(groups)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) == 3 && f[1] == "memory":
			dir, limit = filepath.Join("/sys/fs/cgroup/memory", f[2]), "memory.limit_in_bytes"
		case len(f) == 3 && f[1] == "" && limit == "":
			dir, limit = filepath.Join("/sys/fs/cgroup", f[2]), "memory.max"
		}
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) { // in a container, whose own group is the root
		dir = strings.Join(strings.SplitN(dir, "/", 6)[:5], "/")
		if limit == "memory.max" {
			dir = "/sys/fs/cgroup"
		}
	}
	group := filepath.Join(dir, fmt.Sprintf("pawl-small-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("NOT TESTED: no cgroup can be made: %v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(group); err != nil {
			t.Logf("%s is left: %v", group, err)
		}
	})
	if err := os.WriteFile(filepath.Join(group, limit), []byte(strconv.Itoa(smallMemory)), 0); err != nil {
		t.Skipf("NOT TESTED: no cgroup's memory can be limited: %v", err)
	}
	return group
}

// On a machine without spare memory the kernel kills the programs that take all of it, in their processes and in files, and not the server,
// which answers others meanwhile.
func TestSmallMachine(t *testing.T) {
	group := smallMachine(t)
	lines, over := runIn(t, group, "server", "--listen", "127.0.0.1:0", "--state-dir", t.TempDir(), "--runtime", "sandbox",
		"--slots", "8", "--grace", "1s", "--queues", "default,"+plainQueue)
	s := &server{over: over}
	for address := time.After(time.Minute); s.address == ""; {
		select {
		case line := <-lines:
			if m := serving.FindStringSubmatch(line); m != nil {
				s.address = m[1]
			}
		case err := <-over:
			t.Fatalf("the server has ended: %v", err)
		case <-address:
			t.Fatal("the server does not answer")
		}
	}
	c := connect(t, s.address)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var greedy []string
	for n := range 12 {
		limits := api.CodeLimits{Memory: 512_000_000, Disk: 512_000_000}
		input, err := json.Marshal(api.Code{Language: "bash", Source: takesAll[n%len(takesAll)], Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		x, err := c.Submit(ctx, api.Submission{Action: "code", Input: input, Timeout: api.Duration(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		greedy = append(greedy, x.ID)
		if _, err := once(c, "noop", 0); err != nil {
			t.Errorf("a noop beside %d greedy programs: %v", n, err)
		}
	}
	for _, id := range greedy {
		x, err := c.Wait(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if x.Status == api.Completed {
			t.Errorf("%+v", x)
		}
		if _, err := once(c, "noop", 0); err != nil {
			t.Errorf("a noop beside greedy programs: %v", err)
		}
		t.Logf("%s after %d attempts: %+v", x.Status, x.Attempt, x.Error)
	}
	s.verify(t)
}
