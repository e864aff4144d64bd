// Package postgres is the store in a PostgreSQL database that any number of processes share. There is no leader: every write is conditional
// on the rows being as the decision read them, and a row that another transaction has locked is skipped, or waited for in a fixed order.
// Statements of a transaction are sent in one round trip as long as no decision depends on their results. A decision of any size takes two
// round trips: its reads, and its writes with the COMMIT.
package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/pgpool"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
)

// Options tune a store. The zero value is for production.
type Options struct {
	// Schema is the schema of all tables; "" means "pawl". Stores in different schemas are independent.
	Schema string
	// Writers and Readers are the largest number of connections for each; 0 means 4. Appending logs may open one more, and notifications use
	// one.
	Writers, Readers int
	// AsIs leaves the schema unchanged, and refuses one with missing migrations.
	AsIs bool
	// NotifyDSN connects to the store's database without a pooler, for LISTEN and NOTIFY; Open refuses one for another database. "" means the
	// store's own DSN, or no notifications if that uses a pooler (see Open).
	NotifyDSN string
	// Limits are the time limits for the server; zero fields have the values for production.
	Limits pgpool.Limits
}

const (
	defaultSchema      = "pawl"
	defaultConnections = 4

	// lockTimeout is how long the server waits for one row: much longer than a transaction, and shorter than the patience of an operator.
	lockTimeout = 10 * time.Second
	// idleTimeout ends a transaction whose client has stopped responding, because its locks would block all others.
	idleTimeout = 30 * time.Second
	// mostTries is how often a transaction is run again when the server asks for it.
	mostTries = 10
)

// Store implements store.Store and store.Notifier, which describe its exported methods.
type Store struct {
	relational.Reader

	name       string // of the schema
	schema     string // the same, quoted
	pooled     bool   // behind a transaction pooler
	statements []statement
	writers    *pgpool.Pool
	readers    *pgpool.Pool
	notifier   *notifier
	bloat      bloat
	clock      atomic.Pointer[clockReading] // the latest
	unreadable store.Unreadable[flow.ID]

	closing sync.Once
}

func (s *Store) Unreadable() int { return s.unreadable.Count() }

var (
	_ store.Store    = (*Store)(nil)
	_ store.Notifier = (*Store)(nil)
	_ store.Expecter = (*tx)(nil)
)

// Open connects to the server of the DSN and migrates the schema. PostgreSQL must be version 15 or newer. A DSN with
// default_query_exec_mode=exec (or another mode that prepares nothing) is taken to use a pooler in transaction mode, where no setting of a
// connection outlives its transaction.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	s, err := start(ctx, dsn, o)
	return store.Result(s, err, "open postgres store")
}

func start(ctx context.Context, dsn string, o Options) (_ *Store, err error) {
	t, err := targetOf(dsn, o)
	if err != nil {
		return nil, err
	}
	cfg := t.cfg
	s := &Store{name: t.schema, schema: t.quoted(), pooled: pooled(cfg)}
	s.Reader = relational.Reader{Querier: s}
	listening := cfg
	if o.NotifyDSN != "" {
		if listening, err = pgpool.Parse(o.NotifyDSN, o.Limits); err != nil {
			return nil, fmt.Errorf("store_notify: %w", err)
		}
	} else if s.pooled {
		listening = nil
	}
	s.statements = render(s.schema)
	prepare := t.migrate
	if o.AsIs {
		prepare = t.upToDate
	}
	if err := prepare(ctx); err != nil {
		return nil, explain(err)
	}
	if s.writers, err = openPool(ctx, cfg, o.Writers, o.Limits, writing); err != nil {
		return nil, explain(err)
	}
	if s.readers, err = openPool(ctx, cfg, o.Readers, o.Limits, reading); err != nil {
		s.writers.Close()
		return nil, explain(err)
	}
	s.startNotifier(listening, o.Limits)
	if o.NotifyDSN != "" {
		if err := s.sameDatabase(ctx); err != nil {
			_ = s.Close()
			return nil, explain(err)
		}
	}
	return s, nil
}

// pooled reports whether a DSN uses a transaction pooler.
func pooled(cfg *pgxpool.Config) bool {
	switch cfg.ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeCacheStatement:
		return false
	default:
		return true
	}
}

// setting is a parameter that a connection sets. Plans are generic and use indexes: statements list hundreds of rows, and the statistics of
// a table that is empty now and full soon would mislead the planner. For readers the server makes a generic plan after a few runs.
type setting struct{ name, value string }

func common() []setting {
	ms := func(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }
	return []setting{
		{"statement_timeout", ms(pgpool.StatementTimeout)},
		{"lock_timeout", ms(lockTimeout)},
		{"idle_in_transaction_session_timeout", ms(idleTimeout)},
		{"jit", "off"},
		{"max_parallel_workers_per_gather", "0"}, // a query that reads a whole table must not slow down transactions that write
	}
}

