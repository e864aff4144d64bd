package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// doubleRecovery lets both stores recover the same lost sessions concurrently: each execution gets one next attempt.
func doubleRecovery(s *shared) {
	var held []flow.ID
	for i := range 4 {
		lost := s.session(flow.ID{byte(i + 1)}, brief)
		s.ranOut(lost.ID)
		for range 10 {
			held = append(held, s.claimed(lost.ID, attempts(3)))
		}
	}
	after := s.later(time.Hour)
	s.race(3, func(on store.Store, i int) error {
		for {
			var expired []store.Session
			err := decided(s.ctx(), on, func(ctx context.Context, t store.Tx) (err error) {
				if expired, err = t.Expired(ctx, 10); err != nil {
					return err
				}
				for _, lost := range expired {
					owned, err := t.OwnedBy(ctx, lost.ID, flow.ID{}, 100)
					if err != nil {
						return err
					}
					var d store.Delta
					for _, x := range owned {
						draft := flow.Load(x)
						if err := draft.Lose("lease ran out", after, 0); err != nil {
							return err
						}
						d.Drafts = append(d.Drafts, draft)
					}
					if err := errors.Join(t.Apply(ctx, d), t.DropSession(ctx, lost.ID)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil || len(expired) == 0 {
				return err
			}
		}
	})
	for _, id := range held {
		x := s.get(id)
		equal(s.bench, "after recovery", []any{x.Attempt, x.Stage, x.Place, x.Owner}, []any{2, flow.Requested, flow.Delayed, flow.ID{}})
		equal(s.bench, "events", len(s.events(id, 0, 100)), 5)
	}
}

// doubleFold lets both stores make a workflow's next step concurrently: it is made once.
func doubleFold(s *shared) {
	wf := s.workflow()
	for i := range 5 {
		child := s.claimed(flow.ID{1}, under(wf, "first", i))
		s.report(child, flow.EvRunning, flow.EvCompleted)
	}
	ids := make([]flow.ID, 2*4)
	for i := range ids {
		ids[i] = s.id()
	}
	of := store.WorkflowAttempt{ID: wf, Attempt: 1}
	var steps atomic.Int32
	s.race(4, func(on store.Store, i int) error {
		took := false
		err := decided(s.ctx(), on, func(ctx context.Context, t store.Tx) error {
			took = false
			locked, err := t.LockWorkflows(ctx, []store.KnownWorkflow{{WorkflowAttempt: of, Change: store.NothingKnown}})
			if err != nil {
				return err
			}
			tasks := byTask(locked[0].Tasks)
			if tasks["second"].Created > 0 {
				return nil
			}
			outcomes, err := t.Outcomes(ctx, of, []string{"first"}, 1<<20)
			if err != nil {
				return err
			}
			if len(outcomes["first"]) != 5 {
				s.Errorf("%d outcomes of 5 children that have ended", len(outcomes["first"]))
			}
			d := flow.Load(locked[0].Execution)
			next := flow.Submit(ids[i], s.request(under(wf, "second", 0)))
			if err := errors.Join(d.Advance(raw(`{"started":["second"]}`), s.now), next.Schedule(int64(i+1), s.now)); err != nil {
				return err
			}
			took = true
			return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d, next}})
		})
		if err == nil && took {
			steps.Add(1)
		}
		return err
	})
	equal(s.bench, "steps taken", steps.Load(), int32(1))
	got := byTask(s.progress(of)[wf])
	equal(s.bench, "successors", got["second"].Created, 1)
}

// timesOfSteps lets a child of a workflow end in one transaction while another one, which has read the clock before, is about to make the
// workflow's step. The clock of the step is then not before the child's end, so the workflow does not end before its child.
func timesOfSteps(s *shared) {
	wf := s.workflow()
	child := s.claimed(flow.ID{1}, under(wf, "only", 0))
	of := store.KnownWorkflow{WorkflowAttempt: store.WorkflowAttempt{ID: wf, Attempt: 1}, Change: store.NothingKnown}
	var ended, step time.Time
	must(s.bench, s.both[0].Update(s.ctx(), func(ctx context.Context, t store.Tx) (err error) {
		if _, err = t.Now(ctx); err != nil {
			return err
		}
		err = decided(s.ctx(), s.both[1], func(ctx context.Context, other store.Tx) error {
			loaded, err := other.Lock(ctx, []flow.ID{child}, store.WithoutPayload)
			if err != nil {
				return err
			}
			if ended, err = other.Now(ctx); err != nil {
				return err
			}
			d := flow.Load(loaded[0])
			d.Report(d.Owner, flow.Report{Execution: child, Attempt: 1, Events: []flow.Event{
				{Seq: d.NextSeq, Attempt: 1, Type: flow.EvRunning, At: ended}, {Seq: d.NextSeq + 1, Attempt: 1, Type: flow.EvCompleted, At: ended}}}, nil, nil, ended, 0)
			return other.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
		})
		if err != nil {
			return err
		}
		locked, err := t.LockWorkflows(ctx, []store.KnownWorkflow{of})
		if err != nil {
			return err
		}
		equal(s.bench, "children that have ended", locked[0].Tasks[0].Ended, map[flow.Stage]int{flow.Completed: 1})
		step, err = t.Now(ctx)
		return err
	}))
	if step.Before(ended) {
		s.Errorf("the step is at %v, %v before the end that it takes in", step, ended.Sub(step))
	}
}

// doubleDue lets both stores process due executions concurrently: each is decided once.
func doubleDue(s *shared) {
	var all []flow.ID
	for range 60 {
		all = append(all, s.ready(int64(s.made+1), func(r *flow.Request) { r.QueueTimeout = time.Minute }))
	}
	after := s.later(time.Hour)
	var ended atomic.Int32
	s.race(3, func(on store.Store, i int) error {
		for {
			n := 0
			err := decided(s.ctx(), on, func(ctx context.Context, t store.Tx) error {
				due, _, err := t.Due(ctx, after, 7)
				if err != nil {
					return err
				}
				var d store.Delta
				for _, x := range due {
					draft := flow.Load(x)
					if err := draft.Finish(flow.TimedOut, flow.Outcome{Error: &flow.Error{Code: flow.CodeQueueTimeout, Message: "late"}}, after, 0); err != nil {
						return err
					}
					d.Drafts = append(d.Drafts, draft)
				}
				n = len(due)
				return t.Apply(ctx, d)
			})
			if err != nil || n == 0 {
				return err
			}
			ended.Add(int32(n))
		}
	})
	equal(s.bench, "deadlines decided about", ended.Load(), int32(len(all)))
	for _, id := range all {
		equal(s.bench, "stage", s.get(id).Stage, flow.TimedOut)
	}
}

// doubleSubmission lets both stores accept the same idempotency key concurrently: there is one execution.
func doubleSubmission(s *shared) {
	for k := range 10 {
		key := string(rune('a' + k))
		ids := []flow.ID{s.id(), s.id(), s.id(), s.id()}
		var winners sync.Map
		s.race(2, func(on store.Store, i int) error {
			return decided(s.ctx(), on, func(ctx context.Context, t store.Tx) error {
				found, err := t.Submitted(ctx, []string{key})
				if err != nil {
					return err
				}
				if k, ok := found[key]; ok {
					winners.Store(k.Execution, true)
					return nil
				}
				d := flow.Submit(ids[i], s.request(func(r *flow.Request) { r.IdempotencyKey = key }))
				return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}, Keys: []store.IdempotencyKey{{Key: key, Execution: d.ID}}})
			})
		})
		made := 0
		for _, id := range ids {
			if _, err := s.s.Get(s.ctx(), id); err == nil {
				made++
				winners.Delete(id)
			}
		}
		winners.Range(func(id, _ any) bool {
			s.Errorf("a submission was told of %v, which does not exist", id)
			return true
		})
		equal(s.bench, "executions of one key", made, 1)
	}
}

