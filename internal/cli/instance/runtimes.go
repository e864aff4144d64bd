package instance

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"

	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/docker"
	"github.com/pawl-run/pawl/internal/runtime/process"
	"github.com/pawl-run/pawl/internal/runtime/sandbox"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/task/outgoing"
)

// Opener starts a configured runtime. worker is a name that all processes of one worker share; it is empty if no later process
// will resume.
type Opener func(c *config.Config, worker string) (runtime.Runtime, error)

// linked are additional runtimes that were linked into this program.
var linked = map[string]Opener{}

// Link adds a runtime to this program. Its main calls it before the command line runs.
func Link(name string, open Opener) { linked[name] = open }

// ImageSetting is the setting for the image in which a runtime for images runs code.
func ImageSetting(name string) string { return name + "_image" }

// OpenRuntime starts the runtime of the given name. o are the options of the sandbox; keeps is the file with the
// worker's session, or nil.
func OpenRuntime(c *config.Config, name string, o sandbox.Options, keeps *memory) (runtime.Runtime, error) {
	if open, ok := linked[name]; ok {
		return open(c, keeps.name())
	}
	switch name {
	case config.Kubernetes:
		return nil, exit.Usagef("runtime %s is not in this program: pawl-kubernetes is the same with it; run that one", name)
	case process.Name:
		return process.New(process.Options{})
	case docker.Name:
		return docker.New(docker.Options{Image: c.Text("docker_image"), OCIRuntime: c.Text("docker_runtime"),
			Networks: c.List("docker_networks"), Pull: runtime.Pull(c.Text("docker_pull")),
			Worker: keeps.name(), Returns: mayReturn})
	}
	return sandbox.New(o)
}

// runsImages reports whether a runtime, in this program or not, takes programs from images.
func runsImages(name string) bool { return name == docker.Name || name == config.Kubernetes }

// runtimes are the runtimes of this process's workers.
type runtimes []runtime.Runtime

func (rs runtimes) Close() error {
	var all error
	for _, r := range rs {
		all = errors.Join(all, r.Close())
	}
	return all
}

// openRuntimes starts the configured runtimes, and returns those that run code and those that run containers. A runtime
// for images with an image for code is in both lists.
func openRuntimes(c *config.Config, say func(string, ...any), stays bool, keeps *memory) (all runtimes, forCode, forContainers []runtime.Runtime, err error) {
	for _, name := range c.List("runtime") {
		r, err := OpenRuntime(c, name, sandbox.Options{Warm: c.Warm(stays), KeepWarm: c.Duration("keep_warm"), PinCPUs: c.Text("pin_cpus") == "true",
			TemplateFailed: func(err error) { say("pawl: warm interpreters: %v; programs start their own", err) }}, keeps)
		if err != nil {
			return nil, nil, nil, errors.Join(err, all.Close())
		}
		all = append(all, r)
		if p, ok := r.(runtime.Pinner); ok && p.Pins() && stays && c.Slots() > goruntime.NumCPU() {
			say("pawl: pin_cpus: %d slots and %d processors, so programs that run at once will share some, and their results say so (shared_cpus): give --slots %d",
				c.Slots(), goruntime.NumCPU(), goruntime.NumCPU())
		}
		if name != sandbox.Name || os.Geteuid() != 0 {
			for _, language := range c.Languages.Profiles() {
				if language.Warm != nil && stays {
					say("pawl: languages.%s.warm: runtime %s has no warm interpreters here, so programs start their own: run pawl as root with runtime sandbox, or leave it out", language.Name, name)
				}
			}
		}
		if err := acceptable(c, r, stays); err != nil {
			return nil, nil, nil, errors.Join(err, all.Close())
		}
		_, imaged := r.(runtime.Imaged)
		if imaged {
			forContainers = append(forContainers, r)
		}
		if !imaged || c.Text(ImageSetting(name)) != "" {
			forCode = append(forCode, r)
		}
	}
	return all, forCode, forContainers, nil
}

func nowhereForCode(c *config.Config) error {
	return exit.Usagef("runtime %s: it runs containers, and code would have nowhere to run: add sandbox to it, or name an image for code with --%s-image",
		c.Text("runtime"), c.List("runtime")[0])
}

