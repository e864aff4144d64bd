package postgres

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var uploads = relation[*store.Upload, *store.Upload]{
	{"id", oidUUID, func(c *column, u *store.Upload) { c.id(u.ID) }, func(r *rows, u *store.Upload) { u.ID = r.id() }},
	{"sum", oidBytes, func(c *column, u *store.Upload) { c.bytes(u.Sum[:]) }, func(r *rows, u *store.Upload) { copy(u.Sum[:], r.peek()) }},
	{"size", oidInt8, func(c *column, u *store.Upload) { c.int(u.Size) }, func(r *rows, u *store.Upload) { u.Size = r.int() }},
	{"until", oidInt8, func(c *column, u *store.Upload) { c.int(row.Micros(u.Until)) }, func(r *rows, u *store.Upload) { u.Until = r.time() }},
}

// sumsOf are sums of uploads, one in each row.
var sumsOf = relation[[sha256.Size]byte, none]{{"sum", oidBytes, func(c *column, sum [sha256.Size]byte) { c.bytes(sum[:]) }, nil}}

var holds = relation[store.Hold, none]{
	{"id", oidUUID, func(c *column, h store.Hold) { c.id(h.Execution) }, nil},
	{"upload", oidUUID, func(c *column, h store.Hold) { c.id(h.Upload) }, nil},
}

var uploadColumns = uploads.names("u.")

const thatIsThere = ` u.sum IS NOT NULL AND NOT u.dropped`

// A submission locks the uploads that it names FOR KEY SHARE. The only statement for which it waits is DropUploads, which locks
// FOR UPDATE, skips locked rows and so waits for nothing: no deadlock. KeepUpload changes no key, so no submission waits for
// it.
var (
	qBeginUpload = sql(`INSERT INTO {s}.uploads (id, sum, size, until, dropped) VALUES ($1, NULL, 0, $2::bigint, false)`)

	qEndUpload = sql(`UPDATE {s}.uploads u SET sum = $2, size = $3::bigint, until = $4::bigint WHERE u.id = $1 AND u.sum IS NULL AND NOT u.dropped
		RETURNING ` + uploadColumns)

	qUpload = sql(`SELECT ` + uploadColumns + ` FROM {s}.uploads u WHERE u.sum = $1 AND` + thatIsThere)

	qKeepUpload = sql(`UPDATE {s}.uploads u SET until = greatest(u.until, $2::bigint) WHERE u.sum = $1 AND` + thatIsThere + ` RETURNING ` + uploadColumns)

	qLockUploads = sql(`SELECT ` + uploadColumns + ` FROM {s}.uploads u WHERE u.sum = ANY ($1::bytea[]) AND` + thatIsThere + ` FOR KEY SHARE`)

	qPastUploads = sql(`SELECT u.id FROM {s}.uploads u WHERE NOT u.dropped AND u.until <= $1::bigint ORDER BY u.until LIMIT $2 FOR UPDATE SKIP LOCKED`)

	// The uploads are locked, so no execution can begin to hold one meanwhile.
	qHeldUploads = sql(`UPDATE {s}.uploads u SET until = $2::bigint WHERE u.id = ANY ($1::uuid[]) AND (SELECT true FROM {s}.holds h WHERE h.upload = u.id LIMIT 1)`)
	qDropUploads = sql(`UPDATE {s}.uploads u SET dropped = true WHERE u.id = ANY ($1::uuid[]) AND (SELECT true FROM {s}.holds h WHERE h.upload = u.id LIMIT 1) IS NULL`)

	qDropped = sql(`SELECT u.id FROM {s}.uploads u WHERE u.dropped ORDER BY u.until LIMIT $1`)
	qForget  = sql(`DELETE FROM {s}.uploads u WHERE u.id = ANY ($1::uuid[]) AND u.dropped`)

	qInsertHolds = sql(`INSERT INTO {s}.holds (id, upload) SELECT DISTINCT id, upload FROM ` + holds.rows() + ` AS v`)
)

// BeginUpload implements store.Uploads.
func (t *tx) BeginUpload(ctx context.Context, id flow.ID, until time.Time) error {
	return store.Failed(t.ask(ctx, qBeginUpload, t.args().id(id).int(row.Micros(until)), nil), "note an upload")
}

