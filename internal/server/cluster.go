package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
)

func (c *call) queues() error {
	depths, err := c.Engine.Reader().Queues(c.ctx())
	if err != nil {
		return fmt.Errorf("list queues: %w", err)
	}
	sessions, err := c.Engine.Reader().LiveSessions(c.ctx(), time.Now())
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	known := map[string]*api.Queue{}
	queue := func(lane string) *api.Queue {
		if known[lane] == nil {
			name, needs := flow.NeedsOf(lane)
			known[lane] = &api.Queue{Queue: name, Runtime: needs.Runtime, WorkerLabels: needs.Labels}
		}
		return known[lane]
	}
	for _, d := range depths {
		q := queue(d.Queue)
		q.Ready, q.Oldest = d.Ready, d.Oldest
	}
	for _, s := range sessions {
		for _, name := range s.Queues {
			queue(name) // its lanes only while something waits there
		}
	}
	for _, s := range sessions {
		reach := flow.ReachOf(s.Queues, s.Kinds)
		for lane, q := range known {
			if reach.Serves(lane) {
				q.Workers++
				q.Slots += s.Slots
			}
		}
	}
	out := api.Queues{Queues: []api.Queue{}}
	for _, lane := range slices.Sorted(maps.Keys(known)) {
		out.Queues = append(out.Queues, *known[lane])
	}
	slices.SortStableFunc(out.Queues, func(a, b api.Queue) int { return cmp.Compare(a.Queue, b.Queue) })
	return c.json(http.StatusOK, out)
}

func (c *call) keys() error {
	limit := int(c.number("limit", 100, 1, 1000))
	if err := c.checked(); err != nil {
		return err
	}
	uses, err := c.Engine.Reader().Keys(c.ctx(), limit)
	if err != nil {
		return fmt.Errorf("list keys: %w", err)
	}
	out := api.Keys{Keys: []api.Key{}}
	for key, u := range uses {
		out.Keys = append(out.Keys, api.Key{Key: key, Holders: u.Holders, Waiting: u.Waiting})
	}
	slices.SortFunc(out.Keys, func(a, b api.Key) int {
		return cmp.Or(cmp.Compare(b.Holders+b.Waiting, a.Holders+a.Waiting), cmp.Compare(a.Key, b.Key))
	})
	return c.json(http.StatusOK, out)
}

func (c *call) workers() error {
	sessions, err := c.Engine.Reader().LiveSessions(c.ctx(), time.Now())
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	out := api.Workers{Workers: []api.Worker{}}
	for _, s := range sessions {
		labels, kinds := flow.OfferedLabels(s.Kinds)
		out.Workers = append(out.Workers, api.Worker{
			Session: s.ID.Text(flow.SessionPrefix), Name: s.Name, Embedded: s.Embedded, Queues: append([]string{}, s.Queues...),
			Kinds: kinds, Slots: s.Slots, Labels: labels, StartedAt: s.StartedAt, ExpiresAt: s.ExpiresAt,
		})
	}
	return c.json(http.StatusOK, out)
}

func (c *call) stats() error {
	reader := c.Engine.Reader()
	counts, err := reader.Counts(c.ctx())
	if err != nil {
		return fmt.Errorf("count executions: %w", err)
	}
	size, err := reader.Size(c.ctx())
	if err != nil {
		return fmt.Errorf("measure the store: %w", err)
	}
	sessions, err := reader.LiveSessions(c.ctx(), time.Now())
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	out := api.Stats{
		Version: c.Version, StartedAt: c.started, Executions: map[api.Status]int{}, Counters: c.metrics.counters(),
		StoreBytes: size, Workers: len(sessions), RSSBytes: residentBytes(), Goroutines: runtime.NumGoroutine(),
	}
	for stage, n := range counts {
		out.Executions[status(stage)] = n
	}
	for _, s := range sessions {
		out.Slots += s.Slots
	}
	return c.json(http.StatusOK, out)
}

func (c *call) healthz() error { return c.json(http.StatusOK, api.Health{Status: "ok"}) }

// readyTimeout is how long the store may take to answer a probe.
const readyTimeout = 2 * time.Second

func (c *call) readyz() error {
	if c.draining.Err() != nil {
		return problem(http.StatusServiceUnavailable, api.ProblemUnavailable, "the server is about to stop")
	}
	ctx, cancel := context.WithTimeout(c.ctx(), readyTimeout)
	defer cancel()
	if err := c.Engine.Ready(ctx); err != nil {
		return problem(http.StatusServiceUnavailable, api.ProblemUnavailable, err.Error())
	}
	return c.json(http.StatusOK, api.Health{Status: "ok"})
}
