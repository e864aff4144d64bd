// Package listing contains the flags of commands that list executions or select them.
package listing

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

// Selection selects executions. Its flags are shared by pawl get, cancel, rerun and export.
type Selection struct {
	Limit    int
	Status   []string
	Action   string
	Workflow string
	RerunOf  string
	RetryOf  string
	Labels   map[string]string
	Verdicts []string
	Outputs  bool
	Cases    bool
	Digest   bool
	Tasks    bool
	Since    string
	Until    string
	Where    string
}

type Options struct {
	Selection
	Format   output.Format
	Watch    bool
	Hinted   bool // the server sends a hint when the list may have changed
	Interval time.Duration

	Trigger, Subject, Source string // of signals
	State, Assignee          string // of inquiries; state of enforcements, too
	Rule, Signal             string // of enforcements
	VersionsOf               string // the definition whose versions are listed
	History                  bool   // of pauses
	Queue, Key               string // of lines
	IDs                      []string
	Prefix, After            string // of ids
	Lost                     bool   // of workers
}

func (l *Selection) Flags(f *pflag.FlagSet) {
	f.StringSliceVar(&l.Status, "status", nil, "only executions with one of these statuses")
	f.StringVar(&l.Action, "action", "", "only executions of this action or workflow")
	f.StringVar(&l.Workflow, "workflow", "", "only the tasks of this workflow execution")
	f.StringVar(&l.RerunOf, "rerun-of", "", "only the reruns of this execution")
	f.StringVar(&l.RetryOf, "retry-of", "", "only the retries of this execution")
	app.PairsVar(f, &l.Labels, "label", "only executions with this label, as in team=grading")
	f.StringSliceVar(&l.Verdicts, "verdict", nil, "only executions that ended with one of these: ok, or an error code, for example timeout")
	f.StringVar(&l.Since, "since", "",
		"only executions created, or signals accepted, since then: 90m, or a time such as 2026-11-02T10:00:00Z")
	f.StringVar(&l.Where, "where", "", "only executions that match, for example 'label.team = docs and status = failed and created > -7d'")
	f.StringVar(&l.Until, "until", "", "only executions created before then, in the form of --since")
}

// Any reports whether a flag that selects executions was given.
func (l *Selection) Any() bool {
	return len(l.Status)+len(l.Labels)+len(l.Verdicts) > 0 || l.Action+l.Workflow+l.RerunOf+l.RetryOf+l.Since+l.Until+l.Where != ""
}

func (l *Selection) Filter() (client.Filter, error) {
	if err := CheckLimit(l.Limit); err != nil {
		return client.Filter{}, err
	}
	f := client.Filter{
		Action: l.Action, Workflow: l.Workflow, RerunOf: l.RerunOf, RetryOf: l.RetryOf, Labels: l.Labels, Verdicts: l.Verdicts,
		Where: l.Where, Outputs: l.Outputs, Cases: l.Cases, Digest: l.Digest, TopLevel: !l.Tasks && l.Workflow == "",
		Limit: min(l.Limit, 1000),
	}
	for _, s := range l.Status {
		if !slices.Contains(api.Statuses(), api.Status(s)) {
			return f, exit.Usagef("--status %q: one of %s", s, strings.Trim(strings.ReplaceAll(fmt.Sprint(api.Statuses()), " ", ", "), "[]"))
		}
		f.Status = append(f.Status, api.Status(s))
	}
	var err error
	if f.Since, err = app.Moment("--since", l.Since); err != nil {
		return f, err
	}
	f.Until, err = app.Moment("--until", l.Until)
	return f, err
}

// Filter is the selection as a filter of the client. An id may also be that of a task.
func (l *Options) Filter() (client.Filter, error) {
	f, err := l.Selection.Filter()
	f.IDs, f.Prefix, f.After = l.IDs, l.Prefix, l.After
	f.TopLevel = f.TopLevel && len(l.IDs) == 0 && l.Prefix == ""
	return f, err
}

// Pick lists up to Limit executions. A watched list starts with running executions: under load the newest ones are all waiting.
func (l *Options) Pick(f client.Filter, walk func(client.Filter) iter.Seq2[api.Execution, error]) ([]api.Execution, error) {
	if !l.Watch || len(f.Status) > 0 {
		return First(walk(f), l.Limit)
	}
	active := f
	active.Status = []api.Status{api.Running, api.Provisioning}
	all, err := First(walk(active), l.Limit)
	if err != nil {
		return nil, err
	}
	newest, err := First(walk(f), l.Limit)
	if err != nil {
		return nil, err
	}
	shown := map[string]bool{}
	for _, x := range all {
		shown[x.ID] = true
	}
	for _, x := range newest {
		if !shown[x.ID] && len(all) < l.Limit {
			all = append(all, x)
		}
	}
	return all, nil
}

func CheckLimit(n int) error {
	if n < 1 {
		return exit.Usagef("--limit %d: give a number of 1 or more", n)
	}
	return nil
}

// First returns the first items, up to limit, of a list that the client reads page by page.
func First[T any](list iter.Seq2[T, error], limit int) ([]T, error) {
	all := []T{}
	for x, err := range list {
		if err != nil {
			return nil, err
		}
		if all = append(all, x); len(all) >= limit {
			break
		}
	}
	return all, nil
}