// EndUpload implements store.Uploads. If two transactions end uploads of the same sum at once, one succeeds; the other gets
// ErrConflict, and finds the first one's upload when it tries again.
func (t *tx) EndUpload(ctx context.Context, u store.Upload) (store.Upload, error) {
	var all []store.Upload
	t.add(qKeepUpload, t.args().bytes(u.Sum[:]).int(row.Micros(u.Until)), readInto(&all, uploads))
	if err := t.flush(ctx); err != nil {
		return u, fmt.Errorf("look for the upload %x: %w", u.Sum, err)
	}
	if len(all) > 0 {
		if err := t.ask(ctx, qDropUploads, t.args().ids([]flow.ID{u.ID}), nil); err != nil {
			return u, fmt.Errorf("drop an upload: %w", err)
		}
		return all[0], nil
	}
	if err := t.ask(ctx, qEndUpload, t.args().id(u.ID).bytes(u.Sum[:]).int(u.Size).int(row.Micros(u.Until)), readInto(&all, uploads)); err != nil {
		return u, fmt.Errorf("end an upload: %w", err)
	}
	if len(all) == 0 {
		return u, fmt.Errorf("end an upload: %w", store.ErrNotFound)
	}
	return all[0], nil
}

// KeepUpload implements store.Uploads.
func (t *tx) KeepUpload(ctx context.Context, sum [sha256.Size]byte, until time.Time) (store.Upload, error) {
	var all []store.Upload
	if err := t.ask(ctx, qKeepUpload, t.args().bytes(sum[:]).int(row.Micros(until)), readInto(&all, uploads)); err != nil {
		return store.Upload{}, fmt.Errorf("keep an upload: %w", err)
	}
	return theUpload(all, sum)
}

func theUpload(all []store.Upload, sum [sha256.Size]byte) (store.Upload, error) {
	if len(all) == 0 {
		return store.Upload{}, fmt.Errorf("read the upload %x: %w", sum, store.ErrNotFound)
	}
	return all[0], nil
}

// LockUploads implements store.Uploads.
func (t *tx) LockUploads(ctx context.Context, sums [][sha256.Size]byte) (map[[sha256.Size]byte]flow.ID, error) {
	var all []store.Upload
	if err := t.ask(ctx, qLockUploads, t.args().columns(sumsOf.columns(sums...)), readInto(&all, uploads)); err != nil {
		return nil, fmt.Errorf("lock uploads: %w", err)
	}
	there := make(map[[sha256.Size]byte]flow.ID, len(all))
	for _, u := range all {
		there[u.Sum] = u.ID
	}
	return there, nil
}

// DropUploads implements store.Uploads.
func (t *tx) DropUploads(ctx context.Context, now, again time.Time, n int) error {
	var past []flow.ID
	if err := t.ask(ctx, qPastUploads, t.args().int(row.Micros(now)).int(int64(n)), readAll(&past, (*rows).id)); err != nil {
		return fmt.Errorf("look for uploads that nothing keeps: %w", err)
	}
	if len(past) == 0 {
		return nil
	}
	t.add(qDropUploads, t.args().ids(past), nil)
	return store.Failed(t.ask(ctx, qHeldUploads, t.args().ids(past).int(row.Micros(again)), nil), "drop uploads")
}

// DroppedUploads implements store.Uploads.
func (t *tx) DroppedUploads(ctx context.Context, n int) (ids []flow.ID, err error) {
	err = t.ask(ctx, qDropped, t.args().int(int64(n)), readAll(&ids, (*rows).id))
	return store.Result(ids, err, "read dropped uploads")
}

// ForgetUploads implements store.Uploads.
func (t *tx) ForgetUploads(ctx context.Context, ids []flow.ID) error {
	return store.Failed(t.ask(ctx, qForget, t.args().ids(ids), nil), "forget uploads")
}

// Upload implements store.Reader.
func (s *Store) Upload(ctx context.Context, sum [sha256.Size]byte) (store.Upload, error) {
	var all []store.Upload
	if err := s.read(ctx, call{q: qUpload, params: new(args).bytes(sum[:]).params, read: readInto(&all, uploads)}); err != nil {
		return store.Upload{}, fmt.Errorf("read the upload %x: %w", sum, err)
	}
	return theUpload(all, sum)
}

// putHolds queues the statement that writes holds.
func (t *tx) putHolds(all []store.Hold) {
	if len(all) == 0 {
		return
	}
	t.put(qInsertHolds, holds.columns(all...))
}
