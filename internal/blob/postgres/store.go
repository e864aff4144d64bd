// Package postgres stores blobs in a PostgreSQL database, where every server can reach them. A blob is written piece by piece, each in its
// own transaction, and gets its name when it is complete. So memory, statements and transactions stay small for any size, and a deadline
// applies to each piece and not to the whole. The tables belong to the schema of the executions (store/postgres).
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/pgpool"
)

const (
	// pieceSize is the size of a blob's piece, which is one row, and approximately the memory of a put or a get.
	pieceSize = 256 << 10
	// keepLoose is how long the pieces of a content without a name are kept: for one that is being written, since its last piece; for one that
	// was removed or replaced, for its readers.
	keepLoose = 15 * time.Minute
	// removeNames is how many names one statement of a removal deletes: a prefix may match any number of blobs, and a long transaction would
	// delay vacuuming. 2,000 take about 20 ms.
	removeNames = 2000
	// sweepContents, sweepPieces and sweepBytes limit what one statement of a sweep removes: 500 small contents, or 128 pieces of full size
	// with their 17,000 rows in PostgreSQL's table for large values.
	sweepContents, sweepPieces, sweepBytes = 500, 2000, 32 << 20
)

// Store implements blob.Store.
type Store struct {
	pool *pgpool.Pool
	sql  statements
}

var (
	_ blob.Store   = (*Store)(nil)
	_ blob.Sweeper = (*Store)(nil)
)

// New stores blobs in the tables of a schema, whose name must be quoted as in statements. The store owns the pool from then on.
func New(pool *pgpool.Pool, schema string) *Store { return &Store{pool: pool, sql: render(schema)} }

// Close closes the connections once running operations have ended.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// Put implements blob.Store. The blob is durable when it returns. A later Sweep removes what a failed put has written.
func (s *Store) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	if err := blob.CheckName(name); err != nil {
		return 0, fmt.Errorf("put blob: %w", err)
	}
	n, err := s.put(ctx, name, r)
	if err != nil {
		return 0, fmt.Errorf("put blob %s: %w", name, err)
	}
	return n, nil
}

func (s *Store) put(ctx context.Context, name string, r io.Reader) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	piece := make([]byte, pieceSize)
	n, err := blob.ReadFull(r, piece)
	if errors.Is(err, io.EOF) {
		return int64(n), s.query(ctx, s.sql.putWhole, []any{name, piece[:n], keepLoose.Seconds()}, new(int64))
	}
	if err != nil {
		return 0, err
	}
	var content int64
	if err := s.query(ctx, s.sql.begin, []any{keepLoose.Seconds()}, &content); err != nil {
		return 0, err
	}
	size, err := s.write(ctx, name, content, piece, r)
	if err != nil {
		s.drop(ctx, content)
	}
	return size, err
}

// write writes the pieces of a content, of which the first was already read, and gives it its name.
func (s *Store) write(ctx context.Context, name string, content int64, piece []byte, r io.Reader) (size int64, err error) {
	n := len(piece)
	for number := 0; n > 0; number++ {
		if err := s.add(ctx, content, number, piece[:n]); err != nil {
			return 0, err
		}
		size += int64(n)
		if n, err = blob.ReadFull(r, piece); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	var named int64
	if err := s.query(ctx, s.sql.name, []any{name, content, size, keepLoose.Seconds()}, &named); err != nil {
		return 0, err
	}
	return size, written(named)
}

// written returns an error if a statement did not find the content to which it writes.
func written(rows int64) error {
	if rows == 0 {
		return fmt.Errorf("%w: nothing was written to it for %s and it was given up", blob.ErrUnavailable, keepLoose)
	}
	return nil
}

// add writes a piece. It need not be on disk before the name is, because the database's log is written in order.
func (s *Store) add(ctx context.Context, content int64, number int, data []byte) error {
	var b pgx.Batch
	b.Queue(s.sql.lazily)
	b.Queue(s.sql.add, content, number, data, keepLoose.Seconds())
	var tag pgconn.CommandTag
	err := s.pool.Use(ctx, func(ctx context.Context, c *pgpool.Conn) error {
		results := c.SendBatch(ctx, &b)
		_, err := results.Exec()
		if err == nil {
			tag, err = results.Exec()
		}
		if e := results.Close(); err == nil {
			err = e
		}
		return err
	})
	if err != nil {
		return translate(ctx, err)
	}
	return written(tag.RowsAffected())
}

// drop gives up the content of a failed put, so that the next sweep need not wait for its time. If it fails, the content is given up when
// its time has passed.
func (s *Store) drop(ctx context.Context, content int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = s.pool.Use(ctx, func(ctx context.Context, c *pgpool.Conn) error {
		_, err := c.Exec(ctx, s.sql.drop, content)
		return err
	})
}

// Get implements blob.Store. An open blob can be read unchanged for a quarter of an hour after it was replaced or removed; then reading
// ends with an error.
func (s *Store) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	if err := blob.CheckName(name); err != nil {
		return nil, fmt.Errorf("get blob: %w", err)
	}
	if offset < 0 {
		return nil, fmt.Errorf("get blob %s: offset %d is negative", name, offset)
	}
	r := &reader{store: s, ctx: ctx, name: name, at: offset}
	err := s.query(ctx, s.sql.find, []any{name}, &r.content, &r.size)
	if errors.Is(err, pgx.ErrNoRows) {
		err = blob.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get blob %s: %w", name, err)
	}
	return r, nil
}

