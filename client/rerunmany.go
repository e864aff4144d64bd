package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/api"
)

// ManyReruns are executions selected to run again. Its methods may be called several times; each rerun is made once.
type ManyReruns struct {
	ID         string   // resumes the reruns after an interruption: pass it to [Client.RerunMany]
	Executions []string // newest first

	client *Client
}

// BulkRerun is the result, or the plan, for one of them.
type BulkRerun struct {
	Of      string         // the execution that runs again
	New     *api.Execution // its rerun, after its end
	Plan    *api.RerunPlan // from [ManyReruns.Plan]: what the rerun would do
	Refused *api.Problem   // why this one is not run again; the others are
}

// RerunMany selects executions as [Client.RetryMany] does, but all of them: without a status in f those that failed, timed out or were
// cancelled. Nothing runs before the call of [ManyReruns.Run]. With the ID of interrupted reruns it selects the same executions again: none
// newer than the newest of that time, such as a rerun that has failed meanwhile.
func (c *Client) RerunMany(ctx context.Context, f Filter, resume string) (*ManyReruns, error) {
	newest, _, whole := strings.Cut(resume, ".")
	if resume != "" && (!whole || !strings.HasPrefix(newest, "ex_")) {
		return nil, fmt.Errorf("%q is not the ID of reruns: it is written ex_….…", resume)
	}
	m := &ManyReruns{ID: resume, client: c}
	for x, err := range walk(f.Cursor, func(cursor string) ([]api.BulkEntry, string, error) {
		f.Cursor = cursor
		r, err := c.RetryMany(ctx, f, api.BulkRequest{DryRun: true})
		if err != nil {
			return nil, "", err
		}
		return r.Executions, r.NextCursor, nil
	}) {
		if err != nil {
			return nil, err
		}
		if resume == "" || x.ID <= newest {
			m.Executions = append(m.Executions, x.ID)
		}
	}
	if m.ID == "" && len(m.Executions) > 0 {
		m.ID = slices.Max(m.Executions) + "." + rand.Text()
	}
	return m, nil
}

// Run runs each of them again as [Client.Rerun] does, with up to atOnce reruns in progress, and yields the result of each rerun once it has
// ended. Reruns that an earlier call made are not repeated. An error, leaving the loop or the end of ctx ends the walk: reruns in progress
// go on, and Run of a RerunMany with the same ID continues.
func (m *ManyReruns) Run(ctx context.Context, in api.RerunRequest, atOnce int) iter.Seq2[BulkRerun, error] {
	return m.each(ctx, atOnce, func(ctx context.Context, r *BulkRerun) (err error) {
		key := http.Header{"Idempotency-Key": {m.ID + ":" + r.Of}}
		r.New, err = fetch[api.Execution](ctx, m.client,
			request{method: http.MethodPost, path: execution(r.Of, "/rerun"), body: in, header: key, repeatable: true})
		if err == nil {
			r.New, err = m.client.Wait(ctx, r.New.ID)
		}
		return err
	})
}

// Plan yields what [ManyReruns.Run] would do with each of them, in no particular order, with up to atOnce requests at a time. Nothing runs.
func (m *ManyReruns) Plan(ctx context.Context, in api.RerunRequest, atOnce int) iter.Seq2[BulkRerun, error] {
	return m.each(ctx, atOnce, func(ctx context.Context, r *BulkRerun) (err error) {
		r.Plan, err = m.client.PlanRerun(ctx, r.Of, in)
		return err
	})
}

func (m *ManyReruns) each(ctx context.Context, atOnce int, do func(context.Context, *BulkRerun) error) iter.Seq2[BulkRerun, error] {
	type result struct {
		BulkRerun
		err error
	}
	return func(yield func(BulkRerun, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		todo, done := make(chan string), make(chan result)
		var all sync.WaitGroup
		defer all.Wait()
		defer stop()
		all.Go(func() {
			defer close(todo)
			for _, id := range m.Executions {
				select {
				case todo <- id:
				case <-ctx.Done():
					return
				}
			}
		})
		for range min(max(atOnce, 1), len(m.Executions)) {
			all.Go(func() {
				for id := range todo {
					r := result{BulkRerun: BulkRerun{Of: id}}
					if r.err = do(ctx, &r.BulkRerun); refuses(r.err) {
						errors.As(r.err, &r.Refused)
						r.err = nil
					}
					select {
					case done <- r:
					case <-ctx.Done():
						return
					}
				}
			})
		}
		for range m.Executions {
			select {
			case r := <-done:
				if !yield(r.BulkRerun, r.err) || r.err != nil {
					return
				}
			case <-ctx.Done():
				yield(BulkRerun{}, context.Cause(ctx))
				return
			}
		}
	}
}

// refuses reports whether an error concerns one execution only, so that the others may run: it does not exist, has not ended, or cannot run
// in this way.
func refuses(err error) bool {
	var p *api.Problem
	if !errors.As(err, &p) {
		return false
	}
	switch p.Status {
	case http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity:
		return true
	}
	return false
}
