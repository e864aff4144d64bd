package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime"
)

// containerLimits are the defaults of a container's run. CPU time is not limited unless the payload asks for it.
var containerLimits = runtime.Limits{Wall: 10 * time.Minute, Memory: 512 << 20, Pids: 256, Output: 10e6, Disk: 256 << 20}

// Container runs images. Its output is always an api.CodeResult.
type Container struct{ code *Code }

// NewContainer checks the options; all runtimes in them must run images.
func NewContainer(o CodeOptions) (*Container, error) {
	code, err := NewCode(o)
	if err != nil {
		return nil, err
	}
	return &Container{code}, nil
}

func (c *Container) Offers() []string {
	return append(c.code.runtimes(), flow.OfferRuntime(payload.AnyContainer))
}

// runtimes are the names of the runtimes, as a worker offers them.
func (c *Code) runtimes() []string {
	var all []string
	for _, r := range c.Runtimes {
		all = append(all, flow.OfferRuntime(r.Name()))
	}
	return all
}

func (c *Container) Run(ctx context.Context, t *Task) (json.RawMessage, error) {
	asked, err := payload.Container(t.Payload)
	if err != nil {
		return nil, Errorf(flow.CodeInvalidInput, "%s", err)
	}
	if err := c.code.Most.Container(&asked); err != nil {
		return nil, Errorf(flow.CodeInvalidInput, "%s", err)
	}
	e := evaluation{Code: c.code, task: t, lang: &Profile{}} // an image needs no language profile
	e.code = api.Code{Files: asked.Files, Stdin: asked.Stdin, Limits: asked.Limits, Collect: asked.Collect, Env: asked.Env}
	result, err := e.contain(ctx, &asked)
	if err != nil {
		return nil, e.refuse(err)
	}
	output, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("write result: %w", err)
	}
	if result.Verdict == string(runtime.OK) && result.ResultError == "" {
		return output, nil
	}
	return nil, failure(result, output)
}

func (c *Container) Outlived(ctx context.Context) ([]flow.AttemptID, error) {
	var all []flow.AttemptID
	for _, k := range c.keepers() {
		runs, err := k.Outlived(ctx)
		if err != nil {
			return nil, err
		}
		for _, l := range runs {
			execution, err := flow.ParseID(flow.ExecutionPrefix, l["execution"])
			attempt, err2 := strconv.Atoi(l["attempt"])
			if err == nil && err2 == nil {
				all = append(all, flow.AttemptID{Execution: execution, Attempt: attempt})
			}
		}
	}
	return all, nil
}

func (c *Container) Settle(kept []flow.AttemptID) {
	labels := make([]runtime.Labels, len(kept))
	for i, k := range kept {
		labels[i] = labelsOf(k)
	}
	for _, k := range c.keepers() {
		k.Settle(labels)
	}
}

func (c *Container) keepers() []runtime.Keeper {
	var all []runtime.Keeper
	for _, r := range c.code.Runtimes {
		if k, ok := r.(runtime.Keeper); ok {
			all = append(all, k)
		}
	}
	return all
}

func labelsOf(a flow.AttemptID) runtime.Labels {
	return runtime.Labels{"execution": a.Execution.String(), "attempt": strconv.Itoa(a.Attempt)}
}

// contain runs one container to its end.
func (e *evaluation) contain(ctx context.Context, c *api.Container) (_ *api.CodeResult, err error) {
	if e.runtime, err = e.pick(c.Runtime); err != nil {
		return nil, err
	}
	if e.dir, err = os.MkdirTemp(filepath.Join(e.Dir, "runs"), "run-"); err != nil {
		return nil, fmt.Errorf("make a directory for files: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(e.dir)) }()
	spec := runtime.Spec{Argv: c.Command, Env: e.containerEnv(), Collect: append([]string{payload.OutputFile}, c.Collect...),
		Container: &runtime.Container{
			Image: c.Image, Entrypoint: c.Entrypoint, User: c.User, WorkDir: c.WorkDir, Network: c.Network, Pull: runtime.Pull(c.Pull),
		},
		// After a worker's death it is unknown how much of its input the program had read.
		Lasting: c.Stdin.Blob == "" && len(c.Stdin.Bytes) == 0,
	}
	if !e.task.Resumed { // otherwise the container already has them
		if err := e.give(ctx, c, &spec); err != nil {
			return nil, err
		}
	}
	if in, ok := spec.Stdin.(io.Closer); ok {
		defer in.Close()
	}
	limits := limitsOf(c.Limits)
	limits.Wall = cmp.Or(limits.Wall, e.task.Timeout)
	if limits = limits.Or(containerLimits); limits.CPU == 0 {
		limits.CPU = time.Duration(api.MaxWall)
	}
	spec.Limits = limits
	if e.shell {
		return e.openShell(ctx, spec)
	}
	result, files, err := e.start(ctx, spec, "out")
	if err != nil {
		return nil, err
	}
	return result, e.collect(ctx, result, files)
}

// give puts the submission's files and input into the spec.
func (e *evaluation) give(ctx context.Context, c *api.Container, spec *runtime.Spec) error {
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		f, err := e.input(ctx, name, c.Files[name])
		if err != nil {
			return err
		}
		spec.Files = append(spec.Files, f)
	}
	if spec.Lasting {
		return nil
	}
	stdin, err := e.stdin(ctx)
	if err != nil {
		return err
	}
	spec.Stdin = stdin
	return nil
}

// containerEnv are variables that are added to the image's environment.
func (e *evaluation) containerEnv() []string {
	all := map[string]string{}
	maps.Copy(all, e.code.Env)
	return e.withTask(all, path.Join(runtime.ContainerFiles, payload.OutputFile))
}
