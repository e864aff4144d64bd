package operate

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/web"
)

// reading are the commands that work on an opened archive. Others would be refused by it, or would use this machine's settings.
var reading = []string{"get", "describe", "logs", "events", "files", "wait", "why", "replay", "debug", "compare", "diff", "export"}

// OpenCommand shows an archive. Run runs a command line and returns its exit code.
func OpenCommand(a *app.App, run func(a *app.App, args []string) int) *cobra.Command {
	var listen string
	var documents bool
	c := &cobra.Command{
		Use:   "open FILE|- [-- COMMAND…]",
		Short: "Show an archive of executions, on any machine",
		Long: `Open an archive written by pawl export: serve the web page and the API on it until Ctrl-C, or run one
reading command on it (` + strings.Join(reading, ", ") + `) and exit with its code.

The archive is unpacked into a temporary directory with its own database, which is removed at the end; the database
and the state directory of this machine are not touched. The whole archive is checked first: checksums, histories,
and that every value is possible on a server. The archive is read-only: nothing in it runs, and every request that
would change something is refused.

With --definitions the command instead prints the actions and workflows of the executions, the latest version of
each, which pawl apply registers on a server where they should run again.`,
		Example: `  pawl open failure.pawl
  pawl open failure.pawl -- describe ex_…
  pawl open failure.pawl --definitions | pawl apply -
  ssh production pawl export ex_… | pawl open - -- replay ex_…`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			switch {
			case dash == 0:
				return exit.Usagef("name the archive before --, as in pawl open FILE -- describe ID")
			case dash < 0 && len(args) > 1 || dash > 1:
				return exit.Usagef("one archive is opened, and %q stands behind it; write a command behind --, as in pawl open %s -- %s", args[1], args[0], strings.Join(args[1:], " "))
			case len(args) > 1 && !slices.Contains(reading, args[1]):
				return exit.Usagef("pawl %s does not go with an opened archive, which is read-only: use one of %s", args[1], strings.Join(reading, ", "))
			}
			if documents {
				if len(args) > 1 {
					return exit.Usagef("--definitions prints the definitions, and runs no command: leave out -- %s", strings.Join(args[1:], " "))
				}
				return printDefinitions(a, args[0])
			}
			return open(cmd.Context(), a, args[0], listen, args[1:], run)
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "address for the page and the API; port 0 picks a free port")
	c.Flags().BoolVar(&documents, "definitions", false, "print the definitions of the archive, in the form that pawl apply reads")
	return c
}

func open(ctx context.Context, a *app.App, name, listen string, command []string, run func(*app.App, []string) int) (err error) {
	ctx, stop := app.Interruptible(ctx)
	defer stop()
	plain, done, err := source(a, name)
	if err != nil {
		return err
	}
	defer done()
	page, err := web.New(web.Files)
	if err != nil {
		return err
	}
	opened, err := instance.OpenArchive(ctx, plain, instance.ArchiveOptions{Log: a.Logger(), Version: app.Version(), Page: page})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return fmt.Errorf("open %s: %w", name, err)
	}
	defer func() {
		if closed := opened.Close(); err == nil && closed != nil {
			err = fmt.Errorf("close the archive: %w", closed)
		}
	}()
	l, err := a.Listening(listen)
	if err != nil {
		return err
	}
	opened.Serve(l)
	if len(command) > 0 {
		return exited(run(a.With("http://"+l.Addr().String()), command))
	}
	s := opened.Shown
	a.Say("pawl: %s from %s, written on %s, with %s and %s: the page is at %s (read-only; Ctrl-C closes it)", name, s.From,
		s.At.Local().Format("2006-01-02 15:04:05"), output.Plural(s.Executions, "execution", "executions"), output.Plural(s.Tasks, "task", "tasks"), pageURL(l.Addr()))
	if s.LeftOut > 0 {
		a.Say("pawl: %s left out of it when it was written: not ended by then", output.Plural(s.LeftOut, "execution was", "executions were"))
	}
	a.Say("pawl: commands: PAWL_SERVER=http://%s pawl get executions", l.Addr())
	within, release := opened.Within(ctx)
	defer release()
	<-within.Done()
	if ctx.Err() == nil {
		return context.Cause(within)
	}
	return nil
}

// exited ends a command with the exit code of another, which has printed its error.
func exited(code int) error {
	if code == exit.OK {
		return nil
	}
	return &exit.Error{Code: code}
}

// printDefinitions prints the latest version of each definition of an archive, as documents of one file: pawl apply registers those
// of a file together, whatever the order in which they refer to each other.
func printDefinitions(a *app.App, name string) error {
	plain, done, err := source(a, name)
	if err != nil {
		return err
	}
	defer done()
	versions, latest := map[string]int{}, map[string][]byte{}
	err = archive.Read(plain, archive.Contents{Definition: func(member string, text []byte) error {
		of, version, err := archive.ParseDefinitionName(member)
		if err != nil {
			return err
		}
		d, err := definition.Decode(text)
		if err != nil || d.Name != of {
			return fmt.Errorf("%s does not have the definition of its name: export it again", member)
		}
		if version > versions[of] {
			versions[of], latest[of] = version, d.Canonical()
		}
		return nil
	}})
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	for _, of := range slices.Sorted(maps.Keys(latest)) {
		if _, err := fmt.Fprintf(a.Out, "---\n# %s@%d\n%s\n", of, versions[of], latest[of]); err != nil {
			return err
		}
	}
	return nil
}

// source opens an archive. done closes it.
func source(a *app.App, name string) (plain io.Reader, done func(), err error) {
	from, done := a.In, func() {}
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, &exit.Error{Code: exit.Misuse, Err: err}
		}
		from, done = f, func() { _ = f.Close() }
	}
	if plain, err = uncompressed(from); err != nil {
		done()
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	return plain, done, nil
}

// uncompressed reads an archive, which may be compressed with gzip.
func uncompressed(from io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(from, 64<<10)
	if magic, err := b.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return b, nil // the reader of the archive reports what it is, or why it cannot be read
	}
	return gzip.NewReader(b)
}
