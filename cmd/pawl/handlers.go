package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/remote"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/process"
	"github.com/pawl-run/pawl/internal/runtime/sandbox"
	"github.com/pawl-run/pawl/internal/task"
)

// openRuntime starts the runtime of the given name. If it is the sandbox, o says how.
func openRuntime(name string, o sandbox.Options) (runtime.Runtime, error) {
	if name == process.Name {
		return process.New(process.Options{})
	}
	return sandbox.New(o)
}

// handlers are what the workers of this process run; it stays if it does more than one piece of work. The runtime is the
// caller's to close.
func (a *app) handlers(blobs blob.Store, stays bool) (_ task.Handlers, _ runtime.Runtime, err error) {
	rt, err := openRuntime(a.config.text("runtime"), sandbox.Options{Warm: a.config.warm(stays), KeepWarm: a.config.keepWarm()})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = rt.Close()
		}
	}()
	code, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Blobs: blobs, Dir: a.workDir(), Languages: a.config.languages})
	if err != nil {
		return nil, nil, err
	}
	allow := a.config.list("allow_hosts")
	all := slices.Contains(allow, "*")
	if all {
		allow = nil
	}
	egress, err := task.NewEgress(task.EgressOptions{AllowPrivate: all, Allow: allow})
	if err != nil {
		return nil, nil, fmt.Errorf("allow_hosts: %w", err)
	}
	llm, err := task.NewLLM(task.LLMOptions{Egress: egress, Keys: a.config.list("llm_keys")})
	if err != nil {
		return nil, nil, fmt.Errorf("llm_keys: %w", err)
	}
	return task.Handlers{
		flow.KindCode: code, flow.KindHTTP: task.HTTP{Egress: egress}, flow.KindLLM: llm,
		flow.KindInput: task.Pass{}, flow.KindOutput: task.Pass{}, flow.KindNoop: task.Pass{},
	}, rt, nil
}

// remoteWorkers serves workers in other processes, also those whose session another server on the database opened.
func (r *room) remoteWorkers(ctx context.Context) (http.Handler, error) {
	key, err := r.engine.WorkerKey(ctx)
	if err != nil {
		return nil, err
	}
	return remote.Handler(r.engine, key), nil
}
