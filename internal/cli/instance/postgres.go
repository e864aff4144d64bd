package instance

import (
	"context"
	"errors"

	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

func OpenPostgres(ctx context.Context, dsn string, o postgres.Options) (*postgres.Store, error) {
	o.Limits = DatabaseLimits()
	s, err := postgres.Open(ctx, dsn, o)
	if err != nil {
		return nil, Refused(err)
	}
	return s, nil
}

// Refused gives an error from opening a database its exit code. A database that is unavailable is an ordinary error, because the next
// start may succeed. A wrong DSN, server version or schema and missing rights are wrong usage: only the operator can fix them.
func Refused(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return &exit.Error{Code: exit.Misuse, Err: err}
}

// committers is the number of transactions that an engine runs at once on a database: while one waits for the disk, others
// decide. SQLite has one writer.
func committers(dsn string) int {
	if config.IsPostgres(dsn) {
		return 4
	}
	return 1
}
