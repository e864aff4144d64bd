package observe

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// taskLog is the reading position in the log of one task of a workflow.
type taskLog struct {
	label string // "sub/each[3]"
	after string // cursor after the last chunk that was read
	over  bool   // nothing more will come
}

// taskLogs reads the logs of all tasks of a workflow, and of the workflows among its tasks.
type taskLogs struct {
	client *client.Client
	query  client.LogQuery
	known  map[string]*taskLog
	labels taskLabels
	write  func(label, id string, c *api.LogChunk) error
	chunks int
}

type labelledChunk struct {
	Task      string `json:"task"`
	Execution string `json:"execution"`
	*api.LogChunk
}

// workflowLogs prints the output of a workflow's tasks, each line with its task, in the order in which the tasks started;
// with follow until the workflow has ended.
func workflowLogs(ctx context.Context, a *app.App, s *app.Session, x *api.Execution, q client.LogQuery, f output.Format, follow bool) error {
	lines := map[string]*lineWriter{}
	l := &taskLogs{client: s.Client, query: q, known: map[string]*taskLog{}, labels: taskLabels{}}
	l.write = func(label, id string, c *api.LogChunk) error {
		l.chunks++
		if f == output.AsJSON {
			return output.WriteLine(a.Out, labelledChunk{label, id, c})
		}
		w := lines[id+c.Stream]
		if w == nil {
			to := a.Err
			if c.Stream == "stdout" || q.Stream != "" {
				to = a.Out
			}
			w = &lineWriter{to: to, label: label}
			lines[id+c.Stream] = w
		}
		return w.add(c.Bytes())
	}
	for {
		begun := time.Now()
		now, err := s.Get(ctx, x.ID) // read before the logs: those of a workflow that has ended do not grow
		if err != nil {
			return err
		}
		if err := l.read(ctx, x.ID, ""); err != nil {
			return err
		}
		if f != output.AsJSON && (!follow || s.Embedded || now.Status.Terminal()) {
			for _, id := range slices.Sorted(maps.Keys(lines)) {
				if err := lines[id].flush(); err != nil {
					return err
				}
			}
		}
		switch {
		case follow && !now.Status.Terminal() && !s.Embedded:
			const least, times = 300 * time.Millisecond, 4 // reading a workflow of 10,000 items takes a while
			if err := instance.WaitFor(ctx, max(least, times*time.Since(begun))); err != nil {
				return err
			}
			continue
		case follow && !now.Status.Terminal():
			app.SayIdle(a, x.ID, now.Status)
		case l.chunks == 0:
			a.Say("%s is a workflow, and none of its %s has written anything", x.ID, output.Plural(len(l.known), "task", "tasks"))
		}
		return nil
	}
}

// read continues to read the logs of a workflow's tasks. within is the prefix of their labels.
func (l *taskLogs) read(ctx context.Context, workflow, within string) error {
	var tasks []api.Execution
	for x, err := range l.client.All(ctx, client.Filter{Workflow: workflow, Limit: 1000}) {
		if err != nil {
			return err
		}
		if t := l.known[x.ID]; t == nil || !t.over {
			tasks = append(tasks, x)
		}
	}
	slices.SortFunc(tasks, func(x, y api.Execution) int {
		return cmp.Or(cmp.Compare(started(&x), started(&y)), cmp.Compare(x.ID, y.ID))
	})
	for i := range tasks {
		x := &tasks[i]
		t := l.known[x.ID]
		if t == nil {
			label, err := l.labels.of(ctx, l.client, x)
			if err != nil {
				return err
			}
			t = &taskLog{label: within + label}
			l.known[x.ID] = t
		}
		if err := l.readTask(ctx, x, t); err != nil {
			return err
		}
	}
	return nil
}

// started is a sort key for the start of executions; those that have not started come last.
func started(x *api.Execution) int64 {
	if x.StartedAt.IsZero() {
		return 1<<63 - 1
	}
	return x.StartedAt.UnixMicro()
}

func (l *taskLogs) readTask(ctx context.Context, x *api.Execution, t *taskLog) error {
	if x.Kind == "workflow" {
		if err := l.read(ctx, x.ID, t.label+"/"); err != nil {
			return err
		}
		t.over = x.Status.Terminal()
		return nil
	}
	if x.StartedAt.IsZero() {
		t.over = x.Status.Terminal()
		return nil
	}
	q := l.query
	q.After = t.after
	status, err := allLogs(ctx, l.client, x.ID, q, func(c *api.LogChunk) error {
		t.after = fmt.Sprintf("%d.%d", c.Attempt, c.Seq)
		return l.write(t.label, x.ID, c)
	})
	t.over = status.Terminal()
	return err
}

// taskLabels records which tasks have items, by workflow and task.
type taskLabels map[string]map[string]bool

// of is the label of a task, with its item if it is one of many.
func (l taskLabels) of(ctx context.Context, c *client.Client, x *api.Execution) (string, error) {
	many := l[x.Workflow]
	if many == nil {
		all, err := c.Tasks(ctx, x.Workflow, 1)
		if err != nil {
			return "", err
		}
		many = map[string]bool{}
		for _, t := range all.Tasks {
			many[t.Name] = t.Many()
		}
		l[x.Workflow] = many
	}
	if many[x.Task] {
		return fmt.Sprintf("%s[%d]", x.Task, x.Index), nil
	}
	return x.Task, nil
}

// lineWriter writes whole lines with a label before each. A line is buffered until its end, however long it is: streams are bounded.
type lineWriter struct {
	to      io.Writer
	label   string
	partial []byte // an unfinished line
}

func (w *lineWriter) add(b []byte) error {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			w.partial = append(w.partial, b...)
			return nil
		}
		w.partial = append(w.partial, b[:i]...)
		if _, err := fmt.Fprintf(w.to, "%s | %s\n", w.label, w.partial); err != nil {
			return err
		}
		w.partial, b = w.partial[:0], b[i+1:]
	}
}

// flush writes the rest of the last line.
func (w *lineWriter) flush() error {
	if len(w.partial) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w.to, "%s | %s\n", w.label, w.partial)
	w.partial = nil
	return err
}
