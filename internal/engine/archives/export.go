// Package archives writes executions that have ended into archives, and stores those of archives. It checks what it stores as the store
// checks every execution, and decides nothing.
package archives

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const (
	// exportPage is how many executions, or events, are read at a time.
	exportPage = 500
	// exportLogs is how many bytes of logs are read at a time.
	exportLogs = 1 << 20
)

// Archives reads from a store and its blobs, and writes to them.
type Archives struct {
	Store   store.Store
	Blobs   blob.Store // nil: there are none
	Uploads *uploads.Uploads
	Update  uploads.Update
	Engine  Engine
	Log     *slog.Logger

	MostBlob    int64 // bytes of what an execution has written, in an import
	UploadLimit int64 // bytes of an uploaded content, in an import; 0: as many as MostBlob
}

// Engine knows its retention and the database's clock, and who watches executions.
type Engine interface {
	Now(ctx context.Context) (time.Time, error)
	// StillKept refuses an execution that retention may be removing, with store.ErrNotFound.
	StillKept(ctx context.Context, x *flow.Execution) error
	// WakeWatchers has all that watch executions look again.
	WakeWatchers()
}

// Exporting says what goes into an archive: the trees of IDs or, without any, those that the filter selects.
type Exporting struct {
	IDs    []flow.ID
	Filter store.Filter
}

// CheckExport refuses ids that cannot be exported, before anything of an archive is written.
func (a *Archives) CheckExport(ctx context.Context, ids []flow.ID) error {
	for _, id := range ids {
		x, err := a.Store.Get(ctx, id)
		switch {
		case err != nil:
			return fmt.Errorf("export %s: %w", id, err)
		case !x.Parent.IsZero():
			return fault.New("id", id.String(), "it is a task of a workflow, and an archive has whole workflows", "export "+x.Parent.String())
		case !x.Stage.Terminal():
			return fault.New("id", id.String(), fmt.Sprintf("it is %s, and only what has ended is exported", x.Stage), fmt.Sprintf("wait for it (pawl events %s --follow), or cancel it", id))
		}
		if err := a.Engine.StillKept(ctx, x); err != nil {
			return fmt.Errorf("export %s: %w", id, err)
		}
	}
	return nil
}

// Export writes an archive. What the filter selects and has not ended is named in it as left out. It holds a page of executions for each
// level of a workflow. After an error the archive has no end, and nobody can take it for whole.
func (a *Archives) Export(ctx context.Context, to io.Writer, m archive.Manifest, q Exporting) error {
	w, err := archive.NewWriter(to, m)
	if err != nil {
		return err
	}
	x := &exporter{a: a, w: w, definitions: map[string]string{}, uploads: map[blob.Sum]bool{}}
	if len(q.IDs) > 0 {
		for _, id := range q.IDs {
			top, err := a.Store.Get(ctx, id)
			if err == nil {
				err = x.tree(ctx, top)
			}
			if err != nil {
				return fmt.Errorf("export %s: %w", id, err)
			}
		}
		return w.Close()
	}
	f := q.Filter
	f.TopLevel, f.Limit = true, exportPage
	for {
		page, err := store.List(ctx, a.Store, f)
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		if len(page) == 0 {
			return w.Close()
		}
		for _, listed := range page {
			f.Before = listed.ID
			if err := x.selected(ctx, listed); err != nil {
				return fmt.Errorf("export %s: %w", listed.ID, err)
			}
		}
	}
}

type exporter struct {
	a           *Archives
	w           *archive.Writer
	definitions map[string]string // hashes, by name and version; those of what was imported by their rows
	uploads     map[blob.Sum]bool // that the archive has
}

// selected exports a tree that a filter has found, or says why it is left out.
func (x *exporter) selected(ctx context.Context, listed *flow.Execution) error {
	if !listed.Stage.Terminal() {
		return x.w.Row(&archive.Row{LeftOut: &archive.LeftOut{Execution: listed.ID, Why: "it is " + listed.Stage.String()}})
	}
	top, err := x.a.Store.Get(ctx, listed.ID)
	if err == nil {
		err = x.a.Engine.StillKept(ctx, top)
	}
	if errors.Is(err, store.ErrNotFound) {
		return x.w.Row(&archive.Row{LeftOut: &archive.LeftOut{Execution: listed.ID, Why: "retention removes it"}})
	}
	if err != nil {
		return err
	}
	return x.tree(ctx, top)
}

