package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
)

func FilesCommand(a *app.App) *cobra.Command {
	var into string
	var f output.Format
	c := &cobra.Command{
		Use:   "files ID [FILE]",
		Short: "List the files that an execution returned, or fetch one",
		Long: `List the files that an evaluation collected from its program. With FILE, one of the listed names, that file is
written to standard output, or to --into, whatever its size.

The files of a workflow are those of its tasks: they are listed with the task and the execution to fetch them
from.`,
		Example: `  pawl files ex_…
  pawl files ex_… out/plot.svg --into plot.svg`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if into != "" && len(args) == 1 {
				return exit.Usagef("--into is for one file: name it")
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				if len(args) == 2 {
					err := fetchFile(ctx, a, s, args[0], args[1], into)
					return fileOfTask(ctx, s, args[0], args[1], err)
				}
				x, err := s.Get(ctx, args[0])
				if err != nil {
					return err
				}
				if x.Kind == "workflow" {
					return listTaskFiles(ctx, a, s, x, f)
				}
				return listFiles(a, x, f)
			})
		},
	}
	c.Flags().StringVarP(&into, "into", "O", "", "where to write the file (default: standard output)")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func listFiles(a *app.App, x *api.Execution, f output.Format) error {
	if !x.Status.Terminal() {
		return fmt.Errorf("%s is %s, and its files are collected when it ends", x.ID, x.Status)
	}
	files := filesOf(x)
	if f != output.AsTable {
		return output.WriteData(a.Out, f, files)
	}
	if len(files) == 0 {
		a.Say("%s left no file: what --collect names is kept (collect in a definition)", x.ID)
		return nil
	}
	t := output.Titled("FILE", "SIZE", "MODE")
	for _, file := range files {
		t.Row(file.Path, output.Bytes(file.Size), file.Mode)
	}
	t.Write(a.Out)
	return nil
}

// filesOf are the files in an execution's output, without their content, which is requested by name. There are none if the
// output is not that of a program.
func filesOf(x *api.Execution) []api.ResultFile {
	var output struct{ Files []api.ResultFile }
	if len(x.Output) > 0 && json.Unmarshal(x.Output, &output) != nil {
		return []api.ResultFile{}
	}
	files := make([]api.ResultFile, len(output.Files))
	for i, file := range output.Files {
		files[i] = api.ResultFile{Path: file.Path, Size: file.Size, Mode: file.Mode}
	}
	return files
}

// fetchFile writes a file to standard output, or to a file that is created completely or not at all.
func fetchFile(ctx context.Context, a *app.App, s *app.Session, id, name, into string) (err error) {
	from, err := s.File(ctx, id, name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	if into == "" {
		_, err = io.Copy(a.Out, from)
		return err
	}
	to, err := os.Create(into)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if closed := to.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(into) // an incomplete file must not stay
		return fmt.Errorf("fetch %s: %w", name, err)
	}
	return nil
}
