package simulation

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/histories"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/replay"
	"github.com/pawl-run/pawl/internal/store"
)

func (s *shadow) isRemoved(id flow.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removed[id]
}

// compare judges one execution as a reader sees it.
func (s *shadow) compare(x *flow.Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[x.ID]
	if r == nil {
		return
	}
	if r.x.Place == flow.Finished && (x.Stage != r.x.Stage || !x.FinishedAt.Equal(r.x.FinishedAt) || !sameOutcome(x.Outcome, r.x.Outcome)) {
		s.w.violate(2, "%s ended as %s %+v and is read as %s %+v", name(x.ID), r.x.Stage, r.x.Outcome, x.Stage, x.Outcome)
		return
	}
	if x.Stage != r.x.Stage || x.Attempt != r.x.Attempt || x.NextSeq != r.x.NextSeq || x.Place != r.x.Place || x.Owner != r.x.Owner {
		s.w.violate(33, "%s is committed as %s in attempt %d and read as %s in attempt %d", name(x.ID), r.x.Stage, r.x.Attempt, x.Stage, x.Attempt)
	}
}

func sameOutcome(a, b *flow.Outcome) bool {
	return a == b || a != nil && b != nil && bytes.Equal(a.Output, b.Output) && reflect.DeepEqual(a.Error, b.Error)
}

// checkStore runs the store's own consistency check.
func (w *world) checkStore() {
	broken, err := w.view.Check(w.ctx)
	if err != nil {
		w.violate(33, "check: %v", err)
	}
	for _, v := range broken {
		w.violate(v.Invariant, "%s: %s", name(v.Execution), v.Say)
	}
}

// checkHistories lets the rules decide every history again.
func (w *world) checkHistories() {
	err := histories.Of(w.base, catalog.New(w.base)).All(w.ctx, func(id flow.ID, r *replay.Result) {
		for _, f := range r.Findings {
			w.violate(61, "%s: event %d, %s[%d]: by the rules %s, recorded %s: %s", name(id), f.Seq, f.Task, f.Index, f.Rules, f.Recorded, f.Why)
		}
	})
	if err != nil {
		w.violate(61, "replay: %v", err)
	}
}

// judge checks everything again at the end of a run.
func (w *world) judge() {
	w.checkStore()
	for _, r := range w.shadow.inOrder() {
		w.judgeRow(r)
		if w.isBroken() {
			return
		}
	}
	w.judgeRedriven()
	w.judgeReruns()
	w.judgeReactions()
	w.judgeBeats()
	if left, err := w.view.Keys(w.ctx, 10); err != nil || len(left) > 0 {
		w.violate(35, "keys are still held at the end: %v %v", left, err)
	}
	if w.bug == nil { // a planted bug is to be caught by the promise that it breaks, not here
		w.checkHistories()
	}
}

// judgeRedriven checks executions that were retried: an execution that did not complete keeps its reason, and everything that a retry
// needs.
func (w *world) judgeRedriven() {
	for _, r := range w.load.redriven {
		old, err := w.base.Get(w.ctx, r.old)
		if errors.Is(err, store.ErrNotFound) {
			continue // its time was over
		}
		if err != nil || old.Outcome == nil || old.Outcome.Error == nil || old.Outcome.Error.Code == "" {
			w.violate(29, "%s was run again and does not say why it ended: %+v, %v", name(r.old), old, err)
			return
		}
		again, err := w.base.Get(w.ctx, r.again)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil || again.Action != old.Action || again.Version != old.Version || again.Kind != old.Kind || again.Key != old.Key ||
			!bytes.Equal(again.Input, old.Input) || !bytes.Equal(again.With, old.With) || !reflect.DeepEqual(again.Retry, old.Retry) {
			w.violate(29, "%s was run again as %s, which asks for something else: %+v, not %+v, %v", name(r.old), name(r.again), again, old, err)
			return
		}
	}
}

func (w *world) judgeRow(r *row) {
	x, err := w.view.Get(w.ctx, r.id)
	if err != nil {
		if errors.Is(err, store.ErrNotFound) {
			w.violate(31, "%s is gone", name(r.id))
		} else {
			w.violate(31, "read %s: %v", name(r.id), err)
		}
		return
	}
	w.shadow.compare(x)
	got, err := w.view.Events(w.ctx, r.id, 0, 1000)
	if err != nil {
		w.violate(7, "read the events of %s: %v", name(r.id), err)
	}
	if say := w.shadow.prefix(r.id, got); say != "" {
		w.violate(7, "%s: %s", name(r.id), say)
	}
	w.judgeLogs(r)
	w.judgeTimeout(r, x)
	switch {
	case !x.ReusedOf.IsZero():
		w.judgeReused(r, x)
	case x.AsRerun().OverriddenBy != "" && !x.Parent.IsZero():
		if w.ledger.of[try{r.id, 1}] != nil {
			w.violate(59, "%s was given its output by %s, and was run", name(r.id), x.AsRerun().OverriddenBy)
		}
	case x.Kind == flow.KindWorkflow:
		w.judgeWorkflow(r)
	case x.Stage == flow.Completed && !x.Kind.ByEngine():
		run := w.ledger.of[try{r.id, r.x.Attempt}]
		if run == nil || run.failed != "" || !bytes.Equal(run.output, x.Outcome.Output) {
			w.violate(9, "%s is completed with %s by attempt %d, which really did %+v", name(r.id), x.Outcome.Output, x.Attempt, run)
		}
	case x.Stage == flow.Failed && x.Outcome.Error.Code == "boom":
		if run := w.ledger.of[try{r.id, r.x.Attempt}]; run == nil || run.failed == "" {
			w.violate(9, "%s failed in attempt %d, which really did %+v", name(r.id), x.Attempt, run)
		}
	}
}

