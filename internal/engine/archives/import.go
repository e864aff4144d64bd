package archives

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// Trees are stored in groups, each in one transaction, of about so many executions and bytes of rows. A larger tree is a group of its own.
	importExecutions = 300
	importBytes      = 2 << 20
	// WrittenAtOnce is how many executions, and about how many bytes of them, one write has within a transaction.
	WrittenAtOnce = 200
	writtenBytes  = 4 << 20
	// lookedUpAtOnce is how many executions one transaction looks up.
	lookedUpAtOnce = 500
	// importDefinitions bounds the documents of an archive, which are held while it is imported.
	importDefinitions = 64 << 20
	// importRefused is how many refused trees are named.
	importRefused = 100
)

// Imported says what has become of an archive.
type Imported struct {
	From              string
	Trees, Executions int // that are new here
	Already           int // trees that were here, with the same content
	LeftOut           int // executions that the export left out
	Refused           int // trees with an id under which there is something else
	Refusals          []ImportRefusal
}

// ImportRefusal is a tree that was refused, and why; nothing of it was stored.
type ImportRefusal struct {
	Execution flow.ID
	Why       string
}

// Import stores the executions of an archive. The whole archive is read and checked first, and refused as a whole with Invalid or
// archive.ErrBroken; then each tree is stored whole or not at all. What was imported before stays as it is. The rows wait in a temporary
// file, the blobs as uploads, which are dropped where nothing comes to name them.
func (a *Archives) Import(ctx context.Context, from io.Reader) (*Imported, error) {
	spool, err := os.CreateTemp("", "pawl-import-*")
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	defer func() {
		_ = spool.Close()
		_ = os.Remove(spool.Name())
	}()
	im := &importer{a: a, spool: spool, to: bufio.NewWriterSize(spool, 1<<20), documents: map[string]*importedDocument{}}
	err = archive.Read(from, archive.Contents{
		Manifest:   func(m *archive.Manifest) error { return im.manifest(m) },
		Definition: im.document,
		Blob:       func(name string, size int64, content io.Reader) error { return im.blob(ctx, name, size, content) },
		Row:        im.row,
	})
	if err == nil {
		err = im.to.Flush()
	}
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	if im.at, err = a.Engine.Now(ctx); err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	if err := im.define(ctx); err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	if err := im.storeAll(ctx); err != nil {
		return &im.result, fmt.Errorf("import: %w", err)
	}
	a.Log.Info("executions imported", telemetry.From, im.result.From, telemetry.Count, im.result.Executions)
	a.Engine.WakeWatchers()
	return &im.result, nil
}

// importedDocument is a definition of the archive.
type importedDocument struct {
	*definition.Definition
	version int
	stands  string // flow.Import.Definition of what ran on it
}

// span is where the rows of a tree lie in the spool.
type span struct {
	top        flow.ID
	from, size int64
	executions int
}

func (im *importer) manifest(m *archive.Manifest) error {
	if bad := fault.BadText(m.From, fault.LabelLimit); bad != "" {
		return fault.New("manifest.from", fault.Short(m.From), bad, "export it again")
	}
	im.result.From = m.From
	return nil
}

// document keeps a definition, which has the content that its name says.
func (im *importer) document(name string, text []byte) error {
	if im.documentBytes += len(text); im.documentBytes > importDefinitions {
		return fault.New(name, "", fmt.Sprintf("the definitions of the archive have more than %d MB", importDefinitions>>20), "export fewer executions at a time")
	}
	d, err := definition.Decode(text)
	if err != nil {
		return fault.New(name, "", err.Error(), "export it again, with a pawl of the same version as this one")
	}
	version := 0
	_, after, _ := strings.Cut(name, "@")
	if _, err := fmt.Sscanf(after, "%d.", &version); err != nil || !bytes.Equal(d.Canonical(), text) || !d.Runnable() || archive.DefinitionName(d.Name, version, d.Hash()) != name {
		return fault.New(name, "", "its content is not that of its name", "export it again")
	}
	im.documents[documentKey(d.Name, version, d.Hash())] = &importedDocument{Definition: d, version: version}
	return nil
}

func documentKey(name string, version int, hash string) string {
	return catalog.VersionKey(name, version) + "." + hash
}

