package archives_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"crypto/sha256"
	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/archives"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/enginetest"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// rig exports and imports.
type rig struct{ *enginetest.Rig }

func onSQLite(t testing.TB) *rig { return &rig{enginetest.OnSQLite(t)} }

// betweenStores runs a test with a server that exports and one that imports, on each pair of stores.
func betweenStores(t *testing.T, test func(from, to *rig)) {
	for a, from := range enginetest.Stores {
		for b, to := range enginetest.Stores {
			t.Run(a+" to "+b, func(t *testing.T) { test(&rig{from(t)}, &rig{to(t)}) })
		}
	}
}

func (r *rig) export(ids ...flow.ID) []byte {
	r.Helper()
	var b bytes.Buffer
	err := r.Engine.Archives().CheckExport(r.Ctx, ids)
	if err == nil {
		err = r.Engine.Archives().Export(r.Ctx, &b, archive.Manifest{From: "there"}, archives.Exporting{IDs: ids})
	}
	if err != nil {
		r.Fatal(err)
	}
	return b.Bytes()
}

func (r *rig) importing(b []byte) *archives.Imported {
	r.Helper()
	out, err := r.Engine.Archives().Import(r.Ctx, bytes.NewReader(b))
	if err != nil {
		r.Fatal(err)
	}
	return out
}

// rewritten is an archive whose rows were changed, with right checksums; a row that becomes nil is left out.
func rewritten(t testing.TB, whole []byte, change func(*archive.Row) *archive.Row) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, archive.Manifest{From: "there"})
	if err != nil {
		t.Fatal(err)
	}
	err = archive.Read(bytes.NewReader(whole), archive.Contents{
		Definition: w.Definition,
		Blob: func(name string, size int64, content io.Reader) error {
			_, err := w.Blob(name, size, content)
			return err
		},
		Row: func(r *archive.Row, _ []byte) error {
			if r = change(r); r == nil {
				return nil
			}
			return w.Row(r)
		},
	})
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const archivedWorkflow = `
name: inner
kind: workflow
tasks:
  leaf: {action: work, with: {leaf: true}}
---
name: outer
tasks:
  build: {action: work, with: {n: 1}, retry: {max_attempts: 2, delay: 1ms}}
  each: {needs: [build], foreach: "${{ [1, 2, 3] }}", action: work, with: {item: "${{ item }}"}}
  sub: {needs: [build], action: inner}
  skipped: {needs: [build], if: "false", action: noop}
  last: {needs: [each, sub], action: work, with: {last: "${{ tasks.each.output[2] }}"}}
`

// archived runs a workflow with everything that an archive can have, and returns its execution and one of code.
func (r *rig) archived() (workflow, code flow.ID) {
	r.Helper()
	r.Define("name: work\naction: noop")
	r.Define(archivedWorkflow)
	const text = "the content of an upload"
	sum := sha256.Sum256([]byte(text))
	if _, _, err := r.Engine.Uploads().Put(r.Ctx, sum, strings.NewReader(text)); err != nil {
		r.Fatal(err)
	}
	code = r.Submit(engine.Submission{Action: "code", Labels: map[string]string{"k": "v"}, IdempotencyKey: "once",
		Input: fmt.Appendf(nil, `{"language":"python", "source":"1", "interactive":true, "stdin":{"blob":%q}}`, blob.SumText(sum))})
	if _, err := r.Engine.Feed(r.Ctx, code, 0, []byte("typed"), true); err != nil {
		r.Fatal(err)
	}
	h := r.Worker()
	a := h.Take(1)[0]
	name := fmt.Sprintf("files/%s/1/0", code)
	for blob, content := range map[string]string{name: "left by the program", fmt.Sprintf("logs/%s/1/2", code): "a large log"} {
		if _, err := r.Blobs.Put(r.Ctx, blob, strings.NewReader(content)); err != nil {
			r.Fatal(err)
		}
	}
	if err := r.Store.AppendLogs(r.Ctx, []flow.LogChunk{
		{Execution: code, Attempt: 1, Seq: 1, Stream: "stdout", At: time.Now().UTC().Truncate(time.Microsecond), Data: []byte{0xff, 0}, Size: 2},
		{Execution: code, Attempt: 1, Seq: 2, Stream: "stdout", Offset: 2, At: time.Now().UTC().Truncate(time.Microsecond), Blob: fmt.Sprintf("logs/%s/1/2", code), Size: 11},
	}); err != nil {
		r.Fatal(err)
	}
	h.Complete(a, fmt.Sprintf(`{"exit_code": 0, "files":[{"path":"out","size":19,"blob":%q}]}`, name))
	r.Ended(code)
	failed := false
	h.Serve(func(a handoff.Assignment) (string, *flow.Error) {
		if string(a.Payload) == `{"n":1}` && !failed {
			failed = true
			return "", &flow.Error{Code: "boom", Message: "boom"}
		}
		return string(a.Payload), nil
	})
	workflow = r.Submit(engine.Submission{Action: "outer", Labels: map[string]string{"k": "v"}})
	if x := r.Ended(workflow); x.Stage != flow.Completed {
		r.Fatalf("the workflow: %+v", x)
	}
	return workflow, code
}