// judgeLogs compares the stored log of each attempt with the log that its worker accepted. The stored log is a prefix of it, and all of it
// when the worker's own report ended the attempt, because a worker sends logs before that report.
func (w *world) judgeLogs(r *row) {
	if keep := w.plan.Retention; keep > 0 && !r.x.FinishedAt.IsZero() && w.now().Sub(r.x.FinishedAt) > keep {
		return // retention deletes the log first, so that no log outlives its execution, and may be doing so now
	}
	ended := map[int]bool{}
	for _, e := range r.events {
		switch e.Type {
		case flow.EvCompleted, flow.EvFailed, flow.EvCancelled, flow.EvTimedOut:
			said, ok := w.ledger.spoken(try{r.id, e.Attempt}, e.Seq)
			ended[e.Attempt] = ok && said.Type == e.Type
		}
	}
	for n := 1; n <= r.x.Attempt; n++ {
		run := w.ledger.of[try{r.id, n}]
		chunks, err := w.view.ReadLogs(w.ctx, store.LogQuery{Execution: r.id, Attempt: n, Limit: 1 << 20})
		if err != nil {
			w.violate(31, "read the log of %s: %v", name(r.id), err)
			return
		}
		var got []byte
		for i, c := range chunks {
			if c.Seq != int64(i+1) || c.Attempt != n || c.Offset != int64(len(got)) {
				w.violate(31, "%s: chunk %d of the log of attempt %d stands in place %d, at byte %d", name(r.id), c.Seq, n, i+1, c.Offset)
				return
			}
			got = append(got, c.Data...)
		}
		switch {
		case run == nil && len(got) > 0:
			w.violate(5, "%s has a log of attempt %d, which nobody ran: %q", name(r.id), n, got)
		case run != nil && !bytes.HasPrefix(run.log, got):
			w.violate(31, "%s: attempt %d wrote %q and is kept with %q", name(r.id), n, run.log, got)
		case run != nil && ended[n] && !bytes.Equal(run.log, got):
			w.violate(31, "%s: attempt %d ended by its worker's word, wrote %q and is kept with %q", name(r.id), n, run.log, got)
		}
	}
}

// judgeWorkflow derives from the children alone how a workflow must have ended.
func (w *world) judgeWorkflow(r *row) {
	def := w.load.definition(r)
	if def == nil || r.x.Place != flow.Finished || w.shadow.ordersAbove(r) || !r.ran() {
		return // ended from outside
	}
	if r.lost[r.x.Attempt] != "" {
		w.violate(5, "workflow %s lost attempt %d", name(r.id), r.x.Attempt)
	}
	if w.refuses(r.id, r.x.Attempt) {
		if r.x.Stage != flow.Failed || r.x.Outcome.Error.Code != flow.CodeInternal {
			w.violate(32, "workflow %s is %s (%+v): none of its tasks can be stored", name(r.id), r.x.Stage, r.x.Outcome.Error)
		}
		return
	}
	kids := map[string][]*row{}
	for _, k := range r.kids {
		if k.x.ParentAttempt == r.x.Attempt {
			kids[k.x.Task] = append(kids[k.x.Task], k)
		}
	}
	if w.shadow.anyRemoved(r.kids) {
		return
	}
	failed, cancelled := false, false
	for _, t := range def.Tasks {
		f, c := ends(kids[t.Name])
		if last := lastRound(r, t, r.x.Attempt); last != nil && !last.reached() {
			f = f || last.x.Index == t.Repeat.Max-1 && !c
		}
		failed = failed || f && !t.ContinueOnError
		cancelled = cancelled || c
	}
	want := flow.Completed
	switch {
	case failed:
		want = flow.Failed
	case cancelled:
		want = flow.Cancelled
	}
	if e := r.x.Outcome.Error; e != nil && e.Code == flow.CodeExpressionError && want == flow.Completed {
		w.violate(21, "workflow %s: %s", name(r.id), e.Message)
		return
	}
	if r.x.Stage != want {
		w.violate(21, "workflow %s is %s (%+v): its children say %s", name(r.id), r.x.Stage, r.x.Outcome.Error, want)
		return
	}
	for _, t := range def.Tasks {
		must := want == flow.Completed || t.If.Survives()
		if n := len(kids[t.Name]); must && t.Repeat == nil && n != w.load.items(t) {
			w.violate(21, "workflow %s is %s and task %q has %d of %d items", name(r.id), want, t.Name, n, w.load.items(t))
			return
		}
	}
	if want == flow.Completed && def.Outputs != nil && def.Name != "leaf" {
		w.judgeOutputs(r, def, kids)
	}
	if want == flow.Completed && def.Name == rounder().name() {
		w.judgeRounds(r, def, kids)
	}
	if want == flow.Completed && def.Name == lister().name() {
		w.judgeList(r, kids)
	}
}

