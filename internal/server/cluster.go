package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

func (c *call) queues() error {
	p, err := c.cut()
	if err != nil {
		return err
	}
	depths, err := c.Engine.Reader().Queues(c.ctx())
	if err != nil {
		return fmt.Errorf("list queues: %w", err)
	}
	sessions, err := c.Engine.Reader().LiveSessions(c.ctx())
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	declared, err := c.Engine.Catalog().Queues(c.ctx())
	if err != nil {
		return err
	}
	paused, err := c.pausedBy()
	if err != nil {
		return err
	}
	known := map[string]*api.Queue{}
	queue := func(routingKey string) *api.Queue {
		routingKey = flow.ResumedKey(routingKey) // executions that wait because their action is paused are in the queue as well
		if known[routingKey] == nil {
			name, needs := flow.NeedsOf(routingKey)
			known[routingKey] = &api.Queue{Queue: name, Handler: needs.Handler, Runtime: needs.Runtime, WorkerLabels: needs.Labels,
				Paused: paused(store.PausedQueue, name)}
		}
		return known[routingKey]
	}
	for _, d := range depths {
		q := queue(d.Queue)
		if q.Ready += d.Ready; q.Oldest.IsZero() || !d.Oldest.IsZero() && d.Oldest.Before(q.Oldest) {
			q.Oldest = d.Oldest
		}
	}
	reaches := make([]flow.Reach, len(sessions))
	for i, s := range sessions {
		reaches[i] = flow.ReachOf(s.Queues, s.Kinds)
		for _, routingKey := range reaches[i].Shown() {
			queue(routingKey) // other parts of a queue are shown only while executions wait there
		}
	}
	named := map[string]bool{}
	for _, q := range known {
		named[q.Queue] = true
	}
	for _, name := range declared {
		if !named[name] {
			queue(name) // no worker serves it and no execution waits in it
		}
	}
	for i, s := range sessions {
		reach := reaches[i]
		for routingKey, q := range known {
			if reach.Serves(routingKey) {
				q.Workers++
				q.Slots += s.Slots
			}
		}
	}
	var out api.Queues
	byName := make(map[string]api.Queue, len(known))
	for routingKey, q := range known {
		byName[q.Queue+"\x00"+routingKey] = *q
	}
	if out.Queues, out.NextCursor, err = cutPage(byName, p); err != nil {
		return err
	}
	return c.json(http.StatusOK, out)
}

// cut is the requested part of a list. It is for lists that are computed anew for each page, from live sessions and the lengths of queues.
type cut struct {
	after string
	limit int
}

func (c *call) cut() (cut, error) {
	after, err := base64.RawURLEncoding.DecodeString(c.query.Get("cursor"))
	if err != nil {
		c.noPlace()
	}
	return cut{string(after), int(c.number("limit", 1000, 1, 10_000))}, c.checked()
}

// cutPage returns the next items, sorted by key, and a cursor if there are more. The page is bounded in bytes like the pages of a store: a
// worker may name 1,000 queues and kinds of 512 bytes each.
func cutPage[T any](items map[string]T, p cut) (page []T, next string, err error) {
	page = []T{}
	size := 0
	last := ""
	for _, key := range slices.Sorted(maps.Keys(items)) {
		if key <= p.after {
			continue
		}
		if len(page) == p.limit || size >= store.PageBytes {
			return page, base64.RawURLEncoding.EncodeToString([]byte(last)), nil
		}
		body, err := encode(items[key])
		if err != nil {
			return nil, "", fmt.Errorf("encode an item: %w", err)
		}
		page, size, last = append(page, items[key]), size+len(body), key
	}
	return page, "", nil
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

func (c *call) stats() error {
	reader := c.Engine.Reader()
	sums, err := reader.Survey(c.ctx())
	if err != nil {
		return fmt.Errorf("count executions: %w", err)
	}
	counts := sums.Stages()
	size, err := reader.Size(c.ctx())
	if err != nil {
		return fmt.Errorf("measure the store: %w", err)
	}
	sessions, err := reader.LiveSessions(c.ctx())
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	out := api.Stats{
		Version: c.Version, StartedAt: c.started, Executions: map[api.Status]int{}, Counters: c.metrics.Counters(),
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

// residentBytes returns how much memory of this process is in RAM, or 0 if the system does not report it.
func residentBytes() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

func (c *call) metricsPage() error {
	c.metrics.Look() // a survey may take a while, and that time must not count as a slow client
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(c.Patience))
	c.metrics.ServeHTTP(c.w, c.r)
	return nil
}

func (c *call) healthz() error { return c.json(http.StatusOK, api.Health{Status: "ok"}) }

// readyTimeout is how long the store may take to answer a readiness probe.
const readyTimeout = 2 * time.Second

func (c *call) readyz() error {
	if c.draining.Err() != nil {
		return refusal(http.StatusServiceUnavailable, api.ProblemUnavailable, "the server is about to stop")
	}
	ctx, cancel := context.WithTimeout(c.ctx(), readyTimeout)
	defer cancel()
	if err := c.Engine.Ready(ctx); err != nil {
		if c.said.due("/readyz", c.begun) {
			c.log.Warn("the server is not ready", telemetry.Err, err)
		}
		detail := err.Error()
		if !c.mayUse(c.r) { // the driver's message names the database's host and user
			detail = "the database does not answer or takes no writes, or nothing is committed: the server's log says more, and this answer to a request with a token"
		}
		return refusal(http.StatusServiceUnavailable, api.ProblemUnavailable, detail)
	}
	return c.json(http.StatusOK, api.Health{Status: "ok"})
}
