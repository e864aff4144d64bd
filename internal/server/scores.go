package server

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/score"
	"github.com/pawl-run/pawl/internal/store"
)

var scoreParams = []param{
	{name: "label", kind: "string", required: true, doc: "Evaluations with this label, as name=value"},
	{name: "by", kind: "string", repeat: true, doc: "Group by the values of this label, for example model; at most 4"},
	{name: "task", kind: "string", doc: "Label that names the task which a program is for; default task"},
	{name: "k", kind: "integer", repeat: true, doc: "Estimate pass@k, 1 to 10000; at most 20; default 1, 10 and 100"},
}

// scores answers with how many evaluations with a label have passed.
func (c *call) scores() error {
	l := store.Label{Action: string(flow.KindCode)}
	if text := c.query.Get("label"); text == "" {
		c.fault("label", "", "it is missing", "name the evaluations by a label, as in ?label=run=17")
	} else {
		l.Name, l.Value, _ = c.label(text)
	}
	by, task := c.query["by"], cmp.Or(c.query.Get("task"), "task")
	if len(by) > api.ScoresLabels {
		c.fault("by", "", fmt.Sprintf("it is there %d times", len(by)), fmt.Sprintf("group by %d labels at most", api.ScoresLabels))
	}
	ks := []int{1, 10, 100}
	if given := c.query["k"]; len(given) > 0 {
		ks = nil
		if len(given) > api.ScoresPassAt {
			c.fault("k", "", fmt.Sprintf("it is there %d times", len(given)), fmt.Sprintf("give it %d times at most", api.ScoresPassAt))
			given = nil
		}
		for _, text := range given {
			k, err := strconv.Atoi(text)
			if err != nil || k < 1 || k > api.MaxPassAt {
				c.fault("k", text, "it is not a number of programs", fmt.Sprintf("give a whole number from 1 to %d", api.MaxPassAt))
			}
			ks = append(ks, k)
		}
	}
	if err := c.checked(); err != nil {
		return err
	}
	ended, out, err := c.endedWith(l, append(slices.Clip(by), task))
	if err != nil {
		return err
	}
	groups, ok := grouped(ended, by, task)
	if !ok {
		c.fault("by", strings.Join(by, ", "), fmt.Sprintf("there are more than %d combinations of its values", api.ScoresGroups), "group by a label with fewer values")
		return c.checked()
	}
	for _, g := range groups {
		out.Groups = append(out.Groups, g.score(ks))
	}
	return c.json(http.StatusOK, out)
}

// graded has the part of a finished evaluation that scores count.
type graded struct {
	verdict string
	labels  map[string]string // only the requested ones
}

// named returns the labels with these names: for 100,000 evaluations the others may need a gigabyte.
func named(labels map[string]string, names []string) map[string]string {
	some := make(map[string]string, len(names))
	for _, name := range names {
		if value, has := labels[name]; has {
			some[name] = value
		}
	}
	return some
}

// endedWith collects the finished evaluations with a label, except those that have a retry, even one that has not ended. It reads the ended
// ones, then the running retries, then the ended ones again, because a retry may end between two reads.
func (c *call) endedWith(l store.Label, names []string) ([]graded, *api.Scores, error) {
	out := &api.Scores{Groups: []api.Score{}}
	var ids []flow.ID
	var all []graded
	retried, scanned := map[flow.ID]bool{}, false
	for after := int64(0); ; {
		page, open, err := c.Engine.NumberedEnds(c.ctx(), l, after, endsAtOnce)
		if err != nil {
			return nil, nil, fmt.Errorf("read outcomes: %w", err)
		}
		if len(page) == 0 && open && !scanned {
			scanned = true
			if err := c.openRetries(l, retried); err != nil {
				return nil, nil, err
			}
			continue
		}
		if len(page) == 0 {
			out.Open = open
			break
		}
		for _, x := range page {
			after = x.Number
			verdict := api.VerdictOK
			if x.Stage != flow.Completed {
				verdict = ""
				if x.Outcome != nil && x.Outcome.Error != nil {
					verdict = x.Outcome.Error.Code
				}
			}
			if again := x.AsRerun(); !again.RetryOf.IsZero() {
				retried[again.RetryOf] = true
			}
			ids, all = append(ids, x.ID), append(all, graded{verdict, named(x.Labels, names)})
		}
		if len(all) >= api.ScoresReach {
			out.Open, out.More = open, true
			break
		}
	}
	kept := all[:0]
	for i, g := range all {
		if !retried[ids[i]] {
			kept = append(kept, g)
		}
	}
	return kept, out, nil
}

// openRetries records which executions are retried by unfinished executions with a label.
func (c *call) openRetries(l store.Label, retried map[flow.ID]bool) error {
	f := store.Filter{Labels: map[string]string{l.Name: l.Value}, Stages: slices.DeleteFunc(flow.Stages(), flow.Stage.Terminal), Oldest: true, Limit: endsAtOnce}
	for {
		found, err := c.Engine.Reader().Search(c.ctx(), f)
		if err != nil {
			return fmt.Errorf("look for retries that run: %w", err)
		}
		for _, x := range found.Executions {
			if f.After = x.ID; !x.AsRerun().RetryOf.IsZero() {
				retried[x.AsRerun().RetryOf] = true
			}
		}
		switch {
		case !found.Searched.IsZero():
			f.After = found.Searched
		case len(found.Executions) == 0:
			return nil
		}
	}
}

// group has the evaluations with the same label values.
type group struct {
	api.Score
	tasks map[string]score.Tally
}

// grouped counts by label values, in the order of by. ok is false if there are too many groups.
func grouped(all []graded, by []string, task string) (groups []*group, ok bool) {
	known := map[string]*group{}
	for _, x := range all {
		var key strings.Builder
		labels := map[string]string{}
		for _, name := range by {
			value, has := x.labels[name]
			if has {
				labels[name] = value
			}
			fmt.Fprintf(&key, "%t%q", has, value)
		}
		g := known[key.String()]
		if g == nil {
			if len(known) == api.ScoresGroups {
				return nil, false
			}
			g = &group{api.Score{Labels: labels, Verdicts: map[string]int{}}, map[string]score.Tally{}}
			known[key.String()] = g
			groups = append(groups, g)
		}
		g.add(x, task)
	}
	slices.SortFunc(groups, func(a, b *group) int {
		for _, name := range by {
			if c := strings.Compare(a.Labels[name], b.Labels[name]); c != 0 {
				return c
			}
		}
		return len(a.Labels) - len(b.Labels)
	})
	return groups, true
}

func (g *group) add(x graded, task string) {
	g.Verdicts[x.verdict]++
	if !score.Judged(x.verdict) {
		g.Unjudged++
		return
	}
	passed := x.verdict == api.VerdictOK
	g.Judged++
	if passed {
		g.Passed++
	}
	id, has := x.labels[task]
	if !has {
		g.Untasked++
		return
	}
	t := g.tasks[id]
	t.Total++
	if passed {
		t.Passed++
	}
	g.tasks[id] = t
}

// score completes the counts of a group.
func (g *group) score(ks []int) api.Score {
	if g.Judged > 0 {
		g.Accuracy = float64(g.Passed) / float64(g.Judged)
	}
	g.Tasks = len(g.tasks)
	for _, k := range ks {
		if value, ok := score.PassAt(k, g.tasks); ok {
			g.PassAt = append(g.PassAt, api.PassAt{K: k, Value: value})
		}
	}
	return g.Score
}
