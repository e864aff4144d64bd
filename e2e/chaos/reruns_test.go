package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/flow"
)

// rerunPatience bounds how long a workflow may take to end for the test to rerun it. In a long run keys have long lines, and the test
// leaves the executions in them alone.
const rerunPatience = 30 * time.Second

// again is what a client requested of a rerun.
type again struct {
	of   string
	from []string // tasks that run again; the others keep their outcome
	runs []string // tasks that run again; the others keep their outcome
}

// rerun waits for a workflow's end and reruns it at two servers at once, under one key.
func (l *load) rerun(i int, a *accepted, from []string, runs ...string) {
	if !l.awaitEnd(a) {
		return
	}
	key := "again-" + a.key
	var both sync.WaitGroup
	var got [2]*accepted
	for n := range got {
		both.Go(func() {
			b := &accepted{key: key, action: a.action, want: a.want, at: time.Now(), again: &again{a.id, from, runs}}
			if l.insist("rerun "+a.key, func(ctx context.Context) (err error) {
				b.id, err = l.askRerun(ctx, (i+n)%len(l.servers), key, b.again)
				if client.IsNotFound(err) && l.mayBeGone(a) {
					return nil
				}
				return err
			}) && b.id != "" {
				got[n] = b
			}
		})
	}
	both.Wait()
	l.mu.Lock()
	for _, b := range got {
		if b != nil {
			l.all = append(l.all, b)
		}
	}
	l.mu.Unlock()
	if b := got[0]; b != nil {
		l.listed(a, b)
	}
}

// awaitEnd reports whether an execution has ended within rerunPatience, and is still there.
func (l *load) awaitEnd(a *accepted) bool {
	for began := time.Now(); time.Since(began) < rerunPatience; <-time.After(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		x, err := l.any.Get(ctx, a.id)
		cancel()
		if err == nil && x.Status.Terminal() {
			return true
		}
		if client.IsNotFound(err) {
			return false // retention was quicker; the archive reports it if it was too early
		}
	}
	return false
}

// askRerun asks one server for a rerun under a key, as the client does that made one.
func (l *load) askRerun(ctx context.Context, server int, key string, o *again) (string, error) {
	body, err := json.Marshal(api.RerunRequest{From: o.from})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.servers[server]+"/api/v1/executions/"+o.of+"/rerun", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	res, err := l.http.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		p := &api.Problem{Status: res.StatusCode}
		_ = json.NewDecoder(res.Body).Decode(p) // without a body the status is enough
		return "", p
	}
	var x api.Execution
	if err := json.NewDecoder(res.Body).Decode(&x); err != nil {
		return "", err
	}
	if x.RerunOf != o.of {
		l.complain("invariant 62: %s was made of %s, and says that it is the rerun of %q", x.ID, o.of, x.RerunOf)
	}
	return x.ID, nil
}

// listed checks that the list of an execution's reruns has this one.
func (l *load) listed(a, b *accepted) {
	l.insist("list the reruns of "+a.key, func(ctx context.Context) error {
		for x, err := range l.any.All(ctx, client.Filter{RerunOf: a.id}) {
			if err != nil || x.ID == b.id {
				return err
			}
		}
		if !l.mayBeGone(b) {
			l.complain("invariant 62: %s is a rerun of %s, and not listed as one", b.id, a.id)
		}
		return nil
	})
}

// pause pauses a workflow for a moment, every second time with its timers stopped.
func (l *load) pause(i int, a *accepted) {
	o := api.PauseOrder{For: api.Duration(time.Second), Timers: []string{"run", "stop"}[i%2]}
	l.insist("pause "+a.key, func(ctx context.Context) error {
		_, err := l.any.PauseExecution(ctx, a.id, o)
		if client.IsFinished(err) || client.IsNotFound(err) && l.mayBeGone(a) {
			return nil
		}
		return err
	})
}

// reruns: a rerun names its original, only the tasks that should run again run, and the rest do nothing and end with an outcome of the
// original.
func (v *verdicts) reruns(l *load, ledger map[try]*effect, archive *archive) {
	seen, reused := 0, 0
	for _, a := range l.all {
		k := archive.lives[a.id]
		if a.again == nil || k == nil {
			continue
		}
		seen++
		v.saw(62)
		if k.x.RerunOf.String() != a.again.of {
			v.wrong(62, "%s was asked to be the rerun of %s and is that of %s", a.id, a.again.of, k.x.RerunOf)
		}
		for _, c := range k.children {
			x := archive.lives[c.Execution.String()]
			if x == nil {
				continue
			}
			v.saw(62)
			if runs := slices.Contains(a.again.runs, c.Task); runs != x.x.ReusedOf.IsZero() {
				v.wrong(62, "%s, task %s[%d] of the rerun %s from %v: it ran: %t", c.Execution, c.Task, c.Index, a.id, a.again.from, !runs)
			}
			if !x.x.ReusedOf.IsZero() {
				reused++
				v.reused(a.again, x.x, ledger, archive)
			}
		}
	}
	v.t.Logf("%d reruns read, with %d tasks that ended with an outcome of their originals", seen, reused)
	if *cycles >= 50 && reused == 0 {
		v.t.Error("no outcome was reused: the test has tested nothing of reruns")
	}
}

// reused judges a task of a rerun that did not run.
func (v *verdicts) reused(o *again, x *flow.Execution, ledger map[try]*effect, archive *archive) {
	v.saw(59)
	if x.Stage != flow.Completed || ledger[try{x.ID.String(), 1}] != nil {
		v.wrong(59, "%s reuses the outcome of %s, and is %s, and ran: %t", x.ID, x.ReusedOf, x.Stage, ledger[try{x.ID.String(), 1}] != nil)
	}
	old := archive.lives[x.ReusedOf.String()]
	if old == nil {
		return
	}
	if was := old.x; was.Stage != flow.Completed || !was.ReusedOf.IsZero() || was.Parent.String() != o.of || was.Task != x.Task || was.Index != x.Index ||
		!bytes.Equal(was.Outcome.Output, x.Outcome.Output) {
		v.wrong(59, "%s, task %s[%d] of a rerun of %s, ended with %s: that of %s, task %s[%d] of %s, is %s with %s", x.ID, x.Task, x.Index, o.of, x.Outcome.Output,
			was.ID, was.Task, was.Index, was.Parent, was.Stage, was.Outcome.Output)
	}
}
