package observe

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// taskFile is a file that a task of a workflow left.
type taskFile struct {
	Task      string `json:"task"` // "sub/each[3]"
	Execution string `json:"execution"`
	api.ResultFile
}

func listTaskFiles(ctx context.Context, a *app.App, s *app.Session, x *api.Execution, f output.Format) error {
	files, tasks, err := taskFiles(ctx, s.Client, x.ID)
	return output.Show(a.Out, f, files, err, func() {
		if len(files) == 0 {
			a.Say("%s is a workflow, and none of its %s left a file", x.ID, output.Plural(tasks, "task", "tasks"))
			return
		}
		t := output.Titled("TASK", "EXECUTION", "FILE", "SIZE", "MODE")
		for _, file := range files {
			t.Row(file.Task, file.Execution, file.Path, output.Bytes(file.Size), file.Mode)
		}
		t.Write(a.Out)
	})
}

// fileOfTask explains an error about a file of a workflow, which has no files itself: it names the tasks with a file of that name.
func fileOfTask(ctx context.Context, s *app.Session, id, name string, err error) error {
	if !client.IsNotFound(err) {
		return err
	}
	x, missing := s.Get(ctx, id)
	if missing != nil || x.Kind != "workflow" {
		return err
	}
	files, tasks, err := taskFiles(ctx, s.Client, id)
	if err != nil {
		return err
	}
	var calls []string
	for _, file := range files {
		if file.Path == name {
			calls = append(calls, fmt.Sprintf("pawl files %s %s", file.Execution, name))
		}
	}
	if len(calls) == 0 {
		return fmt.Errorf("%s is a workflow, and none of its %s left a file %q: pawl files %s lists what they left", id, output.Plural(tasks, "task", "tasks"), name, id)
	}
	const shown = 3
	more := ""
	if len(calls) > shown {
		calls, more = calls[:shown], fmt.Sprintf(", or one of %d others", len(calls)-shown)
	}
	return exit.Usagef("%s is a workflow, and its files are those of its tasks: %s%s", id, strings.Join(calls, ", or "), more)
}

// taskFiles are the files of the tasks of a workflow, and of the workflows among its tasks. tasks counts the executions that
// do the work, with each item of a list.
func taskFiles(ctx context.Context, c *client.Client, workflow string) (files []taskFile, tasks int, err error) {
	files, labels := []taskFile{}, taskLabels{}
	var walk func(workflow, within string) error
	walk = func(workflow, within string) error {
		for x, err := range c.All(ctx, client.Filter{Workflow: workflow, Outputs: true, Limit: 1000}) {
			if err != nil {
				return err
			}
			label, err := labels.of(ctx, c, &x)
			if err != nil {
				return err
			}
			if x.Kind == "workflow" {
				if err := walk(x.ID, within+label+"/"); err != nil {
					return err
				}
				continue
			}
			tasks++
			for _, file := range filesOf(&x) {
				files = append(files, taskFile{within + label, x.ID, file})
			}
		}
		return nil
	}
	return files, tasks, walk(workflow, "")
}
