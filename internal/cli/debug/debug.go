// Package debug contains the commands that inspect records: debug runs an attempt again on this machine, replay applies the rules to
// a history again.
package debug

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/attempt"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/secret"
	"github.com/pawl-run/pawl/internal/task"
)

type debugOptions struct {
	task        string
	attempt     int
	shell, send bool
}

func DebugCommand(a *app.App) *cobra.Command {
	var o debugOptions
	c := &cobra.Command{
		Use:   "debug ID",
		Short: "Run one recorded attempt on this machine, and compare the results",
		Long: `Run one recorded attempt on this machine, with the input, files, environment and limits that its worker
received, and in the same runtime unless --runtime names another. Output is passed on; then the command prints
how the attempt ended, what was recorded, and the differences. The recorded execution is not changed. The exit
code is that of the attempt here (3 failed, 4 cancelled, 5 timed out).

With --shell, an interactive shell runs instead of the program, with the same files, environment and limits, but
without time limits. The shell has no terminal: input is sent line by line.

The program may be untrusted, so it runs in the sandbox, unless the attempt ran in a container. Tasks that send
requests (http, llm, webhook) send them again only with --send.`,
		Example: `  pawl debug ex_…
  pawl debug ex_… --task 'test[3]'              one item of a workflow's task
  pawl debug ex_… --task deploy/verify          a task of a workflow that is a task
  pawl debug ex_… --attempt 1                   not the last attempt
  pawl debug ex_… --shell                       look around where it ran`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("attempt") && o.attempt < 1:
				return exit.Usagef("--attempt %d: attempts are numbered from 1 on", o.attempt)
			case o.shell && o.send:
				return exit.Usagef("--shell opens a shell in the place of a program, and --send is for tasks without one: leave out one of them")
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error { return debug(ctx, a, s, args[0], &o) })
		},
	}
	f := c.Flags()
	f.StringVar(&o.task, "task", "", "task of the workflow, or an item of it: 'test[3]', 'deploy/verify[1]'")
	f.IntVar(&o.attempt, "attempt", 0, "number of the attempt (default: the last one that ended)")
	f.BoolVar(&o.shell, "shell", false, "open a shell where the program would run")
	f.BoolVar(&o.send, "send", false, "send the request of an http, llm or webhook task again; to the receiver it looks like a new attempt")
	return c
}

func debug(ctx context.Context, a *app.App, s *app.Session, id string, o *debugOptions) error {
	x, err := debugged(ctx, s.Client, id, o.task)
	if err != nil {
		return err
	}
	rec, err := recordedAttempt(ctx, s.Client, x, o.attempt)
	if err != nil {
		return err
	}
	kind := flow.Kind(rec.Kind)
	if err := o.refuse(kind); err != nil {
		return err
	}
	if err := secretsOf(a, kind, rec.Payload); err != nil {
		return err
	}
	if kind.RunsCode() {
		if err := placeOf(a, rec, x); err != nil {
			return err
		}
	}
	h, rt, err := instance.OpenHandler(&a.Config, a.Say, kind)
	if err != nil {
		return err
	}
	defer func() { _ = rt.Close() }()
	r, err := reenacted(ctx, a, s.Client, rec, o)
	if err != nil {
		return err
	}
	r.Handler = h
	if o.shell {
		return openShell(ctx, a, r)
	}
	here := &written{streams: map[string]*digest{}, out: a.Out, err: a.Err}
	r.Out = here.stream
	end, err := attempt.Run(ctx, r)
	if err != nil {
		return err
	}
	if err := compareAttempts(ctx, a, s.Client, rec, end, here); err != nil {
		return err
	}
	if code := exit.CodeOf(api.Status(end.Stage.String())); code != exit.OK {
		return &exit.Error{Code: code}
	}
	return nil
}

