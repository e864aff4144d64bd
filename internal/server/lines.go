package server

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const (
	linePage = 1000
	// linesScanned is how many places of a line are examined to find labels: 10,000 take 60 ms on SQLite.
	linesScanned = 10_000
	// lineLanes limits the parts of a queue in an answer, and lineRows the executions in all of them together.
	lineLanes = 100
	lineRows  = 5000
)

// lineQuery are the parameters of a request about lines.
type lineQuery struct {
	limit  int
	labels map[string]string
}

func (c *call) lineQuery() lineQuery {
	q := lineQuery{limit: int(c.number("limit", 100, 1, 1000)), labels: map[string]string{}}
	for _, label := range c.query["label"] {
		if name, value, ok := c.label(label); ok {
			q.labels[name] = value
		}
	}
	return q
}

// line reads the first places of a line, or those of executions with labels. scanned is the number of places that it examined.
func (c *call) line(of store.WaitListQuery, q lineQuery) (line []api.Standing, scanned int, err error) {
	line = []api.Standing{}
	most := q.limit
	if len(q.labels) > 0 {
		most = linesScanned
	}
	var size store.Page
	for scanned < most && len(line) < q.limit && !size.Full() {
		of.Limit = min(linePage, most-scanned)
		page, err := c.Engine.Reader().Waiting(c.ctx(), of)
		if err != nil {
			return nil, 0, fmt.Errorf("read a line: %w", err)
		}
		for _, x := range page {
			if scanned++; !flow.HasLabels(x.Labels, q.labels) {
				continue
			}
			line = append(line, api.Standing{Place: scanned, Execution: render(x)})
			if size.Execution(x); len(line) == q.limit || size.Full() {
				break
			}
		}
		if len(page) < of.Limit {
			break
		}
		of.After = page[len(page)-1]
	}
	return line, scanned, nil
}

func (c *call) queueLine() error {
	q := c.lineQuery()
	if err := c.checked(); err != nil {
		return err
	}
	name := c.r.PathValue("name")
	depths, err := c.Engine.Reader().Queues(c.ctx())
	if err != nil {
		return fmt.Errorf("list queues: %w", err)
	}
	depths = slices.DeleteFunc(depths, func(d store.QueueDepth) bool { queue, _ := flow.NeedsOf(d.Queue); return queue != name })
	paused, err := c.pausedBy()
	if err != nil {
		return err
	}
	out := api.QueueLine{Queue: name, At: time.Now().UTC(), Paused: paused(store.PausedQueue, name), Lanes: []api.Lane{}}
	if len(depths) == 0 {
		declared, err := c.Engine.Catalog().Queues(c.ctx())
		if err != nil {
			return err
		}
		if !slices.Contains(declared, name) {
			return notFound("queue", name)
		}
	}
	slices.SortFunc(depths, func(a, b store.QueueDepth) int {
		return cmp.Or(cmp.Compare(b.Ready, a.Ready), cmp.Compare(a.Queue, b.Queue))
	})
	out.More = len(depths) > lineLanes
	rows := 0
	for _, d := range depths[:min(len(depths), lineLanes)] {
		_, needs := flow.NeedsOf(d.Queue)
		lane := api.Lane{Handler: needs.Handler, Runtime: needs.Runtime, WorkerLabels: needs.Labels, Ready: d.Ready, Line: []api.Standing{}}
		lane.PausedAction, _ = flow.PausedAction(d.Queue)
		if rows < lineRows {
			if lane.Line, lane.Looked, err = c.line(store.WaitListQuery{RoutingKey: d.Queue}, q); err != nil {
				return err
			}
		}
		lane.Ready = max(lane.Ready, lane.Looked) // it was counted before these places were read
		rows += len(lane.Line)
		out.Lanes = append(out.Lanes, lane)
	}
	return c.json(http.StatusOK, out)
}

