package engine

import (
	"context"
	_ "embed" // for the workflow
	"encoding/json"
	"fmt"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
)

// rerunManyAction is the workflow that runs many executions again. It is stored when it is first asked for.
const rerunManyAction = "pawl.rerun"

//go:embed rerunmany.yaml
var rerunManyDocument []byte

// RerunManyLimit is how many executions one call runs again, mostRerunsAtOnce how many of them may be under way at the same time.
const (
	RerunManyLimit   = 10_000
	mostRerunsAtOnce = 100
)

// RerunManyOptions say how many executions are run again.
type RerunManyOptions struct {
	AtOnce         int      // how many reruns may be under way
	Definition     string   // as in RerunOptions
	From           []string // paths to tasks, as RerunOptions.Name reads them
	IdempotencyKey string
}

// RerunMany starts an execution that runs each of these again, as Rerun does, so many at a time, and ends when all
// reruns have ended. What is refused of one changes nothing for the others. Cancelled, it starts no more of them.
func (e *Engine) RerunMany(ctx context.Context, ids []flow.ID, o RerunManyOptions) (Submitted, error) {
	switch {
	case len(ids) == 0:
		return Submitted{}, fault.New("ids", "", "there is nothing to run again", "select executions that have ended and have not completed, or name some")
	case len(ids) > RerunManyLimit:
		return Submitted{}, fault.New("ids", "", fmt.Sprintf("there are %d; %d at most are run again together", len(ids), RerunManyLimit), "select fewer, as by their time")
	case o.AtOnce < 1 || o.AtOnce > mostRerunsAtOnce:
		return Submitted{}, fault.New("at_once", fmt.Sprint(o.AtOnce), "it is out of range", fmt.Sprintf("give 1 to %d", mostRerunsAtOnce))
	}
	if o.Definition != "" {
		if _, _, _, err := definition.SplitAction(o.Definition); err != nil {
			return Submitted{}, fault.New("definition", o.Definition, err.Error(), "write same, latest or name@version")
		}
	}
	var each RerunOptions
	for _, path := range o.From {
		if err := each.Name("from", path, nil); err != nil {
			return Submitted{}, err
		}
	}
	if known, err := e.manyBefore(ctx, o.IdempotencyKey); err != nil || known.Existing {
		return known, err
	}
	defs, err := definition.Parse(rerunManyAction, rerunManyDocument)
	if err != nil {
		return Submitted{}, fmt.Errorf("read %s: %w", rerunManyAction, err)
	}
	defined, err := e.Define(ctx, defs)
	if err != nil {
		return Submitted{}, fmt.Errorf("store %s: %w", rerunManyAction, err)
	}
	input := struct {
		Executions []flow.ID `json:"executions"`
		AtOnce     int       `json:"at_once"`
		Definition string    `json:"definition"`
		From       []string  `json:"from,omitempty"`
	}{ids, o.AtOnce, o.Definition, o.From}
	raw, err := json.Marshal(input)
	if err != nil {
		return Submitted{}, fmt.Errorf("name the executions: %w", err)
	}
	out, err := e.Submit(ctx, []Submission{{Action: catalog.VersionKey(rerunManyAction, defined[0].Version), Input: raw, IdempotencyKey: o.IdempotencyKey}})
	if err != nil {
		return Submitted{}, err
	}
	return out[0], out[0].Err
}

// manyBefore returns the execution that the same call has started before. What its parameters select may have changed since.
func (e *Engine) manyBefore(ctx context.Context, key string) (Submitted, error) {
	if key == "" {
		return Submitted{}, nil
	}
	id, known, err := e.knownBy(ctx, key)
	if err != nil || !known {
		return Submitted{}, err
	}
	x, err := e.opts.Store.Get(ctx, id)
	if err != nil || x.Action != rerunManyAction {
		return Submitted{}, err // it was another call, which Submit says
	}
	return Submitted{Execution: id, Existing: true}, nil
}
