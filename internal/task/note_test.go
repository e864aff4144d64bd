package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/task"
)

// waits is a runtime that reports what its runs wait for, and then loses them.
type waits struct {
	scripted
	says []string
}

func (*waits) Imaged() {}

func (w *waits) Start(_ context.Context, spec runtime.Spec) (runtime.Run, error) {
	for _, text := range w.says {
		spec.Note(text)
	}
	return over{Verdict: runtime.InfraError, Reason: "the node is gone", Cause: runtime.NodeLost}, nil
}

// takes is a runtime whose host ends runs before their programs start.
type takes struct {
	waits
	cause runtime.Cause
}

func (r *takes) Start(context.Context, runtime.Spec) (runtime.Run, error) {
	return nil, &runtime.TakenError{Cause: r.cause, Err: fmt.Errorf("%w: the node is drained", runtime.ErrUnavailable)}
}

// The reasons for which a container waits are in the history whenever they change, up to a limit; the cause of its loss is in its error.
func TestNotes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says []string
		want string
	}{
		"nothing": {nil, ""},
		"changes": {[]string{"a node", "a node", "an image", ""}, `{"waiting":"a node"} {"waiting":"an image"} {"waiting":""}`},
	} {
		d := newDesk()
		h, err := task.NewContainer(task.CodeOptions{Runtimes: []runtime.Runtime{&waits{says: c.says}}, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.Run(t.Context(), &task.Task{Execution: flow.ID{1}, Attempt: 1, Kind: flow.KindContainer, Payload: json.RawMessage(`{"image":"i"}`), Host: d})
		var said []string
		for _, p := range d.progress {
			said = append(said, string(p))
		}
		if got := strings.Join(said, " "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		var e *task.Error
		if !errors.As(err, &e) || e.Code != "infra_error" || string(e.Details) != `{"reason":"node_lost"}` {
			t.Fatalf("%s: %v", name, err)
		}
		var result api.CodeResult
		if json.Unmarshal(e.Output, &result) != nil || result.Cause != "node_lost" {
			t.Errorf("%s: %s", name, e.Output)
		}
	}
	for _, c := range []runtime.Cause{runtime.NodeLost, runtime.NodeShutdown, runtime.Preempted, runtime.Evicted, runtime.Deleted} {
		h, err := task.NewContainer(task.CodeOptions{Runtimes: []runtime.Runtime{&takes{cause: c}}, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.Run(t.Context(), &task.Task{Execution: flow.ID{1}, Attempt: 1, Kind: flow.KindContainer, Payload: json.RawMessage(`{"image":"i"}`), Host: newDesk()})
		var e *task.Error
		var result api.CodeResult
		if !errors.As(err, &e) || flow.HostTook(e.Code, e.Details) != string(c) || json.Unmarshal(e.Output, &result) != nil || result.Cause != string(c) {
			t.Errorf("taken away before its program began: %v %s, want %s", err, e.Details, c)
		}
	}
	many := &waits{}
	for i := range 100 {
		many.says = append(many.says, fmt.Sprint(i))
	}
	many.says = append(many.says, "")
	d := newDesk()
	h, err := task.NewContainer(task.CodeOptions{Runtimes: []runtime.Runtime{many}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = h.Run(t.Context(), &task.Task{Execution: flow.ID{1}, Attempt: 1, Kind: flow.KindContainer, Payload: json.RawMessage(`{"image":"i"}`), Host: d})
	if n := len(d.progress); n != 11 || string(d.progress[n-1]) != `{"waiting":""}` {
		t.Errorf("%d notes, the last %s", n, d.progress[n-1])
	}
}