// everything is what a reader can see of a tree.
func (r *rig) everything(id flow.ID) map[string]string {
	r.Helper()
	all := map[string]string{}
	x := r.Get(id)
	x.Imported = nil
	text, err := json.Marshal(x)
	if err != nil {
		r.Fatal(err)
	}
	events, err := r.Store.Events(r.Ctx, id, 0, 1000)
	if err != nil {
		r.Fatal(err)
	}
	chunks, err := r.Store.ReadLogs(r.Ctx, store.LogQuery{Execution: id, Limit: 1 << 20})
	if err != nil {
		r.Fatal(err)
	}
	input, last, err := r.Store.ReadInput(r.Ctx, id, 0, 1<<20)
	if err != nil {
		r.Fatal(err)
	}
	marks, err := r.Store.Marks(r.Ctx, store.WorkflowAttempt{ID: id, Attempt: 1})
	if err != nil {
		r.Fatal(err)
	}
	slices.SortFunc(marks, func(a, b store.Mark) int { return strings.Compare(a.Task, b.Task) })
	all[id.String()] = fmt.Sprintf("%s %+v %+v %q %t %+v", text, events, chunks, input, last, marks)
	if x.Kind == flow.KindWorkflow {
		for _, kid := range r.Children(id) {
			maps.Copy(all, r.everything(kid.ID))
		}
	}
	return all
}

func (r *rig) content(name string) string {
	r.Helper()
	from, err := r.Blobs.Get(r.Ctx, name, 0)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = from.Close() }()
	b, err := io.ReadAll(from)
	if err != nil {
		r.Fatal(err)
	}
	return string(b)
}

