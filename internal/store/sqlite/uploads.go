package sqlite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

type uploadColumns = relation[*store.Upload, *store.Upload]

// The columns of uploads: those that the end of an upload writes, and all that are read.
var (
	uploaded = uploadColumns{
		{"sum", func(s *stmt, u *store.Upload) { s.blob(u.Sum[:]) }, func(s *stmt, u *store.Upload) { copy(u.Sum[:], s.peekBlob()) }},
		{"size", func(s *stmt, u *store.Upload) { s.int(u.Size) }, func(s *stmt, u *store.Upload) { u.Size = s.getInt() }},
		{"until", func(s *stmt, u *store.Upload) { s.time(u.Until) }, func(s *stmt, u *store.Upload) { u.Until = s.getTime() }},
	}
	uploads = uploadColumns{{"id", nil, func(s *stmt, u *store.Upload) { u.ID = s.getID() }}}.with(uploaded...)
)

// thatIsThere is the condition that an upload has ended and is kept.
const thatIsThere = ` sum = ? AND sum IS NOT NULL AND dropped = 0`

var (
	qBeginUpload = sql(`INSERT INTO uploads (id, sum, size, until, dropped) VALUES (?, NULL, 0, ?, 0)`)
	qEndUpload   = sql(`UPDATE uploads SET ` + uploaded.sets() + ` WHERE id = ? AND sum IS NULL AND dropped = 0`)
	qUpload      = sql(`SELECT ` + uploads.names("") + ` FROM uploads WHERE` + thatIsThere)
	qKeepUpload  = sql(`UPDATE uploads SET until = max(until, ?) WHERE` + thatIsThere)
	qDropUpload  = sql(`UPDATE uploads SET dropped = 1 WHERE id = ?`)
	qLookAgain   = sql(`UPDATE uploads SET until = ? WHERE id = ?`)
	qPastUploads = sql(`SELECT id, EXISTS (SELECT 1 FROM holds h WHERE h.upload = u.id) FROM uploads u WHERE dropped = 0 AND until <= ? ORDER BY until LIMIT ?`)
	qDropped     = sql(`SELECT id FROM uploads WHERE dropped = 1 ORDER BY until LIMIT ?`)
	qForget      = sql(`DELETE FROM uploads WHERE id = ? AND dropped = 1`)
	qHold        = sql(`INSERT OR IGNORE INTO holds (n, upload) VALUES (?, ?)`)
)

// BeginUpload implements store.Uploads.
func (t *tx) BeginUpload(_ context.Context, id flow.ID, until time.Time) error {
	return store.Failed(taken(t.c.use(qBeginUpload).id(id).int(row.Micros(until)).run()), "note an upload")
}

// EndUpload implements store.Uploads.
func (t *tx) EndUpload(ctx context.Context, u store.Upload) (store.Upload, error) {
	before, found, err := t.c.upload(u.Sum)
	switch {
	case err != nil:
		return u, err
	case found:
		if err := t.c.use(qDropUpload).id(u.ID).run(); err != nil {
			return u, fmt.Errorf("drop an upload: %w", err)
		}
		return t.KeepUpload(ctx, before.Sum, u.Until)
	}
	if err := uploaded.bind(t.c.use(qEndUpload), &u).id(u.ID).run(); err != nil {
		return u, fmt.Errorf("end an upload: %w", err)
	}
	if t.c.changes() == 0 {
		return u, fmt.Errorf("end an upload: %w", store.ErrNotFound)
	}
	return u, nil
}

// KeepUpload implements store.Uploads.
func (t *tx) KeepUpload(_ context.Context, sum [sha256.Size]byte, until time.Time) (store.Upload, error) {
	if err := t.c.use(qKeepUpload).int(row.Micros(until)).blob(sum[:]).run(); err != nil {
		return store.Upload{}, fmt.Errorf("keep an upload: %w", err)
	}
	return t.c.mustUpload(sum)
}

// LockUploads implements store.Uploads. There is one transaction at a time, so no other one can drop them.
func (t *tx) LockUploads(_ context.Context, sums [][sha256.Size]byte) (map[[sha256.Size]byte]flow.ID, error) {
	there := make(map[[sha256.Size]byte]flow.ID, len(sums))
	for _, sum := range sums {
		u, found, err := t.c.upload(sum)
		if err != nil {
			return nil, err
		}
		if found {
			there[sum] = u.ID
		}
	}
	return there, nil
}

// DropUploads implements store.Uploads.
func (t *tx) DropUploads(_ context.Context, now, again time.Time, n int) error {
	var held, past []flow.ID
	s := t.c.use(qPastUploads).int(row.Micros(now)).int(int64(n))
	for s.next() {
		if id := flow.ID(s.getID()); s.getInt() == 1 {
			held = append(held, id)
		} else {
			past = append(past, id)
		}
	}
	if err := s.done(); err != nil {
		return fmt.Errorf("look for uploads that nothing keeps: %w", err)
	}
	for _, id := range held {
		if err := t.c.use(qLookAgain).int(row.Micros(again)).id(id).run(); err != nil {
			return fmt.Errorf("keep an upload: %w", err)
		}
	}
	for _, id := range past {
		if err := t.c.use(qDropUpload).id(id).run(); err != nil {
			return fmt.Errorf("drop an upload: %w", err)
		}
	}
	return nil
}

// DroppedUploads implements store.Uploads.
func (t *tx) DroppedUploads(_ context.Context, n int) (ids []flow.ID, err error) {
	s := t.c.use(qDropped).int(int64(n))
	for s.next() {
		ids = append(ids, s.getID())
	}
	err = s.done()
	return store.Result(ids, err, "read dropped uploads")
}

// ForgetUploads implements store.Uploads.
func (t *tx) ForgetUploads(_ context.Context, ids []flow.ID) error {
	for _, id := range ids {
		if err := t.c.use(qForget).id(id).run(); err != nil {
			return fmt.Errorf("forget an upload: %w", err)
		}
	}
	return nil
}

// Upload implements store.Reader.
func (s *Store) Upload(ctx context.Context, sum [sha256.Size]byte) (u store.Upload, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		u, err = c.mustUpload(sum)
		return err
	})
	return u, err
}

func (t *tx) hold(h store.Hold) error {
	n, err := t.mustNumber(h.Execution)
	if err != nil {
		return err
	}
	return t.c.use(qHold).int(n).id(h.Upload).run()
}

func (c *conn) mustUpload(sum [sha256.Size]byte) (store.Upload, error) {
	u, found, err := c.upload(sum)
	if err == nil && !found {
		err = fmt.Errorf("read the upload %x: %w", sum, store.ErrNotFound)
	}
	return u, err
}

// upload reads the upload with a sum, if it is kept.
func (c *conn) upload(sum [sha256.Size]byte) (u store.Upload, found bool, err error) {
	s := c.use(qUpload).blob(sum[:])
	if found = s.next(); found {
		err = uploads.read(s, &u)
	}
	if err := cmp.Or(s.done(), err); err != nil {
		return u, false, fmt.Errorf("read the upload %x: %w", sum, err)
	}
	return u, found, nil
}
