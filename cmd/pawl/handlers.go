package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/process"
	"github.com/pawl-run/pawl/internal/runtime/sandbox"
	"github.com/pawl-run/pawl/internal/task"
)

// openRuntime starts the runtime of the given name.
func openRuntime(name string) (runtime.Runtime, error) {
	if name == process.Name {
		return process.New(process.Options{})
	}
	return sandbox.New(sandbox.Options{})
}

// handlers are what the workers of this process run. The runtime is the caller's to close.
func (a *app) handlers(blobs blob.Store, _ *slog.Logger) (task.Handlers, runtime.Runtime, error) {
	rt, err := openRuntime(a.config.text("runtime"))
	if err != nil {
		return nil, nil, err
	}
	code, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Blobs: blobs, Dir: filepath.Join(a.config.text("state_dir"), "work")})
	if err != nil {
		_ = rt.Close()
		return nil, nil, err
	}
	return task.Handlers{
		flow.KindCode: code, flow.KindInput: task.Pass{}, flow.KindOutput: task.Pass{}, flow.KindNoop: task.Pass{},
	}, rt, nil
}

// validate checks what a built-in kind's handler would get, before anything is stored.
func validate(kind flow.Kind, payload []byte) error {
	if kind == flow.KindCode {
		_, err := api.DecodeCode(payload)
		return err
	}
	return nil
}

// remoteWorkers serves workers in other processes.
func remoteWorkers(*room) http.Handler { return nil }

var _ = fmt.Sprint