func (c *call) keyLine() error {
	q := c.lineQuery()
	key := c.query.Get("key")
	if key == "" {
		c.fault("key", "", "it is missing", "name the concurrency key, as in ?key=deploy")
	}
	if err := c.checked(); err != nil {
		return err
	}
	holders, err := c.Engine.Reader().KeyHolders(c.ctx(), key, linePage)
	if err != nil {
		return fmt.Errorf("list holders: %w", err)
	}
	out := api.KeyLine{Key: key, At: time.Now().UTC(), Held: len(holders), Holders: []api.Execution{}}
	if out.Line, out.Looked, err = c.line(store.WaitListQuery{Key: key}, q); err != nil {
		return err
	}
	// A made-up execution at the end of the line has all waiting executions ahead of it.
	last := flow.Execution{Request: flow.Request{Key: key, Priority: -1 << 20}, State: flow.State{Place: flow.Waiting}}
	if out.Waiting, err = c.Engine.Reader().Ahead(c.ctx(), &last); err != nil {
		return fmt.Errorf("count the line: %w", err)
	}
	out.Waiting = max(out.Waiting, out.Looked) // it was counted after these places were read
	for _, x := range holders[:min(len(holders), q.limit)] {
		out.Limit = x.KeyLimit
		out.Holders = append(out.Holders, render(x))
	}
	if len(out.Line) > 0 {
		out.Limit = out.Line[0].Execution.KeyLimit
	}
	return c.json(http.StatusOK, out)
}

// workerListed is how many executions of one session are listed, and sessionsListed how many of all sessions.
const (
	workerListed   = 100
	sessionsListed = 5000
)

func (c *call) workers() error {
	p, err := c.cut()
	if err != nil {
		return err
	}
	executions, lost := c.flag("executions"), c.flag("lost")
	if err := c.checked(); err != nil {
		return err
	}
	sessions, err := c.Engine.Reader().LiveSessions(c.ctx())
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	paused, err := c.pausedBy()
	if err != nil {
		return err
	}
	byID := make(map[string]api.Worker, len(sessions))
	for _, s := range sessions {
		labels, kinds := flow.OfferedLabels(s.Kinds)
		w := api.Worker{
			Session: s.ID.Text(flow.SessionPrefix), Name: s.Name, Embedded: s.Embedded, Queues: append([]string{}, s.Queues...),
			Kinds: kinds, Slots: s.Slots, Labels: labels, StartedAt: s.StartedAt, ExpiresAt: s.ExpiresAt,
			Paused: paused(store.PausedWorker, s.Name),
		}
		byID[s.ID.String()] = w
	}
	var out api.Workers
	if out.Workers, out.NextCursor, err = cutPage(byID, p); err != nil {
		return err
	}
	if executions {
		if err := c.held(out.Workers); err != nil {
			return err
		}
	}
	if lost && p.after == "" {
		for _, l := range c.Engine.LostSessions() {
			out.Lost = append(out.Lost, api.LostWorker{
				Session: l.ID.Text(flow.SessionPrefix), Name: l.Name, Queues: append([]string{}, l.Queues...), Slots: l.Slots,
				StartedAt: l.StartedAt, ExpiredAt: l.ExpiresAt, LostAt: l.LostAt, Attempts: l.Attempts,
			})
		}
	}
	return c.json(http.StatusOK, out)
}

// held adds the executions that workers hold. It reads those of all workers together: a page that shows 200 workers asks every 3 s, which
// would otherwise be 200 queries each time.
func (c *call) held(workers []api.Worker) error {
	sessions := make([]flow.ID, len(workers))
	for i := range workers {
		var err error
		if sessions[i], err = flow.ParseID(flow.SessionPrefix, workers[i].Session); err != nil {
			return fmt.Errorf("session %s: %w", workers[i].Session, err)
		}
	}
	all, err := c.Engine.Reader().LeasedBy(c.ctx(), sessions, workerListed, sessionsListed)
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	var size store.Page
	for i := range workers {
		w, h := &workers[i], all[i]
		w.Holds = h.Count
		slices.SortFunc(h.First, func(a, b *flow.Execution) int { return a.ClaimedAt.Compare(b.ClaimedAt) })
		for _, x := range h.First {
			if size.Full() {
				break
			}
			size.Execution(x)
			w.Executions = append(w.Executions, render(x))
		}
	}
	return nil
}