// doubleDefinition lets both stores define versions of one name concurrently: versions have no gaps, and none is lost.
func doubleDefinition(s *shared) {
	var versions sync.Map
	s.race(3, func(on store.Store, i int) error {
		for n := range 5 {
			var v int
			err := decided(s.ctx(), on, func(ctx context.Context, t store.Tx) (err error) {
				v, _, err = t.Define(ctx, store.Definition{Name: "d", Kind: "workflow", Hash: [32]byte{byte(i + 1), byte(n)},
					Document: raw(`{"by":%d,"n":%d}`, i, n), CreatedAt: s.now})
				return err
			})
			if err != nil {
				return err
			}
			if _, twice := versions.LoadOrStore(v, true); twice {
				s.Errorf("version %d was given twice", v)
			}
		}
		return nil
	})
	latest, err := s.s.Definition(s.ctx(), "d", 0)
	must(s.bench, err)
	equal(s.bench, "versions", latest.Version, 30)
}

// doubleRemoval lets both stores remove the same old executions concurrently, while other transactions lock the keys of these executions.
func doubleRemoval(s *shared) {
	for i := range 30 {
		s.finished(withKey([]string{"k", "unused"}[i%2], 5))
	}
	stays := s.ready(1, withKey("k", 5))
	limit := s.later(time.Hour)
	s.race(2, func(on store.Store, i int) error {
		for {
			r, err := on.Removable(s.ctx(), store.RemovableQuery{Before: limit, Count: 7, Bytes: 1 << 20})
			if err != nil || len(r.IDs) == 0 {
				return err
			}
			err = decided(s.ctx(), on, func(ctx context.Context, t store.Tx) error {
				_, err := t.Remove(ctx, r.IDs)
				return err
			})
			if err != nil {
				return err
			}
			err = decided(s.ctx(), on, func(ctx context.Context, t store.Tx) error {
				_, err := t.LockKeys(ctx, []string{"unused", "k"})
				return err
			})
			if err != nil {
				return err
			}
		}
	})
	all, err := store.List(s.ctx(), s.s, store.Filter{Limit: 100})
	must(s.bench, err)
	equal(s.bench, "what is left", ids(all), []flow.ID{stays})
}
