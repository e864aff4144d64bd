package operate

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

// checkPostgres checks a database without changing it; it does not migrate the schema.
func checkPostgres(ctx context.Context, a *app.App, dsn string) []checkup {
	db := checkup{What: "database", Needed: true}
	all, err := postgres.Status(ctx, dsn, postgres.Options{})
	if err != nil {
		db.Say = err.Error()
		return []checkup{db}
	}
	if n := pending(all); n > 0 {
		db.OK, db.Needed = true, false
		db.Say = fmt.Sprintf("%s reachable, %s not applied yet", config.Redacted(dsn), output.Plural(n, "migration is", "migrations are"))
		db.Fix = "the next pawl server does it, or: pawl migrate up"
		return []checkup{db}
	}
	s, err := instance.OpenPostgres(ctx, dsn, postgres.Options{AsIs: true, NotifyDSN: a.Config.Text("store_notify")})
	if err != nil {
		db.Say = err.Error()
		return []checkup{db}
	}
	defer func() { _ = s.Close() }()
	db.OK = true
	return []checkup{checkRows(ctx, db, s), checkNotifications(ctx, s)}
}

func checkNotifications(ctx context.Context, s *postgres.Store) checkup {
	if err := s.Heard(ctx); err != nil {
		return checkup{What: "notifications", Say: err.Error() + "; servers find each other's changes by looking, every half second",
			Fix: "set store_notify (PAWL_STORE_NOTIFY) to a DSN that reaches PostgreSQL itself"}
	}
	return checkup{What: "notifications", OK: true, Say: "servers hear of each other's changes at once"}
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
