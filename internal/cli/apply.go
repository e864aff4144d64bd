package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/problem"
)

func (a *app) applyCommand() *cobra.Command {
	var f output.Format
	var alias, by string
	c := &cobra.Command{
		Use:   "apply FILE…",
		Short: "Register the workflows, actions, queues, schedules, triggers and rules in files",
		Long: `Register the workflows, actions, queues, schedules, triggers and rules in files (- is standard input, a directory stands for the YAML and JSON
files in it). What has changed gets a new version; executions go on with the version that they started with. Files that only
declare queues go first, those that only have schedules and rules last; the others in their order.

With --alias next only who asks for NAME@next gets the workflows and actions that are registered now: NAME alone and other aliases go on to
stand for what they stand for, also as actions of tasks. pawl alias NAME@latest --remove lets NAME stand for the newest later. Schedules,
rules, triggers and webhooks of the files have no aliases, and are in force at once.`,
		Example: `  pawl apply workflows/
  pawl apply grade.yaml && pawl run grade
  pawl apply grade.yaml --alias next && pawl run grade@next`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := a.readFiles(args)
			if err != nil {
				return err
			}
			if err := fillBy(&by); err != nil && alias != "" {
				return err
			}
			return a.withClient(cmd.Context(), reading, func(ctx context.Context, s *session) error {
				all := []api.DefinedVersion{}
				for _, file := range a.inOrder(files) {
					d, err := s.DefineFor(ctx, file.content, file.name, alias, by)
					if err != nil {
						return fmt.Errorf("apply %s: %w", file.name, err)
					}
					all = append(all, d.Definitions...)
				}
				if f != output.AsTable {
					return output.WriteData(a.out, f, all)
				}
				for _, d := range all {
					state := "unchanged"
					if d.Created {
						state = "registered"
					}
					if d.Latest > 0 && d.Latest != d.Version {
						state += fmt.Sprintf("; %s goes on to stand for version %d", d.Name, d.Latest)
					}
					fmt.Fprintf(a.out, "%s %s@%d %s\n", d.Kind, d.Name, d.Version, state)
				}
				if s.embedded {
					a.say("pawl: no server is named or works here, so this is for later commands on the state directory %s", a.config.Text("state_dir"))
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&alias, "alias", "", "let NAME@ALIAS stand for what is registered, and NAME for what it stands for now")
	c.Flags().StringVar(&by, "by", "", "who moves the alias; the user of this system by default")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func (a *app) validateCommand() *cobra.Command {
	var f output.Format
	c := &cobra.Command{
		Use:   "validate FILE…",
		Short: "Check workflow files and report everything that is wrong with them",
		Long: `Check the workflows, actions, queues, schedules, triggers and rules in files without registering anything. Every problem is reported as
file:line:column, with the value at fault and what to do about it. Needs neither server nor database: a queue that a file
names must then be declared in one of the files (kind: queue) or be one of --queues, as pawl run with an engine of its own
wants it. With --server the server checks each file as pawl apply would, with all that it knows.

Exit codes: 0 all is well, 1 there are problems, 2 a file cannot be read.`,
		Example: "  pawl validate examples/*.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := a.readFiles(args)
			if err != nil {
				return &exit.Error{Code: exit.Misuse, Err: err}
			}
			problems := []api.FieldError{}
			var defs []*definition.Definition
			for _, file := range files {
				found, err := definition.Parse(file.name, file.content, a.mayKnowLanguage)
				defs = append(defs, found...)
				for _, p := range problemsOf(err) {
					problems = append(problems, api.FieldError(p))
				}
			}
			switch {
			case len(problems) > 0: // what cannot be read need not be asked about
			case a.config.Text("server") == "":
				problems = append(problems, a.undeclaredQueues(defs)...)
			default:
				if problems, err = a.validateThere(cmd.Context(), files); err != nil {
					return err
				}
			}
			if f != output.AsTable {
				v := api.Validation{Valid: len(problems) == 0, Problems: problems}
				for _, d := range defs {
					v.Definitions = append(v.Definitions, api.DefinedVersion{Name: d.Name, Kind: string(d.Kind)})
				}
				if err := output.WriteData(a.out, f, v); err != nil {
					return err
				}
			} else {
				for _, p := range problems {
					fmt.Fprintln(a.out, p.String())
				}
				if len(problems) == 0 {
					for _, d := range defs {
						fmt.Fprintf(a.out, "%s: %s %s is valid\n", d.Position.File, d.Kind, d.Name)
					}
				}
			}
			if len(problems) > 0 {
				return &exit.Error{Code: exit.General, Err: fmt.Errorf("%s in %s", output.Plural(len(problems), "problem", "problems"), output.Plural(len(files), "file", "files"))}
			}
			return nil
		},
	}
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func problemsOf(err error) definition.Problems {
	var ps definition.Problems
	if err != nil && !errors.As(err, &ps) {
		ps = definition.Problems{{Message: err.Error()}}
	}
	return ps
}

// source is a file with definitions.
type source struct {
	name    string
	content []byte
}

// maxSource bounds a file that is read; the API takes no more either.
const maxSource = 16 << 20

// readFiles reads files, standard input and the definitions in directories.
func (a *app) readFiles(args []string) ([]source, error) {
	var all []source
	for _, arg := range args {
		if arg == "-" {
			b, err := io.ReadAll(io.LimitReader(a.in, maxSource+1))
			if err != nil {
				return nil, fmt.Errorf("read standard input: %w", err)
			}
			if len(b) > maxSource {
				return nil, fmt.Errorf("standard input is larger than %s", output.Bytes(maxSource))
			}
			all = append(all, source{"-", b})
			continue
		}
		paths := []string{arg}
		if info, err := os.Stat(arg); err == nil && info.IsDir() {
			if paths, err = definitionsIn(arg); err != nil {
				return nil, err
			}
		}
		for _, p := range paths {
			b, err := readBounded(p)
			if err != nil {
				return nil, err
			}
			all = append(all, source{p, b})
		}
	}
	return all, nil
}

func definitionsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read directory: %w", err)
	}
	var paths []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, ext) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no .yaml, .yml or .json files", dir)
	}
	return paths, nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, nearFile(path, err)) // it names the operation and the path
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory: name a file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(b) > maxSource {
		return nil, fmt.Errorf("%s is larger than %s", path, output.Bytes(maxSource))
	}
	return b, nil
}

// looksLikeFile reports whether what `pawl run` was given names a file rather than a registered action.
func looksLikeFile(s string) bool {
	if s == "-" || strings.ContainsAny(s, `/\`) || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(s)) {
		return true
	}
	info, err := os.Stat(s)
	return err == nil && !info.IsDir()
}

// nearFile names the file of the same directory that was probably meant by one that does not exist.
func nearFile(path string, err error) string {
	entries, unread := os.ReadDir(filepath.Dir(path))
	if !errors.Is(err, fs.ErrNotExist) || unread != nil {
		return ""
	}
	var names []string
	for _, e := range entries[:min(len(entries), 1000)] {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if near := problem.Nearest(filepath.Base(path), names); near != "" {
		return "; " + near
	}
	return ""
}
