package sandbox

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

// TestPins starts and ends runs on four processors of two cores: 0 and 2 are threads of one, 1 and 3 of the other.
func TestPins(t *testing.T) {
	t.Parallel()
	p := &processors{all: []processor{{0, 0}, {1, 1}, {2, 0}, {3, 1}}, pinned: map[*pin]struct{}{}}
	take := func(cpus float64, want ...int) *pin {
		t.Helper()
		n := p.take(runtime.Limits{CPUs: cpus})
		if !slices.Equal(n.ids, want) {
			t.Errorf("a run of %g processors got %v, want %v", cpus, n.ids, want)
		}
		return n
	}
	a, b := take(0, 0), take(0.5, 1) // one core each while there are two
	c := take(0, 2)
	a.release()
	a.release()
	d := take(0, 0)
	e := take(1, 3)
	for _, n := range []*pin{a, b, c, d, e} {
		if n.shared {
			t.Errorf("%v is not shared", n.ids)
		}
	}
	f := take(1.5, 0, 1) // a fifth run, with two processors: all are in use
	for n, want := range map[*pin]bool{a: false, b: true, c: false, d: true, e: false, f: true} {
		if n.shared != want {
			t.Errorf("%v: shared %v, want %v", n.ids, n.shared, want)
		}
	}
	for _, n := range []*pin{b, c, d, e, f} {
		n.release()
	}
	if all := take(100, 0, 1, 2, 3); all.shared {
		t.Error("it is alone")
	}
	var none *processors
	if n := none.take(runtime.Limits{}); n != nil || n.order() != nil {
		t.Error("pinned without processors to pin to")
	}
}

// TestPinned runs programs that print their allowed processors, in sandboxes of the pool and in new ones: as many concurrent programs as
// there are processors get one each, another one shares, and no program can leave its processors.
func TestPinned(t *testing.T) {
	for _, o := range []Options{{PinCPUs: true}, {PinCPUs: true, Warm: 2}} {
		r := factory(o)(t).(*Runtime)
		t.Cleanup(func() { _ = r.Close() })
		const script = "grep Cpus_allowed_list /proc/self/status; nproc; read go; taskset -p ffff $$ >/dev/null 2>&1 && echo left"
		var outputs []*strings.Builder
		var runs []runtime.Run
		wait := make(chan struct{})
		for range len(r.processors.all) + 1 {
			out := &strings.Builder{}
			run, err := r.Start(t.Context(), runtime.Spec{Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
				Stdin: blocked{wait}, Stdout: out})
			if err != nil {
				t.Fatal(err)
			}
			runs, outputs = append(runs, run), append(outputs, out)
		}
		close(wait)
		used, shared := map[int]int{}, 0
		for i, run := range runs {
			result := run.Wait()
			if len(result.PinnedCPUs) != 1 {
				t.Fatalf("%s: pinned to %v", result.Verdict, result.PinnedCPUs)
			}
			if want := fmt.Sprintf("Cpus_allowed_list:\t%d\n1\n", result.PinnedCPUs[0]); outputs[i].String() != want {
				t.Errorf("got %q, want %q", outputs[i].String(), want)
			}
			if used[result.PinnedCPUs[0]]++; result.SharedCPUs {
				shared++
			}
		}
		if len(used) != len(r.processors.all) || shared != 2 {
			t.Errorf("used %v, and %d runs shared", used, shared)
		}
		if left := len(r.processors.pinned); left != 0 {
			t.Errorf("%d pins are left", left)
		}
	}
	if _, err := factory(Options{PinCPUs: true})(t).Start(t.Context(), runtime.Spec{Argv: []string{"/nonexistent"}}); err == nil {
		t.Error("started what is not there")
	}
}

// blocked is an input that ends when until is closed.
type blocked struct{ until chan struct{} }

func (b blocked) Read([]byte) (n int, err error) {
	<-b.until
	return 0, io.EOF
}
