package define

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// diffOutcomes shows the differences between two executions: their definitions, inputs and ends, and with logs their output.
func diffOutcomes(ctx context.Context, a *app.App, s *app.Session, ids []string, logs bool) error {
	var sides [2]executionSide
	for i, id := range ids {
		if err := sides[i].load(ctx, s, id, logs); err != nil {
			return err
		}
	}
	x, y := &sides[0], &sides[1]
	changes := udiff.Unified(ids[0], ids[1], x.text, y.text)
	if changes == "" {
		a.Say("pawl: %s and %s are the same, but for their times", ids[0], ids[1])
	} else if _, err := fmt.Fprint(a.Out, output.CleanLines(changes)); err != nil {
		return err
	}
	for _, t := range x.tasks {
		i := slices.IndexFunc(y.tasks, func(u api.Task) bool { return u.Name == t.Name })
		if i >= 0 && y.tasks[i].Status != t.Status {
			a.Say("pawl: they part at the task %s: %s and %s", t.Name, t.Status, y.tasks[i].Status)
			break
		}
	}
	if x.measured != "" && y.measured != "" {
		a.Say("pawl: the first %s; the second %s", x.measured, y.measured)
	}
	return nil
}

type executionSide struct {
	text     string // in YAML, without the members that always differ
	tasks    []api.Task
	measured string // how long it ran; "" if it did not
}

// unlike are the members that differ between any two executions: ids, times, links and measurements. They are left out of the comparison.
var unlike = []string{"id", "existing", "created_at", "not_before", "queued_at", "claimed_at", "started_at", "finished_at", "wake_at", "worker", "traceparent", "cancel_order", "reused_of", "rerun_of", "retry_of",
	"workflow", "wall_ms", "cpu_ms", "peak_memory_bytes", "signal"}

// measurements are the measured members of the output of code, and of each of its cases.
var measurements = []string{"wall_ms", "cpu_ms", "starved_ms", "runs", "pinned_cpus", "shared_cpus", "peak_memory_bytes", "held_memory_bytes", "page_cache_bytes"}

func (e *executionSide) load(ctx context.Context, s *app.Session, id string, logs bool) error {
	x, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	if !x.StartedAt.IsZero() && !x.FinishedAt.IsZero() {
		e.measured = "ran for " + x.FinishedAt.Sub(x.StartedAt).Round(time.Millisecond).String()
		if x.PeakMemoryBytes > 0 {
			e.measured += fmt.Sprintf(", %.0f ms of processor, %s of memory", x.CPUMS, output.Bytes(x.PeakMemoryBytes))
		}
	}
	doc, err := document(x)
	if err != nil {
		return err
	}
	without(doc, unlike)
	if out, ok := doc["output"].(map[string]any); ok && (x.Kind == "code" || x.Kind == "container") {
		without(out, measurements)
		cases, _ := out["cases"].([]any)
		for _, c := range cases {
			if c, ok := c.(map[string]any); ok {
				without(c, measurements)
			}
		}
	}
	if x.Kind == "workflow" {
		if logs {
			return exit.Usagef("%s is a workflow, which writes no logs: compare two of its tasks (pawl describe %s names them)", id, id)
		}
		all, err := s.Tasks(ctx, id, 1)
		if err != nil {
			return err
		}
		e.tasks = all.Tasks
		ends := map[string]any{}
		for _, t := range all.Tasks {
			ends[t.Name] = string(t.Status)
			if t.Many() {
				ends[t.Name] = t.Counts
			}
		}
		doc["tasks"] = ends
	}
	if logs {
		if doc["logs"], err = wrote(ctx, s, id); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	err = output.WriteYAML(&b, raw)
	e.text = b.String()
	return err
}

// document is an execution's members; numbers keep their digits.
func document(x *api.Execution) (doc map[string]any, err error) {
	raw, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return doc, d.Decode(&doc)
}

func without(members map[string]any, names []string) {
	for _, name := range names {
		delete(members, name)
	}
}

// mostLogged bounds the bytes of a stream that are compared.
const mostLogged = 1 << 20

// wrote is the output of the last attempt, by stream.
func wrote(ctx context.Context, s *app.Session, id string) (map[string]string, error) {
	streams := map[string]string{}
	for _, stream := range []string{"stdout", "stderr", "log"} {
		var text strings.Builder
		for q := (client.LogQuery{Stream: stream}); ; {
			p, err := s.Logs(ctx, id, q)
			if err != nil {
				return nil, err
			}
			for i := range p.Chunks {
				text.Write(p.Chunks[i].Bytes())
			}
			if q.After = p.NextCursor; !p.More || text.Len() > mostLogged {
				break
			}
		}
		if text.Len() > mostLogged {
			return nil, exit.Usagef("%s wrote more than %s to %s: read it with pawl logs %s --stream %s", id, output.Bytes(mostLogged), stream, id, stream)
		}
		if text.Len() > 0 {
			streams[stream] = strings.ToValidUTF8(text.String(), "�")
		}
	}
	return streams, nil
}
