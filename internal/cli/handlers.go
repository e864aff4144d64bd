package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/remote"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/docker"
	"github.com/pawl-run/pawl/internal/runtime/process"
	"github.com/pawl-run/pawl/internal/runtime/sandbox"
	"github.com/pawl-run/pawl/internal/task"
)

// openRuntime starts the runtime of the given name. If it is the sandbox, o says how; keeps is what a worker has to
// remember its lives by, or nil.
func (a *app) openRuntime(name string, o sandbox.Options, keeps *memory) (runtime.Runtime, error) {
	switch name {
	case process.Name:
		return process.New(process.Options{})
	case docker.Name:
		return docker.New(docker.Options{Image: a.config.text("docker_image"), OCIRuntime: a.config.text("docker_runtime"),
			Networks: a.config.list("docker_networks"), Pull: runtime.Pull(a.config.text("docker_pull")),
			Worker: keeps.name(), Returns: mayReturn})
	}
	return sandbox.New(o)
}

// runtimes are those that the workers of this process have.
type runtimes []runtime.Runtime

// Close closes all of them.
func (rs runtimes) Close() error {
	var all error
	for _, r := range rs {
		all = errors.Join(all, r.Close())
	}
	return all
}

// openRuntimes starts what is configured, and tells what code may run in from what containers run in.
func (a *app) openRuntimes(stays bool, keeps *memory) (all runtimes, forCode, forContainers []runtime.Runtime, err error) {
	for _, name := range a.config.list("runtime") {
		r, err := a.openRuntime(name, sandbox.Options{Warm: a.config.warm(stays), KeepWarm: a.config.keepWarm(), PinCPUs: a.config.text("pin_cpus") == "true"}, keeps)
		if err != nil {
			return nil, nil, nil, errors.Join(err, all.Close())
		}
		all = append(all, r)
		if p, ok := r.(runtime.Pinner); ok && p.Pins() && stays && a.config.slots() > goruntime.NumCPU() {
			a.say("pawl: pin_cpus: %d slots and %d processors, so programs that run at once will share some, and their results say so (shared_cpus): give --slots %d",
				a.config.slots(), goruntime.NumCPU(), goruntime.NumCPU())
		}
		if err := a.acceptable(r, stays); err != nil {
			return nil, nil, nil, errors.Join(err, all.Close())
		}
		_, imaged := r.(runtime.Imaged)
		if imaged {
			forContainers = append(forContainers, r)
		}
		if !imaged || a.config.text("docker_image") != "" {
			forCode = append(forCode, r)
		}
	}
	if len(forCode) == 0 {
		err := usage("runtime %s: it runs containers, and code would have nowhere to run: add sandbox to it, or name an image for code with --docker-image",
			a.config.text("runtime"))
		return nil, nil, nil, errors.Join(err, all.Close())
	}
	return all, forCode, forContainers, nil
}

// acceptable refuses to serve others, for as long as the process stays, with limits that hostile code can outrun, unless
// whoever runs the process has said that they will do.
func (a *app) acceptable(r runtime.Runtime, stays bool) error {
	d, ok := r.(interface{ Degraded() error })
	if !ok || !stays || a.config.text("allow_degraded") == "true" {
		return nil
	}
	if err := d.Degraded(); err != nil {
		return usage("this host gives the sandbox no cgroups (%v), so memory and processes would be limited by rlimits and a sampling watchdog only, which hostile code can outrun: "+
			"run pawl as root, or as a systemd service with Delegate=yes; or accept it with --allow-degraded", err)
	}
	return nil
}

// missingRuntime checks that what runs here and nowhere else has the runtime that it needs.
func (a *app) missingRuntime(where string, kind flow.Kind, with json.RawMessage) error {
	need := ""
	for _, n := range payload.Needs(kind, with) {
		if _, language := flow.OfferedLanguage(n); !language { // whether there is a profile of it has been looked at
			need = n
		}
	}
	here := a.config.list("runtime")
	if need == "" || strings.Contains(need, "${{") || isPostgres(a.config.text("store")) || slices.Contains(here, need) ||
		need == payload.AnyContainer && slices.Contains(here, docker.Name) {
		return nil
	}
	if need == payload.AnyContainer {
		return usage("%s runs containers, which runtime %s does not: add docker, with --runtime %s", where,
			strings.Join(here, ","), strings.Join(append(here, docker.Name), ","))
	}
	return usage("%s needs runtime %q, which is not in use here: add it, with --runtime %s, or leave runtime out", where, need,
		strings.Join(append(here, need), ","))
}

// missingLabels checks that the workers here, which are the only ones, have the labels that something asks for.
func (a *app) missingLabels(where string, wanted map[string]string) error {
	if isPostgres(a.config.text("store")) {
		return nil
	}
	here := a.config.labels()
	missing := map[string]string{}
	for key, value := range wanted {
		if has, ok := here[key]; !ok || has != value {
			missing[key] = value
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return usage("%s needs a worker with %s, which the workers here do not have: give them these with --labels %s, or name a server that has such workers with --server",
		where, flow.LabelText(missing), flow.LabelText(wanted))
}

// missingLabelsOf checks so for a definition.
func (a *app) missingLabelsOf(d *definition.Definition) error {
	all := []error{a.missingLabels(string(d.Kind)+" "+d.Name, d.Settings.WorkerLabels)}
	if d.Workflow != nil {
		for _, t := range d.Workflow.Tasks {
			all = append(all, a.missingLabels("task "+t.Name, t.Settings.WorkerLabels))
		}
	}
	return errors.Join(all...)
}

// handlers are what the workers of this process run; it stays if it does more than one piece of work. The runtimes are the
// caller's to close.
func (a *app) handlers(stays bool, keeps *memory) (_ task.Handlers, _ runtimes, err error) {
	all, forCode, forContainers, err := a.openRuntimes(stays, keeps)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = all.Close()
		}
	}()
	o := task.CodeOptions{Runtimes: forCode, Dir: a.workDir(), Languages: a.config.languages}
	code, err := task.NewCode(o)
	if err != nil {
		return nil, nil, err
	}
	handlers, err := a.callers()
	if err != nil {
		return nil, nil, err
	}
	handlers[flow.KindCode] = code
	if len(forContainers) > 0 {
		o.Runtimes = forContainers
		if handlers[flow.KindContainer], err = task.NewContainer(o); err != nil {
			return nil, nil, err
		}
	}
	return handlers, all, nil
}

// callers are the handlers that need no runtime.
func (a *app) callers() (task.Handlers, error) {
	allow := a.config.list("allow_hosts")
	private := slices.Contains(allow, "*")
	if private {
		allow = nil
	}
	egress, err := task.NewEgress(task.EgressOptions{AllowPrivate: private, Allow: allow})
	if err != nil {
		return nil, fmt.Errorf("allow_hosts: %w", err)
	}
	llm, err := task.NewLLM(task.LLMOptions{Egress: egress, Keys: a.config.list("llm_keys")})
	if err != nil {
		return nil, fmt.Errorf("llm_keys: %w", err)
	}
	return task.Handlers{
		flow.KindHTTP: task.HTTP{Egress: egress}, flow.KindLLM: llm,
		flow.KindInput: task.Pass{}, flow.KindOutput: task.Pass{}, flow.KindNoop: task.Pass{},
	}, nil
}

// remoteWorkers serves workers in other processes, also those whose session another server on the database opened.
func (r *room) remoteWorkers(ctx context.Context) (http.Handler, error) {
	key, err := r.engine.WorkerKey(ctx)
	if err != nil {
		return nil, err
	}
	return remote.Handler(r.engine, key), nil
}
