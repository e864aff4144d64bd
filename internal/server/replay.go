package server

import (
	"fmt"
	"net/http"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/replay"
)

// replaysAtOnce is how many histories may be replayed at once: each may hold 64 MB of a workflow's inputs and outputs.
const replaysAtOnce = 4

const replaying = "histories are being replayed"

func (c *call) replay() error {
	id, err := c.execution()
	if err != nil {
		return err
	}
	upto := c.number("at", 0, 1, 1<<62)
	if err := c.checked(); err != nil {
		return err
	}
	done, err := c.replays.occupy(c, replaying)
	if err != nil {
		return err
	}
	defer done()
	res, err := c.Engine.Histories().Replay(c.ctx(), id, upto)
	done() // before the client reads the answer
	if err != nil {
		return fmt.Errorf("replay %s: %w", id, err)
	}
	return c.json(http.StatusOK, renderReplay(id.String(), res))
}

func renderReplay(id string, r *replay.Result) api.Replay {
	out := api.Replay{Execution: id, Follows: r.Follows(), Events: r.Events, Findings: []api.ReplayFinding{}, Unknown: []api.ReplayUnknown{}}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, api.ReplayFinding{Seq: f.Seq, Task: replayedItem(f.Task, f.Index), Rules: f.Rules, Recorded: f.Recorded, Why: f.Why})
	}
	for _, u := range r.Unknown {
		out.Unknown = append(out.Unknown, api.ReplayUnknown{Seq: u.Seq, Task: replayedItem(u.Task, u.Index), What: u.What})
	}
	s := &r.State
	out.State = api.ReplayState{Seq: s.Seq, At: s.At, Status: status(s.Stage), Attempt: s.Attempt, Worker: s.Worker, NotBefore: s.NotBefore, Tasks: s.Tasks, Why: s.Why}
	return out
}

func replayedItem(task string, index int) string {
	if task == "" {
		return ""
	}
	return orchestration.Item{Task: task, Index: index}.Text()
}

func (c *call) compareReplay(id flow.ID, in *api.ReplayRequest) error {
	defs, err := definition.Parse("document", []byte(in.Document), c.knowsLanguage)
	if err != nil {
		return err
	}
	x, err := c.Engine.Reader().Get(c.ctx(), id)
	if err != nil {
		return fmt.Errorf("compare %s: %w", id, err)
	}
	other := defs[0]
	for _, d := range defs {
		if d.Name == x.Action {
			other = d
		}
	}
	done, err := c.replays.occupy(c, replaying)
	if err != nil {
		return err
	}
	defer done()
	res, err := c.Engine.Histories().Compare(c.ctx(), id, other)
	done() // before the client reads the answer
	if err != nil {
		return fmt.Errorf("compare %s: %w", id, err)
	}
	out := api.ReplayComparison{Execution: id.String(), Alike: res.EndsAlike, Tasks: []api.ReplayCompared{}}
	if res.Stage != 0 {
		out.Status, out.Error = status(res.Stage), renderError(res.Outcome.Error)
	}
	for _, t := range res.Tasks {
		out.Tasks = append(out.Tasks, api.ReplayCompared{Task: t.Task, Change: string(t.Change), Recorded: t.Recorded, Would: t.Would, Items: t.Items, Why: t.Why})
	}
	return c.json(http.StatusOK, out)
}
