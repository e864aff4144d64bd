package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

func MigrateCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Update the schema of a PostgreSQL database, or show its state",
		Long: `Every server updates the schema when it starts, under a lock: of several servers, one does it and the others
wait. Use these commands if servers may not change the schema, or to see what they would do.

A schema that is newer than this program, or belongs to another program, is refused.`,
		Example: `  pawl migrate status --store postgres://pawl@db.example.com/pawl
  PAWL_STORE_FILE=/run/secrets/dsn pawl migrate up`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use: "up", Short: "Apply missing migrations", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return migrations(cmd.Context(), a, true) },
	}, &cobra.Command{
		Use: "status", Short: "List the migrations and when they were applied; changes nothing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return migrations(cmd.Context(), a, false) },
	})
	return c
}

func migrations(ctx context.Context, a *app.App, up bool) error {
	ctx, stop := app.Interruptible(ctx)
	defer stop()
	dsn := a.Config.Text("store")
	if !config.IsPostgres(dsn) {
		return exit.Usagef("the store is %s: only PostgreSQL is migrated by command; name it with --store postgres://… or PAWL_STORE", config.Redacted(dsn))
	}
	if up {
		if err := postgres.Migrate(ctx, dsn, postgres.Options{}); err != nil {
			return instance.Refused(err)
		}
	}
	all, err := postgres.Status(ctx, dsn, postgres.Options{})
	if err != nil {
		return instance.Refused(err)
	}
	t := output.Titled("VERSION", "NAME", "APPLIED")
	for _, m := range all {
		applied := "not yet"
		if !m.AppliedAt.IsZero() {
			applied = m.AppliedAt.Format(time.RFC3339)
		}
		t.Row(fmt.Sprint(m.Version), m.Name, applied)
	}
	t.Write(a.Out)
	if n := pending(all); n > 0 {
		a.Say("pawl: %s not applied yet: pawl migrate up", output.Plural(n, "migration is", "migrations are"))
	}
	return nil
}
