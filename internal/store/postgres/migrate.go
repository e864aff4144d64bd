package postgres

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-run/pawl/internal/pgpool"
	"github.com/pawl-run/pawl/internal/store/migration"
)

//go:embed schema/*.sql
var scripts embed.FS

// Migration is one step of the schema.
type Migration struct {
	migration.Step
	AppliedAt time.Time // zero: not yet
}

// Migrate brings the schema up to date, and creates it if it does not exist. Any number of processes may call it at once: one
// migrates, the others wait.
func Migrate(ctx context.Context, dsn string, o Options) error {
	t, err := targetOf(dsn, o)
	if err != nil {
		return err
	}
	if err := t.migrate(ctx); err != nil {
		return fmt.Errorf("migrate: %w", explain(err))
	}
	return nil
}

// Status lists the migrations and when they were applied. It changes nothing.
func Status(ctx context.Context, dsn string, o Options) ([]Migration, error) {
	t, err := targetOf(dsn, o)
	if err != nil {
		return nil, err
	}
	all, err := t.status(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the state of migrations: %w", explain(err))
	}
	return all, nil
}

// target is the schema to migrate, and the files from which it is made.
type target struct {
	cfg    *pgxpool.Config
	schema string
	limits pgpool.Limits
	files  fs.FS // schema/<version>_<what>.sql
}

func targetOf(dsn string, o Options) (target, error) {
	cfg, err := pgpool.Parse(dsn, o.Limits)
	return target{cfg, cmp.Or(o.Schema, defaultSchema), o.Limits, scripts}, err
}

// quoted returns the schema's name for statements.
func (t target) quoted() string { return pgx.Identifier{t.schema}.Sanitize() }

// connect opens one connection and checks that it can serve a store at all.
func (t target) connect(ctx context.Context) (*pgx.Conn, error) {
	one := t.cfg.ConnConfig.Copy()
	one.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // every pooler understands it, and it takes several statements at once
	c, err := pgx.ConnectConfig(ctx, one)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, t.limits.Filled().Answer)
	defer cancel()
	if err := fit(bounded, c); err != nil {
		return nil, errors.Join(err, c.Close(bounded))
	}
	return c, nil
}

const oldestVersion = 15

func fit(ctx context.Context, c *pgx.Conn) error {
	var version int
	var encoding, readOnly string
	var standby bool
	err := c.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), pg_is_in_recovery(),
		current_setting('default_transaction_read_only')`).Scan(&version, &encoding, &standby, &readOnly)
	switch {
	case err != nil:
		return err
	case version/10000 < oldestVersion:
		return unfitf("the server is PostgreSQL %d.%d: Pawl needs %d or newer", version/10000, version%10000, oldestVersion)
	case encoding != "UTF8":
		return unfitf("the database's encoding is %s: create one WITH ENCODING 'UTF8'", encoding)
	case standby:
		return unfitf("the server is a read-only standby: name the primary in the DSN (or add target_session_attrs=read-write and all hosts)")
	case readOnly == "on":
		return unfitf("the database is read-only by its settings: set default_transaction_read_only to off for this user or database")
	}
	return nil
}

// migrationLock is the first half of the advisory lock under which a schema is migrated ("Pawl" in ASCII); the second is the
// schema's name.
const migrationLock = 0x5061776c

// migrate has no time limit, because a migration of large tables takes long, and another process may be migrating. If the server stops
// answering, keep-alive and TCP_USER_TIMEOUT end the connection.
func (t target) migrate(ctx context.Context) (err error) {
	c, err := t.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, hashtext($2))`, migrationLock, t.schema); err != nil {
			return err
		}
		return t.bringUp(ctx, tx)
	})
}

