package kubernetes

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/programtest"
	"github.com/pawl-run/pawl/internal/runtime"
)

var playedPods = flag.Int("kubernetes.played", 50, "how many pods TestManyPlayedPods has at once")

// A worker follows many pods with one watch, and a pod costs it three requests: create, exec and delete. The worker is a separate
// process, for which the test plays the cluster, with a real keeper for each pod. Its growth is only printed: under the race detector it
// is nine times as much.
func TestManyPlayedPods(t *testing.T) {
	const marker = "PAWL_TEST_PLAYED_CLUSTER"
	n := *playedPods
	if url := os.Getenv(marker); url != "" {
		holdMany(t, url, n)
		return
	}
	t.Parallel()
	c := newCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	worker := exec.CommandContext(ctx, "/proc/self/exe", "-test.run", "^TestManyPlayedPods$", "-kubernetes.played", strconv.Itoa(n))
	worker.Env = append(os.Environ(), marker+"="+c.url)
	worker.Stderr = os.Stderr
	said, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	goOn, err := worker.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := programtest.Start(worker); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	after := func(what string) int64 {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == what {
				return resident(t, strconv.Itoa(worker.Process.Pid))
			}
			t.Log(lines.Text())
		}
		t.Fatalf("the worker ended before it had %s", what)
		return 0
	}
	before := after("one")
	begin := time.Now()
	_, _ = io.WriteString(goOn, "\n")
	grown := after("all") - before
	took := time.Since(begin)
	_, _ = io.WriteString(goOn, "\n")
	for lines.Scan() {
		if lines.Text() != "PASS" {
			t.Log(lines.Text())
		}
	}
	if err := worker.Wait(); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := 0
	for _, count := range c.asked {
		sum += count
	}
	t.Logf("%d pods in %v: the worker grew by %d KB, %d KB for each; requests: %v", n, took.Round(time.Millisecond), grown>>10, grown>>10/int64(n), c.asked)
	if c.asked["POST"] != n+1 || c.asked["DELETE"] != n+1 || c.asked["GET watch"] != 1 || sum > 4*(n+1) {
		t.Errorf("%v for %d pods", c.asked, n+1)
	}
}

// holdMany is the worker: it reports when it has one run, and when it has n more, and continues when it is told to.
func holdMany(t *testing.T, url string, n int) {
	c := &cluster{t: t}
	r := c.runtime(url, Options{})
	defer r.Close()
	told := bufio.NewScanner(os.Stdin)
	runs := make([]runtime.Run, n+1)
	start := func(i int) {
		started, err := r.Start(t.Context(), local("exec sleep 3000"))
		if err != nil {
			t.Error(err)
			return
		}
		runs[i] = started
	}
	start(0)
	fmt.Println("one")
	told.Scan()
	slots := make(chan struct{}, 20)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			start(1 + i)
		})
	}
	all.Wait()
	fmt.Println("all")
	told.Scan()
	for _, run := range runs {
		if run == nil {
			continue
		}
		run.Kill("the end")
		if result := run.Wait(); result.Verdict != runtime.Killed {
			t.Errorf("%+v", result)
		}
	}
}
