package storetest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Reopen is for stores that outlive their process: data written before Close exist after the next open. where identifies one store (a file,
// a database), and open opens it.
func Reopen(t *testing.T, where string, open func(t *testing.T, where string) store.Store) {
	fill := func(s store.Store) (*bench, []flow.ID) {
		b := &bench{tester: t, tb: t, s: s, now: epoch}
		wf := b.workflow()
		all := []flow.ID{wf, b.ready(5), b.finished(), b.claimed(flow.ID{1}, under(wf, "t", 0))}
		b.session(flow.ID{1}, time.Hour)
		must(b, s.AppendLogs(b.ctx(), []flow.LogChunk{{Execution: all[3], Attempt: 1, Seq: 1, Stream: "stdout", At: b.now, Data: []byte("x"), Size: 1}}))
		return b, all
	}
	b, all := fill(open(t, where))
	before := make([]*flow.Execution, len(all))
	for i, id := range all {
		before[i] = b.get(id)
	}
	last := inTx(b, func(ctx context.Context, t store.Tx) (int64, error) { return t.Tickets(ctx, 1) })
	must(b, b.s.Close())
	must(b, b.s.Close()) // a second Close does nothing
	if _, err := b.s.Get(b.ctx(), all[0]); err == nil {
		t.Error("a closed store answers")
	}
	b.s = open(t, where)
	for i, id := range all {
		equal(b, "after reopening", b.get(id), before[i])
	}
	next := inTx(b, func(ctx context.Context, t store.Tx) (int64, error) { return t.Tickets(ctx, 1) })
	if next <= last {
		t.Errorf("ticket %d was drawn after reopening; %d was before", next, last)
	}
	equal(b, "logs", len(b.logs(store.LogQuery{Execution: all[3]})), 1)
	equal(b, "live sessions", b.live(), []flow.ID{{1}})
	b.apply(b.submit())
	b.clean()
}

const crashVar = "PAWL_STORETEST_CRASH"

// Crash is for stores that outlive their process. It runs the calling test again in another process, which commits and acknowledges its
// commits, and kills that process at some moment. Then everything that was acknowledged must exist, and nothing may exist in part. The
// calling test must only call Crash. where identifies one store, open opens it.
func Crash(t *testing.T, where string, open func(t *testing.T, where string) store.Store) {
	if where := os.Getenv(crashVar); where != "" {
		commitForEver(&bench{tester: t, tb: t, s: open(t, where), now: epoch})
		return
	}
	b := &bench{tester: t, tb: t, now: epoch}
	var said []string
	for round := range 4 {
		said = append(said, runAndKill(t, where, 40+37*round)...)
		b.s = open(t, where)
		for _, line := range said {
			var at string
			var next int64
			if _, err := fmt.Sscan(line, &at, &next); err != nil {
				t.Fatalf("read %q: %v", line, err)
			}
			id, err := flow.ParseID(flow.ExecutionPrefix, at)
			must(b, err)
			if x := b.get(id); x.NextSeq < next {
				t.Fatalf("%s had %d events when its commit was acknowledged, and %d after the crash", at, next-1, x.NextSeq-1)
			}
		}
		b.clean()
		must(b, b.s.Close())
	}
	slices.Sort(said)
	if n := len(slices.Compact(said)); n < 100 {
		t.Errorf("only %d commits were acknowledged: the crashes came too early to show anything", n)
	}
}

// runAndKill runs the test in a process, kills it after a number of acknowledgements, and returns them.
func runAndKill(t *testing.T, where string, after int) []string {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	c.Env = append(os.Environ(), crashVar+"="+where)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if line, ok := strings.CutPrefix(lines.Text(), "committed "); ok {
			said = append(said, line)
		}
		if len(said) == after {
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.Wait(); err == nil || len(said) < after {
		t.Fatalf("the process that was to be killed ended by itself after %d commits: %v", len(said), err)
	}
	return said
}

// commitForEver submits, claims and finishes executions, and prints an acknowledgement after every commit.
func commitForEver(b *bench) {
	b.made = uint64(time.Now().UnixNano()) // each process has its own ids
	session := flow.ID{1}
	for {
		var drafts []*flow.Draft
		for range 5 {
			d := b.submit(func(r *flow.Request) { r.Input = raw(`"%s"`, strings.Repeat("x", 2000)) })
			must(b, d.Schedule(int64(b.made), b.now))
			drafts = append(drafts, d)
		}
		b.apply(drafts...)
		acknowledge(drafts)
		for _, d := range drafts {
			d = b.load(d.ID)
			must(b, d.Claim(session, "w", b.now))
			b.apply(d)
			acknowledge([]*flow.Draft{d})
			b.report(d.ID, flow.EvRunning, flow.EvCompleted)
			acknowledge([]*flow.Draft{b.load(d.ID)})
		}
	}
}

func acknowledge(drafts []*flow.Draft) {
	var lines strings.Builder
	for _, d := range drafts {
		fmt.Fprintf(&lines, "committed %s %d\n", d.ID, d.NextSeq)
	}
	fmt.Print(lines.String())
}
