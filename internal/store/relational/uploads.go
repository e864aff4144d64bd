package relational

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var uploads = Relation[store.Upload]{
	id("id", func(u *store.Upload) *flow.ID { return &u.ID }),
	sum("sum", func(u *store.Upload) *[sha256.Size]byte { return &u.Sum }),
	number("size", Int8, func(u *store.Upload) *int64 { return &u.Size }),
	moment("until", func(u *store.Upload) *time.Time { return &u.Until }),
}

var uploadReferences = Relation[store.UploadReference]{
	id("id", func(h *store.UploadReference) *flow.ID { return &h.Execution }),
	id("upload", func(h *store.UploadReference) *flow.ID { return &h.Upload }),
}

// kept is the condition that an upload has ended and was not dropped.
func (d dialect) kept() string { return ` AND sum IS NOT NULL AND ` + d.not("dropped") }

// A submission locks its uploads FOR KEY SHARE. It waits only for qDropUploads, whose rows were locked FOR UPDATE, skipping locked ones, so
// there is no deadlock. qKeepUpload changes no key, so no submission waits for it.
var (
	qBeginUpload = same(`INSERT INTO {s}.uploads (id, sum, size, until, dropped) VALUES ($1, NULL, 0, $2::bigint, false)`)

	qEndUpload = sql(func(d dialect) string {
		return `UPDATE {s}.uploads SET sum = $2, size = $3::bigint, until = $4::bigint WHERE id = $1 AND sum IS NULL AND ` + d.not("dropped") +
			` RETURNING ` + uploads.names("")
	})

	qUpload = sql(func(d dialect) string {
		return `SELECT ` + uploads.names("") + ` FROM {s}.uploads WHERE sum = $1` + d.kept()
	})

	qKeepUpload = sql(func(d dialect) string {
		return `UPDATE {s}.uploads SET until = ` + d.greatest("until", "$2::bigint") + ` WHERE sum = $1` + d.kept() + ` RETURNING ` + uploads.names("")
	})

	qLockUploads = sql(func(d dialect) string {
		lock := ``
		if d == postgres {
			lock = ` FOR KEY SHARE`
		}
		return `SELECT ` + uploads.names("") + ` FROM {s}.uploads WHERE ` + d.in("sum", Bytes) + d.kept() + lock
	})

	qPastUploads = sql(func(d dialect) string {
		return `SELECT id FROM {s}.uploads WHERE ` + d.not("dropped") + ` AND until <= $1::bigint ORDER BY until LIMIT $2` + d.skipLocked()
	})

	// The uploads are locked, so no execution can begin to refer to one at the same time.
	qReferencedUploads = sql(func(d dialect) string {
		return `UPDATE {s}.uploads AS u SET until = $2::bigint WHERE ` + d.in("id", UUID) + ` AND ` + isReferenced
	})
	qDropUploads = sql(func(d dialect) string {
		return `UPDATE {s}.uploads AS u SET dropped = true WHERE ` + d.in("id", UUID) + ` AND ` + isReferenced + ` IS NULL`
	})

	qDropped = sql(func(d dialect) string {
		dropped := "dropped"
		if d == sqlite {
			dropped = "dropped = 1"
		}
		return `SELECT id FROM {s}.uploads WHERE ` + dropped + ` ORDER BY until LIMIT $1`
	})
	qForget = sql(func(d dialect) string { return `DELETE FROM {s}.uploads WHERE ` + d.in("id", UUID) + ` AND dropped` })

	qAddUploadReferences = sql(func(d dialect) string { return uploadReferences.insertOf(d, "holds") + ` ON CONFLICT DO NOTHING` })
)

// isReferenced is true, or null, if an execution refers to upload u.
const isReferenced = `(SELECT true FROM {s}.holds h WHERE h.upload = u.id LIMIT 1)`

func (t Tx) BeginUpload(ctx context.Context, id flow.ID, until time.Time) error {
	return store.Failed(t.Run(ctx, Call{Statement: qBeginUpload, Args: []any{id, until}}), "note an upload")
}

// EndUpload implements store.Uploads. If two transactions end uploads of the same sum at once, one succeeds; the other gets
// store.ErrConflict, and finds the first one's upload when it tries again.
func (t Tx) EndUpload(ctx context.Context, u store.Upload) (store.Upload, error) {
	before, err := list(ctx, t, Call{Statement: qKeepUpload, Args: []any{u.Sum[:], u.Until}}, uploads, "look for the upload %x", u.Sum)
	if err != nil {
		return u, err
	}
	if len(before) > 0 {
		err := t.Run(ctx, Call{Statement: qDropUploads, Rows: ids.input([]flow.ID{u.ID})})
		return before[0], store.Failed(err, "drop an upload")
	}
	return one(ctx, t, Call{Statement: qEndUpload, Args: []any{u.ID, u.Sum[:], u.Size, u.Until}}, uploads, "end an upload")
}

func (t Tx) KeepUpload(ctx context.Context, sum [sha256.Size]byte, until time.Time) (store.Upload, error) {
	return one(ctx, t, Call{Statement: qKeepUpload, Args: []any{sum[:], until}}, uploads, "keep the upload %x", sum)
}

func (t Tx) LockUploads(ctx context.Context, sums [][sha256.Size]byte) (map[[sha256.Size]byte]flow.ID, error) {
	all, err := list(ctx, t, Call{Statement: qLockUploads, Rows: hashes.input(sums)}, uploads, "lock uploads")
	if err != nil {
		return nil, err
	}
	found := make(map[[sha256.Size]byte]flow.ID, len(all))
	for _, u := range all {
		found[u.Sum] = u.ID
	}
	return found, nil
}

func (t Tx) DropUploads(ctx context.Context, now, again time.Time, n int) error {
	past, err := list(ctx, t, Call{Statement: qPastUploads, Args: []any{now, n}}, ids, "look for uploads that nothing keeps")
	if err != nil {
		return err
	}
	err = t.Run(ctx, Call{Statement: qDropUploads, Rows: ids.input(past)},
		Call{Statement: qReferencedUploads, Rows: ids.input(past), Args: []any{again}})
	return store.Failed(err, "drop uploads")
}

func (t Tx) DroppedUploads(ctx context.Context, n int) ([]flow.ID, error) {
	return list(ctx, t, Call{Statement: qDropped, Args: []any{n}}, ids, "read dropped uploads")
}

func (t Tx) ForgetUploads(ctx context.Context, all []flow.ID) error {
	return store.Failed(t.Run(ctx, Call{Statement: qForget, Rows: ids.input(all)}), "forget uploads")
}

// AddUploadReferences keeps uploads for executions. The same upload may occur twice.
func (t Tx) AddUploadReferences(ctx context.Context, all []store.UploadReference) error {
	return queue(ctx, t, qAddUploadReferences, uploadReferences, all, "hold %d uploads")
}

func (s Reader) Upload(ctx context.Context, sum [sha256.Size]byte) (store.Upload, error) {
	return one(ctx, s, Call{Statement: qUpload, Args: []any{sum[:]}}, uploads, "read the upload %x", sum)
}