// reader reads a content, piece by piece.
type reader struct {
	store   *Store
	ctx     context.Context
	name    string
	content int64
	size    int64
	at      int64  // offset of the next read
	have    []byte // read and not returned yet
}

func (r *reader) Read(p []byte) (int, error) {
	if len(r.have) == 0 {
		if r.at >= r.size {
			return 0, io.EOF
		}
		if err := r.fetch(); err != nil {
			return 0, fmt.Errorf("read blob %s at %d: %w", r.name, r.at, err)
		}
	}
	n := copy(p, r.have)
	r.have = r.have[n:]
	r.at += int64(n)
	return n, nil
}

func (r *reader) fetch() error {
	number, skip := r.at/pieceSize, r.at%pieceSize
	var piece []byte
	err := r.store.query(r.ctx, r.store.sql.piece, []any{r.content, number}, &piece)
	if errors.Is(err, pgx.ErrNoRows) {
		return errors.New("it has been removed meanwhile")
	}
	if err != nil {
		return err
	}
	if want := min(pieceSize, r.size-number*pieceSize); int64(len(piece)) != want {
		return fmt.Errorf("piece %d has %d bytes and should have %d", number, len(piece), want)
	}
	r.have = piece[skip:]
	return nil
}

func (r *reader) Close() error { return nil }

// Remove implements blob.Store, with a page of names in each transaction. A later Sweep removes the pieces.
func (s *Store) Remove(ctx context.Context, prefixes ...string) error {
	if err := blob.CheckName(prefixes...); err != nil {
		return fmt.Errorf("remove blobs: %w", err)
	}
	if len(prefixes) == 0 {
		return nil
	}
	for {
		var found int64
		if err := s.query(ctx, s.sql.remove, []any{prefixes, keepLoose.Seconds(), removeNames}, &found); err != nil {
			return fmt.Errorf("remove blobs %s and %d more: %w", prefixes[0], len(prefixes)-1, err)
		}
		if found < removeNames {
			return nil
		}
	}
}

// Sweep implements blob.Sweeper. Any number of servers may call it concurrently.
func (s *Store) Sweep(ctx context.Context) error {
	for {
		var found int64
		if err := s.query(ctx, s.sql.sweep, []any{sweepContents, sweepPieces, sweepBytes}, &found); err != nil {
			return fmt.Errorf("sweep blobs: %w", err)
		}
		if found == 0 {
			return nil
		}
	}
}

// query runs a statement that returns one row. It takes one round trip or, if the connection has not prepared the statement yet, two, with
// the time limit of one.
func (s *Store) query(ctx context.Context, sql string, args []any, into ...any) error {
	return translate(ctx, s.pool.Use(ctx, func(ctx context.Context, c *pgpool.Conn) error {
		return c.QueryRow(ctx, sql, args...).Scan(into...)
	}))
}

// translate converts a statement's error to an error of the port.
func translate(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var e *pgconn.PgError
	if errors.As(err, &e) && strings.Contains("22 23 54", e.Code[:2]) { // bad values, constraints, limits of size
		return err
	}
	return fmt.Errorf("%w: %w", blob.ErrUnavailable, err)
}
