// Package postgres keeps the truth in a PostgreSQL database that any number of processes share. Every write is
// conditional, so no process leads; what one has locked, another passes over or waits for in a fixed order. Statements
// of a transaction go together wherever nothing has to be decided in between: a decision costs three round trips,
// whatever its size.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-run/pawl/internal/store"
)

// Options tune a store. The zero value is for production.
type Options struct {
	// Schema holds all tables; "" means "pawl". Stores in different schemas know nothing of each other.
	Schema string
	// Writers and Readers are how many connections are opened at the most for each; 0 means 4. A connection more is used
	// for logs now and then, and one for notifications.
	Writers, Readers int
	// AsIs leaves the schema as it is: one that is not up to date is refused.
	AsIs bool
	// NotifyDSN reaches the server without a pooler in between, for LISTEN and NOTIFY. "" means the store's own DSN; with
	// a pooler (see Open) it means no notifications.
	NotifyDSN string
}

const (
	defaultSchema      = "pawl"
	defaultConnections = 4

	// connectTimeout is how long opening a connection may take.
	connectTimeout = 5 * time.Second
	// statementTimeout is how long the server works on one statement; lockTimeout how long it waits for one row. They are
	// far above what anything here takes and below what an operator waits for.
	statementTimeout = 30 * time.Second
	lockTimeout      = 10 * time.Second
	// idleTimeout ends a transaction whose client has gone silent: its locks would hold up everybody.
	idleTimeout = 30 * time.Second
	// patience is how long a round trip of a transaction may take before its connection counts as lost.
	patience = 45 * time.Second
	// mostTries is how often a transaction is run again because the server asks for it.
	mostTries = 10
)

// Store implements store.Store and store.Notifier.
type Store struct {
	name       string // of the schema
	schema     string // the same, quoted
	pooled     bool   // behind a transaction pooler
	statements []statement
	writers    *pgxpool.Pool
	readers    *pgxpool.Pool
	bell       *bell
	worn       worn

	closing sync.Once
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Notifier = (*Store)(nil)
)

// Open connects to the server that the DSN names and brings the schema up to date. PostgreSQL must be version 15 or newer.
// A DSN with default_query_exec_mode=exec (or another mode that prepares nothing) goes through a pooler in transaction
// mode: nothing is then expected of a connection beyond its transaction.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	s, err := start(ctx, dsn, o)
	if err != nil {
		return nil, fmt.Errorf("open postgres store: %w", err)
	}
	return s, nil
}

func start(ctx context.Context, dsn string, o Options) (_ *Store, err error) {
	cfg, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	if o.Schema == "" {
		o.Schema = defaultSchema
	}
	s := &Store{name: o.Schema, schema: pgx.Identifier{o.Schema}.Sanitize(), pooled: pooled(cfg)}
	s.statements = render(s.schema)
	prepare := migrate
	if o.AsIs {
		prepare = upToDate
	}
	if err := prepare(ctx, cfg, o.Schema); err != nil {
		return nil, explain(err)
	}
	if s.writers, err = openPool(ctx, cfg, o.Writers, writing); err != nil {
		return nil, explain(err)
	}
	if s.readers, err = openPool(ctx, cfg, o.Readers, reading); err != nil {
		s.writers.Close()
		return nil, explain(err)
	}
	if err := s.startBell(o.NotifyDSN, cfg, o.Schema); err != nil {
		s.writers.Close()
		s.readers.Close()
		return nil, explain(err)
	}
	return s, nil
}

// parse reads a DSN.
func parse(dsn string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		// The parser's own error repeats the DSN, and with it the password.
		return nil, errors.New("the DSN cannot be read: it looks like postgres://user:password@host:5432/database?sslmode=require, with special characters of the password percent-encoded")
	}
	cfg.ConnConfig.ConnectTimeout = connectTimeout
	return cfg, nil
}

// pooled reports whether a DSN asks for connections that remember nothing.
func pooled(cfg *pgxpool.Config) bool {
	switch cfg.ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeCacheStatement:
		return false
	default:
		return true
	}
}

// settings are what a connection is to have. Plans are made once and by index, for readers after a few times: statements
// name rows by the hundred, and statistics of tables that are empty at one moment and full at the next would mislead the
// planner.
type setting struct{ name, value string }

func common() []setting {
	ms := func(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }
	return []setting{
		{"statement_timeout", ms(statementTimeout)},
		{"lock_timeout", ms(lockTimeout)},
		{"idle_in_transaction_session_timeout", ms(idleTimeout)},
		{"jit", "off"},
		{"max_parallel_workers_per_gather", "0"}, // who looks at everything must not slow down those who write
	}
}