func writing() []setting {
	return append(common(), setting{"synchronous_commit", "on"}, setting{"plan_cache_mode", "force_generic_plan"},
		setting{"enable_seqscan", "off"}, setting{"enable_hashjoin", "off"}, setting{"enable_mergejoin", "off"})
}

// Readers walk through indexes in order, as far as a page needs. A bitmap scan would first read all entries of the index for the condition,
// including dead rows.
func reading() []setting {
	return append(common(), setting{"enable_seqscan", "off"}, setting{"enable_bitmapscan", "off"})
}

// openPool opens connections with settings. Behind a pooler each writing transaction makes its own settings.
func openPool(ctx context.Context, cfg *pgxpool.Config, size int, limits pgpool.Limits, settings func() []setting) (*pgpool.Pool, error) {
	if size <= 0 {
		size = defaultConnections
	}
	if !pooled(cfg) {
		cfg = cfg.Copy()
		for _, v := range settings() {
			cfg.ConnConfig.RuntimeParams[v.name] = v.value
		}
	}
	return pgpool.Open(ctx, cfg, size, limits)
}

// Pool opens up to size connections to the database of a DSN, with the settings of the store's writers, for packages that have their own
// tables next to the store's. It returns the quoted name of the schema. Open or Migrate creates the tables.
func Pool(ctx context.Context, dsn string, o Options, size int) (pool *pgpool.Pool, schema string, err error) {
	t, err := targetOf(dsn, o)
	if err != nil {
		return nil, "", err
	}
	if pool, err = openPool(ctx, t.cfg, size, o.Limits, writing); err != nil {
		return nil, "", fmt.Errorf("open connections: %w", explain(err))
	}
	return pool, t.quoted(), nil
}

const customPrepared = "pawl"

// conn returns the conn of a pool's connection.
func (s *Store) conn(pc *pgpool.Conn) *conn {
	pg := pc.Conn.Conn().PgConn()
	c := &conn{lent: pc, pg: pg, statements: s.statements}
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

// Update implements store.Store. Waiting for a connection ends with ctx, or after the time limit of a round trip. A transaction that has
// begun is not interrupted by ctx, but each of its round trips has a time limit. Statements of Apply are sent with the next read or with
// the commit, and a conflict appears only then.
func (s *Store) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return s.run(ctx, false, decide)
}

// run implements Update. If alone is set, no other transaction of the store runs at the same time.
func (s *Store) run(ctx context.Context, alone bool, decide func(context.Context, store.Tx) error) error {
	if err := store.Outside(ctx); err != nil {
		return err
	}
	var first *locks
	for try := 1; ; try++ {
		err := s.update(ctx, first, alone, decide)
		if err == nil {
			return nil
		}
		if l := wanted(err); l != nil && try < mostTries {
			first = l
			continue
		}
		if !isRetryable(err) {
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

func (s *Store) update(ctx context.Context, first *locks, alone bool, decide func(context.Context, store.Tx) error) error {
	pc, err := s.writers.Acquire(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("wait to write: %w", ctx.Err())
		}
		return fmt.Errorf("wait to write: %w", translate(err))
	}
	defer pc.Release()
	t := newTx(s, s.conn(pc))
	t.alone = alone
	defer t.end()
	if first != nil {
		if err := t.hold(ctx, first); err != nil {
			return err
		}
	}
	if err := decide(store.Nested(ctx), t); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("before the commit: %w", err)
	}
	return t.commit()
}

// read runs calls on a reader's connection. Each call reads its own snapshot. The wait for a connection and the calls together have the
// time limit of one round trip.
func (s *Store) read(ctx context.Context, calls ...call) error {
	if err := store.Outside(ctx); err != nil {
		return err
	}
	err := s.readers.Use(ctx, func(ctx context.Context, pc *pgpool.Conn) error {
		_, err := s.conn(pc).run(ctx, calls)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return translate(err)
}

// Close closes the store's connections once running transactions have ended.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.notifier.stop()
		s.writers.Close()
		s.readers.Close()
	})
	return nil
}

var qReady = sql(`SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on', (SELECT true FROM {s}.definitions WHERE name > '' LIMIT 1)`)

// Ready implements store.Store. It may take as long as two pings: one on a connection that does not respond, and one on its replacement.
func (s *Store) Ready(ctx context.Context) error {
	var standby, readOnly bool
	bounded, cancel := context.WithTimeout(ctx, 2*s.readers.Limits().Ping)
	defer cancel()
	err := s.read(bounded, call{q: qReady, read: func(r *rows) error {
		standby, readOnly = r.bool(), r.bool()
		return nil
	}})
	switch {
	case err != nil && bounded.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("ask the database: %w: no answer within %s", store.ErrUnavailable, 2*s.readers.Limits().Ping)
	case err != nil:
		return fmt.Errorf("ask the database: %w", err)
	case standby || readOnly:
		return fmt.Errorf("%w: the server is a read-only standby, or read-only by its settings: name the primary", store.ErrUnavailable)
	}
	return nil
}
