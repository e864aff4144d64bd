package server

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

// The line of a key has its holders and its waiting executions in order; executions with a label keep their places among all.
func TestKeyLine(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	const key = "deploy/eu west?"
	submit := func(user string, priority int) string {
		x, err := h.client.Submit(t.Context(), api.Submission{Action: "sleep", Input: []byte(`{"for": "1h"}`), Priority: &priority, Labels: map[string]string{"user": user}, Concurrency: &api.Concurrency{Key: key, Limit: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return x.ID
	}
	holder := submit("ann", 0)
	first, second := submit("bob", 0), submit("ann", 0)
	urgent := submit("cid", 5)
	line, err := h.client.KeyLine(t.Context(), key, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if line.Key != key || line.Limit != 1 || line.Held != 1 || line.Waiting != 3 || line.Looked != 3 || len(line.Holders) != 1 || line.Holders[0].ID != holder {
		t.Errorf("%+v", line)
	}
	if got, want := places(line.Line), []string{"1 " + urgent, "2 " + first, "3 " + second}; !slices.Equal(got, want) {
		t.Errorf("line %v, want %v", got, want)
	}
	if line, err = h.client.KeyLine(t.Context(), key, map[string]string{"user": "ann"}, 0); err != nil || !slices.Equal(places(line.Line), []string{"3 " + second}) || line.Waiting != 3 {
		t.Errorf("of ann: %+v, %v", line, err)
	}
	if line, err = h.client.KeyLine(t.Context(), key, nil, 1); err != nil || !slices.Equal(places(line.Line), []string{"1 " + urgent}) || line.Waiting != 3 {
		t.Errorf("the head: %+v, %v", line, err)
	}
	if line, err = h.client.KeyLine(t.Context(), "unused", nil, 0); err != nil || line.Held+line.Waiting != 0 || line.Line == nil || line.Holders == nil {
		t.Errorf("of a key that is not used: %+v, %v", line, err)
	}
	h.problem(t, 400, api.ProblemInvalid, "GET", "/api/v1/keys:line", "")
}

func places(line []api.Standing) []string {
	all := []string{}
	for _, s := range line {
		all = append(all, fmt.Sprint(s.Place, " ", s.Execution.ID))
	}
	return all
}

// A queue has a lane for each kind of worker that is required.
func TestQueueLine(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	if _, err := h.client.PauseQueue(t.Context(), "default", api.PauseOrder{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	submit := func(labels map[string]string) string {
		x, err := h.client.Submit(t.Context(), api.Submission{Action: "noop", WorkerLabels: labels})
		if err != nil {
			t.Fatal(err)
		}
		return x.ID
	}
	one, two, gpu := submit(nil), submit(nil), submit(map[string]string{"gpu": "a100"})
	line, err := h.client.QueueLine(t.Context(), "default", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(line.Lanes) != 2 || line.Paused == nil || line.Lanes[0].Ready != 2 || line.Lanes[1].Ready != 1 || line.Lanes[1].WorkerLabels["gpu"] != "a100" {
		t.Fatalf("%+v", line)
	}
	if got, want := places(line.Lanes[0].Line), []string{"1 " + one, "2 " + two}; !slices.Equal(got, want) {
		t.Errorf("line %v, want %v", got, want)
	}
	if got, want := places(line.Lanes[1].Line), []string{"1 " + gpu}; !slices.Equal(got, want) {
		t.Errorf("line %v, want %v", got, want)
	}
	if _, err := h.client.PauseAction(t.Context(), "noop", api.PauseOrder{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.ResumeQueue(t.Context(), "default", api.ResumeOrder{}); err != nil { // an execution that is claimed now is put back
		t.Fatal(err)
	}
	eventually(t, "what waits is in a line of the paused action", func() bool {
		line, err := h.client.QueueLine(t.Context(), "default", nil, 0)
		return err == nil && len(line.Lanes) == 2 && line.Lanes[0].PausedAction == "noop" && line.Lanes[0].Line[0].Execution.ID == one
	})
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/queues/nowhere/line", "")
}

// A worker lists what it holds.
func TestWorkersListWhatTheyHold(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	id := h.code(t, "hang")
	var held []api.Worker
	eventually(t, "a worker holds it", func() bool {
		workers, _, err := h.client.BusyWorkers(t.Context())
		held = slices.DeleteFunc(workers, func(w api.Worker) bool { return w.Holds == 0 })
		return err == nil && len(held) == 1
	})
	if w := held[0]; w.Holds != 1 || len(w.Executions) != 1 || w.Executions[0].ID != id || w.Executions[0].ClaimedAt.IsZero() || time.Since(w.Executions[0].ClaimedAt) > time.Hour {
		t.Errorf("%+v", w)
	}
	if workers, err := h.client.Workers(t.Context()); err != nil || workers[0].Holds != 0 || workers[0].Executions != nil {
		t.Errorf("%+v, %v", workers, err)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		runtime.Gosched()
	}
}
