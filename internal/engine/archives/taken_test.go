package archives_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/archives"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const oneOfCode = "name: outer\ntasks:\n  a: {action: code, with: {language: python, source: \"1\"}}"

// wrote stores a file that an execution has left.
func (r *rig) wrote(id flow.ID, file string) {
	r.Helper()
	if _, err := r.Blobs.Put(r.Ctx, fmt.Sprintf("files/%s/1/0", id), strings.NewReader(file)); err != nil {
		r.Fatal(err)
	}
}

// logged appends lines to the log of an execution, the first one under a number.
func (r *rig) logged(id flow.ID, number int64, lines ...string) {
	r.Helper()
	var chunks []flow.LogChunk
	for i, line := range lines {
		chunks = append(chunks, flow.LogChunk{Execution: id, Attempt: 1, Seq: number + int64(i), Stream: "stdout", At: time.Now().UTC().Truncate(time.Microsecond), Data: []byte(line), Size: int64(len(line))})
	}
	if err := r.Store.AppendLogs(r.Ctx, chunks); err != nil {
		r.Fatal(err)
	}
}

// log is the whole log of an execution.
func (r *rig) log(id flow.ID) string {
	r.Helper()
	chunks, err := r.Store.ReadLogs(r.Ctx, store.LogQuery{Execution: id, Limit: 1 << 20})
	if err != nil {
		r.Fatal(err)
	}
	var all []byte
	for _, c := range chunks {
		all = append(all, c.Data...)
	}
	return string(all)
}

// parent runs a workflow whose only task runs code that writes a file (none: "") and lines, and returns both.
func (r *rig) parent(file string, lines ...string) (workflow, task flow.ID) {
	r.Helper()
	r.Define(oneOfCode)
	workflow = r.Submit(engine.Submission{Action: "outer"})
	h := r.Worker()
	a := h.Take(1)[0]
	r.logged(a.Execution, 1, lines...)
	output := `{"exit_code": 0}`
	if file != "" {
		r.wrote(a.Execution, file)
		output = fmt.Sprintf(`{"exit_code": 0, "files":[{"path":"out","size":%d,"blob":"files/%s/1/0"}]}`, len(file), a.Execution)
	}
	h.Complete(a, output)
	if x := r.Ended(workflow); x.Stage != flow.Completed {
		r.Fatalf("the workflow: %+v", x)
	}
	return workflow, a.Execution
}

// renamed is what archives have, in one, with other ids of executions in rows and in names of blobs.
func renamed(t testing.TB, ids map[flow.ID]flow.ID, all ...[]byte) []byte {
	t.Helper()
	var pairs []string
	for from, to := range ids {
		pairs = append(pairs, from.String(), to.String())
	}
	rename := strings.NewReplacer(pairs...).Replace
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, archive.Manifest{From: "there"})
	if err != nil {
		t.Fatal(err)
	}
	for _, whole := range all {
		documents := w.Definition
		if &whole[0] != &all[0][0] {
			documents = nil // the first one has them
		}
		err = errors.Join(err, archive.Read(bytes.NewReader(whole), archive.Contents{
			Definition: documents,
			Blob: func(name string, size int64, content io.Reader) error {
				_, err := w.Blob(rename(name), size, content)
				return err
			},
			Row: func(_ *archive.Row, line []byte) error {
				r, err := archive.ParseRow([]byte(rename(string(line))))
				if err != nil {
					return err
				}
				return w.Row(r)
			},
		}))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A tree with a task under the id of an execution that is here adds nothing to the log of that one, which may be running, and changes none
// of its files.
func TestImportLeavesAloneWhatIsHere(t *testing.T) {
	betweenStores(t, func(from, to *rig) {
		workflow, task := from.parent("forged", "forged 1\n", "forged 2\n")
		whole := from.export(workflow)
		running := to.Submit(engine.Submission{Action: "code", Input: []byte(`{"language":"python","source":"1"}`)})
		h := to.Worker()
		a := h.Take(1)[0]
		to.wrote(running, "its own")
		to.logged(running, 1, "its own 1\n")
		ended, _ := to.parent("another", "another\n")

		for _, taken := range []flow.ID{running, to.Children(ended)["a[0]"].ID} {
			file, log := to.content(fmt.Sprintf("files/%s/1/0", taken)), to.log(taken)
			out := to.importing(renamed(t, map[flow.ID]flow.ID{workflow: {1}, task: taken}, whole))
			if out.Refused != 1 || out.Refusals[0].Execution != (flow.ID{1}) || !strings.Contains(out.Refusals[0].Why, "its task "+taken.String()+" exists already") {
				to.Errorf("imported %+v", out)
			}
			if got := to.content(fmt.Sprintf("files/%s/1/0", taken)); got != file {
				to.Errorf("its file was %q and is %q", file, got)
			}
			if got := to.log(taken); got != log {
				to.Errorf("its log was %q and is %q", log, got)
			}
			if _, err := to.Store.Get(to.Ctx, flow.ID{1}); !errors.Is(err, store.ErrNotFound) {
				to.Errorf("a part of a refused tree was stored: %v", err)
			}
		}
		to.logged(running, 2, "its own 2\n")
		if got := to.log(running); got != "its own 1\nits own 2\n" {
			to.Errorf("what it wrote later: the log is %q", got)
		}
		h.Complete(a, `{"exit_code": 0}`)
		to.Ended(running)
		if out := to.importing(whole); out.Trees != 1 || to.log(task) != "forged 1\nforged 2\n" {
			to.Errorf("the archive as it was: %+v, log %q", out, to.log(task))
		}
	})
}

// Two trees of one archive have an execution in common: the first one is stored, with its own log and files.
func TestImportOfATaskOfTwoWorkflows(t *testing.T) {
	from, to := onSQLite(t), onSQLite(t)
	first, task := from.parent("first", "first\n")
	second, other := from.parent("", "second 1\n", "second 2\n")
	out := to.importing(renamed(t, map[flow.ID]flow.ID{other: task}, from.export(first), from.export(second)))
	if out.Trees != 1 || out.Refused != 1 || out.Refusals[0].Execution != second {
		to.Errorf("imported %+v", out)
	}
	if got := to.log(task); got != "first\n" {
		to.Errorf("the log is %q", got)
	}
	if got := to.content(fmt.Sprintf("files/%s/1/0", task)); got != "first" {
		to.Errorf("the file is %q", got)
	}
}

// A content that is larger than what can be uploaded, or written by a program, is refused by the size that its member says.
func TestImportOfLargeBlobs(t *testing.T) {
	from, to := onSQLite(t), onSQLite(t)
	_, code := from.archived()
	whole := from.export(code) // with an upload of 24 bytes, and a file of 19
	for say, change := range map[string]func(*archives.Archives){
		"uploads/":      func(a *archives.Archives) { a.UploadLimit = 23 },
		"upload_limit":  func(a *archives.Archives) { a.UploadLimit = 23 },
		"files/":        func(a *archives.Archives) { a.MostBlob, a.UploadLimit = 18, 24 },
		"into one blob": func(a *archives.Archives) { a.MostBlob = 10 },
	} {
		a := to.Engine.Archives()
		change(a)
		var refused *fault.Invalid
		if _, err := a.Import(to.Ctx, bytes.NewReader(whole)); !errors.As(err, &refused) || !strings.Contains(err.Error(), say) {
			t.Errorf("%v, want %q", err, say)
		}
	}
	a := to.Engine.Archives()
	a.MostBlob, a.UploadLimit = 24, 24
	if out, err := a.Import(to.Ctx, bytes.NewReader(whole)); err != nil || out.Trees != 1 {
		t.Errorf("within the limits: %+v, %v", out, err)
	}
}
