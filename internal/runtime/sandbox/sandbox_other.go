//go:build !linux

package sandbox

import (
	"context"
	"fmt"
	goruntime "runtime"

	"github.com/pawl-run/pawl/internal/runtime"
)

// absent is the sandbox on systems without one.
type absent struct{}

// New returns a runtime that refuses every run: the sandbox is made of Linux namespaces.
func New(Options) (runtime.Runtime, error) { return absent{}, nil }

const (
	missing = "the sandbox is Linux-only and this is " + goruntime.GOOS
	remedy  = "run Pawl on Linux (a virtual machine will do), or use --runtime process for code that you trust"
)

func (absent) Name() string                 { return Name }
func (absent) Isolation() runtime.Isolation { return runtime.Contained }
func (absent) Close() error                 { return nil }

func (absent) Diagnose(context.Context) []runtime.Finding {
	return []runtime.Finding{{What: "operating system", Say: missing, Fix: remedy}}
}

func (absent) Start(context.Context, runtime.Spec) (runtime.Run, error) {
	return nil, fmt.Errorf("%w: %s; %s", runtime.ErrUnavailable, missing, remedy)
}