func (x *exporter) tree(ctx context.Context, top *flow.Execution) error {
	if err := x.w.Row(&archive.Row{Tree: top.ID}); err != nil {
		return err
	}
	n, err := x.a.walkTree(ctx, top, treeVisitor{row: x.w.Row, definition: x.definition, contents: x.contents})
	if err != nil {
		return err
	}
	if _, err := x.a.Store.Get(ctx, top.ID); err != nil { // the tree goes from its leaves on, and its top last
		return fmt.Errorf("it was removed while it was read: %w", err)
	}
	return x.w.Row(&archive.Row{End: &archive.End{Executions: n}})
}

// definition is the hash of the document that an execution ran on; "" where that is not known. The document goes into the archive once.
func (x *exporter) definition(ctx context.Context, of *flow.Execution) (string, error) {
	key, name, version := catalog.VersionKey(of.Action, of.Version), of.Action, of.Version
	if of.Imported != nil && of.Imported.Definition != "" {
		key, name, version = of.Imported.Definition, of.Imported.Definition, 1
	}
	if hash, known := x.definitions[key]; known {
		return hash, nil
	}
	row, err := x.a.Store.Definition(ctx, name, version)
	if errors.Is(err, store.ErrNotFound) {
		x.definitions[key] = ""
		return "", nil
	}
	if err != nil {
		return "", err
	}
	hash := hex.EncodeToString(row.Hash[:])
	x.definitions[key] = hash
	return hash, x.w.Definition(archive.DefinitionName(of.Action, of.Version, hash), row.Document)
}

// contents exports the logs of an execution, and the blobs that it names.
func (x *exporter) contents(ctx context.Context, of *flow.Execution) error {
	for q := (store.LogQuery{Execution: of.ID, Limit: exportLogs}); ; {
		chunks, err := x.a.Store.ReadLogs(ctx, q)
		if err != nil || len(chunks) == 0 {
			if err != nil {
				return err
			}
			break
		}
		for i := range chunks {
			c := &chunks[i]
			q.AfterAttempt, q.AfterSeq = c.Attempt, c.Seq
			if c.Blob != "" {
				if err := x.blob(ctx, c.Blob, c.Blob); err != nil {
					return err
				}
			}
			if err := x.w.Row(&archive.Row{Log: c}); err != nil {
				return err
			}
		}
	}
	var done []string
	for _, r := range blob.References(of.Outcome.Output) {
		if !strings.HasPrefix(r.Name, "files/"+of.ID.String()+"/") || blob.CheckName(r.Name) != nil || slices.Contains(done, r.Name) {
			continue // another's, which is exported with that one
		}
		done = append(done, r.Name)
		if err := x.blob(ctx, r.Name, r.Name); err != nil {
			return err
		}
	}
	for _, sum := range uploads.SumsIn(of.Input, of.With) {
		if x.uploads[sum] {
			continue
		}
		x.uploads[sum] = true
		u, err := x.a.Store.Upload(ctx, sum)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := x.blob(ctx, archive.UploadName(sum), uploads.Name(u.ID)); err != nil {
			return err
		}
	}
	return nil
}

// blob exports a content. It is read twice: a member begins with its size.
func (x *exporter) blob(ctx context.Context, member, name string) error {
	size, err := x.size(ctx, name)
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, uploads.ErrNoBlobs) {
		return x.w.Row(&archive.Row{Blob: &archive.Blob{Name: member, Missing: true}})
	}
	if err != nil {
		return err
	}
	from, err := x.a.Blobs.Get(ctx, name, 0)
	if err != nil {
		return fmt.Errorf("read blob %s: %w", name, err)
	}
	row, err := x.w.Blob(member, size, from)
	if err := errors.Join(err, from.Close()); err != nil {
		return err
	}
	return x.w.Row(&archive.Row{Blob: row})
}

