package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Size is the size in bytes of all tables and indexes of the database except the system's.
func Size(ctx context.Context, dsn string) (bytes int64, err error) {
	return ask(ctx, dsn, `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_toast%'`)
}

// DeadlockCount is the number of deadlocks that the server has detected in the database.
func DeadlockCount(ctx context.Context, dsn string) (int64, error) {
	return ask(ctx, dsn, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`)
}

// Settle makes the server do at once the work that it would do in the minutes after many writes: its cost belongs to
// those writes and not to the next measurement.
func Settle(ctx context.Context, dsn string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = c.Close(ctx) }()
	for _, statement := range []string{"VACUUM (ANALYZE)", "CHECKPOINT"} {
		if _, err := c.Exec(ctx, statement); err != nil {
			return fmt.Errorf("settle: %w", err)
		}
	}
	return nil
}

func ask(ctx context.Context, dsn, query string) (n int64, err error) {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = c.Close(ctx) }()
	if err := c.QueryRow(ctx, query).Scan(&n); err != nil {
		return 0, fmt.Errorf("ask the server: %w", err)
	}
	return n, nil
}

// HoldSnapshot opens a transaction on another connection with a snapshot of the database, and leaves it idle. It
// returns after the given time; release ends the transaction.
func HoldSnapshot(ctx context.Context, dsn string, lasts time.Duration) (release func(), err error) {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	release = func() { _ = c.Close(context.WithoutCancel(ctx)) }
	tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err == nil {
		var one int
		err = tx.QueryRow(ctx, `SELECT count(*) FROM pg_class`).Scan(&one)
	}
	if err != nil {
		release()
		return nil, fmt.Errorf("hold a snapshot: %w", err)
	}
	select {
	case <-time.After(lasts):
		return release, nil
	case <-ctx.Done():
		release()
		return nil, context.Cause(ctx)
	}
}

// SecondDatabase is the suffix of the second database that some peers create.
const SecondDatabase = "_visibility"
