// Package submit contains the commands that submit work to an engine, and follow it to its end: run, eval, upload, attach.
package submit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/local"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

type RunOptions struct {
	Input   string
	Set     []string
	labels  map[string]string
	wanted  map[string]string // of the worker
	detach  bool
	dry     bool
	queue   string
	timeout time.Duration
	key     string
	format  output.Format
	flow    flowControl
	cache   cacheFlags
}

func RunCommand(a *app.App) *cobra.Command {
	var o RunOptions
	c := &cobra.Command{
		Use:   "run FILE|NAME",
		Short: "Run a workflow or action, watch it, and print its result",
		Long: `Run a workflow or action: the first one in a file (- is standard input), or a registered one by name or
name@version.

Without a server, the command runs its own engine and workers on the state directory. The run is shown live on
standard error; its output goes to standard output: a string as plain text, everything else as JSON (on a
terminal, multi-line texts are shown separately); with -o json the whole execution. If something does not start
within seconds, the reason is printed on standard error, as by pawl why. Its workers serve --queues and the
queues that the file declares (kind: queue).

Ctrl-C cancels the execution and waits until nothing is left running; a second Ctrl-C kills it immediately. A
run that was killed, or whose machine crashed, is not lost: the next pawl run or pawl server on the same state
directory continues it.`,
		Example: `  pawl run examples/grade.yaml
  pawl run examples/fanout.yaml --set 'texts=["one fish two fish"]'
  pawl run deploy.yaml --input @request.json --label team=platform
  pawl run grade@3 --input @request.json --dry-run
  pawl run grade@3 --server http://127.0.0.1:7411 --detach`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), a, args[0], &o) },
	}
	f := c.Flags()
	app.JSONVar(f, &o.Input, "input", "", "input as JSON, or @FILE (@- for standard input)")
	f.StringArrayVar(&o.Set, "set", nil,
		"one field of the input, for example limit=5 or user.name=ada; the value is read as JSON, else as text")
	app.PairsVar(f, &o.labels, "label", "labels to find the execution by, as in team=platform")
	app.PairsVar(f, &o.wanted, "worker-label", "a label that the worker must have, as in gpu=a100, in addition to those of the action; may be repeated")
	f.BoolVar(&o.detach, "detach", false, "print the execution's ID and return without waiting")
	f.BoolVar(&o.dry, "dry-run", false, "registered actions only: "+dryRunHelp)
	f.StringVar(&o.queue, "queue", "", "queue, in place of the action's own")
	app.DurationVar(f, &o.timeout, "timeout", "time limit of one attempt, in place of the action's own")
	f.StringVar(&o.key, "idempotency-key", "", "key with which the same command returns the same execution")
	o.flow.declare(f)
	o.cache.declare(f, "run it and its tasks also where an outcome was kept; theirs are kept")
	output.FormatFlag(c, &o.format, output.AsTable, output.AsWide, output.AsJSON, output.AsYAML)
	return c
}

func run(ctx context.Context, a *app.App, what string, o *RunOptions) error {
	input, err := InputOf(a, o)
	if err != nil {
		return err
	}
	concurrency, rate, err := o.flow.read()
	if err != nil {
		return err
	}
	notBefore, startIn, err := o.flow.start(a)
	if err != nil {
		return err
	}
	cache, err := o.cache.read()
	if err != nil {
		return err
	}
	var file *app.Source
	var defs []*definition.Definition
	name := what
	if info, err := os.Stat(what); err == nil && info.IsDir() {
		return exit.Usagef("%s is a directory: name one of its files, or register them all with pawl apply %s and run one by its name", what, what)
	}
	if app.LooksLikeFile(what) {
		if o.dry {
			return exit.Usagef("--dry-run says what becomes of something registered: pawl validate %s checks a file, and pawl apply registers it", what)
		}
		if _, isProgram := a.Config.Languages.Set().OfExtension(strings.TrimPrefix(filepath.Ext(what), ".")); isProgram {
			return exit.Usagef("%s is a program and no workflow: pawl eval %s runs it", what, what)
		}
		files, err := a.ReadFiles([]string{what})
		if err != nil {
			return err
		}
		file = &files[0]
		defs, err = definition.Parse(file.Name, file.Content, a.MayKnowLanguage)
		if err != nil {
			return &exit.Error{Code: exit.Misuse, Err: fmt.Errorf("%s is not valid:\n%w", what, err)}
		}
		if defs, err = local.ServeDeclared(a, what, defs); err != nil {
			return err
		}
		name = mainOf(defs).Name
		if a.Config.Text("server") == "" {
			if err := local.MissingTools(a, defs); err != nil {
				return err
			}
		}
	}
	if server := a.Config.Text("server"); server != "" && a.Config.Source["runtime"] == "--runtime" {
		return exit.Usagef("--runtime %s says by what this process runs work, and the server %s runs it: leave it out, or name a runtime in the document", a.Config.Text("runtime"), server)
	}
	asked := api.Submission{Action: name, Input: input, Labels: o.labels, WorkerLabels: o.wanted, Queue: o.queue, Concurrency: concurrency, Rate: rate,
		Timeout: api.Duration(o.timeout), NotBefore: notBefore, StartIn: startIn, Cache: cache, NoCache: o.cache.without, IdempotencyKey: o.key}
	if o.dry {
		return a.WithClient(ctx, app.Reading, func(ctx context.Context, s *app.Session) error {
			v, err := s.CheckSubmission(ctx, asked)
			if err != nil {
				return err
			}
			return writeCheck(a, v, o.format)
		})
	}
	return submitAndWatch(ctx, a, func(ctx context.Context, s *app.Session) (*api.Execution, error) {
		if s.Embedded {
			if err := errors.Join(local.MissingRuntimes(a, defs), local.MissingRuntime(a, "this", flow.Kind(name), input), local.MissingLabels(a, "this", o.wanted), local.MissingQueues(a, defs, o.queue)); err != nil {
				return nil, err
			}
		}
		if file != nil {
			defined, err := s.Define(ctx, file.Content, file.Name)
			if err != nil {
				return nil, err
			}
			for _, d := range defined.Definitions {
				if d.Name == name {
					asked.Action = fmt.Sprintf("%s@%d", d.Name, d.Version)
				}
			}
		}
		asked.IdempotencyKey = cmp.Or(o.key, s.Key)
		return s.Submit(ctx, asked)
	}, o.detach, o.format)
}