func (t target) bringUp(ctx context.Context, tx pgx.Tx) error {
	quoted := t.quoted()
	state, err := t.look(ctx, tx)
	if err != nil {
		return err
	}
	if !state.exists {
		if _, err := tx.Exec(ctx, `CREATE SCHEMA `+quoted); err != nil {
			return fmt.Errorf("create schema %s: %w", quoted, err)
		}
	}
	if !state.ours {
		_, err := tx.Exec(ctx, `CREATE TABLE `+quoted+`.pawl_migrations (version bigint PRIMARY KEY,
			name text NOT NULL, sum text NOT NULL, applied_at timestamptz NOT NULL)`)
		if err != nil {
			return fmt.Errorf("create table pawl_migrations in schema %s: %w", quoted, err)
		}
	}
	all, err := t.compare(ctx, tx)
	if err != nil {
		return err
	}
	for _, m := range all {
		if !m.AppliedAt.IsZero() {
			continue
		}
		if _, err := tx.Exec(ctx, strings.ReplaceAll(m.Script, "{s}", quoted)); err != nil {
			return fmt.Errorf("migration %s: %w", m.Name, err)
		}
		_, err := tx.Exec(ctx, `INSERT INTO `+quoted+`.pawl_migrations VALUES ($1, $2, $3, clock_timestamp())`, m.Version, m.Name, m.Sum)
		if err != nil {
			return fmt.Errorf("record migration %s: %w", m.Name, err)
		}
	}
	return nil
}

// found says whether a schema exists and whether it is Pawl's.
type found struct{ exists, ours bool }

// look refuses a schema that belongs to another program.
func (t target) look(ctx context.Context, tx pgx.Tx) (found, error) {
	var f found
	var relations int
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
		EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'pawl_migrations'),
		(SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1)`, t.schema).
		Scan(&f.exists, &f.ours, &relations)
	if err == nil && !f.ours && relations > 0 {
		err = unfitf("schema %q belongs to another program (%d tables and indexes): name another schema or database", t.schema, relations)
	}
	return f, err
}

// compare lists the migrations with the times at which they were applied. It refuses a schema with migrations that this program does not
// know.
func (t target) compare(ctx context.Context, tx pgx.Tx) ([]Migration, error) {
	steps, err := migration.Steps(t.files, "")
	if err != nil {
		return nil, err
	}
	type applied struct {
		Version int64
		Sum     string
		At      time.Time
	}
	answer, err := tx.Query(ctx, `SELECT version, sum, applied_at AS at FROM `+t.quoted()+`.pawl_migrations`)
	if err != nil {
		return nil, fmt.Errorf("read table pawl_migrations: %w", err)
	}
	done, err := pgx.CollectRows(answer, pgx.RowToStructByName[applied])
	if err != nil {
		return nil, fmt.Errorf("read table pawl_migrations: %w", err)
	}
	had, at := map[int64]string{}, map[int64]time.Time{}
	for _, d := range done {
		had[d.Version], at[d.Version] = d.Sum, d.At.UTC()
	}
	if err := migration.Compare(steps, had); err != nil {
		return nil, unfit{fmt.Errorf("schema %q: %w", t.schema, err)}
	}
	return migrations(steps, at), nil
}

// migrations are steps with the times at which they were applied, by their versions.
func migrations(steps []migration.Step, at map[int64]time.Time) []Migration {
	all := make([]Migration, len(steps))
	for i, s := range steps {
		all[i] = Migration{s, at[s.Version]}
	}
	return all
}

func (t target) status(ctx context.Context) (all []Migration, err error) {
	c, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	ctx, cancel := context.WithTimeout(ctx, t.limits.Filled().Answer)
	defer cancel()
	err = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		state, err := t.look(ctx, tx)
		if err != nil {
			return err
		}
		if state.ours {
			all, err = t.compare(ctx, tx)
			return err
		}
		steps, err := migration.Steps(t.files, "")
		all = migrations(steps, nil)
		return err
	})
	return all, err
}

// upToDate refuses a schema with missing migrations. It changes nothing.
func (t target) upToDate(ctx context.Context) error {
	all, err := t.status(ctx)
	if err != nil {
		return err
	}
	latest := all[len(all)-1].Version
	i := slices.IndexFunc(all, func(m Migration) bool { return m.AppliedAt.IsZero() })
	switch {
	case i < 0:
		return nil
	case i == 0:
		return unfitf("schema %q is not there yet, and this program wants version %d of it: run pawl migrate up", t.schema, latest)
	}
	return unfitf("schema %q is at version %d and this program wants %d: run pawl migrate up", t.schema, all[i-1].Version, latest)
}
