package sqlite

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

var (
	qInsertPiece = sql(`INSERT INTO inputs (n, start, number, last, data) VALUES (?, ?, ?, ?, ?)`)

	qGiven = sql(`SELECT number, start + coalesce(length(data), 0), last FROM inputs WHERE n = ? ORDER BY start DESC LIMIT 1`)

	qPieces = sql(`SELECT start, last, data FROM inputs
		WHERE n = ? AND start >= (SELECT coalesce(max(start), 0) FROM inputs WHERE n = ? AND start <= ?) ORDER BY start`)
)

func (t *tx) feed(p *store.InputPiece) error {
	n, err := t.mustNumber(p.Execution)
	if err != nil {
		return err
	}
	return taken(t.c.use(qInsertPiece).int(n).int(p.Offset).int(int64(p.Number)).int(truth(p.Last)).blob(p.Data).run())
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Given implements store.Inputs.
func (t *tx) Given(_ context.Context, id flow.ID) (in flow.Input, err error) {
	n, ok, err := t.number(id)
	if err == nil && ok {
		in, err = t.c.given(n)
	}
	return in, store.Failed(err, "measure the input of %s", id)
}

// ReadInput implements store.Inputs.
func (t *tx) ReadInput(_ context.Context, id flow.ID, from, limit int64) (data []byte, last bool, err error) {
	n, ok, err := t.number(id)
	if err == nil && ok {
		data, last, err = t.c.readInput(n, from, limit)
	}
	return data, last, store.Failed(err, "read the input of %s", id)
}

// Given implements store.Inputs.
func (s *Store) Given(ctx context.Context, id flow.ID) (in flow.Input, err error) {
	err = s.of(ctx, id, func(c *conn, n int64) (err error) {
		in, err = c.given(n)
		return err
	})
	return in, store.Failed(err, "measure the input of %s", id)
}

// ReadInput implements store.Inputs.
func (s *Store) ReadInput(ctx context.Context, id flow.ID, from, limit int64) (data []byte, last bool, err error) {
	err = s.of(ctx, id, func(c *conn, n int64) (err error) {
		data, last, err = c.readInput(n, from, limit)
		return err
	})
	return data, last, store.Failed(err, "read the input of %s", id)
}

func (c *conn) given(n int64) (in flow.Input, err error) {
	s := c.use(qGiven).int(n)
	if s.next() {
		in = flow.Input{Pieces: int(s.getInt()), Size: s.getInt(), Closed: s.getInt() == 1}
	}
	return in, s.done()
}

func (c *conn) readInput(n, from, limit int64) (data []byte, last bool, err error) {
	s := c.use(qPieces).int(n).int(n).int(from)
	for (len(data) == 0 || int64(len(data)) < limit) && s.next() {
		start := s.getInt()
		last = s.getInt() == 1
		piece := s.peekBlob()
		data = append(data, piece[min(max(from-start, 0), int64(len(piece))):]...)
	}
	return data, last, s.done()
}
