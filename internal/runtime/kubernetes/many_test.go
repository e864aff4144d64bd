//go:build unix

package kubernetes

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/kubernetestest"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

var manyPods = flag.Int("kubernetes.pods", 20, "how many pods TestManyPods has at once; the test cluster's node takes 200")

// resident is the memory of a process, in bytes.
func resident(t *testing.T, pid string) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			return kb << 10
		}
	}
	t.Fatalf("process %s has no VmRSS", pid)
	return 0
}

// largest is the memory of the largest of some processes.
func largest(t *testing.T, of []string) (most int64) {
	t.Helper()
	for _, p := range of {
		pid, _, _ := strings.Cut(p, " ")
		most = max(most, resident(t, pid))
	}
	return most
}

// requests counts the workers' requests in a namespace from the API server's audit log, by verb and resource.
func requests(t *testing.T, namespace string) map[string]int {
	t.Helper()
	file, err := os.Open(filepath.Join(filepath.Dir(kubernetestest.Cluster(t)), "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	counts := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			UserAgent string `json:"userAgent"`
			Verb      string `json:"verb"`
			ObjectRef struct{ Namespace, Resource, Subresource string }
		}
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.UserAgent == "pawl" && e.ObjectRef.Namespace == namespace {
			counts[strings.TrimSuffix(e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")]++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
}

// One worker follows many pods with one watch, few requests per pod and little memory; keeper and helper in each pod are small, too.
func TestManyPods(t *testing.T) {
	const orphan = 4712 * time.Second // the number distinguishes these keepers from others
	n := *manyPods
	r := openRuntime(t, Options{Image: tools(t), OrphanAfter: orphan})
	defer r.Close()
	one := func() (runtime.Run, *noted) {
		out := new(noted)
		spec := shell(r.options.Image, "echo begun; sleep 3000")
		spec.Stdout, spec.Limits.Wall, spec.Limits.Memory = out, time.Hour, 16<<20 // otherwise the requests would exceed the node
		started, err := r.Start(t.Context(), spec)
		if err != nil {
			t.Error(err)
			return nil, nil
		}
		return started, out
	}
	first, _ := one() // the first run includes what every worker needs once
	before := resident(t, "self")
	begin := time.Now()
	runs, slots := make([]runtime.Run, n), make(chan struct{}, 20)
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			runs[i], _ = one()
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	took, each := time.Since(begin), (resident(t, "self")-before)/int64(n)
	keepers := runtimetest.Processes("keep\x00" + orphan.String())
	helpers := runtimetest.Processes(wire.Program + "\x00init")
	keeper, process1 := largest(t, keepers), largest(t, helpers)
	t.Logf("%d pods in %v: %d KB of the worker for each; the largest keeper of %d %d KB, the largest process 1 of %d %d KB", n, took.Round(time.Millisecond), each>>10,
		len(keepers), keeper>>10, len(helpers), process1>>10)
	if keeper > 6<<20 || process1 > 3<<20 {
		t.Error("the helper takes more than 6 MB as the keeper, or more than 3 MB as process 1")
	}
	killed := make([]time.Duration, n)
	for i, run := range runs {
		begin := time.Now()
		run.Kill("the end")
		if result := run.Wait(); result.Verdict != runtime.Killed {
			t.Errorf("%+v", result)
		}
		killed[i] = time.Since(begin)
	}
	first.Kill("the end")
	first.Wait()
	slices.Sort(killed)
	t.Logf("killed one after the other: half of them within %v, the slowest after %v", killed[n/2].Round(time.Millisecond), killed[n-1].Round(time.Millisecond))
	asked := map[string]int{}
	eventually(t, "all requests are in the audit log", func() bool {
		asked = requests(t, r.options.Namespace)
		return asked["delete pods"] >= n+1
	})
	t.Logf("requests: %v", asked)
	if asked["create pods"] != n+1 || asked["delete pods"] != n+1 {
		t.Errorf("%v for %d pods", asked, n+1)
	}
	sum := 0
	for _, count := range asked {
		sum += count
	}
	if most := 4*(n+1) + 10; sum > most {
		t.Errorf("%d requests for %d pods, want at most %d", sum, n+1, most)
	}
	if each > 400<<10 {
		t.Errorf("a pod costs the worker %s", fmt.Sprint(each))
	}
}
