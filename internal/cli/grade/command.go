// Package grade contains the command that grades samples of models on the problems of a benchmark.
package grade

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/score"
	"github.com/pawl-run/pawl/internal/terminal"
)

type options struct {
	problems, results string
	ks                []int
	limits            map[string]string
	format            output.Format
}

func Command(a *app.App) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "grade SAMPLES.jsonl --problems PROBLEMS.jsonl",
		Short: "Grade model-written programs with a benchmark's problems, and estimate pass@k",
		Long: `Grade model-written programs, each in a sandbox, and estimate pass@k.

Each line of SAMPLES has task_id (or question_id) and a program: completion continues the problem's prompt,
solution and code are whole programs, code_list is a list of them. Each line of PROBLEMS is a problem in the
format of HumanEval (test, entry_point), MBPP (test_list), EvalPlus (base_input, plus_input) or LiveCodeBench
(public_test_cases, private_test_cases), or has cases as those of an evaluation: {"call": {"function", "args",
"expect"}} or {"stdin", "expect"}. Cases call functions from outside of the program, which cannot forge what is
compared; asserts are part of the program that they judge.

Each result is appended to a file when it arrives. The same command continues after an interruption, and repeats
programs that have no verdict because the sandbox failed; these are never counted as wrong. Exit code 0: all
were graded, 1: some have no verdict.`,
		Example: `  pawl grade samples.jsonl --problems HumanEval.jsonl
  pawl grade samples.jsonl --problems mbpp.jsonl -k 1,10 --limit cpu=5s -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return exit.Usagef("pawl grade takes one file of samples, as in: pawl grade samples.jsonl --problems HumanEval.jsonl")
			case o.problems == "":
				return exit.Usagef("pawl grade needs the problems of the samples: name their file with --problems")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return grade(cmd.Context(), a, args[0], &o, cmd.Flags().Changed("k"))
		},
	}
	f := c.Flags()
	f.StringVar(&o.problems, "problems", "", "file of problems, one JSON object per line")
	f.StringVar(&o.results, "results", "", "file of results (default: results.jsonl next to the samples)")
	f.IntSliceVarP(&o.ks, "k", "k", []int{1, 10, 100}, "of which pass@k is estimated; by default 1, 10 and 100 where each task has as many samples")
	o.limits = map[string]string{"cpu": "10s", "wall": "30s"}
	app.PairsVar(f, &o.limits, "limit", "limits of one program or case, as in cpu=5s,memory=1GB")
	output.FormatFlag(c, &o.format, output.AsTable, output.AsJSON)
	return c
}

func grade(ctx context.Context, a *app.App, path string, o *options, asked bool) error {
	limits, err := config.LimitsFrom(o.limits)
	if err != nil {
		return exit.Usagef("--limit: %v", err)
	}
	problems, err := readProblems(o.problems)
	if err != nil {
		return &exit.Error{Code: exit.Misuse, Err: err}
	}
	samples, err := readSamples(path, problems, limits)
	if err != nil {
		return &exit.Error{Code: exit.Misuse, Err: err}
	}
	if err := checkKs(o.ks, samples, asked); err != nil {
		return err
	}
	with := map[string]bool{}
	for _, s := range samples {
		with[s.task.id] = true
	}
	if without := len(problems) - len(with); without > 0 {
		a.Say("pawl: %d of %d problems have no samples; pass@k is that of the others", without, len(problems))
	}
	r, err := openResults(cmp.Or(o.results, filepath.Join(filepath.Dir(path), "results.jsonl")), samples)
	if err != nil {
		return err
	}
	defer r.file.Close()
	g := &grading{app: a, results: r, samples: samples}
	if left := g.left(); len(left) > 0 {
		if done := len(samples) - len(left); done > 0 {
			a.Say("pawl: %s has %d of %d results; going on", r.path, done, len(samples))
		}
		err := a.WithClient(ctx, app.Working, func(ctx context.Context, s *app.Session) error {
			return a.Following(ctx, s, func() error { return g.run(ctx, s.Current()) })
		})
		if err != nil {
			return err
		}
	}
	if left := g.left(); len(left) > 0 {
		first := left[0]
		return fmt.Errorf("%s no verdict, since the box broke (%s, in %s): the same command again runs what is missing, and pass@k follows then",
			output.Plural(len(left), "program has", "programs have"), first.at, r.path)
	}
	return show(a, g, o)
}

func checkKs(ks []int, samples []*sample, asked bool) error {
	counts := map[string]int{}
	for _, s := range samples {
		counts[s.task.id]++
	}
	for _, k := range ks {
		if k < 1 {
			return exit.Usagef("-k %d: give 1 or more", k)
		}
		for _, s := range samples {
			if asked && counts[s.task.id] < k {
				return exit.Usagef("-k %d: the task %s has %d samples, of which pass@%d cannot be estimated", k, s.task.id, counts[s.task.id], k)
			}
		}
	}
	return nil
}

// grading is one call of the command.
type grading struct {
	app     *app.App
	results *results
	samples []*sample
	said    time.Time
}

// left are the samples without a verdict.
func (g *grading) left() []*sample {
	return slices.DeleteFunc(slices.Clone(g.samples), func(s *sample) bool {
		_, ok := g.results.known[s.key]
		return ok
	})
}

// The most programs and bytes of a batch; the bytes are half of what a request may have.
const (
	batchLimit = 500
	batchBytes = 8 << 20
)

// run submits the samples without a verdict, and writes each result as it arrives. It can be repeated: idempotency keys find
// earlier submissions.
func (g *grading) run(ctx context.Context, c *client.Client) error {
	pending := map[string]*sample{}
	left := g.left()
	for len(left) > 0 {
		n, size := 0, 0
		for ; n < min(len(left), batchLimit); n++ {
			b, err := json.Marshal(left[n].code)
			if err != nil {
				return err
			}
			if size += len(b); n > 0 && size > batchBytes {
				break
			}
		}
		if err := g.submit(ctx, c, left[:n], pending); err != nil {
			return err
		}
		left = left[n:]
	}
	for o, err := range c.FollowOutcomes(ctx, client.OutcomeQuery{Name: "grade", Value: g.results.run, Outputs: true}) {
		if err != nil {
			return err
		}
		s := pending[o.ID]
		if s == nil {
			continue // an earlier call has already written its result
		}
		delete(pending, o.ID)
		if err := g.results.add(s.entry(&o.Execution)); err != nil {
			return err
		}
		g.progress(false)
	}
	g.progress(true)
	return nil
}

func (g *grading) submit(ctx context.Context, c *client.Client, some []*sample, pending map[string]*sample) error {
	batch := make([]api.Evaluation, len(some))
	for i, s := range some {
		batch[i] = api.Evaluation{
			Code: s.code, Labels: map[string]string{"grade": g.results.run, "task": s.task.id},
			Retry:          &api.Retry{MaxAttempts: 3, On: []string{"infra_error", "worker_lost"}},
			IdempotencyKey: g.results.run + "/" + s.key + "/" + strconv.Itoa(g.results.tries[s.key]),
		}
	}
	answer, err := c.EvaluateBatch(ctx, batch)
	if err != nil {
		return err
	}
	for i, e := range answer.Results {
		if e.Problem != nil {
			return fmt.Errorf("%s: %w", some[i].at, e.Problem)
		}
		pending[e.ID] = some[i]
	}
	return nil
}

// entry is the line of results for a sample.
func (s *sample) entry(x *api.Execution) entry {
	e := entry{Task: s.task.id, Completion: s.completion, Key: s.key, Verdict: x.Verdict, Execution: x.ID}
	if x.Error != nil {
		e.Message = x.Error.Message
	}
	var r api.CodeResult
	if json.Unmarshal(x.Output, &r) != nil || !score.Judged(x.Verdict) {
		return e
	}
	if broken := slices.IndexFunc(r.Cases, func(c api.CaseResult) bool { return c.Verdict == "infra_error" || c.Verdict == "killed" }); broken >= 0 {
		e.Verdict, e.Message = r.Cases[broken].Verdict, r.Cases[broken].Message
		return e
	}
	passed := s.task.passed(x.Verdict, &r)
	if !passed && x.Verdict == api.VerdictOK {
		e.Verdict, e.Message = api.WrongAnswer, "the program ended its process before its tests had"
	}
	e.Passed = &passed
	return e
}

// progress shows the progress: as a bar on a terminal, else as a line every ten seconds.
func (g *grading) progress(last bool) {
	bar := terminal.IsTerminal(g.app.Err)
	every := 10 * time.Second
	if bar {
		every = 100 * time.Millisecond
	}
	if !last && time.Since(g.said) < every {
		return
	}
	g.said = time.Now()
	passed := 0
	for _, e := range g.results.known {
		if *e.Passed {
			passed++
		}
	}
	done, total := len(g.results.known), len(g.samples)
	text := fmt.Sprintf("%d of %d graded, %d passed", done, total, passed)
	if !bar {
		g.app.Say("pawl: %s", text)
		return
	}
	const width = 30
	full := width * done / total
	end := ""
	if last {
		end = "\n"
	}
	fmt.Fprintf(g.app.Err, "\r%s%s %s\x1b[K%s", strings.Repeat("█", full), strings.Repeat("░", width-full), text, end)
}

// show prints pass@k.
func show(a *app.App, g *grading, o *options) error {
	scores := g.results.scores(g.samples, o.ks)
	tasks, byVerdict := map[string]bool{}, map[string]int{}
	for _, s := range g.samples {
		tasks[s.task.id] = true
		byVerdict[g.results.known[s.key].Verdict]++
	}
	if o.format == output.AsJSON {
		passAt := map[string]float64{}
		for _, s := range scores {
			passAt["pass@"+strconv.Itoa(s.K)] = s.Value
		}
		return output.WriteLine(a.Out, map[string]any{"pass_at_k": passAt, "tasks": len(tasks), "samples": len(g.samples), "verdicts": byVerdict, "results": g.results.path})
	}
	for _, s := range scores {
		output.Printf(a.Out, "pass@%-3d %.4f\n", s.K, s.Value)
	}
	output.Printf(a.Out, "%s of %s, %d passed; each is in %s\n", output.Plural(len(g.samples), "program", "programs"), output.Plural(len(tasks), "task", "tasks"), byVerdict[api.VerdictOK], g.results.path)
	return nil
}