// refuse returns the reason why an attempt of a kind cannot run here.
func (o *debugOptions) refuse(kind flow.Kind) error {
	switch {
	case kind.RunsCode():
		if o.send {
			return exit.Usagef("--send is for tasks that send a request (http, llm, webhook), and this is %s: leave it out", kind)
		}
		return nil
	case o.shell:
		return exit.Usagef("--shell: no program is run by an attempt of kind %s", kind)
	case !kind.BuiltIn():
		return exit.Usagef("it is run by a program of its own, which serves handler %q: run that one under a debugger, with its input (pawl describe -o json)", kind)
	case kind.ByEngine():
		return exit.Usagef("the engine itself carries out what is of kind %s: there is nothing to run; pawl replay says whether its history follows from the rules", kind)
	case kind == flow.KindHTTP, kind == flow.KindLLM, kind == flow.KindWebhook:
		if !o.send {
			return exit.Usagef("an attempt of kind %s sends a request, which may have effects: --send sends it again, from this machine and with the same idempotency key", kind)
		}
		return nil
	}
	return exit.Usagef("an attempt of kind %s puts out what it is given: there is nothing to run", kind)
}

// recordedAttempt is the requested attempt, or the last that has ended.
func recordedAttempt(ctx context.Context, c *client.Client, x *api.Execution, number int) (*api.Attempt, error) {
	asked := number > 0
	if !asked {
		if number = x.Attempt; !x.Status.Terminal() && number > 1 {
			number--
		}
	}
	if number > x.Attempt {
		return nil, exit.Usagef("--attempt %d: %s has had %d", number, x.ID, x.Attempt)
	}
	rec, err := c.Attempt(ctx, x.ID, number)
	switch {
	case err != nil:
		return nil, err
	case x.ReusedOf != "":
		return nil, exit.Usagef("%s did not run: it ended with the outcome of %s; pawl debug %s", x.ID, x.ReusedOf, x.ReusedOf)
	case x.GivenBy != "" && x.Task != "":
		return nil, exit.Usagef("%s did not run: it ended with an output that %s gave", x.ID, x.GivenBy)
	case !rec.Began && rec.Status.Terminal():
		return nil, exit.Usagef("attempt %d of %s never began: it was %s before a worker ran it; pawl rerun %s runs it", number, x.ID, rec.Status, x.ID)
	case !rec.Lost && !rec.Status.Terminal():
		return nil, exit.Usagef("attempt %d of %s is %s, and how it ends is not recorded yet: wait until it has ended, or give --attempt", number, x.ID, rec.Status)
	}
	return rec, nil
}

// secretsOf returns an error for a secret that an attempt needs and this machine does not have.
func secretsOf(a *app.App, kind flow.Kind, given json.RawMessage) error {
	var setting, name, to string
	switch kind {
	case flow.KindLLM:
		c, err := payload.LLM(given)
		if err != nil || c.APIKeyEnv == "" {
			return nil // the handler reports what is wrong with it
		}
		setting, name, to = "llm_keys", c.APIKeyEnv, c.BaseURL
	case flow.KindWebhook:
		n, err := payload.Webhook(given)
		if err != nil {
			return nil // the handler reports what is wrong with it
		}
		setting, name, to = "webhook_secrets", n.Secret(), n.URL
	default:
		return nil
	}
	grants, err := secret.Parse(a.Config.List(setting))
	if err != nil {
		return exit.Usagef("%s: %v", setting, err)
	}
	server, err := url.Parse(to)
	if err != nil {
		return nil // the handler reports what is wrong with it
	}
	if _, err := grants.For(name, server); err != nil {
		return exit.Usagef("the attempt needs the secret %s, which is not recorded and is missing here: %v; give it to this process, and allow it with --%s %s@%s",
			name, err, strings.ReplaceAll(setting, "_", "-"), name, server.Host)
	}
	return nil
}

// placeOf chooses the one runtime to open for an attempt: the first of --runtime, or one that isolates. A record, such
// as one of an archive, may come from anybody: its runtime only chooses among those that isolate.
func placeOf(a *app.App, rec *api.Attempt, x *api.Execution) error {
	const setting = "runtime"
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(rec.Payload, &fields); err != nil {
		return fmt.Errorf("read what attempt %d of %s was given: %w", rec.Attempt, x.ID, err)
	}
	was := ranIn(x.Output)
	if was == "" && fields[setting] != nil {
		_ = json.Unmarshal(fields[setting], &was) // the handler refuses what cannot be read
	}
	place := a.Config.List(setting)[0]
	if a.Config.Source[setting] != "--"+setting {
		place = a.Config.Isolating(was, flow.Kind(rec.Kind))
		if was != "" && was != place {
			a.Say("its record names runtime %.40q; here it runs in %s (--runtime chooses another; process, which isolates nothing, runs it as you)", was, place)
		}
	}
	a.Config.Values[setting] = place
	if fields[setting] != nil {
		fields[setting], _ = json.Marshal(place) // a string always has a JSON form
		changed, err := json.Marshal(fields)
		if err != nil {
			return fmt.Errorf("name the runtime: %w", err)
		}
		rec.Payload = changed
	}
	a.Say("attempt %d of %s runs here, in runtime %s; nothing of it is reported", rec.Attempt, x.ID, place)
	return nil
}