func writing() []setting {
	return append(common(), setting{"synchronous_commit", "on"}, setting{"plan_cache_mode", "force_generic_plan"},
		setting{"enable_seqscan", "off"}, setting{"enable_hashjoin", "off"}, setting{"enable_mergejoin", "off"})
}

// Readers walk through indexes in their order, as far as a page goes: a bitmap is made of all that an index has, and of rows
// that are gone as well.
func reading() []setting {
	return append(common(), setting{"enable_seqscan", "off"}, setting{"enable_bitmapscan", "off"})
}

// openPool opens connections with settings; behind a pooler each transaction that writes brings its own.
func openPool(ctx context.Context, from *pgxpool.Config, size int, settings func() []setting) (*pgxpool.Pool, error) {
	cfg := from.Copy()
	if size <= 0 {
		size = defaultConnections
	}
	cfg.MaxConns = int32(size)
	cfg.MinConns = 0
	if !pooled(cfg) {
		for _, v := range settings() {
			cfg.ConnConfig.RuntimeParams[v.name] = v.value
		}
	}
	p, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := p.Ping(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Pool opens up to size connections to the database that a DSN names, for what keeps tables of its own beside the store's:
// with the store's settings, and without its way of speaking. It returns the schema's name as statements write it. Open or
// Migrate makes the tables.
func Pool(ctx context.Context, dsn string, o Options, size int) (pool *pgxpool.Pool, schema string, err error) {
	cfg, name, err := target(dsn, o)
	if err != nil {
		return nil, "", err
	}
	if pool, err = openPool(ctx, cfg, size, reading); err != nil {
		return nil, "", fmt.Errorf("open connections: %w", explain(err))
	}
	return pool, pgx.Identifier{name}.Sanitize(), nil
}

const customPrepared = "pawl"

// conn is what the store says to a pool's connection.
func (s *Store) conn(pc *pgxpool.Conn) *conn {
	pg := pc.Conn().PgConn()
	c := &conn{pg: pg, statements: s.statements}
	if s.pooled {
		return c
	}
	known, ok := pg.CustomData()[customPrepared].([]bool)
	if !ok {
		known = make([]bool, len(queries))
		pg.CustomData()[customPrepared] = known
	}
	c.prepared = known
	return c
}

// Update implements store.Store. Waiting for a connection ends with ctx; a transaction that has begun is not interrupted.
// What Apply is given is sent with the next read or with the commit, and it is then that a conflict shows.
func (s *Store) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	var first *locks
	for try := 1; ; try++ {
		err := s.update(ctx, first, decide)
		if err == nil {
			return nil
		}
		if l := wanted(err); l != nil && try < mostTries {
			first = l
			continue
		}
		if !again(err) {
			return err
		}
		if try == mostTries {
			return fmt.Errorf("%w: the same rows were in use %d times in a row: %w", store.ErrConflict, try, err)
		}
		pause := time.NewTimer(time.Duration(rand.Int64N(int64(try) * int64(10*time.Millisecond))))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("wait to write again: %w", ctx.Err())
		}
	}
}

func (s *Store) update(ctx context.Context, first *locks, decide func(context.Context, store.Tx) error) error {
	pc, err := s.writers.Acquire(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("wait to write: %w", ctx.Err())
		}
		return fmt.Errorf("wait to write: %w", translate(err))
	}
	defer pc.Release()
	t := newTx(s, s.conn(pc))
	defer t.end()
	if first != nil {
		if err := t.hold(ctx, first); err != nil {
			return err
		}
	}
	if err := decide(ctx, t); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("before the commit: %w", err)
	}
	return t.commit()
}

// read runs calls on a connection of the readers: those of one read see one state only when they are one statement.
func (s *Store) read(ctx context.Context, calls ...call) error {
	pc, err := s.readers.Acquire(ctx)
	if err == nil {
		defer pc.Release()
		_, err = s.conn(pc).run(ctx, calls)
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return translate(err)
}

// Close ends the store's connections once what is under way has ended.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.bell.stop()
		s.writers.Close()
		s.readers.Close()
	})
	return nil
}

var qPing = sql(`SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'`)

// Ping reports whether the store can be written to just now, and if not, why.
func (s *Store) Ping(ctx context.Context) error {
	var standby, readOnly bool
	err := s.read(ctx, call{q: qPing, read: func(r *rows) error {
		standby, readOnly = r.bool(), r.bool()
		return nil
	}})
	switch {
	case err != nil:
		return fmt.Errorf("ask the database: %w", err)
	case standby || readOnly:
		return fmt.Errorf("%w: the server is a read-only standby, or read-only by its settings: name the primary", store.ErrUnavailable)
	}
	return nil
}
