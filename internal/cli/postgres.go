package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

// openPostgres opens the database.
func openPostgres(ctx context.Context, dsn string, o postgres.Options) (store.Store, error) {
	o.Limits = databaseLimits()
	s, err := postgres.Open(ctx, dsn, o)
	if err != nil {
		return nil, refused(err) // a nil *postgres.Store must not become a store.Store
	}
	return s, nil
}

// refused gives an error of opening a database its exit code. A database that is unavailable is an error, which the next
// start may not meet. What is wrong with the DSN, the server's version, the schema or the rights is wrong usage: only a
// change by the operator helps.
func refused(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return &exit{exitUsage, err}
}

// committers is how many transactions an engine on a database runs side by side: while one of them waits for the disk,
// others decide. SQLite has one writer.
func committers(dsn string) int {
	if isPostgres(dsn) {
		return 4
	}
	return 1
}

// checkPostgres looks at a database without changing it: also its schema stays as it is.
func (a *app) checkPostgres(ctx context.Context, dsn string) []checkup {
	db := checkup{What: "database", Needed: true}
	all, err := postgres.Status(ctx, dsn, postgres.Options{})
	if err != nil {
		db.Say = err.Error()
		return []checkup{db}
	}
	if n := pending(all); n > 0 {
		db.OK, db.Needed = true, false
		db.Say = fmt.Sprintf("%s reachable, %s not applied yet", redacted(dsn), plural(n, "migration is", "migrations are"))
		db.Fix = "the next pawl server does it, or: pawl migrate up"
		return []checkup{db}
	}
	s, err := openPostgres(ctx, dsn, postgres.Options{AsIs: true})
	if err != nil {
		db.Say = err.Error()
		return []checkup{db}
	}
	defer func() { _ = s.Close() }()
	db.OK = true
	return []checkup{a.checkRows(ctx, db, s)}
}

func pending(all []postgres.Migration) int {
	n := 0
	for _, m := range all {
		if m.AppliedAt.IsZero() {
			n++
		}
	}
	return n
}
