package replay

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// generated is how many histories are generated: as many workflows as other executions.
var generated = flag.Int("histories", 20_000, "how many histories TestGeneratedHistoriesFollow generates")

// Every history that the rules make follows from them.
func TestGeneratedHistoriesFollow(t *testing.T) {
	t.Parallel()
	n := *generated
	g, events, unknown, ends := newGenerator(1), 0, 0, map[string]int{}
	for i := range n {
		r := g.single()
		if i%2 == 1 {
			r = g.workflow()
		}
		res := Replay(r, 0)
		events += res.Events
		unknown += len(res.Unknown)
		ends[fmt.Sprintf("%s %s", r.Execution.Kind, r.Execution.Stage)]++
		if len(res.Unknown) > 0 && r.Execution.Kind == flow.KindWorkflow {
			t.Fatalf("history %d: %+v", i, res.Unknown)
		}
		if !res.Follows() {
			t.Fatalf("history %d does not follow: %s", i, describe(r, res))
		}
	}
	t.Logf("%d histories with %d events, %d things not known; they ended %v", n, events, unknown, ends)
	for _, end := range []string{"workflow completed", "workflow failed", "workflow cancelled", "code completed", "sleep timed_out", "custom failed", "http timed_out"} {
		if ends[end] == 0 {
			t.Errorf("no history of a %s", end)
		}
	}
}

func describe(r *Record, res *Result) string {
	text := ""
	for _, f := range res.Findings {
		text += fmt.Sprintf("\n  %d %s[%d]: by the rules %s, recorded %s: %s", f.Seq, f.Task, f.Index, f.Rules, f.Recorded, f.Why)
	}
	for i := range r.Events {
		e := &r.Events[i]
		text += fmt.Sprintf("\n%d %d %s %s", e.Seq, e.Attempt, clock(e.At), said(e))
	}
	if w := r.Workflow; w != nil {
		for _, x := range w.Children {
			text += fmt.Sprintf("\n   %d %s[%d] %s created %s ended %s", x.ParentAttempt, x.Task, x.Index, x.Stage, clock(x.CreatedAt), clock(x.FinishedAt))
		}
	}
	return text + fmt.Sprintf("\n%+v", r.Execution.Request)
}

// The state at an event is the one after it.
func TestStateAtAnEvent(t *testing.T) {
	t.Parallel()
	g := newGenerator(3)
	for range 500 {
		r := g.single()
		for n := range r.Events {
			s := Replay(r, int64(n+1)).State
			e := &r.Events[n]
			if s.Seq != e.Seq || s.Attempt != e.Attempt || !s.At.Equal(e.At) {
				t.Fatalf("at event %d: %+v of %+v", n+1, s, e)
			}
			if as, err := flow.ParseStage(string(e.Type)); err == nil && s.Stage != as {
				t.Fatalf("at event %d, %s, it is %s", n+1, e.Type, s.Stage)
			}
		}
	}
}

func BenchmarkReplay(b *testing.B) {
	var few []*definition.Workflow
	for _, c := range []struct {
		name string
		make func(*generator) *Record
	}{{"single", (*generator).single}, {"workflow", (*generator).workflow}, {"of-20-workflows", func(g *generator) *Record { // as on a server; the one before has 2,000 definitions
		for len(few) < 20 {
			few = append(few, g.definition())
		}
		return g.run(pick(g, few...))
	}}} {
		b.Run(c.name, func(b *testing.B) {
			g, all := newGenerator(5), make([]*Record, 2000)
			for i := range all {
				all[i] = c.make(g)
			}
			events, n, used := 0, 0, processor(b)
			for b.Loop() {
				events += Replay(all[n%len(all)], 0).Events
				n++
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(events)/(processor(b)-used).Seconds(), "events/cpu-s") // least affected by other load on the machine
		})
	}
}

// processor is the processor time of the benchmark, including the garbage collector's.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