// OpenHandler returns the handler of one built-in kind, for a command that runs one execution. The caller closes
// the runtimes that the handler needs. For kind container no runtime must be able to run code.
func OpenHandler(c *config.Config, say func(string, ...any), kind flow.Kind) (_ task.Handler, _ io.Closer, err error) {
	if !kind.RunsCode() {
		handlers, err := callers(c)
		return handlers[kind], runtimes(nil), err
	}
	all, forCode, forContainers, err := openRuntimes(c, say, false, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = all.Close()
		}
	}()
	o := task.CodeOptions{Runtimes: forCode, Dir: workDir(c), Languages: c.Languages, Most: ceilingsHere(c)}
	if kind == flow.KindContainer {
		if o.Runtimes = forContainers; len(forContainers) == 0 {
			return nil, nil, exit.Usagef("runtime %s: it runs no containers; give --runtime docker", c.Text("runtime"))
		}
		h, err := task.NewContainer(o)
		return h, all, err
	}
	if len(forCode) == 0 {
		return nil, nil, nowhereForCode(c)
	}
	h, err := task.NewCode(o)
	return h, all, err
}

// acceptable refuses a runtime whose limits hostile code can evade, in a process that stays and so runs other users' code,
// unless the operator has accepted that.
func acceptable(c *config.Config, r runtime.Runtime, stays bool) error {
	d, ok := r.(interface{ Degraded() error })
	if !ok || !stays || c.Text("allow_degraded") == "true" {
		return nil
	}
	if err := d.Degraded(); err != nil {
		return exit.Usagef("this host gives the sandbox no cgroups (%v), so memory and processes would be limited by rlimits and a sampling watchdog only, which hostile code can outrun: "+
			"run pawl as root, or as a systemd service with Delegate=yes; or accept it with --allow-degraded", err)
	}
	return nil
}

// OpenHandlers returns the handlers of this process's workers; stays is true if the process runs until it is stopped. The caller
// closes the runtimes.
func OpenHandlers(c *config.Config, say func(string, ...any), stays bool, keeps *memory) (_ task.Handlers, _ runtimes, err error) {
	all, forCode, forContainers, err := openRuntimes(c, say, stays, keeps)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = all.Close()
		}
	}()
	if len(forCode) == 0 {
		return nil, nil, nowhereForCode(c)
	}
	if stays {
		announceCeilings(c, say)
	}
	o := task.CodeOptions{
		Runtimes: forCode, Dir: workDir(c), Languages: c.Languages, Most: ceilingsHere(c), KillGrace: c.Duration("kill_grace"),
		IdleLimit: c.Duration("idle_limit"),
	}
	code, err := task.NewCode(o)
	if err != nil {
		return nil, nil, err
	}
	handlers, err := callers(c)
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

// openEgress returns the connector for tasks' connections.
func openEgress(c *config.Config) (*outgoing.Egress, error) {
	allow := c.List("allow_hosts")
	private := slices.Contains(allow, "*")
	if private {
		allow = nil
	}
	egress, err := outgoing.NewEgress(outgoing.EgressOptions{AllowPrivate: private, Allow: allow})
	if err != nil {
		return nil, fmt.Errorf("allow_hosts: %w", err)
	}
	return egress, nil
}

// callers are the handlers that do not need a runtime.
func callers(c *config.Config) (task.Handlers, error) {
	egress, err := openEgress(c)
	if err != nil {
		return nil, err
	}
	llm, err := outgoing.NewLLM(outgoing.LLMOptions{Egress: egress, Keys: c.List("llm_keys")})
	if err != nil {
		return nil, fmt.Errorf("llm_keys: %w", err)
	}
	webhook, err := outgoing.NewWebhook(outgoing.WebhookOptions{Egress: egress, Secrets: c.List("webhook_secrets")})
	if err != nil {
		return nil, fmt.Errorf("webhook_secrets: %w", err)
	}
	return task.Handlers{
		flow.KindHTTP: outgoing.HTTP{Egress: egress}, flow.KindLLM: llm, flow.KindWebhook: webhook,
		flow.KindInput: task.Pass{}, flow.KindOutput: task.Pass{}, flow.KindNoop: task.Pass{},
	}, nil
}

// workDir is the directory in which this process's workers prepare libraries and files.
func workDir(c *config.Config) string { return filepath.Join(c.Text("state_dir"), "work") }