// What was exported is seen elsewhere as it was, with its logs, blobs and definitions; it is replayed, and runs again from there as a new
// execution. Importing it again changes nothing. (The rigs look at the invariants and replay every history when the test ends.)
func TestArchive(t *testing.T) {
	betweenStores(t, func(from, to *rig) {
		workflow, code := from.archived()
		whole := from.export(workflow, code)
		out := to.importing(whole)
		if out.Trees != 2 || out.Executions != 9 || out.Already+out.Refused+out.LeftOut != 0 || out.From != "there" {
			to.Fatalf("imported %+v", out)
		}
		for _, id := range []flow.ID{workflow, code} {
			was, is := from.everything(id), to.everything(id)
			if !maps.Equal(was, is) {
				to.Errorf("imported\n%v\nexported\n%v", is, was)
			}
			x := to.Get(id)
			if x.Imported == nil || x.Imported.From != "there" || x.Imported.At.IsZero() {
				to.Errorf("it is marked as imported by %+v", x.Imported)
			}
			if _, err := to.Engine.Cancel(to.Ctx, id, "no"); !errors.Is(err, flow.ErrFinished) {
				to.Errorf("cancelled: %v", err)
			}
		}
		for name, want := range map[string]string{"files/%s/1/0": "left by the program", "logs/%s/1/2": "a large log"} {
			if got := to.content(fmt.Sprintf(name, code)); got != want {
				to.Errorf("%s has %q, want %q", name, got, want)
			}
		}
		if _, err := to.Engine.Uploads().Find(to.Ctx, uploads.SumsIn(to.Get(code).Input)[0]); err != nil {
			to.Errorf("the upload that its input names: %v", err)
		}
		for range 2 {
			if out := to.importing(whole); out.Already != 2 || out.Trees+out.Refused != 0 {
				to.Errorf("imported again: %+v", out)
			}
		}
		if out := from.importing(whole); out.Already != 2 || out.Trees+out.Refused != 0 || from.Get(code).Imported != nil {
			to.Errorf("imported where it is from: %+v", out)
		}
		if second := to.importing(to.export(workflow, code)); second.Already != 2 {
			to.Errorf("exported from where it was imported: %+v", second)
		}
		// Nothing of it is work.
		h := to.Worker()
		other := to.Submit(engine.Submission{Action: "noop", IdempotencyKey: "once"})
		if other == code {
			to.Error("its idempotency key is in use")
		}
		work := h.Take(100)
		if len(work) != 1 || work[0].Execution != other {
			to.Fatalf("the worker is given %+v, want %s alone", work, other)
		}
		h.Complete(work[0], "null")

		// It runs again once its definition is here, under whichever version.
		if defs, err := to.Store.Definitions(to.Ctx, "", 10); err != nil || len(defs) != 3 || slices.ContainsFunc(defs, func(d store.Definition) bool { return d.Kind != catalog.ImportedKind }) {
			to.Errorf("definitions beside those that are here: %+v, %v", defs, err)
		}
		var refused *fault.Invalid
		if _, _, err := to.Engine.Rerun(to.Ctx, workflow, engine.RerunOptions{}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "pawl apply") {
			to.Errorf("a rerun without the definition: %v", err)
		}
		if _, err := to.Engine.Retry(to.Ctx, workflow, ""); !errors.As(err, &refused) {
			to.Errorf("a retry without the definition: %v", err)
		}
		to.Define("name: work\naction: noop")
		to.Define("name: inner\nkind: workflow\ntasks:\n  other: {action: noop}")
		to.Define("name: outer\ntasks:\n  other: {action: noop}")
		if d, err := to.Engine.Finder().Catalog.Of(to.Ctx, to.Get(workflow)); err != nil || len(d.Workflow.Tasks) != 5 {
			to.Errorf("the definition that it ran on: %+v, %v", d, err)
		}
		if _, _, err := to.Engine.Rerun(to.Ctx, workflow, engine.RerunOptions{}); !errors.As(err, &refused) {
			to.Errorf("a rerun on another definition of the same name and version: %v", err)
		}
		to.Define(archivedWorkflow)
		again, plan, err := to.Engine.Rerun(to.Ctx, workflow, engine.RerunOptions{})
		if err != nil {
			to.Fatal(err)
		}
		if plan.Version != 2 || len(plan.Workflow.Reuses) != 4 {
			to.Errorf("the plan: version %d, %d reused", plan.Version, len(plan.Workflow.Reuses))
		}
		h.Serve(enginetest.Echo)
		if x := to.Ended(again.Execution); x.Stage != flow.Completed || x.Imported != nil || x.RerunOf != workflow {
			to.Errorf("the rerun: %+v", x)
		}
	})
}

// What has not ended, is a task of a workflow, or is not there is not exported, and the error says what to do.
func TestExportRefuses(t *testing.T) {
	r := onSQLite(t)
	r.Define("name: outer\ntasks:\n  a: {action: noop}")
	open := r.Submit(engine.Submission{Action: "outer", Labels: map[string]string{"k": "v"}})
	ended := r.Submit(engine.Submission{Action: "sleep", Input: json.RawMessage(`{"for": "1ms"}`), Labels: map[string]string{"k": "v"}})
	r.Ended(ended)
	for id, say := range map[flow.ID]string{open: "pawl events", r.Children(open)["a[0]"].ID: "export " + open.String(), {1}: "not found"} {
		if err := r.Engine.Archives().CheckExport(r.Ctx, []flow.ID{id}); err == nil || !strings.Contains(err.Error(), say) {
			r.Errorf("export %s: %v, want %q", id, err, say)
		}
	}
	var b bytes.Buffer
	if err := r.Engine.Archives().Export(r.Ctx, &b, archive.Manifest{}, archives.Exporting{Filter: store.Filter{Labels: map[string]string{"k": "v"}}}); err != nil {
		r.Fatal(err)
	}
	if out := r.importing(b.Bytes()); out.Already != 1 || out.LeftOut != 1 {
		r.Errorf("by a filter: %+v", out)
	}
	h := r.Worker()
	h.Complete(h.Take(1)[0], "1")
	r.Ended(open)
}

