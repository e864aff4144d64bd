package archives

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const (
	// WrittenAtOnce is how many executions, and about how many of their bytes, one transaction writes.
	WrittenAtOnce = 200
	writtenBytes  = 4 << 20
	// mostDefinitions bounds the documents of an archive: the bytes of all documents and their names.
	mostDefinitions = 64 << 20
	// chunksAtOnce is how many chunks of logs are written at a time.
	chunksAtOnce = 500
)

// Unpacked counts what an archive had.
type Unpacked struct {
	archive.Manifest

	Trees, Executions int
	LeftOut           int // executions that the export left out
}

// Unpack stores the executions and definitions of an archive in many transactions: after an error the store holds a part of them, and the
// caller removes it. It refuses a store that is not empty: anybody can have written the archive, so its rows must not mix with the rows of
// an installation. It refuses a wrong archive with Invalid or archive.ErrBroken. One execution and about 4 MB of others are in memory at
// once.
func (a *Archives) Unpack(ctx context.Context, from io.Reader) (*Unpacked, error) {
	if err := a.checkEmpty(ctx); err != nil {
		return nil, err
	}
	u := &unpacker{ctx: ctx, a: a, workflows: map[string]bool{}, versions: map[string]bool{}}
	err := a.Update(ctx, func(ctx context.Context, tx store.Tx) (err error) {
		u.now, err = tx.Now(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = archive.Read(from, archive.Contents{Manifest: u.manifest, Definition: u.document, Blob: u.blob, Row: u.row})
	if err == nil {
		err = u.apply()
	}
	if err != nil {
		return nil, err
	}
	return &u.result, u.writeLogs()
}

// checkEmpty refuses a store that has executions or definitions.
func (a *Archives) checkEmpty(ctx context.Context) error {
	executions, err := store.List(ctx, a.Store, store.Filter{Limit: 1})
	if err != nil {
		return err
	}
	definitions, err := a.Store.Definitions(ctx, "", 1)
	if err != nil {
		return err
	}
	if len(executions)+len(definitions) > 0 {
		return errors.New("the store for an archive must be empty, and this one has executions or definitions")
	}
	return nil
}

// unpacker stores one archive: it checks each row against the rows before it, and writes the rows of several executions together.
type unpacker struct {
	ctx    context.Context //nolint:containedctx // the callbacks of archive.Read have none
	a      *Archives
	now    time.Time
	result Unpacked

	workflows     map[string]bool // by name, version and hash of a definition: whether it is a workflow
	versions      map[string]bool // names with versions
	documentBytes int

	inTree int      // executions of the tree so far
	above  []placed // the workflows above the latest execution, and the execution

	// Of the latest execution:
	x          *flow.Execution // until its history is whole
	events     []flow.Event
	eventBytes int
	input      flow.Input
	pieces     int // of its input
	mark       archive.Mark
	chunk      flow.LogChunk

	// To write:
	delta  store.Delta
	bytes  int
	chunks []flow.LogChunk
	logged int // bytes of chunks
}

func (u *unpacker) manifest(m *archive.Manifest) error {
	for field, text := range map[string]string{"from": m.From, "pawl": m.Pawl} {
		if bad := fault.BadText(text, fault.LabelLimit); bad != "" {
			return fault.New("manifest."+field, fault.Short(text), bad, exportAgain)
		}
	}
	if !sensible(m.At) {
		return fault.New("manifest.at", m.At.String(), "no server has exported anything then", exportAgain)
	}
	u.result.Manifest = *m
	return nil
}

// document stores a definition under its version; the text must have the hash in its name.
func (u *unpacker) document(name string, text []byte) error {
	if u.documentBytes += len(name) + len(text); u.documentBytes > mostDefinitions {
		return fault.New(name, "", fmt.Sprintf("the definitions of the archive have more than %d MB", mostDefinitions>>20), "export fewer executions at a time")
	}
	d, err := definition.Decode(text)
	if err != nil {
		return fault.New(name, "", err.Error(), "export it again, with a pawl of the same version as this one")
	}
	_, version, err := archive.ParseDefinitionName(name)
	if err != nil || !d.Runnable() || string(d.Canonical()) != string(text) ||
		archive.DefinitionName(d.Name, version, d.Hash()) != name {
		return fault.New(name, "", "its content is not that of its name", exportAgain)
	}
	key := catalog.VersionKey(d.Name, version)
	if u.versions[key] {
		return fault.New(name, "", "the archive has another definition with that name and version", exportAgain)
	}
	row := store.Definition{Name: d.Name, Version: version, Kind: string(d.Kind), Document: d.Canonical(), CreatedAt: u.now}
	if _, err := hex.Decode(row.Hash[:], []byte(d.Hash())); err != nil {
		return fmt.Errorf("read the hash of %s: %w", name, err)
	}
	u.versions[key], u.workflows[documentKey(d.Name, version, d.Hash())] = true, d.Workflow != nil
	return u.a.Update(u.ctx, func(ctx context.Context, tx store.Tx) error {
		_, _, err := tx.Define(ctx, row)
		return err
	})
}

func documentKey(name string, version int, hash string) string {
	return catalog.VersionKey(name, version) + "." + hash
}

// blob stores a content as an upload or under its own name. The rows of its execution come later and check that the execution has it.
func (u *unpacker) blob(name string, size int64, content io.Reader) error {
	if size > u.a.MostBlob {
		return fault.New(name, fmt.Sprint(size), fmt.Sprintf("it has more than the %d bytes of the largest blob", u.a.MostBlob), "leave its execution out of the export")
	}
	if !strings.HasPrefix(name, "uploads/") {
		if err := blob.CheckName(name); err != nil {
			return fault.New(fault.Short(name), "", err.Error(), exportAgain)
		}
		if u.a.Blobs == nil {
			return fmt.Errorf("keep %s: there is no place for blobs", name)
		}
		_, err := u.a.Blobs.Put(u.ctx, name, content)
		return err
	}
	sum := sha256.New()
	kept, err := u.a.Uploads.Receive(u.ctx, u.a.Uploads.NewID(), io.TeeReader(content, sum), sum)
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	if archive.UploadName(kept.Sum) != name {
		return fault.New(fault.Short(name), "", "its content is not that of its name", exportAgain)
	}
	return nil
}

// row checks a row against the rows before it, and gathers it for writing.
func (u *unpacker) row(r *archive.Row, _ []byte) error {
	if err := u.check(r); err != nil {
		return err
	}
	switch {
	case r.LeftOut != nil:
		u.result.LeftOut++
	case !r.Tree.IsZero():
		u.result.Trees++
	case r.Execution != nil:
		u.result.Executions++
	case r.Mark != nil:
		m := r.Mark
		u.delta.Workflows.Marks = append(u.delta.Workflows.Marks, store.Mark{Workflow: u.latest().ID, Attempt: m.Attempt, Task: m.Task, State: m.State, Total: m.Total, Error: m.Error.Flow()})
		return u.wrote(len(m.Task) + 100)
	case r.Input != nil:
		u.pieces++
		u.delta.Input = append(u.delta.Input, store.InputPiece{Execution: u.latest().ID, Number: u.pieces, Offset: r.Input.Offset, Data: r.Input.Data, Last: r.Input.Last})
		return u.wrote(len(r.Input.Data))
	case r.Log != nil:
		u.chunks = append(u.chunks, *r.Log)
		if u.logged += len(r.Log.Data); len(u.chunks) == chunksAtOnce || u.logged >= exportLogs {
			return u.writeLogs()
		}
	}
	return nil
}

// wrote counts bytes to write, and writes the gathered rows when there are enough.
func (u *unpacker) wrote(n int) error {
	if u.bytes += n; u.bytes < writtenBytes && len(u.delta.Drafts) < WrittenAtOnce {
		return nil
	}
	return u.apply()
}

// apply writes the gathered rows.
func (u *unpacker) apply() error {
	delta := u.delta
	u.delta, u.bytes = store.Delta{}, 0
	err := u.a.Update(u.ctx, func(ctx context.Context, tx store.Tx) (err error) {
		defer fault.Recovered(&err)
		return tx.Apply(ctx, delta)
	})
	if err != nil && !fault.Passing(err) && u.ctx.Err() == nil {
		return fault.New("executions", "", err.Error(), exportAgain)
	}
	return err
}

func (u *unpacker) writeLogs() error {
	if len(u.chunks) == 0 {
		return nil
	}
	err := u.a.Store.AppendLogs(u.ctx, u.chunks)
	u.chunks, u.logged = u.chunks[:0], 0
	return err
}