// ranIn is the runtime in a program's result.
func ranIn(output json.RawMessage) string {
	var r api.CodeResult
	if json.Unmarshal(output, &r) != nil {
		return ""
	}
	return r.Runtime
}

// reenacted is a recorded attempt in the form in which a worker gets it here.
func reenacted(ctx context.Context, a *app.App, c *client.Client, rec *api.Attempt, o *debugOptions) (*attempt.Recorded, error) {
	id, err := flow.ParseID(flow.ExecutionPrefix, rec.Execution)
	if err != nil {
		return nil, err
	}
	var workflow flow.ID
	if rec.Workflow != "" {
		if workflow, err = flow.ParseID(flow.ExecutionPrefix, rec.Workflow); err != nil {
			return nil, err
		}
	}
	r := &attempt.Recorded{Log: a.Logger(), Assignment: handoff.Assignment{
		Execution: id, Attempt: rec.Attempt, NextSeq: 1, Action: rec.Action, Kind: flow.Kind(rec.Kind), Payload: rec.Payload, Labels: rec.Labels,
		Workflow: workflow, Task: rec.Task, Index: rec.Index, Chain: rec.Chain, ClaimedAt: time.Now(), Timeout: time.Duration(rec.Timeout),
	}}
	if o.shell {
		r.Assignment.Timeout = 0
	}
	r.Blobs = func(ctx context.Context, name string, from int64) (io.ReadCloser, error) {
		blob, err := c.Given(ctx, rec.Execution, name, from)
		var refused *api.Problem
		switch {
		case err == nil:
			return blob, nil
		case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
			return nil, fmt.Errorf("%w: %w", handoff.ErrNoBlob, err)
		case refused != nil && refused.Status < http.StatusInternalServerError:
			return nil, fmt.Errorf("%w: %w", handoff.ErrBlobRefused, err)
		}
		return nil, fmt.Errorf("%w: %w", handoff.ErrUnavailable, err)
	}
	var code struct{ Interactive bool }
	if !o.shell && rec.Kind == string(flow.KindCode) && json.Unmarshal(rec.Payload, &code) == nil && code.Interactive {
		if r.Stdin, err = typed(ctx, a, c, rec.Execution); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// typed is the recorded input of an interactive execution.
func typed(ctx context.Context, a *app.App, c *client.Client, id string) (io.Reader, error) {
	state, err := c.Stdin(ctx, id)
	if err != nil {
		return nil, err
	}
	from, err := c.StdinBytes(ctx, id)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(io.LimitReader(from, flow.InputLimit))
	_ = from.Close()
	if err != nil {
		return nil, fmt.Errorf("read what was typed: %w", err)
	}
	a.Say("it reads the %d bytes that were given to it while it ran, all at once: when each of them came is not recorded", len(all))
	if state.Closed {
		return bytes.NewReader(all), nil
	}
	a.Say("no end of file was given: behind them it waits until its limits, or Ctrl-C")
	return io.MultiReader(bytes.NewReader(all), silent{ctx}), nil
}

// silent is a stdin without bytes and without an end: a read waits until ctx ends.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, context.Cause(s.ctx)
}

func openShell(ctx context.Context, a *app.App, r *attempt.Recorded) error {
	h, can := task.Shell(r.Handler)
	if !can {
		return exit.Usagef("--shell: no program is run by an attempt of kind %s", r.Assignment.Kind)
	}
	r.Handler, r.Stdin = h, a.In
	r.Out = func(stream string) io.Writer {
		if stream == "stdout" {
			return a.Out
		}
		return a.Err
	}
	a.Say("a shell in the place of the program; exit or Ctrl-D ends it")
	end, err := attempt.Run(ctx, r)
	if err != nil {
		return err
	}
	var result api.CodeResult
	if e := end.Error; e != nil && (json.Unmarshal(end.Output, &result) != nil || result.ExitCode == nil) {
		return fmt.Errorf("the shell ended: %w", e)
	}
	return nil
}