// Under an id that is taken by something else, nothing of a tree is stored; other trees are.
func TestImportRefusesAnotherContent(t *testing.T) {
	betweenStores(t, func(from, to *rig) {
		workflow, code := from.archived()
		whole := from.export(workflow, code)
		forged := rewritten(t, whole, func(r *archive.Row) *archive.Row {
			if r.Execution != nil && r.Execution.ID == workflow {
				r.Execution.Labels = map[string]string{"k": "another"}
			}
			return r
		})
		if out := to.importing(forged); out.Trees != 2 {
			to.Fatalf("imported %+v", out)
		}
		out := to.importing(whole)
		if out.Already != 1 || out.Refused != 1 || out.Refusals[0].Execution != workflow || !strings.Contains(out.Refusals[0].Why, "another execution") {
			to.Errorf("imported %+v", out)
		}
		// A task whose id is taken: the whole tree is refused, with its logs.
		kid := from.Children(workflow)["build[0]"].ID
		lone := rewritten(t, from.export(workflow), func(r *archive.Row) *archive.Row {
			switch {
			case !r.Tree.IsZero():
				r.Tree = flow.ID{1}
			case r.Execution != nil && r.Execution.ID == workflow:
				r.Execution.ID = flow.ID{1}
			case r.Execution != nil && r.Execution.Parent == workflow:
				r.Execution.Parent = flow.ID{1}
			}
			return r
		})
		if out := to.importing(lone); out.Refused != 1 || !strings.Contains(out.Refusals[0].Why, "exists already") {
			to.Errorf("with a task that is here, in another workflow: %+v", out)
		}
		if _, err := to.Store.Get(to.Ctx, flow.ID{1}); !errors.Is(err, store.ErrNotFound) {
			to.Errorf("a part of a refused tree was stored: %v", err)
		}
		if x := to.Get(kid); x.Parent != workflow {
			to.Errorf("the task that was here: %+v", x)
		}
	})
}

