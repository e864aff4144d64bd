package archives_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/file"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/archives"
	"github.com/pawl-run/pawl/internal/engine/enginetest"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

// rig exports and unpacks.
type rig struct{ *enginetest.Rig }

func onSQLite(t testing.TB) *rig { return &rig{enginetest.OnSQLite(t)} }

// betweenStores runs a test with a server that exports and an empty one, on each pair of stores.
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

func (r *rig) unpack(b []byte) *archives.Unpacked {
	r.Helper()
	out, err := r.Engine.Archives().Unpack(r.Ctx, bytes.NewReader(b))
	if err != nil {
		r.Fatal(err)
	}
	return out
}

// rewritten is an archive with changed rows and right checksums; a row that becomes nil is left out.
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

// archived runs a workflow with everything that an archive can have, and returns its execution and a code execution.
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

// everything is all that readers can see of a tree.
func (r *rig) everything(id flow.ID) map[string]string {
	r.Helper()
	all := map[string]string{}
	x := r.Get(id)
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

// An unpacked archive shows the same as its source, with logs, blobs and definitions under their versions, and exports the same archive
// again. (When the test ends, the rigs verify the invariants and replay every history.)
func TestArchive(t *testing.T) {
	betweenStores(t, func(from, to *rig) {
		from.Define("name: outer\ntasks:\n  other: {action: noop}") // so that version 2 is the archive's first one
		workflow, code := from.archived()
		whole := from.export(workflow, code)
		out := to.unpack(whole)
		if out.Trees != 2 || out.Executions != 9 || out.LeftOut != 0 || out.From != "there" {
			to.Fatalf("unpacked %+v", out)
		}
		for _, id := range []flow.ID{workflow, code} {
			was, is := from.everything(id), to.everything(id)
			if !maps.Equal(was, is) {
				to.Errorf("unpacked\n%v\nexported\n%v", is, was)
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
		for name, version := range map[string]int{"outer": 2, "inner": 1, "work": 1} {
			was, err := from.Store.Definition(from.Ctx, name, version)
			is, missing := to.Store.Definition(to.Ctx, name, version)
			if err != nil || missing != nil || was.Kind != is.Kind || was.Hash != is.Hash || !bytes.Equal(was.Document, is.Document) {
				to.Errorf("%s@%d is\n%+v, %v\nwas\n%+v, %v", name, version, is, missing, was, err)
			}
		}
		if _, err := to.Store.Definition(to.Ctx, "outer", 1); !errors.Is(err, store.ErrNotFound) {
			to.Errorf("a version that nothing ran on: %v", err)
		}
		if again := to.export(workflow, code); !bytes.Equal(again, whole) {
			to.Error("exported from there, it is another archive")
		}
	})
}

// An archive is not unpacked into a store with executions or definitions.
func TestUnpackRefusesAStoreInUse(t *testing.T) {
	from := onSQLite(t)
	_, code := from.archived()
	whole := from.export(code)
	enginetest.OnEachStore(t, func(to *enginetest.Rig) {
		refused := func() {
			t.Helper()
			if _, err := to.Engine.Archives().Unpack(to.Ctx, bytes.NewReader(whole)); err == nil || !strings.Contains(err.Error(), "must be empty") {
				t.Errorf("unpacked beside others: %v", err)
			}
			if _, err := to.Store.Get(to.Ctx, code); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("an execution of the archive: %v", err)
			}
		}
		to.Define("name: work\naction: noop")
		refused()
	})
}

// Executions that have not ended, are tasks of a workflow, or do not exist are not exported, and the error says what to do.
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
	if out := onSQLite(t).unpack(b.Bytes()); out.Trees != 1 || out.LeftOut != 1 {
		r.Errorf("by a filter: %+v", out)
	}
	h := r.Worker()
	h.Complete(h.Take(1)[0], "1")
	r.Ended(open)
}

// Forged archives with right checksums and wrong contents are refused with the mistake.
func TestForgedArchives(t *testing.T) {
	from := onSQLite(t)
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
	// without leaves out the rows after an execution.
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
	log := func(change func(*flow.LogChunk)) func(*archive.Row) *archive.Row {
		return func(r *archive.Row) *archive.Row {
			if r.Log != nil && r.Log.Blob == "" {
				change(r.Log)
			}
			return r
		}
	}
	for name, c := range map[string]struct {
		say    string
		change func(*archive.Row) *archive.Row
	}{
		"a queue of spaces":   {"is not a queue", of(code, func(e *archive.Execution) { e.Queue = "no such queue" })},
		"a queue in capitals": {"is not a queue", of(code, func(e *archive.Execution) { e.Queue = "GPU" })},
		"a need of no name":   {"is not a queue", of(code, func(e *archive.Execution) { e.Queue = "gpu@docker,\x1b[31m" })},
		"an empty need":       {"is not a queue", of(code, func(e *archive.Execution) { e.Queue = "gpu@" })},
		"a long queue":        {"is not a queue", of(code, func(e *archive.Execution) { e.Queue = "gpu@" + strings.Repeat("a", 512) })},
		"a kind of spaces":    {"neither a built-in kind", of(code, func(e *archive.Execution) { e.Kind = "my kind" })},
		"a kind in capitals":  {"neither a built-in kind", of(code, func(e *archive.Execution) { e.Kind = "Code" })},
		"a long kind":         {"neither a built-in kind", of(code, func(e *archive.Execution) { e.Kind = flow.Kind(strings.Repeat("k", 101)) })},
		"a depth of nothing":  {"its depth is 7", of(code, func(e *archive.Execution) { e.Depth = 7 })},
		"a child at the top":  {"its depth is 0", of(kid, func(e *archive.Execution) { e.Depth = 0 })},

		"events of another year": {"event 1 was at 1970", func(r *archive.Row) *archive.Row {
			for i := range r.Events {
				r.Events[i].At = time.Unix(0, 0)
			}
			return r
		}},
		"which one it is":    {"ex_", of(code, func(e *archive.Execution) { e.Attempt = 2 })},
		"it runs":            {"only what has ended", of(code, func(e *archive.Execution) { e.Status = flow.Running })},
		"it ended otherwise": {"its history leads to completed", of(code, func(e *archive.Execution) { e.Status, e.Error = flow.Failed, &archive.Error{Code: "timeout"} })},
		"a fault of none":    {"error exactly where", of(code, func(e *archive.Execution) { e.Error = &archive.Error{Code: "timeout", Message: "late"} })},
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
		"no JSON":               {"not JSON", of(code, func(e *archive.Execution) { e.Input = archive.Value("{") })},
		"an unknown definition": {"has no definition", of(workflow, func(e *archive.Execution) { e.Definition = strings.Repeat("0", 64) })},
		"an action's definition": {"it is a workflow, and its definition work@1 is not one", func(r *archive.Row) *archive.Row {
			switch {
			case r.Execution == nil:
			case r.Execution.ID == workflow: // its tasks get its definition
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
		"a log twice": {"comes behind log", func(r *archive.Row) *archive.Row {
			if r.Log != nil {
				r.Log.Seq, r.Log.Blob = 1, ""
				r.Log.Data, r.Log.Size = []byte("x"), 1
			}
			return r
		}},
		"an empty log":  {"a chunk has 1 to", log(func(c *flow.LogChunk) { c.Data, c.Size = nil, 0 })},
		"a large log":   {"a chunk has 1 to", log(func(c *flow.LogChunk) { c.Data, c.Size = nil, math.MaxInt64 })},
		"a distant log": {"at offset 9223372036854775807", log(func(c *flow.LogChunk) { c.Offset = math.MaxInt64 })},
		"an id of later": {"and its id at", of(code, func(e *archive.Execution) {
			e.CreatedAt, e.FinishedAt = e.CreatedAt.AddDate(1, 0, 0), e.FinishedAt.AddDate(2, 0, 0)
		})},
		"its slot is of later": {"which has not come", of(code, func(e *archive.Execution) { e.SlotAt = time.Date(9998, 1, 1, 0, 0, 0, 0, time.UTC) })},
		"a log of later":       {"a log with number 1", log(func(c *flow.LogChunk) { c.At = time.Date(9998, 1, 1, 0, 0, 0, 0, time.UTC) })},
		"an output of no item": {"item -1 of task", of(workflow, func(e *archive.Execution) {
			e.RerunOf, e.OverriddenBy, e.Outputs = workflow, "ada", []archive.OutputOverride{{Task: "each", Index: -1, Output: archive.Value("1")}}
		})},
		"it ends later": {"which has not come", of(code, func(e *archive.Execution) { e.FinishedAt = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) })},
		"an event without a time": {"event 2 was at 0001", func(r *archive.Row) *archive.Row {
			if len(r.Events) > 2 {
				r.Events[1].At = time.Time{}
			}
			return r
		}},
		"a mark of no state": {"a mark of task", func(r *archive.Row) *archive.Row {
			if r.Mark != nil {
				r.Mark.State = "compelted"
			}
			return r
		}},
		"marks out of order": {"comes behind that", func(r *archive.Row) *archive.Row {
			if r.Mark != nil {
				r.Mark.Task = "a"
			}
			return r
		}},
		"a gap in its input": {"do not follow one another", func(r *archive.Row) *archive.Row {
			if r.Input != nil {
				r.Input.Offset = 3
			}
			return r
		}},
		"a mark of what is none": {"not a workflow", func(r *archive.Row) *archive.Row {
			if r.Input != nil {
				return &archive.Row{Mark: &archive.Mark{Attempt: 1, Task: "t"}}
			}
			return r
		}},
	} {
		err := unpacked(t, rewritten(t, whole, c.change))
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
	if err := unpacked(t, other.Bytes()); err == nil {
		t.Error("a definition with another content than its name says was taken")
	}
	if err := unpacked(t, whole[:len(whole)/2]); !errors.Is(err, archive.ErrBroken) {
		t.Errorf("half an archive: %v", err)
	}
	if err := unpacked(t, whole); err != nil {
		t.Errorf("the archive as it was: %v", err)
	}
}

// unpacked unpacks an archive into an empty store, with an engine that does not run.
func unpacked(t *testing.T, whole []byte) error {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.InMemory, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	blobs, err := file.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = blobs.Close() }()
	e, err := engine.New(engine.Options{Store: s, Blobs: blobs})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Archives().Unpack(t.Context(), bytes.NewReader(whole))
	return err
}

// A wide workflow is written in several transactions.
func TestUnpackAWideWorkflow(t *testing.T) {
	from := onSQLite(t)
	from.Define("name: work\naction: noop")
	from.Define(fmt.Sprintf("name: wide\ntasks:\n  each: {foreach: \"${{ lists.range(%d) }}\", action: work, with: {n: \"${{ item }}\"}}", 2*archives.WrittenAtOnce+50))
	from.Worker().Serve(enginetest.Echo)
	id := from.Submit(engine.Submission{Action: "wide"})
	from.Ended(id)
	whole := from.export(id)
	enginetest.OnEachStore(t, func(plain *enginetest.Rig) {
		r := &rig{plain}
		if out := r.unpack(whole); out.Executions != 2*archives.WrittenAtOnce+51 || out.Trees != 1 {
			t.Errorf("unpacked %+v", out)
		}
		if got := len(r.Children(id)); got != 2*archives.WrittenAtOnce+50 {
			t.Errorf("it has %d tasks", got)
		}
	})
}

const cached = `
name: w
input: {type: object, properties: {items: {type: array}, tag: {type: string}}}
tasks:
  each: {foreach: "${{ input.items }}", action: noop, cache: {ttl: 1h}, with: {n: "${{ item }}"}}
  sum: {needs: [each], action: noop, cache: {key: "${{ input.tag }}", ttl: 1h}, with: {all: "${{ tasks.each.output }}"}}
outputs: {all: "${{ tasks.sum.output.all }}"}
`

// An execution that ended with a kept outcome shows that after it is unpacked.
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
		if out := to.unpack(from.export(ids[1])); out.Trees != 1 || out.Executions != 3 {
			to.Fatalf("unpacked %+v", out)
		}
		if was, is := from.everything(ids[1]), to.everything(ids[1]); !maps.Equal(was, is) {
			to.Errorf("unpacked\n%v\nexported\n%v", is, was)
		}
		if k := to.Children(ids[1])["each[0]"]; !k.Cached() || k.ReusedOf != from.Children(ids[0])["each[0]"].ID {
			to.Errorf("each[0] is cached: %t, with the outcome of %s", k.Cached(), k.ReusedOf)
		}
	})
}
