package loadtest

import (
	"context"
	"fmt"
	"io"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/terminal"
)

// mostChecks bounds the number of histories that are read; of a larger number only every n-th is read.
const mostChecks = 100_000

// verify reads the stored result of the run and counts errors.
func (b *trial) verify(ctx context.Context, r *Report) error {
	read := b.engine.Reader()
	seen := map[flow.ID]bool{}
	var starts, ends []time.Duration
	step := max(1, len(b.ids)/mostChecks)
	for i, id := range b.ids {
		if seen[id] {
			r.Duplicates++
		}
		seen[id] = true
		if i%step != 0 {
			continue
		}
		x, err := read.Get(ctx, id)
		if err != nil {
			return fmt.Errorf("read back %s: %w", id, err)
		}
		if err := b.check(ctx, x, r, &starts); err != nil {
			return err
		}
		if x.Place == flow.Finished {
			ends = append(ends, x.FinishedAt.Sub(x.CreatedAt))
		}
		if x.Kind != flow.KindWorkflow {
			continue
		}
		if err := b.checkChildren(ctx, x, r); err != nil {
			return err
		}
	}
	sums, err := read.Survey(ctx)
	if err != nil {
		return err
	}
	r.Stuck = total(sums.Stages())
	if step > 1 {
		r.Executions *= step
	}
	r.SubmitToStart = quantilesOf(starts)
	if r.EndToEnd = quantilesOf(ends); len(b.waits) > 0 {
		r.EndToEnd = quantilesOf(b.waits)
	}
	violations, err := b.store.Check(ctx)
	if err != nil {
		return fmt.Errorf("check the store: %w", err)
	}
	for _, v := range violations {
		b.Say("pawl: bench: invariant %d is broken by %s: %s", v.Invariant, v.Execution, v.Say)
		r.OutOfOrder++
	}
	if slices.Sort(b.unapp); len(b.unapp) > 0 {
		r.UnappliedP99 = float64(b.unapp[min(len(b.unapp)*99/100, len(b.unapp)-1)])
	}
	return nil
}

// check reads one history.
func (b *trial) check(ctx context.Context, x *flow.Execution, r *Report, starts *[]time.Duration) error {
	r.Checked++
	r.Executions++
	if x.Stage.Terminal() && x.Stage != flow.Completed {
		r.Failed++
	}
	if !x.StartedAt.IsZero() {
		*starts = append(*starts, x.StartedAt.Sub(x.CreatedAt))
	}
	const page = 1000
	var events []flow.Event
	for {
		after := int64(len(events))
		more, err := b.engine.Reader().Events(ctx, x.ID, after, page)
		if err != nil {
			return fmt.Errorf("read the history of %s: %w", x.ID, err)
		}
		events = append(events, more...)
		if len(more) == 0 {
			break
		}
	}
	inOrder, ends := judge(events)
	if !inOrder {
		r.OutOfOrder++
	}
	if ends > 1 {
		r.Duplicates++
	}
	return nil
}

// judge reports whether a history is complete and follows the lifecycle, and how often it ends.
func judge(events []flow.Event) (inOrder bool, ends int) {
	var stage flow.Stage
	attempt := 0
	for i, e := range events {
		if e.Seq != int64(i+1) {
			return false, ends
		}
		to, opens, err := flow.Next(stage, e.Type)
		if opens {
			attempt++
		}
		if err != nil || e.Attempt != attempt {
			return false, ends
		}
		if stage = to; stage.Terminal() {
			ends++
		}
		if opens && i > 0 {
			ends = 0 // the previous attempt was not the last
		}
	}
	return true, ends
}

// checkChildren reads the tasks of a workflow.
func (b *trial) checkChildren(ctx context.Context, x *flow.Execution, r *Report) error {
	of := store.WorkflowAttempt{ID: x.ID, Attempt: x.Attempt}
	task, index := "", -1
	var starts []time.Duration // of tasks; only those of the workflows are reported
	created := map[string]int{}
	for {
		children, err := b.engine.Reader().Children(ctx, of, task, index, 1000)
		if err != nil {
			return fmt.Errorf("read the tasks of %s: %w", x.ID, err)
		}
		if len(children) == 0 {
			return nil
		}
		for _, c := range children {
			if c.Index != created[c.Task] {
				r.Duplicates++ // an index occurs twice or is missing
			}
			created[c.Task]++
			child, err := b.engine.Reader().Get(ctx, c.Execution)
			if err != nil {
				return fmt.Errorf("read back %s: %w", c.Execution, err)
			}
			if err := b.check(ctx, child, r, &starts); err != nil {
				return err
			}
			task, index = c.Task, c.Index
		}
	}
}

// watch samples the number of events that wait for others, and shows the progress. The returned function stops it.
func (b *trial) watch() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.sample(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (b *trial) sample(ctx context.Context) {
	shown := terminal.IsTerminal(b.Progress)
	for n := 1; instance.WaitFor(ctx, 200*time.Millisecond) == nil; n++ {
		if n%5 == 0 { // with 20,000 waiting, each sample took 5 ms of PostgreSQL's time: five a second took 12 % of a run's
			under, err := store.List(ctx, b.engine.Reader(), store.Filter{Stages: []flow.Stage{flow.Provisioning, flow.Running}, Limit: 100})
			if err == nil {
				b.mu.Lock()
				for _, x := range under {
					b.unapp = append(b.unapp, int(x.Inbox))
				}
				b.mu.Unlock()
			}
		}
		if shown {
			b.mu.Lock()
			ended := len(b.waits)
			b.mu.Unlock()
			if b.Submit == "bulk" {
				ended = int(b.engine.Stats().Finished) // this includes tasks, which is close enough for a bar
			}
			bar(b.Progress, min(ended, b.Count), b.Count)
		}
	}
	if shown {
		fmt.Fprint(b.Progress, "\r\x1b[K")
	}
}

func bar(w io.Writer, n, of int) {
	const width = 40
	full := n * width / of
	fmt.Fprintf(w, "\r[%s%s] %d/%d", strings.Repeat("#", full), strings.Repeat(".", width-full), n, of)
}

// peakMemory is this process's peak memory in bytes.
func peakMemory() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if goruntime.GOOS == "darwin" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) * 1024
}