// Archives that somebody has written, with right checksums and wrong contents, are refused before anything is stored.
func TestForgedArchives(t *testing.T) {
	from, to := onSQLite(t), onSQLite(t)
	workflow, code := from.archived()
	whole := from.export(workflow, code)
	kid := from.Children(workflow)["each[1]"].ID
	of := func(id flow.ID, change func(*archive.Execution)) func(*archive.Row) *archive.Row {
		return func(r *archive.Row) *archive.Row {
			if r.Execution != nil && r.Execution.ID == id {
				change(r.Execution)
			}
			return r
		}
	}
	// without leaves out what stands behind an execution.
	without := func(id flow.ID, is func(*archive.Row) bool) func(*archive.Row) *archive.Row {
		var at flow.ID
		return func(r *archive.Row) *archive.Row {
			if r.Execution != nil {
				at = r.Execution.ID
			}
			if at == id && is(r) {
				return nil
			}
			return r
		}
	}
	for name, c := range map[string]struct {
		say    string
		change func(*archive.Row) *archive.Row
	}{
		"it runs":            {"only what has ended", of(code, func(e *archive.Execution) { e.Status = flow.Running })},
		"it ended otherwise": {"its history leads to completed", of(code, func(e *archive.Execution) { e.Status = flow.Failed })},
		"another attempt":    {"its history leads to", of(code, func(e *archive.Execution) { e.Attempt = 2 })},
		"no history":         {"it has 0 events", without(code, func(r *archive.Row) bool { return len(r.Events) > 0 })},
		"an event less": {"stands in place", func(r *archive.Row) *archive.Row {
			if len(r.Events) > 2 {
				r.Events = slices.Delete(r.Events, 1, 2)
			}
			return r
		}},
		"events out of order":     {"stands in place", func(r *archive.Row) *archive.Row { slices.Reverse(r.Events); return r }},
		"an item is missing":      {"does not follow", without(kid, func(*archive.Row) bool { return true })},
		"an item of another task": {"does not follow", of(kid, func(e *archive.Execution) { e.Task = "alone" })},
		"of a later attempt":      {"of attempt 7", of(kid, func(e *archive.Execution) { e.ParentAttempt = 7 })},
		"of another workflow":     {"not above it", of(kid, func(e *archive.Execution) { e.Parent = flow.ID{5} })},
		"a task at the top":       {"not above it", of(code, func(e *archive.Execution) { e.Parent, e.Task = flow.ID{5}, "t" })},
		"a NUL byte":              {"NUL", of(code, func(e *archive.Execution) { e.Queue = "a\x00b" })},
		"a NUL byte in a label":   {"label", of(code, func(e *archive.Execution) { e.Labels = map[string]string{"a": "\x00"} })},
		"a large number":          {"a number of it", of(code, func(e *archive.Execution) { e.KeyLimit = 1 << 40 })},
		"a negative number":       {"a number of it", of(code, func(e *archive.Execution) { e.HandedBack = -1 })},
		"a key without holders":   {"concurrency.limit", of(code, func(e *archive.Execution) { e.Key = "k" })},
		"a key of many holders":   {"concurrency.limit", of(code, func(e *archive.Execution) { e.Key, e.KeyLimit = "k", 100_001 })},
		"what a full key does":    {"concurrency.when_full", of(code, func(e *archive.Execution) { e.Key, e.KeyLimit, e.WhenFull = "k", 1, "wait" })},
		"many turns":              {"concurrency.weight", of(code, func(e *archive.Execution) { e.Key, e.KeyLimit, e.FairBy, e.FairWeight = "k", 1, "who", 1<<20 })},
		"a rate of nothing":       {"rate.limit", of(code, func(e *archive.Execution) { e.Rate = &archive.Rate{Key: "k", Per: time.Second} })},
		"a rate of centuries":     {"rate.per", of(code, func(e *archive.Execution) { e.Rate = &archive.Rate{Key: "k", Limit: 1, Per: 9e18} })},
		"a burst without bound": {"rate.burst", of(code, func(e *archive.Execution) {
			e.Rate = &archive.Rate{Key: "k", Limit: 1, Per: time.Second, Burst: 1 << 30}
		})},
		"a high priority":       {"priority", of(code, func(e *archive.Execution) { e.Priority = 1001 })},
		"a negative timeout":    {"timeout", of(code, func(e *archive.Execution) { e.Timeout = -1 })},
		"a long time in queues": {"queue_timeout", of(code, func(e *archive.Execution) { e.QueueTimeout = 9e18 })},
		"many attempts":         {"retry.max_attempts", of(code, func(e *archive.Execution) { e.Retry.MaxAttempts = 101 })},
		"a long delay":          {"retry.delay", of(code, func(e *archive.Execution) { e.Retry.Delay = 9e18 })},
		"it ended before":       {"ended at", of(code, func(e *archive.Execution) { e.FinishedAt = e.CreatedAt.Add(-1e9) })},
		"no hash":               {"a SHA-256 in hexadecimal", of(code, func(e *archive.Execution) { e.Cache = &archive.Cache{Hash: "00", TTL: 1} })},
		"no JSON":               {"no JSON", of(code, func(e *archive.Execution) { e.Input = archive.Value("{") })},
		"an unknown definition": {"has no definition", of(workflow, func(e *archive.Execution) { e.Definition = strings.Repeat("0", 64) })},
		"an action's definition": {"it is a workflow, and its definition work@1 is none", func(r *archive.Row) *archive.Row {
			switch {
			case r.Execution == nil:
			case r.Execution.ID == workflow: // its tasks have the definition that it is given
				return r
			case r.Execution.Kind == flow.KindNoop && r.Execution.Action == "work":
				r.Execution.Kind = flow.KindWorkflow
			}
			return r
		}},
		"a log of another": {"stands behind it", func(r *archive.Row) *archive.Row {
			if r.Log != nil {
				r.Log.Execution = kid
			}
			return r
		}},
		"a log of a later one": {"of attempt 9", func(r *archive.Row) *archive.Row {
			if r.Log != nil {
				r.Log.Attempt = 9
			}
			return r
		}},
		"a log elsewhere": {"not where its row says", func(r *archive.Row) *archive.Row {
			if r.Log != nil && r.Log.Blob != "" {
				r.Log.Blob = "files/" + kid.String() + "/1/0"
			}
			return r
		}},
		"a gap in its input": {"do not follow one another", func(r *archive.Row) *archive.Row {
			if r.Input != nil {
				r.Input.Offset = 3
			}
			return r
		}},
		"a mark of what is none": {"no workflow", func(r *archive.Row) *archive.Row {
			if r.Input != nil {
				return &archive.Row{Mark: &archive.Mark{Attempt: 1, Task: "t"}}
			}
			return r
		}},
	} {
		_, err := to.Engine.Archives().Import(to.Ctx, bytes.NewReader(rewritten(t, whole, c.change)))
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, want %q", name, err, c.say)
		}
	}
	var other bytes.Buffer
	w, err := archive.NewWriter(&other, archive.Manifest{})
	if err == nil {
		err = errors.Join(w.Definition(archive.DefinitionName("outer", 1, strings.Repeat("0", 64)), []byte(`{}`)), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.Engine.Archives().Import(to.Ctx, &other); err == nil {
		t.Error("a definition with another content than its name says was taken")
	}
	if _, err := to.Engine.Archives().Import(to.Ctx, bytes.NewReader(whole[:len(whole)/2])); !errors.Is(err, archive.ErrBroken) {
		t.Errorf("half an archive: %v", err)
	}
	page, err := store.List(to.Ctx, to.Store, store.Filter{Limit: 10})
	if err != nil || len(page) != 0 {
		t.Errorf("%d executions were stored, %v", len(page), err)
	}
	if defs, err := to.Store.Definitions(to.Ctx, "", 10); err != nil || len(defs) != 0 {
		t.Errorf("definitions were stored: %v, %v", defs, err)
	}
}

// A wide workflow is written in parts of one transaction.
func TestImportOfAWideWorkflow(t *testing.T) {
	from := onSQLite(t)
	from.Define("name: work\naction: noop")
	from.Define(fmt.Sprintf("name: wide\ntasks:\n  each: {foreach: \"${{ lists.range(%d) }}\", action: work, with: {n: \"${{ item }}\"}}", 2*archives.WrittenAtOnce+50))
	from.Worker().Serve(enginetest.Echo)
	id := from.Submit(engine.Submission{Action: "wide"})
	from.Ended(id)
	whole := from.export(id)
	enginetest.OnEachStore(t, func(plain *enginetest.Rig) {
		r := &rig{plain}
		if out := r.importing(whole); out.Executions != 2*archives.WrittenAtOnce+51 || out.Trees != 1 {
			t.Errorf("imported %+v", out)
		}
		if out := r.importing(whole); out.Already != 1 {
			t.Errorf("imported again %+v", out)
		}
	})
}

// A database that cannot be reached ends an import with that error; it is done again, and what was stored before is there already.
func TestImportInterrupted(t *testing.T) {
	from, to := onSQLite(t), onSQLite(t)
	var ids []flow.ID
	for range 3 {
		ids = append(ids, from.Submit(engine.Submission{Action: "noop"}))
	}
	h := from.Worker()
	for _, a := range h.Take(3) {
		h.Complete(a, "1")
	}
	whole := from.export(ids...)
	ctx, stop := context.WithCancel(to.Ctx)
	stop()
	if _, err := to.Engine.Archives().Import(ctx, bytes.NewReader(whole)); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if out := to.importing(whole); out.Trees != 3 {
		t.Errorf("again: %+v", out)
	}
}

const cached = `
name: w
input: {type: object, properties: {items: {type: array}, tag: {type: string}}}
tasks:
  each: {foreach: "${{ input.items }}", action: noop, cache: {ttl: 1h}, with: {n: "${{ item }}"}}
  sum: {needs: [each], action: noop, cache: {key: "${{ input.tag }}", ttl: 1h}, with: {all: "${{ tasks.each.output }}"}}
outputs: {all: "${{ tasks.sum.output.all }}"}
`

// What ended out of the cache is seen elsewhere as that, and an import keeps nothing for the tasks there.
func TestArchiveOfCached(t *testing.T) {
	betweenStores(t, func(from, to *rig) {
		from.Define(cached)
		from.Worker().Serve(enginetest.Echo)
		var ids []flow.ID
		for range 2 {
			id := from.Submit(engine.Submission{Action: "w", Input: json.RawMessage(`{"items":[1],"tag":"a"}`)})
			from.Ended(id)
			ids = append(ids, id)
		}
		if out := to.importing(from.export(ids[1])); out.Trees != 1 || out.Executions != 3 {
			to.Fatalf("imported %+v", out)
		}
		if was, is := from.everything(ids[1]), to.everything(ids[1]); !maps.Equal(was, is) {
			to.Errorf("imported\n%v\nexported\n%v", is, was)
		}
		if k := to.Children(ids[1])["each[0]"]; !k.Cached() || k.ReusedOf != from.Children(ids[0])["each[0]"].ID {
			to.Errorf("each[0] is cached: %t, with the outcome of %s", k.Cached(), k.ReusedOf)
		}
		to.Define(cached)
		again := to.Submit(engine.Submission{Action: "w", Input: json.RawMessage(`{"items":[1],"tag":"a"}`)})
		h := to.Worker()
		for _, want := range []string{`{"n":1}`, `{"all":[{"n":1}]}`} {
			a := h.Take(100)
			if len(a) != 1 || string(a[0].Payload) != want {
				to.Fatalf("the worker is given %+v, want %s", a, want)
			}
			h.Complete(a[0], want)
		}
		to.Ended(again)
	})
}