// mainOf is the definition that is run for a file: its first workflow, or its first action.
func mainOf(defs []*definition.Definition) *definition.Definition {
	for _, d := range defs {
		if d.Kind == definition.KindWorkflow {
			return d
		}
	}
	return defs[0]
}

// submitAndWatch submits and watches, unless the execution is to be left to the server.
func submitAndWatch(ctx context.Context, a *app.App, submit func(context.Context, *app.Session) (*api.Execution, error), detach bool, f output.Format) error {
	return a.WithClient(ctx, app.Working, func(ctx context.Context, s *app.Session) error {
		if detach && s.Embedded {
			return exit.Usagef("--detach leaves the execution to a server, and there is none: start pawl server, or give --server")
		}
		var x *api.Execution
		err := a.Following(ctx, s, func() (err error) { x, err = submit(ctx, s); return err })
		if err != nil {
			return refused(err)
		}
		if detach {
			fmt.Fprintln(a.Out, x.ID)
			return nil
		}
		return Watch(ctx, a, s, x, f)
	})
}

// refused converts the error of a submission: a submission that the server finds invalid is a wrong use of the command.
func refused(err error) error {
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Type == api.ProblemInvalid {
		return &exit.Error{Code: exit.Misuse, Err: err}
	}
	return err
}

// InputOf builds the input from --input and --set; nil if neither is given.
func InputOf(a *app.App, o *RunOptions) (json.RawMessage, error) {
	raw, err := a.GivenJSON("--input", o.Input)
	if err != nil || len(o.Set) == 0 {
		return raw, err
	}
	return WithFields(raw, o.Set)
}

// WithFields applies every --set to an input.
func WithFields(input []byte, set []string) (json.RawMessage, error) {
	fields := map[string]any{}
	if len(bytes.TrimSpace(input)) > 0 {
		d := json.NewDecoder(bytes.NewReader(input))
		d.UseNumber()
		if err := d.Decode(&fields); err != nil {
			return nil, exit.Usagef("--set changes fields of an object, and the input is none: %v", err)
		}
		if fields == nil { // the input is null
			fields = map[string]any{}
		}
	}
	for i, s := range set {
		path, _, _ := strings.Cut(s, "=")
		for _, before := range set[:i] {
			if before, _, _ := strings.Cut(before, "="); before == path || strings.HasPrefix(before, path+".") {
				return nil, exit.Usagef("--set %q: --set %s=… before it would be lost: leave one of them out", s, before)
			}
		}
		if err := setField(fields, s); err != nil {
			return nil, err
		}
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode input: %w", err)
	}
	return b, nil
}

func setField(fields map[string]any, s string) error {
	path, text, ok := strings.Cut(s, "=")
	names := strings.Split(path, ".")
	if !ok || slices.Contains(names, "") {
		return exit.Usagef("--set %q: write it as name=value, and a field within another as name.field=value", s)
	}
	value, err := valueOf(text)
	if err != nil {
		return exit.Usagef("--set %q: %v", s, err)
	}
	for _, n := range names[:len(names)-1] {
		next, ok := fields[n].(map[string]any)
		if !ok {
			if fields[n] != nil {
				return exit.Usagef("--set %q: %q is not an object", s, n)
			}
			next = map[string]any{}
			fields[n] = next
		}
		fields = next
	}
	fields[names[len(names)-1]] = value
	return nil
}

// valueOf parses the value of a --set as JSON, or else takes it as a string. JSON that would lose a part is an error.
func valueOf(text string) (value any, err error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("the text is not UTF-8: encode it as UTF-8")
	}
	if !json.Valid([]byte(text)) {
		return text, nil
	}
	if err := app.CheckJSON("the value", []byte(text)); err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return value, d.Decode(&value)
}
