package cli

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// listing are the choices of `pawl get`.
type listing struct {
	format   output.Format
	watch    bool
	hinted   bool // the server says when the list may have changed
	interval time.Duration
	limit    int

	status   []string
	action   string
	workflow string
	rerunOf  string
	labels   map[string]string
	verdicts []string
	outputs  bool
	cases    bool
	tasks    bool
	since    string
	until    string
	where    string

	trigger, subject, source string // of signals
	state, assignee          string // of inquiries; state of enforcements, too
	rule, signal             string // of enforcements
	versionsOf               string // of actions
	history                  bool   // of pauses
}

// selectFlags are those that select executions.
func (l *listing) selectFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&l.status, "status", nil, "only executions with one of these statuses")
	f.StringVar(&l.action, "action", "", "only executions of this action or workflow")
	f.StringVar(&l.workflow, "workflow", "", "only the tasks of this workflow execution")
	f.StringVar(&l.rerunOf, "rerun-of", "", "only the reruns of this execution")
	f.StringToStringVar(&l.labels, "label", nil, "only executions with this label, as in team=grading")
	f.StringSliceVar(&l.verdicts, "verdict", nil, "only what ended with one of these: ok, or the code of an error, such as timeout")
	f.StringVar(&l.since, "since", "", "only what was created, or of signals accepted, since then: 90m, or a time as 2026-11-02T10:00:00Z")
	f.StringVar(&l.where, "where", "", "only executions that meet this condition, as in 'label.team = docs and status = failed and created > -7d'")
	f.StringVar(&l.until, "until", "", "only executions created before then, as with --since")
}

func (l *listing) filter() (client.Filter, error) {
	if l.limit < 1 {
		return client.Filter{}, exit.Usagef("--limit %d: give a number of 1 or more", l.limit)
	}
	f := client.Filter{Action: l.action, Workflow: l.workflow, RerunOf: l.rerunOf, Labels: l.labels, Verdicts: l.verdicts, Where: l.where, Outputs: l.outputs, Cases: l.cases, TopLevel: !l.tasks && l.workflow == "", Limit: min(l.limit, 1000)}
	for _, s := range l.status {
		if !slices.Contains(api.Statuses(), api.Status(s)) {
			return f, exit.Usagef("--status %q: one of %s", s, strings.Trim(strings.ReplaceAll(fmt.Sprint(api.Statuses()), " ", ", "), "[]"))
		}
		f.Status = append(f.Status, api.Status(s))
	}
	var err error
	if f.Since, err = app.Moment("--since", l.since); err != nil {
		return f, err
	}
	f.Until, err = app.Moment("--until", l.until)
	return f, err
}

// pick lists as many as are to be listed. A list that is watched begins with what runs: under load the newest are all waiting.
func (l *listing) pick(f client.Filter, walk func(client.Filter) iter.Seq2[api.Execution, error]) ([]api.Execution, error) {
	if !l.watch || len(f.Status) > 0 {
		return l.firstOf(walk(f))
	}
	active := f
	active.Status = []api.Status{api.Running, api.Provisioning}
	all, err := l.firstOf(walk(active))
	if err != nil {
		return nil, err
	}
	newest, err := l.firstOf(walk(f))
	if err != nil {
		return nil, err
	}
	shown := map[string]bool{}
	for _, x := range all {
		shown[x.ID] = true
	}
	for _, x := range newest {
		if !shown[x.ID] && len(all) < l.limit {
			all = append(all, x)
		}
	}
	return all, nil
}

// firstOf are the first of a walk, as many as are to be listed.
func (l *listing) firstOf(walk iter.Seq2[api.Execution, error]) ([]api.Execution, error) {
	all := []api.Execution{}
	for x, err := range walk {
		if err != nil {
			return nil, err
		}
		if all = append(all, x); len(all) >= l.limit {
			break
		}
	}
	return all, nil
}