// blob keeps a content as an upload, until a tree that names it is stored.
func (im *importer) blob(ctx context.Context, name string, size int64, content io.Reader) error {
	if most := im.a.UploadLimit; most > 0 && size > most && strings.HasPrefix(name, "uploads/") {
		return fault.New(name, fmt.Sprint(size), fmt.Sprintf("it has more than the %d bytes that one upload may have", most), "raise the server's setting upload_limit, or leave its execution out of the export")
	}
	if size > im.a.MostBlob {
		return fault.New(name, fmt.Sprint(size), fmt.Sprintf("it has more than the %d bytes that an execution may write into one blob", im.a.MostBlob), "leave its execution out of the export")
	}
	sum := sha256.New()
	u, err := im.a.Uploads.Receive(ctx, im.a.Uploads.NewID(), io.TeeReader(content, sum), sum)
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	if strings.HasPrefix(name, "uploads/") && archive.UploadName(u.Sum) != name {
		return fault.New(name, "", "its content is not that of its name", "export it again")
	}
	return nil
}

// define keeps the definitions of the archive that are not what their names and versions stand for here, beside those that are.
func (im *importer) define(ctx context.Context) error {
	for _, d := range im.documents {
		var hash [sha256.Size]byte
		if _, err := hex.Decode(hash[:], []byte(d.Hash())); err != nil {
			return fmt.Errorf("read the hash of %s: %w", d.Name, err)
		}
		here, err := im.a.Store.Definition(ctx, d.Name, d.version)
		if err == nil && here.Hash == hash {
			continue
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		d.stands = catalog.ImportedPrefix + d.Hash()
		err = catalog.Persist(ctx, im.a.Store, func(ctx context.Context, tx store.Tx) error {
			_, _, err := tx.Define(ctx, store.Definition{Name: d.stands, Kind: catalog.ImportedKind, Hash: hash, Document: d.Canonical(), CreatedAt: im.at})
			return err
		})
		if err != nil {
			return fmt.Errorf("keep definition %s: %w", catalog.VersionKey(d.Name, d.version), err)
		}
	}
	return nil
}

// storeAll stores the trees in groups.
func (im *importer) storeAll(ctx context.Context) error {
	for len(im.trees) > 0 {
		n, executions, size := 0, 0, int64(0)
		for _, t := range im.trees {
			if n > 0 && (executions+t.executions > importExecutions || size+t.size > importBytes) {
				break
			}
			n, executions, size = n+1, executions+t.executions, size+t.size
		}
		if err := im.storeGroup(ctx, im.trees[:n]); err != nil {
			return err
		}
		im.trees = im.trees[n:]
	}
	return nil
}

// storeGroup stores those of the trees that are not here.
func (im *importer) storeGroup(ctx context.Context, group []span) error {
	for len(group) > 0 {
		fresh, later, err := im.unknown(ctx, group)
		if err == nil && len(fresh) > 0 {
			err = im.store(ctx, fresh)
		}
		if err != nil {
			return err
		}
		group = later
	}
	return nil
}

// store stores trees of which nothing is here. What spoils a group is stored tree by tree.
func (im *importer) store(ctx context.Context, fresh []span) error {
	err := im.contents(ctx, fresh)
	if err == nil {
		err = im.a.Update(ctx, func(ctx context.Context, tx store.Tx) (err error) {
			defer fault.Recovered(&err)
			for _, t := range fresh {
				if err := im.insert(ctx, tx, t); err != nil {
					return err
				}
			}
			return nil
		})
	}
	switch {
	case err == nil:
		for _, t := range fresh {
			im.result.Trees++
			im.result.Executions += t.executions
		}
		return nil
	case fault.Passing(err) || ctx.Err() != nil:
		return err
	case len(fresh) > 1:
		for i := range fresh {
			if err := im.storeGroup(ctx, fresh[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	left, _, again := im.unknown(ctx, fresh)
	if again == nil && len(left) == 0 {
		return nil // another import of the same archive was faster
	}
	im.refuse(fresh[0].top, err.Error())
	return im.clear(ctx, fresh[0])
}

// clear removes the logs and blobs of a tree that could not be stored: nothing would ever name them.
func (im *importer) clear(ctx context.Context, t span) error {
	var ids []flow.ID
	var names []string
	err := im.each(t, func(r *archive.Row) error {
		if r.Execution == nil {
			return nil
		}
		_, err := im.a.Store.Get(ctx, r.Execution.ID)
		if errors.Is(err, store.ErrNotFound) {
			ids, names = append(ids, r.Execution.ID), append(names, uploads.Prefixes(r.Execution.ID)...)
			return nil
		}
		return err
	})
	if err == nil && len(ids) > 0 {
		err = im.a.Store.RemoveLogs(ctx, ids)
		if im.a.Blobs != nil {
			err = errors.Join(err, im.a.Blobs.Remove(ctx, names...))
		}
	}
	return err
}

func (im *importer) refuse(id flow.ID, why string) {
	if im.result.Refused++; im.result.Refused <= importRefused {
		im.result.Refusals = append(im.result.Refusals, ImportRefusal{id, why})
	}
}

// unknown returns the trees of which nothing is here, and says of the others whether they are the same. It looks at every execution of a
// tree: the logs and blobs of a tree are written before its rows, so under the id of one that is here they would be added to its own. Trees
// that have an execution in common with one before them come later, when that one has been stored.
func (im *importer) unknown(ctx context.Context, group []span) (fresh, later []span, err error) {
	trees := make([][]flow.ID, len(group))
	for i, t := range group {
		err := im.each(t, func(r *archive.Row) error {
			if r.Execution != nil {
				trees[i] = append(trees[i], r.Execution.ID)
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	here, err := im.here(ctx, trees)
	if err != nil {
		return nil, nil, err
	}
	claimed := map[flow.ID]bool{}
	for i, t := range group {
		taken := slices.IndexFunc(trees[i], func(id flow.ID) bool { return here[id] })
		switch {
		case here[t.top]:
			same, err := im.same(ctx, t)
			switch {
			case err != nil:
				return nil, nil, err
			case same:
				im.result.Already++
			default:
				im.refuse(t.top, "there is another execution with this id here: it is not what the archive has")
			}
		case taken >= 0:
			im.refuse(t.top, fmt.Sprintf("its task %s exists already here, and not in this workflow", trees[i][taken]))
		case slices.ContainsFunc(trees[i], func(id flow.ID) bool { return claimed[id] }):
			later = append(later, t)
		default:
			fresh = append(fresh, t)
			if len(group) > 1 { // a tree alone may be large
				for _, id := range trees[i] {
					claimed[id] = true
				}
			}
		}
	}
	return fresh, later, nil
}

// here returns which executions of trees are in the store. Tops are looked up last: another import of the same tree stores all of it at
// once, so a task of it that was found has its workflow here by then, and the tree is compared instead of refused.
func (im *importer) here(ctx context.Context, trees [][]flow.ID) (map[flow.ID]bool, error) {
	var ids []flow.ID
	for _, tree := range trees {
		ids = append(ids, tree[1:]...)
	}
	for _, tree := range trees {
		ids = append(ids, tree[0])
	}
	here := map[flow.ID]bool{}
	for some := range slices.Chunk(ids, lookedUpAtOnce) {
		err := im.a.Update(ctx, func(ctx context.Context, tx store.Tx) error {
			all, err := tx.Lock(ctx, some, store.WithoutPayload)
			for _, x := range all {
				here[x.ID] = true
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return here, nil
}

// same compares a tree with what is here under its id: requests, histories, outcomes, marks and input.
func (im *importer) same(ctx context.Context, t span) (bool, error) {
	x, err := im.a.Store.Get(ctx, t.top)
	if err != nil {
		return false, err
	}
	if !x.Stage.Terminal() {
		return false, nil
	}
	theirs, ours := newDigest(), newDigest()
	if err := im.each(t, theirs.add); err != nil {
		return false, err
	}
	hashes := map[string]string{}
	_, err = im.a.walkTree(ctx, x, treeVisitor{row: ours.add, definition: func(ctx context.Context, x *flow.Execution) (string, error) {
		if x.Imported != nil && x.Imported.Definition != "" {
			return strings.TrimPrefix(x.Imported.Definition, catalog.ImportedPrefix), nil
		}
		key := catalog.VersionKey(x.Action, x.Version)
		if _, known := hashes[key]; !known {
			row, err := im.a.Store.Definition(ctx, x.Action, x.Version)
			if errors.Is(err, store.ErrNotFound) {
				return "", nil
			}
			if err != nil {
				return "", err
			}
			hashes[key] = hex.EncodeToString(row.Hash[:])
		}
		return hashes[key], nil
	}})
	return theirs.sum() == ours.sum(), err
}

// each reads the rows of a tree from the spool.
func (im *importer) each(t span, do func(*archive.Row) error) error {
	lines := bufio.NewReaderSize(io.NewSectionReader(im.spool, t.from, t.size), 256<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the rows again: %w", err)
		}
		r, err := archive.ParseRow(line)
		if err != nil {
			return err
		}
		if err := do(r); err != nil {
			return err
		}
	}
}
