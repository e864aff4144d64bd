// Package archives writes ended executions into archives, and stores the executions of an archive in an empty store. It applies the store's
// checks to them and decides nothing.
package archives

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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

	MostBlob int64 // bytes of a content that is unpacked
}

// Engine knows its retention.
type Engine interface {
	// StillKept refuses an execution that retention may be removing, with store.ErrNotFound.
	StillKept(ctx context.Context, x *flow.Execution) error
}

// Exporting selects the content of an archive: the trees of IDs or, without any, the trees that the filter selects.
type Exporting struct {
	IDs    []flow.ID
	Filter store.Filter
}

// CheckExport refuses ids that cannot be exported, before any part of the archive is written.
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

// Export writes an archive. It names selected executions that have not ended as left out. It holds one page of executions for each level of
// a workflow. After an error the archive has no end mark, so a reader cannot mistake it for a complete one.
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
	definitions map[string]string // hashes, by name and version
	uploads     map[blob.Sum]bool // that the archive has
}

// selected exports a tree that a filter has found, or records why it is left out.
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
	n, err := x.walk(ctx, top)
	if err != nil {
		return err
	}
	if _, err := x.a.Store.Get(ctx, top.ID); err != nil { // a tree is removed from its leaves up, its top last
		return fmt.Errorf("it was removed while it was read: %w", err)
	}
	return x.w.Row(&archive.Row{End: &archive.End{Executions: n}})
}

// definition is the hash of the document that an execution ran on; "" if it is not known. The document is written once per archive.
func (x *exporter) definition(ctx context.Context, execution *flow.Execution) (string, error) {
	key := catalog.VersionKey(execution.Action, execution.Version)
	if hash, known := x.definitions[key]; known {
		return hash, nil
	}
	row, err := x.a.Store.Definition(ctx, execution.Action, execution.Version)
	if errors.Is(err, store.ErrNotFound) {
		x.definitions[key] = ""
		return "", nil
	}
	if err != nil {
		return "", err
	}
	hash := hex.EncodeToString(row.Hash[:])
	x.definitions[key] = hash
	return hash, x.w.Definition(archive.DefinitionName(execution.Action, execution.Version, hash), row.Document)
}

// contents exports the logs of an execution, and the blobs that its output names.
func (x *exporter) contents(ctx context.Context, execution *flow.Execution) error {
	for q := (store.LogQuery{Execution: execution.ID, Limit: exportLogs}); ; {
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
	for _, r := range blob.References(execution.Outcome.Output) {
		if !strings.HasPrefix(r.Name, "files/"+execution.ID.String()+"/") || blob.CheckName(r.Name) != nil || slices.Contains(done, r.Name) {
			continue // it belongs to another execution, which exports it
		}
		done = append(done, r.Name)
		if err := x.blob(ctx, r.Name, r.Name); err != nil {
			return err
		}
	}
	for _, sum := range uploads.SumsIn(execution.Input, execution.With) {
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

// blob exports a content. It reads the content twice, because a member begins with its size.
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

// walk writes an ended tree, each workflow before its tasks, and counts its executions.
func (x *exporter) walk(ctx context.Context, execution *flow.Execution) (n int, err error) {
	if err := x.execution(ctx, execution); err != nil || execution.Kind != flow.KindWorkflow {
		return 1, err
	}
	n = 1
	for attempt := 1; attempt <= execution.Attempt; attempt++ {
		for task, index := "", -1; ; {
			page, err := x.a.Store.Recorded(ctx, store.WorkflowAttempt{ID: execution.ID, Attempt: attempt}, task, index, exportPage)
			if err != nil {
				return n, err
			}
			if len(page) == 0 {
				break
			}
			for _, child := range page {
				task, index = child.Task, child.Index
				beneath, err := x.walk(ctx, child)
				if err != nil {
					return n, err
				}
				n += beneath
			}
		}
	}
	return n, nil
}

func (x *exporter) execution(ctx context.Context, execution *flow.Execution) error {
	hash := ""
	if execution.Version > 0 {
		var err error
		if hash, err = x.definition(ctx, execution); err != nil {
			return err
		}
	}
	if err := x.w.Row(&archive.Row{Execution: archive.ExecutionOf(execution, hash)}); err != nil {
		return err
	}
	for after := int64(0); after < execution.NextSeq-1; {
		events, err := x.a.Store.Events(ctx, execution.ID, after, exportPage)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return fmt.Errorf("%s has %d events, and only %d are there", execution.ID, execution.NextSeq-1, after)
		}
		after = events[len(events)-1].Seq
		if err := x.w.Row(&archive.Row{Events: archive.EventsOf(events)}); err != nil {
			return err
		}
	}
	if execution.Kind == flow.KindWorkflow {
		if err := x.marks(ctx, execution); err != nil {
			return err
		}
	}
	if execution.Kind.RunsCode() {
		if err := x.checkInput(ctx, execution.ID); err != nil {
			return err
		}
	}
	return x.contents(ctx, execution)
}

func (x *exporter) marks(ctx context.Context, execution *flow.Execution) error {
	for attempt := 1; attempt <= execution.Attempt; attempt++ {
		marks, err := x.a.Store.Marks(ctx, store.WorkflowAttempt{ID: execution.ID, Attempt: attempt})
		if err != nil {
			return err
		}
		slices.SortFunc(marks, func(a, b store.Mark) int { return strings.Compare(a.Task, b.Task) })
		for i := range marks {
			m := &marks[i]
			if err := x.w.Row(&archive.Row{Mark: &archive.Mark{Attempt: attempt, Task: m.Task, State: m.State, Total: m.Total, Error: archive.ErrorOf(m.Error)}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// inputPiece is how many bytes of an interactive execution's input are in one row.
const inputPiece = 256 << 10

func (x *exporter) checkInput(ctx context.Context, id flow.ID) error {
	input, err := x.a.Store.FedInput(ctx, id)
	if err != nil || input.Pieces == 0 {
		return err
	}
	for at, last := int64(0), false; at < input.Size || input.Closed && !last; {
		var data []byte
		if data, last, err = x.a.Store.ReadInput(ctx, id, at, inputPiece); err != nil {
			return err
		}
		if len(data) == 0 && !last {
			return nil
		}
		if err := x.w.Row(&archive.Row{Input: &archive.Input{Offset: at, Data: data, Last: last}}); err != nil {
			return err
		}
		at += int64(len(data))
	}
	return nil
}
