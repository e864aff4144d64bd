package observe

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/debug"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/terminal"
)

func ExportCommand(a *app.App) *cobra.Command {
	l := &listing.Selection{Limit: 1}
	var file, form string
	c := &cobra.Command{
		Use:   "export [ID…]",
		Short: "Export ended executions into an archive, to read on another machine",
		Long: `Export ended executions into an archive: each workflow with all of its tasks, and each execution with input,
output, history, logs, files and definition. Name executions, or select them with the flags of pawl get
executions; selected executions that have not ended are left out and reported.

The archive is a tar file: tar tf lists it, sha256sum -c checks the unpacked files. It goes to standard output,
or to --file, which appears only when complete; a name that ends in .gz is compressed. Nothing is masked:
inputs, outputs and logs are as recorded, with everything that a program printed. Secrets configured by the
operator are not in archives, because they are never stored.

pawl open shows an archive on any machine, with the page and all commands that only read.`,
		Example: `  pawl export ex_… --file failure.pawl
  pawl export --label run=17 --since 2d --file run17.pawl.gz
  ssh production pawl export ex_… | pawl open -
  tar xOf failure.pawl executions/000001.jsonl | jq -c 'select(.execution) | .execution | {id, status}'`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			f, err := l.Filter()
			if err != nil {
				return err
			}
			selects := l.Action != "" || len(l.Labels)+len(l.Status)+len(l.Verdicts) > 0 || l.Since != "" || l.Until != "" || l.RerunOf != "" || l.RetryOf != ""
			other := slices.IndexFunc(ids, func(id string) bool { return !strings.HasPrefix(id, flow.ExecutionPrefix) })
			switch {
			case form != "":
				return exit.Usagef("-o %s: an archive has one form; to write it into a file give --file %s", form, form)
			case other >= 0:
				return exit.Usagef("%s is not the id of an execution; to write the archive into a file give --file %s", ids[other], ids[other])
			case l.Where != "":
				return exit.Usagef("--where is not for exports: pawl get executions --where '%s' -o name | xargs pawl export --file FILE", l.Where)
			case len(ids) == 0 && !selects:
				return exit.Usagef("name executions, or select some: --label, --action, --status, --verdict, --since, --until, --rerun-of, --retry-of")
			case len(ids) > 0 && selects:
				return exit.Usagef("executions are named or selected by filters, and not both")
			case file == "" && terminal.IsTerminal(a.Out):
				return exit.Usagef("an archive is nothing for a terminal: name a file with --file, or pipe it somewhere")
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				if file == "" {
					return export(ctx, a, s, ids, f, a.Out, "")
				}
				return exportTo(ctx, a, s, ids, f, file)
			})
		},
	}
	flags := c.Flags()
	flags.StringVarP(&file, "file", "O", "", "file for the archive (default: standard output)")
	flags.StringVarP(&form, "output", "o", "", "")
	l.Flags(flags)
	for _, name := range []string{"workflow", "where", "output"} { // an archive has whole workflows; each error says what to do
		_ = flags.MarkHidden(name)
	}
	return c
}

// exportTo writes an archive to a file, which gets its name when it is complete.
func exportTo(ctx context.Context, a *app.App, s *app.Session, ids []string, f client.Filter, file string) (err error) {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return exit.Usagef("--file: %s is a directory: name a file in it", file)
	}
	part := file + ".part"
	to, err := os.Create(part)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part)
		}
	}()
	if strings.HasSuffix(file, ".gz") {
		z := gzip.NewWriter(to)
		err = errors.Join(export(ctx, a, s, ids, f, z, file), z.Close())
	} else {
		err = export(ctx, a, s, ids, f, to, file)
	}
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	return os.Rename(part, file)
}

// export copies an archive, checks it meanwhile, and prints a summary.
func export(ctx context.Context, a *app.App, s *app.Session, ids []string, f client.Filter, to io.Writer, file string) error {
	from, err := s.Export(ctx, ids, f)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	var trees, executions, missing, leftOut int
	err = archive.Read(io.TeeReader(from, to), archive.Contents{Row: func(r *archive.Row, _ []byte) error {
		switch {
		case r.Execution != nil:
			executions++
		case r.End != nil:
			trees++
		case r.Blob != nil && r.Blob.Missing:
			missing++
			a.Say("%s is no longer kept, and is not in the archive", r.Blob.Name)
		case r.LeftOut != nil:
			if leftOut++; leftOut <= debug.ShownFindings {
				a.Say("%s is left out: %s", r.LeftOut.Execution, r.LeftOut.Why)
			}
		}
		return nil
	}})
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if leftOut > 0 {
		a.Say("%s left out: pawl events ID --follow waits until one has ended, then export again", output.Plural(leftOut, "execution is", "executions are"))
	}
	name := ""
	if file != "" {
		name = " to " + file
	}
	a.Say("Exported %s with %s in all%s", output.Plural(trees, "execution", "executions"), output.Plural(executions-trees, "task", "tasks"), name)
	return nil
}