func (x *exporter) size(ctx context.Context, name string) (int64, error) {
	if x.a.Blobs == nil {
		return 0, uploads.ErrNoBlobs
	}
	from, err := x.a.Blobs.Get(ctx, name, 0)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(io.Discard, from)
	return size, errors.Join(err, from.Close())
}

// treeVisitor is what is done with the executions of a tree.
type treeVisitor struct {
	row        func(*archive.Row) error
	definition func(context.Context, *flow.Execution) (hash string, err error)
	contents   func(context.Context, *flow.Execution) error // nil: logs and blobs are left out
}

// walkTree reads a tree that has ended, each workflow before its tasks, and counts its executions.
func (a *Archives) walkTree(ctx context.Context, x *flow.Execution, v treeVisitor) (n int, err error) {
	if err := a.walkOne(ctx, x, v); err != nil || x.Kind != flow.KindWorkflow {
		return 1, err
	}
	n = 1
	for attempt := 1; attempt <= x.Attempt; attempt++ {
		for task, index := "", -1; ; {
			page, err := a.Store.Recorded(ctx, store.WorkflowAttempt{ID: x.ID, Attempt: attempt}, task, index, exportPage)
			if err != nil {
				return n, err
			}
			if len(page) == 0 {
				break
			}
			for _, child := range page {
				task, index = child.Task, child.Index
				beneath, err := a.walkTree(ctx, child, v)
				if err != nil {
					return n, err
				}
				n += beneath
			}
		}
	}
	return n, nil
}

func (a *Archives) walkOne(ctx context.Context, x *flow.Execution, v treeVisitor) error {
	hash := ""
	if x.Version > 0 {
		var err error
		if hash, err = v.definition(ctx, x); err != nil {
			return err
		}
	}
	if err := v.row(&archive.Row{Execution: archive.ExecutionOf(x, hash)}); err != nil {
		return err
	}
	for after := int64(0); after < x.NextSeq-1; {
		events, err := a.Store.Events(ctx, x.ID, after, exportPage)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return fmt.Errorf("%s has %d events, and only %d are there", x.ID, x.NextSeq-1, after)
		}
		after = events[len(events)-1].Seq
		if err := v.row(&archive.Row{Events: archive.EventsOf(events)}); err != nil {
			return err
		}
	}
	if x.Kind == flow.KindWorkflow {
		if err := a.walkMarks(ctx, x, v); err != nil {
			return err
		}
	}
	if x.Kind.RunsCode() {
		if err := a.walkInput(ctx, x.ID, v); err != nil {
			return err
		}
	}
	if v.contents == nil {
		return nil
	}
	return v.contents(ctx, x)
}

func (a *Archives) walkMarks(ctx context.Context, x *flow.Execution, v treeVisitor) error {
	for attempt := 1; attempt <= x.Attempt; attempt++ {
		marks, err := a.Store.Marks(ctx, store.WorkflowAttempt{ID: x.ID, Attempt: attempt})
		if err != nil {
			return err
		}
		slices.SortFunc(marks, func(a, b store.Mark) int { return strings.Compare(a.Task, b.Task) })
		for i := range marks {
			m := &marks[i]
			if err := v.row(&archive.Row{Mark: &archive.Mark{Attempt: attempt, Task: m.Task, State: m.State, Total: m.Total, Error: archive.ErrorOf(m.Error)}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// inputPiece is how many bytes of what an interactive execution was given are in a row.
const inputPiece = 256 << 10

func (a *Archives) walkInput(ctx context.Context, id flow.ID, v treeVisitor) error {
	in, err := a.Store.Given(ctx, id)
	if err != nil || in.Pieces == 0 {
		return err
	}
	for at, last := int64(0), false; at < in.Size || in.Closed && !last; {
		var data []byte
		if data, last, err = a.Store.ReadInput(ctx, id, at, inputPiece); err != nil {
			return err
		}
		if len(data) == 0 && !last {
			return nil
		}
		if err := v.row(&archive.Row{Input: &archive.Input{Offset: at, Data: data, Last: last}}); err != nil {
			return err
		}
		at += int64(len(data))
	}
	return nil
}
