package main

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
	"github.com/pawl-run/pawl/internal/language"
)

// evalOptions are the flags of `pawl eval`.
type evalOptions struct {
	language string
	stdin    string
	args     []string
	env      map[string]string
	files    []string
	collect  []string
	into     string
	limits   map[string]string
	labels   map[string]string
	wanted   map[string]string // of the worker
	queue    string
	detach   bool
	format   format

	interactive bool
	cases       caseOptions
}

func (a *app) evalCommand() *cobra.Command {
	var o evalOptions
	c := &cobra.Command{
		Use:   "eval FILE|-",
		Short: "Run a program of somebody else's in the sandbox",
		Long: `Run a program in the sandbox: without network, without this machine's files, within limits. What it writes is passed on
as it comes, byte for byte: its standard output to standard output, its standard error to standard error. With -o json
the result is printed instead: verdict, exit code, times, memory, output, files.

With -i the program reads what is typed here while it runs (or what is piped in): Ctrl-D is its end of file. What was sent
is kept with the execution, so another attempt reads all of it again. pawl attach joins in from elsewhere.

With --cases the program is compiled once and run on every NAME.in in a directory, each time in a sandbox of its own, and
what it writes is compared with NAME.out or NAME.ans (docs/evaluations.md): byte for byte (exact), but for white space at
the end of lines (trimmed), word for word (tokens), with a tolerance for numbers (numeric), or by a checker, a program
that is run with the arguments input.txt output.txt expected.txt and ends with 0 for right and 1 for wrong. Exit code 0
says that all cases passed, 3 that one did not.

The language is that of --language, or of the file's extension, or of its first line (#!…).`,
		Example: `  pawl eval solution.py --stdin cases.txt --limit wall=2s,memory=64MB
  echo 'console.log(6*7)' | pawl eval - --language javascript
  pawl eval plot.py --file data.csv --collect plot.svg --collect-into out/
  pawl eval main.c --arg 10 --arg 20 -o json
  pawl eval -i game.py --limit wall=1h
  pawl eval --cases examples/cases/primes examples/cases/primes.py
  pawl eval --cases examples/cases/roots --tolerance 1e-4 examples/cases/roots.c
  pawl eval --cases tests/ --checker check.py --stop-on-failure solution.cpp -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.eval(cmd.Context(), args[0], &o) },
	}
	f := c.Flags()
	f.StringVarP(&o.language, "language", "l", "", "one of "+strings.Join(api.Languages(), ", "))
	f.StringVar(&o.stdin, "stdin", "", "file that the program reads as its standard input (- for standard input)")
	f.BoolVarP(&o.interactive, "interactive", "i", false, "give the program what is read here on standard input, as it comes")
	o.cases.declare(f)
	f.StringArrayVar(&o.args, "arg", nil, "an argument for the program; may be repeated")
	f.StringToStringVar(&o.env, "env", nil, "environment for the program, as in NAME=value")
	f.StringArrayVar(&o.files, "file", nil, "a file to place beside the program, as PATH or NAME=PATH; may be repeated")
	f.StringArrayVar(&o.collect, "collect", nil, "files to bring back: a path, directory or pattern; may be repeated")
	f.StringVar(&o.into, "collect-into", ".", "directory for the files that are brought back")
	f.StringToStringVar(&o.limits, "limit", nil, "limits: wall=5s, cpu=2s, memory=64MB, pids=16, output=1MB, disk=10MB")
	f.StringToStringVar(&o.labels, "label", nil, "labels to find the execution by")
	f.StringToStringVar(&o.wanted, "worker-label", nil, "a label that the worker must have, as in gpu=a100; may be repeated")
	f.StringVar(&o.queue, "queue", "", "the queue it waits in")
	f.BoolVar(&o.detach, "detach", false, "print the execution's id and leave it to the server")
	_ = c.RegisterFlagCompletionFunc("language", cobra.FixedCompletions(api.Languages(), cobra.ShellCompDirectiveNoFileComp))
	formatFlag(c, &o.format, asTable, asJSON, asYAML)
	f.Lookup("output").Usage = "table: what the program writes, or how the cases ended; json or yaml: the result"
	return c
}

func (a *app) eval(ctx context.Context, file string, o *evalOptions) error {
	e, err := a.evaluation(file, o)
	if err != nil {
		return err
	}
	if a.config.text("server") == "" {
		if err := a.missingFor("this program", e.Language); err != nil {
			return err
		}
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	s, err := a.connect(ctx, working)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.embedded {
		if err := a.missingLabels("this program", o.wanted); err != nil {
			return err
		}
	}
	if o.detach && s.embedded {
		return usage("--detach leaves the execution to a server, and there is none: start pawl server, or give --server")
	}
	x, err := s.Evaluate(ctx, *e)
	if err != nil {
		var p *api.Problem
		if errors.As(err, &p) && p.Type == api.ProblemInvalid {
			return &exit{exitUsage, err}
		}
		return err
	}
	if o.detach {
		fmt.Fprintln(a.out, x.ID)
		return nil
	}
	return a.evaluated(ctx, s, x, o, len(e.Cases))
}

// evaluation puts the request together.
func (a *app) evaluation(file string, o *evalOptions) (*api.Evaluation, error) {
	if o.interactive && (o.stdin != "" || file == "-") {
		return nil, usage("-i: standard input is what the program reads while it runs: give the program as a file, and leave --stdin out")
	}
	files, err := a.readFiles([]string{file})
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, usage("%s is a directory: name the program's file, and give others with --file", file)
	}
	program := files[0].content
	e := &api.Evaluation{Code: api.Code{Source: string(program), Args: o.args, Env: o.env, Collect: o.collect, Interactive: o.interactive}, Labels: o.labels, WorkerLabels: o.wanted, Queue: o.queue}
	if e.Language, err = a.languageOf(o.language, file, program); err != nil {
		return nil, err
	}
	if o.stdin != "" {
		if o.stdin == "-" && file == "-" {
			return nil, usage("--stdin -: standard input is the program already")
		}
		in, err := a.readFiles([]string{o.stdin})
		if err != nil {
			return nil, fmt.Errorf("--stdin: %w", err)
		}
		e.Stdin = api.Content{Bytes: in[0].content}
	}
	for _, spec := range o.files {
		name, path, ok := strings.Cut(spec, "=")
		if !ok {
			name, path = filepath.Base(spec), spec
		}
		b, err := readBounded(path)
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		content := api.Content{Bytes: b}
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			content.Mode = 0o755
		}
		if e.Files == nil {
			e.Files = map[string]api.Content{}
		}
		e.Files[name] = content
	}
	if e.Limits, err = limitsOf(o.limits); err != nil {
		return nil, err
	}
	return e, a.addCases(e, &o.cases)
}

// limitsOf reads --limit.
func limitsOf(given map[string]string) (api.CodeLimits, error) {
	l, err := limitsFrom(given)
	if err != nil {
		return api.CodeLimits{}, usage("--limit: %v", err)
	}
	return l, nil
}

// languageOf finds a program's language.
func (a *app) languageOf(given, file string, program []byte) (string, error) {
	set := a.config.languages.Set()
	known := strings.Join(set.Names(), ", ")
	if given != "" {
		name, ok := set.Resolve(given)
		if !ok && a.config.text("server") != "" && language.CheckName(strings.ToLower(given)) == nil {
			return strings.ToLower(given), nil // the server knows what its workers have
		}
		if !ok {
			return "", usage("--language %q: one of %s; a profile in the configuration adds another", given, known)
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
	return "", usage("the language of %s cannot be told: give --language, one of %s", file, known)
}

// evaluated passes on what the program writes until it has ended, and returns what to exit with.
func (a *app) evaluated(ctx context.Context, s *session, x *api.Execution, o *evalOptions, cases int) error {
	presses := interruptions(ctx)
	follow, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	over := make(chan error, 1)
	go func() {
		var q client.LogQuery
		over <- a.following(follow, s, func() error {
			switch {
			case o.format == asTable && cases > 0:
				return a.followCases(follow, s.Client, x.ID, &q, cases)
			case o.format == asTable:
				return a.passOn(follow, s.Client, x.ID, &q)
			}
			_, err := s.Wait(follow, x.ID)
			return err
		})
	}()
	if o.interactive {
		go a.sendStdin(follow, s, x.ID, 0)
	}
	pressed := 0
	for done := false; !done; {
		select {
		case err := <-over:
			if err != nil {
				return err
			}
			done = true
		case <-presses.pressed:
			if pressed++; pressed > 1 {
				return errInterrupted
			}
			a.say("pawl: killing it; Ctrl-C again leaves without waiting")
			go func() {
				if _, err := s.Kill(follow, x.ID, "interrupted", 0); err != nil && !client.IsFinished(err) {
					a.say("pawl: kill: %v", err)
				}
			}()
		}
	}
	end, err := s.Wait(follow, x.ID)
	if err != nil {
		return err
	}
	code := statusCode(end.Status)
	if pressed > 0 {
		code = exitInterrupted
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
	if o.format != asTable {
		if err := writeData(a.out, o.format, evalResult{end.ID, end.Status, end.Attempt, end.Error, result}); err != nil {
			return err
		}
	} else {
		if result.Summary != nil {
			a.writeCases(&result)
		}
		if end.Status != api.Completed && end.Error != nil {
			a.say("pawl: %s", end.Error)
		}
	}
	if code == exitOK {
		return nil
	}
	return &exit{code: code}
}

// evalResult is what -o json prints: the execution's end and, beside it, what the program did.
type evalResult struct {
	ID      string     `json:"id"`
	Status  api.Status `json:"status"`
	Attempt int        `json:"attempt"`
	Error   *api.Error `json:"error,omitempty"`
	api.CodeResult
}

// passOn writes what the program writes, as it comes, and keeps in q how far it has come.
func (a *app) passOn(ctx context.Context, c *client.Client, id string, q *client.LogQuery) error {
	before, _, _ := strings.Cut(q.After, ".")
	attempt, _ := strconv.Atoi(before) // 0: nothing was read before
	for chunk, err := range c.FollowLogs(ctx, id, *q) {
		if err != nil {
			return err
		}
		if attempt != 0 && chunk.Attempt != attempt {
			a.say("pawl: attempt %d begins", chunk.Attempt)
		}
		attempt = chunk.Attempt
		q.After = client.AfterLog(chunk)
		to := a.err
		if chunk.Stream == "stdout" {
			to = a.out
		}
		if _, err := to.Write(chunk.Bytes()); err != nil {
			return fmt.Errorf("pass on %s: %w", chunk.Stream, err)
		}
	}
	return nil
}

// saveCollected writes the files that the program left beneath dir, and nowhere else.
func saveCollected(ctx context.Context, s *session, id string, r *api.CodeResult, dir string) error {
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

// saveFile writes one file: what is in the result as it is, what is kept elsewhere as it comes.
func saveFile(ctx context.Context, s *session, id string, f *api.ResultFile, root *os.Root) error {
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