// ordersAbove reports whether an execution, or a workflow above it, was ordered to end.
func (s *shadow) ordersAbove(r *row) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; r != nil; r = s.rows[r.x.Parent] {
		p := s.rows[r.x.Parent]
		if r.order != nil || s.removed[r.x.Parent] || p != nil && p.timedOut[r.x.ParentAttempt] {
			return true
		}
	}
	return false
}

// ran reports whether the last attempt reached the stage running.
func (r *row) ran() bool {
	for _, e := range r.events {
		if e.Type == flow.EvRunning && e.Attempt == r.x.Attempt {
			return true
		}
	}
	return false
}

func ends(kids []*row) (failed, cancelled bool) {
	for _, k := range kids {
		switch k.x.Stage {
		case flow.Failed, flow.TimedOut:
			failed = true
		case flow.Cancelled:
			cancelled = true
		}
	}
	return failed, cancelled
}

// judgeTimeout checks an execution that ended by the timeout of one attempt: it must have had no attempt left, and a sleep must not have
// been over before.
func (w *world) judgeTimeout(r *row, x *flow.Execution) {
	if x.Stage != flow.TimedOut || x.Outcome.Error.Code != flow.CodeTimeout || x.TotalTimeout > 0 || r.cancelled ||
		r.order != nil && r.order.As != flow.TimedOut { // ended from outside
		return
	}
	var sleep struct{ For int }
	if x.Action == "sleep" && json.Unmarshal(x.Input, &sleep) == nil && time.Duration(sleep.For)*time.Second < x.Timeout {
		w.violate(24, "sleep %s timed out after %s: it was over before", name(r.id), x.Timeout)
	}
	if x.Attempt-r.back < x.Retry.MaxAttempts && !r.asked && !w.shadow.superseded(r) {
		w.violate(22, "%s timed out in attempt %d of %d, %d handed back", name(r.id), x.Attempt, x.Retry.MaxAttempts, r.back)
	}
}

// judgeList compares the items that a workflow ran with the list in its history.
func (w *world) judgeList(r *row, kids map[string][]*row) {
	var list struct{ List []int }
	if err := json.Unmarshal(kids["list"][0].x.Outcome.Output, &list); err != nil {
		w.violate(21, "the list of %s is %s: %v", name(r.id), kids["list"][0].x.Outcome.Output, err)
		return
	}
	for _, k := range kids["each"] {
		if of := w.shadow.known(k.x.ReusedOf); k.x.AsRerun().OverriddenBy != "" || of != nil && of.x.AsRerun().OverriddenBy != "" {
			continue // a client's rerun set this item's output, or the output of the item whose outcome it reuses
		}
		var item struct{ V int }
		if err := json.Unmarshal(k.x.Outcome.Output, &item); err != nil || item.V != list.List[k.x.Index] {
			w.violate(21, "item %d of the list %v of %s ran as %s (%v)", k.x.Index, list.List, name(r.id), k.x.Outcome.Output, err)
		}
	}
}

// judgeOutputs compares the lists in a workflow's output with the outputs of its items, in the order of the items.
func (w *world) judgeOutputs(r *row, def *definition.Workflow, kids map[string][]*row) {
	var got map[string][]any
	if err := json.Unmarshal(r.x.Outcome.Output, &got); err != nil {
		w.violate(21, "workflow %s put out %s: %v", name(r.id), r.x.Outcome.Output, err)
		return
	}
	for task, list := range got {
		want := make([]any, len(kids[task]))
		for _, k := range kids[task] {
			if k.x.Outcome.Output == nil {
				continue
			}
			if err := json.Unmarshal(k.x.Outcome.Output, &want[k.x.Index]); err != nil {
				w.violate(21, "%s put out %s: %v", name(k.id), k.x.Outcome.Output, err)
			}
		}
		if !reflect.DeepEqual(list, want) {
			w.violate(19, "task %q of %s put out %v: its items put out %v", task, name(r.id), list, want)
		}
	}
}

func (s *shadow) anyRemoved(rs []*row) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rs {
		if s.removed[r.id] {
			return true
		}
	}
	return false
}
