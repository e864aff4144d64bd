// Package postgres keeps blobs in a PostgreSQL database, where every server reaches them. A blob is written piece by
// piece, each in a transaction of its own, and gets its name when it is whole: memory, statements and transactions stay
// small whatever its size, and a deadline holds for each piece and not for the whole. The tables belong to the schema
// of the executions (store/postgres).
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
	// pieceSize is how much of a blob is one row, and about how much memory a put or a get takes.
	pieceSize = 256 << 10
	// keepLoose is how long the pieces of a content without a name stay: of one that is being written, since its last
	// piece; of one that was removed or replaced, for those that are reading it.
	keepLoose = 15 * time.Minute
	// removeNames is how many names one statement of a removal takes away: a prefix may hold any number of blobs, and a long
	// transaction would hold up vacuuming. 2,000 take about 20 ms.
	removeNames = 2000
	// sweepContents, sweepPieces and sweepBytes bound what one statement of a sweep removes: 500 small contents, or 128 pieces
	// of full size with their 17,000 rows in PostgreSQL's table for large values.
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

// New keeps blobs in the tables of a schema, whose name is given as statements write it. The pool is the store's from then
// on.
func New(pool *pgpool.Pool, schema string) *Store { return &Store{pool: pool, sql: render(schema)} }

// Close ends the connections once what is under way has ended.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// Put implements blob.Store. What was put is durable when it returns. What a put that broke off has written goes with a
// later Sweep.
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

// write writes the pieces of a content, of which the first has been read, and names it.
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

// written tells whether a statement found the content that it was to go on with.
func written(rows int64) error {
	if rows == 0 {
		return fmt.Errorf("%w: nothing was written to it for %s and it was given up", blob.ErrUnavailable, keepLoose)
	}
	return nil
}

// add writes a piece. It need not be on the disk before the name is: the log of the database is written in order.
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

// drop gives a content up whose put has failed, so that the next sweep need not wait for it. What it cannot do the time
// does.
func (s *Store) drop(ctx context.Context, content int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = s.pool.Use(ctx, func(ctx context.Context, c *pgpool.Conn) error {
		_, err := c.Exec(ctx, s.sql.drop, content)
		return err
	})
}

// Get implements blob.Store. What is read stays as it was when it was opened, for a quarter of an hour after it was
// replaced or removed; then reading ends with an error.
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
	at      int64  // offset of what is read next
	have    []byte // read and not handed out yet
}

// Read implements io.Reader.
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

// Close implements io.Closer.
func (r *reader) Close() error { return nil }

// Remove implements blob.Store, a page of names in each transaction. The pieces go with a later Sweep.
func (s *Store) Remove(ctx context.Context, prefixes ...string) error {
	for _, prefix := range prefixes {
		if err := blob.CheckName(prefix); err != nil {
			return fmt.Errorf("remove blobs: %w", err)
		}
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

// Sweep implements blob.Sweeper. Any number of servers may do it at once.
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

// query runs a statement that answers with one row. It is one round trip or, when the connection does not know the statement
// yet, two, and has the time of one.
func (s *Store) query(ctx context.Context, sql string, args []any, into ...any) error {
	return translate(ctx, s.pool.Use(ctx, func(ctx context.Context, c *pgpool.Conn) error {
		return c.QueryRow(ctx, sql, args...).Scan(into...)
	}))
}

// translate says in the port's words what went wrong with a statement.
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
