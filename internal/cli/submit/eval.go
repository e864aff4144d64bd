package submit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/local"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/problem"
)

type evalOptions struct {
	language string
	stdin    string
	std      string
	flags    []string
	args     []string
	env      map[string]string
	files    []string
	dirs     []string
	collect  []string
	into     string
	limits   map[string]string
	labels   map[string]string
	wanted   map[string]string // of the worker
	queue    string
	detach   bool
	dry      bool
	format   output.Format

	flow        flowControl
	cache       cacheFlags
	interactive bool
	reruns      int
	cases       caseOptions
}

func EvalCommand(a *app.App) *cobra.Command {
	var o evalOptions
	c := &cobra.Command{
		Use:   "eval FILE|-",
		Short: "Run an untrusted program in the sandbox",
		Long: `Run a program in the sandbox: without network, without this machine's files, and within limits. Its output is
passed on byte for byte as it is written: standard output to standard output, standard error to standard error.
With -o json the result is printed instead: verdict, exit code, times, memory, output, files.

With -i the program reads typed (or piped) input while it runs; Ctrl-D is end-of-file. The input is kept
with the execution, so another attempt reads all of it again. pawl attach joins from elsewhere.

With --cases the program is compiled once and run on every NAME.in in a directory, each time in a new sandbox.
Its output is compared with NAME.out or NAME.ans; an input without one is refused unless --no-expect says that
only the exit code counts (docs/evaluations.md). Outputs are compared byte for byte (exact), ignoring white
space at the end of lines (trimmed), word by word (tokens), with a tolerance for numbers (numeric), or by a
checker: a program that is run as "checker input.txt output.txt expected.txt" and exits with 0 to accept and 1
to reject, unless --checker-accept and --checker-reject name other codes; or by an interactor, which is run as
"interactor input.txt expected.txt" and talks with the program through its stdin and stdout. Exit code 0: all cases passed, 3: at
least one did not.

The language comes from --language, else from the file's extension, else from its first line (#!…).`,
		Example: `  pawl eval solution.py --stdin cases.txt --limit wall=2s,memory=64MB
  echo 'console.log(6*7)' | pawl eval - --language javascript
  pawl eval plot.py --file data.csv --collect plot.svg --collect-into out/
  pawl eval main.c --arg 10 --arg 20 -o json
  pawl eval -i game.py --limit wall=1h
  pawl eval solution.py --stdin cases.txt --cache 1h
  pawl eval --cases examples/cases/primes examples/cases/primes.py
  pawl eval --cases examples/cases/roots --tolerance 1e-4 examples/cases/roots.c
  pawl eval --cases examples/cases/guess --interactor examples/cases/guess_interactor.py examples/cases/guess.py
  pawl eval --cases tests/ --checker check.py --stop-on-failure solution.cpp -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return eval(cmd.Context(), a, args[0], &o) },
	}
	f := c.Flags()
	f.StringVarP(&o.language, "language", "l", "", "one of "+strings.Join(api.Languages(), ", "))
	f.StringVar(&o.stdin, "stdin", "", "file for the program's standard input; - reads this command's standard input")
	f.BoolVarP(&o.interactive, "interactive", "i", false, "pass standard input to the program as it is typed")
	o.cases.declare(f)
	f.StringArrayVar(&o.args, "arg", nil, "argument of the program; may be repeated")
	app.PairVar(f, &o.env, "env", "environment for the program, as in NAME=value")
	f.StringVar(&o.std, "std", "", "C and C++: standard, for example c11 or gnu++17")
	f.StringArrayVar(&o.flags, "compiler-flag", nil, "C and C++: compiler flag, for example -O3 or -DLOCAL; may be repeated")
	f.StringArrayVar(&o.files, "file", nil,
		"file for the working directory, as PATH (kept as its path there) or NAME=PATH; may be repeated")
	f.StringArrayVar(&o.dirs, "dir", nil,
		"directory for the working directory, as PATH or NAME=PATH (.=PATH: only its content); may be repeated")
	f.StringArrayVar(&o.collect, "collect", nil, "files to return: a path, directory or pattern; may be repeated")
	f.StringVar(&o.into, "collect-into", ".", "directory for returned files; existing files of the same names are replaced")
	app.PairsVar(f, &o.limits, "limit", "limits: wall=5s, cpu=2s, memory=64MB, pids=16, cpus=1, output=1MB, disk=10MB")
	f.IntVar(&o.reruns, "rerun-near-limit", 0, fmt.Sprintf(
		"repeats, 0 to %d, of a run that exceeded wall or cpu by at most a quarter, or memory; the first within its "+
			"limits counts", api.MaxReruns))
	app.PairsVar(f, &o.labels, "label", "labels to find the execution by")
	app.PairsVar(f, &o.wanted, "worker-label", "a label that the worker must have, as in gpu=a100; may be repeated")
	f.StringVar(&o.queue, "queue", "", "queue")
	f.BoolVar(&o.detach, "detach", false, "print the execution's ID and return without waiting")
	f.BoolVar(&o.dry, "dry-run", false, dryRunHelp+"; content too large for one request is still uploaded")
	o.flow.declare(f)
	o.cache.declare(f, "run it also where an outcome was kept; with --cache its own is kept")
	_ = c.RegisterFlagCompletionFunc("language", cobra.FixedCompletions(api.Languages(), cobra.ShellCompDirectiveNoFileComp))
	output.FormatFlag(c, &o.format, output.AsTable, output.AsJSON, output.AsYAML)
	f.Lookup("output").Usage = "table: what the program writes, or how the cases ended; json or yaml: the result"
	return c
}

func eval(ctx context.Context, a *app.App, file string, o *evalOptions) error {
	e, c, err := evaluation(a, file, o)
	if err != nil {
		return err
	}
	defer c.close()
	if a.Config.Text("server") == "" {
		if err := local.MissingTool(a, "this program", e.Language); err != nil {
			return err
		}
	}
	return a.WithClient(ctx, app.Working, func(ctx context.Context, s *app.Session) error { return evalWith(ctx, a, s, e, c, o) })
}

func evalWith(ctx context.Context, a *app.App, s *app.Session, e *api.Evaluation, c *contents, o *evalOptions) error {
	if s.Embedded {
		if err := local.MissingLabels(a, "this program", o.wanted); err != nil {
			return err
		}
	}
	if o.detach && s.Embedded && !o.dry {
		return exit.Usagef("--detach leaves the execution to a server, and there is none: start pawl server, or give --server")
	}
	if err := c.upload(ctx, s); err != nil {
		return err
	}
	if o.dry {
		v, err := s.CheckEvaluation(ctx, *e)
		if err != nil {
			return err
		}
		return writeCheck(a, v, o.format)
	}
	var x *api.Execution
	err := a.Following(ctx, s, func() (err error) {
		e.IdempotencyKey = s.Key
		x, err = s.Evaluate(ctx, *e)
		return err
	})
	if err != nil {
		return refused(err)
	}
	if o.detach {
		fmt.Fprintln(a.Out, x.ID)
		return nil
	}
	cases := len(e.Cases)
	if cases == 1 && e.Cases[0].Set != "" {
		cases = -1 // the worker knows
	}
	return evaluated(ctx, a, s, x, o, cases)
}

// evaluation builds the request, and the contents that must be uploaded before it is sent.
func evaluation(a *app.App, file string, o *evalOptions) (_ *api.Evaluation, _ *contents, err error) {
	c := &contents{in: a.In}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if o.interactive && (o.stdin != "" || file == "-") {
		return nil, nil, exit.Usagef("-i: standard input is what the program reads while it runs: give the program as a file, and leave --stdin out")
	}
	files, err := a.ReadFiles([]string{file})
	if err != nil {
		return nil, nil, err
	}
	if len(files) != 1 {
		return nil, nil, exit.Usagef("%s is a directory: name the program's file, and give others with --file", file)
	}
	concurrency, rate, err := o.flow.read()
	if err != nil {
		return nil, nil, err
	}
	program := files[0].Content
	c.inline = len(program)
	e := &api.Evaluation{Code: api.Code{Source: string(program), Std: o.std, Flags: o.flags, Args: o.args, Env: o.env, Collect: o.collect,
		Interactive: o.interactive, RerunNearLimit: o.reruns}, Labels: o.labels, WorkerLabels: o.wanted, Queue: o.queue,
		Concurrency: concurrency, Rate: rate, NoCache: o.cache.without}
	// A server runs the program in its own runtimes, and the flag selects one of them.
	if server := a.Config.Text("server"); server != "" && a.Config.Source["runtime"] == "--runtime" {
		names := a.Config.List("runtime")
		if len(names) != 1 {
			return nil, nil, exit.Usagef("--runtime %s: the server %s runs the program, by one runtime: name that", a.Config.Text("runtime"), server)
		}
		e.Runtime = names[0]
	}
	if e.Cache, err = o.cache.read(); err != nil {
		return nil, nil, err
	}
	if e.NotBefore, e.StartIn, err = o.flow.start(a); err != nil {
		return nil, nil, err
	}
	if e.Language, err = languageOf(a, o.language, file, program); err != nil {
		return nil, nil, err
	}
	if o.stdin != "" {
		if o.stdin == "-" && file == "-" {
			return nil, nil, exit.Usagef("--stdin -: standard input is the program already")
		}
		if err := c.add(o.stdin, 0, func(content api.Content) { e.Stdin = content }); err != nil {
			return nil, nil, fmt.Errorf("--stdin: %w", err)
		}
	}
	if err := c.addFiles(e, o.files, o.dirs); err != nil {
		return nil, nil, err
	}
	if e.Limits, err = limitsOf(o.limits); err != nil {
		return nil, nil, err
	}
	return e, c, addCases(a, e, &o.cases, o.stdin != "", c)
}

func limitsOf(given map[string]string) (api.CodeLimits, error) {
	l, err := config.LimitsFrom(given)
	if err != nil {
		return api.CodeLimits{}, exit.Usagef("--limit: %v", err)
	}
	return l, nil
}

func languageOf(a *app.App, given, file string, program []byte) (string, error) {
	set := a.Config.Languages.Set()
	known := strings.Join(set.Names(), ", ")
	if given != "" {
		name, ok := set.Resolve(given)
		if !ok && a.Config.Text("server") != "" && language.CheckName(strings.ToLower(given)) == nil {
			return strings.ToLower(given), nil // the server knows the languages of its workers
		}
		if !ok {
			if lacks := a.Config.Languages.Install(given); lacks != "" {
				return "", exit.Usagef("--language %s: %s", given, lacks)
			}
			if near := problem.Nearest(given, set.All()); near != "" {
				return "", exit.Usagef("--language %q: %s", given, near)
			}
			return "", exit.Usagef("--language %q: one of %s; a profile in the configuration adds another", given, known)
		}
		return name, nil
	}
	if name, ok := set.OfExtension(strings.TrimPrefix(filepath.Ext(file), ".")); ok {
		return name, nil
	}
	line, _, _ := bufio.NewReader(bytes.NewReader(program)).ReadLine()
	if rest, ok := bytes.CutPrefix(line, []byte("#!")); ok {
		words := strings.Fields(string(rest))
		for i := len(words) - 1; i >= 0; i-- {
			base := strings.TrimRight(filepath.Base(words[i]), "0123456789.")
			if name, ok := set.Resolve(base); ok {
				return name, nil
			}
		}
	}
	if lacks := a.Config.Languages.Install(strings.TrimPrefix(filepath.Ext(file), ".")); lacks != "" {
		return "", exit.Usagef("%s: %s", file, lacks)
	}
	return "", exit.Usagef("the language of %s cannot be told: give --language, one of %s", file, known)
}

// evaluated forwards the program's output until it has ended, and returns the exit code.
func evaluated(ctx context.Context, a *app.App, s *app.Session, x *api.Execution, o *evalOptions, cases int) error {
	presses := app.Interruptions(ctx)
	follow, stop := s.Within(context.WithoutCancel(ctx))
	defer stop()
	over := make(chan error, 1)
	printed := newOneAttempt(a.Out)
	stdout := printed.write
	if o.interactive { // its output responds to the input, and is shown to a person as it comes
		stdout = chunksTo(a.Out)
	}
	go func() {
		var q client.LogQuery
		over <- a.Following(follow, s, func() error {
			switch {
			case o.format == output.AsTable && cases != 0:
				return followCases(follow, a, s.Client, x.ID, &q, cases)
			case o.format == output.AsTable:
				return passOn(follow, a, s.Client, x.ID, &q, stdout)
			}
			_, err := s.Wait(follow, x.ID)
			return err
		})
	}()
	go sayWhileItWaits(follow, a, s, x.ID)
	refused := make(chan error, 1) // the reason why the program does not get all of standard input
	if o.interactive {
		go func() {
			if err := sendStdin(follow, a, s, x.ID, 0); err != nil {
				refused <- err
			}
		}()
	}
	kill := func(why string) {
		if _, err := s.Kill(follow, x.ID, why, 0); err != nil && !client.IsFinished(err) {
			a.Say("pawl: kill: %v", err)
		}
	}
	var cut error
	pressed := 0
	for done := false; !done; {
		select {
		case err := <-over:
			if err != nil {
				return err
			}
			done = true
		case <-presses.Pressed:
			if pressed++; pressed > 1 {
				return app.ErrInterrupted
			}
			a.Say("pawl: killing it; Ctrl-C again leaves without waiting")
			go kill("interrupted")
		case cut = <-refused: // without the rest the program would wait until its limits, or continue with a part
			a.Say("pawl: stdin: %v; killing it", cut)
			go kill("its input was refused")
		}
	}
	end, err := s.Wait(follow, x.ID)
	if err != nil {
		return err
	}
	if !o.interactive && o.stdin == "" && cases == 0 && hasUnread(a.In) {
		a.Say("pawl: what is piped into pawl was not given to the program: --stdin - gives it all of it, -i as it comes")
	}
	code := exit.CodeOf(end.Status)
	if pressed > 0 {
		code = exit.Interrupted
	} else if cut != nil {
		code = exit.General
	}
	var result api.CodeResult
	if len(end.Output) > 0 {
		if err := json.Unmarshal(end.Output, &result); err != nil {
			return fmt.Errorf("read the result of %s: %w", x.ID, err)
		}
		if err := saveCollected(ctx, s, end.ID, &result, o.into); err != nil {
			return err
		}
	}
	if o.format != output.AsTable {
		if err := output.WriteData(a.Out, o.format, evalResult{end.ID, end.Status, end.Attempt, end.Cached, end.ReusedOf, end.Error, result}); err != nil {
			return err
		}
	} else {
		if end.Cached {
			if err := writeCached(a, end, &result); err != nil {
				return err
			}
		}
		if result.Summary != nil {
			writeCases(a, &result)
		}
		if end.Status != api.Completed && end.Error != nil {
			a.Say("pawl: %s", end.Error)
		}
		if err := printed.failure(end); err != nil && !o.interactive {
			return err
		}
	}
	if code == exit.OK {
		return nil
	}
	return &exit.Error{Code: code}
}

// writeCached writes the kept output of an earlier execution: one that did not run has no logs. The kept output is
// complete: a truncated one is not reused.
func writeCached(a *app.App, x *api.Execution, r *api.CodeResult) error {
	a.Say("pawl: cached: outcome of %s, %s did not run", x.ReusedOf, x.ID)
	_, err := a.Out.Write(append([]byte(r.Stdout), r.StdoutBase64...))
	if err == nil {
		_, err = a.Err.Write(append([]byte(r.Stderr), r.StderrBase64...))
	}
	return err
}

// evalResult is the output of -o json: the execution's end and the program's result.
type evalResult struct {
	ID       string     `json:"id"`
	Status   api.Status `json:"status"`
	Attempt  int        `json:"attempt"`
	Cached   bool       `json:"cached,omitempty"`
	ReusedOf string     `json:"reused_of,omitempty"`
	Error    *api.Error `json:"error,omitempty"`
	api.CodeResult
}

// passOn writes the program's output as it comes, and keeps the position in q.
func passOn(ctx context.Context, a *app.App, c *client.Client, id string, q *client.LogQuery, stdout func(*api.LogChunk) error) error {
	before, _, _ := strings.Cut(q.After, ".")
	attempt, _ := strconv.Atoi(before) // 0: nothing was read yet
	for chunk, err := range c.FollowLogs(ctx, id, *q) {
		if err != nil {
			return err
		}
		if attempt != 0 && chunk.Attempt != attempt {
			a.Say("pawl: attempt %d begins", chunk.Attempt)
		}
		attempt = chunk.Attempt
		q.After = client.AfterLog(chunk)
		if chunk.Stream == "stdout" {
			err = stdout(&chunk)
		} else {
			_, err = a.Err.Write(chunk.Bytes())
		}
		if err != nil {
			return fmt.Errorf("pass on %s: %w", chunk.Stream, err)
		}
	}
	return nil
}

// chunksTo writes an attempt's output to w.
func chunksTo(w io.Writer) func(*api.LogChunk) error {
	return func(chunk *api.LogChunk) error {
		_, err := w.Write(chunk.Bytes())
		return err
	}
}

// saveCollected writes the program's files beneath dir, and nowhere else.
func saveCollected(ctx context.Context, s *app.Session, id string, r *api.CodeResult, dir string) error {
	if len(r.Files) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--collect-into: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("--collect-into: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, f := range r.Files {
		if err := root.MkdirAll(filepath.Dir(filepath.FromSlash(f.Path)), 0o755); err != nil {
			return fmt.Errorf("save %s: %w", f.Path, err)
		}
		if err := saveFile(ctx, s, id, &f, root); err != nil {
			return fmt.Errorf("save %s: %w", f.Path, err)
		}
	}
	return nil
}

// saveFile writes one file, from the result or from the blob store.
func saveFile(ctx context.Context, s *app.Session, id string, f *api.ResultFile, root *os.Root) error {
	path := filepath.FromSlash(f.Path)
	if f.Content != nil {
		return root.WriteFile(path, []byte(*f.Content), 0o644)
	}
	if f.Blob == "" {
		return root.WriteFile(path, f.Base64, 0o644)
	}
	from, err := s.File(ctx, id, f.Path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := root.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
