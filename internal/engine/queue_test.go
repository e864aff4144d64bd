package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// TestDefineDeclaresQueues applies a workflow before a worker serves its queue: a document of the same file, or an
// earlier one, makes the queue known.
func TestDefineDeclaresQueues(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		define := func(src string) ([]Defined, error) {
			defs, err := definition.Parse("q.yaml", []byte(src))
			if err != nil {
				r.Fatal(err)
			}
			return r.e.Define(r.ctx, defs)
		}
		var ps definition.Problems
		_, err := define("name: train\naction: noop\nqueue: gpu\n")
		if !errors.As(err, &ps) || len(ps) != 1 {
			r.Fatalf("%v", err)
		}
		for _, want := range []string{"kind: queue", "name: gpu", "pawl worker --queues gpu", "leave the queue out"} {
			if !strings.Contains(ps[0].Fix, want) {
				r.Errorf("the advice %q lacks %q", ps[0].Fix, want)
			}
		}

		out, err := define("name: train\naction: noop\nqueue: gpu\n---\nkind: queue\nname: gpu\n")
		if err != nil || len(out) != 2 || out[1] != (Defined{Name: "gpu", Version: 1, Kind: "queue", Created: true}) {
			r.Fatalf("%+v %v", out, err)
		}
		id := r.submit(Submission{Action: "train"})
		if w, err := r.e.Why(r.ctx, id); err != nil || !strings.Contains(w.Summary, `no live worker serves queue "gpu"`) {
			r.Errorf("%+v %v", w, err)
		}
		h := r.worker("gpu") // serves a known queue
		h.complete(h.take(1)[0], "1")
		r.ended(id)

		out, err = define("kind: queue\nname: gpu\n---\nname: gpu\naction: noop\nqueue: gpu\n")
		if err != nil || out[0].Created || out[0].Version != 1 || !out[1].Created {
			r.Errorf("%+v %v", out, err)
		}
		names, err := r.e.catalog.Queues(r.ctx)
		if want := []string{flow.DefaultQueue, "gpu"}; err != nil || !slices.Equal(names, want) {
			r.Errorf("%v %v, want %v", names, err, want)
		}
		if _, err := New(Options{Store: r.store, Queues: []string{"bad queue"}}); err == nil {
			r.Error("a queue with a space in its name is known")
		}
	})
}
