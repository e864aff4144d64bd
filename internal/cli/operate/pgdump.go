package operate

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/pgpool"
)

// pawlSchema is the schema of Pawl's tables in a PostgreSQL database.
const pawlSchema = "pawl"

// hasTool returns an error with the fix if a program of PostgreSQL is missing.
func hasTool(tool, dsn, dir string) error {
	if _, err := exec.LookPath(tool); err == nil {
		return nil
	}
	command := "pg_dump --format=custom --schema=" + pawlSchema + " --file=" + backupDump
	if tool == "pg_restore" {
		command = "pg_restore --exit-on-error --single-transaction --no-owner --dbname=… " + dir + "/" + backupDump
	}
	return fmt.Errorf("%s is not installed here: install PostgreSQL's client programs (postgresql-client), or run this where they are, for %s: %s; docs/operations.md has the commands",
		tool, config.Redacted(dsn), command)
}

// dumpPostgres writes one snapshot of the schema to a new file.
func dumpPostgres(ctx context.Context, dsn, to string) error {
	if err := runTool(ctx, dsn, "pg_dump", "--format=custom", "--schema="+pawlSchema, "--strict-names", "--file="+to); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("back up the database: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	return f.Sync()
}

// restorePostgres restores the schema of a dump completely or not at all.
func restorePostgres(ctx context.Context, dsn, from string) error {
	cfg, err := pgpool.Parse(dsn, instance.DatabaseLimits())
	if err != nil {
		return exit.Usagef("%v", err)
	}
	return runTool(ctx, dsn, "pg_restore", "--exit-on-error", "--single-transaction", "--no-owner", "--dbname="+cfg.ConnConfig.Database, from)
}

// runTool runs a program of PostgreSQL on the database of a DSN. The password is passed in the environment, where other
// users cannot see it.
func runTool(ctx context.Context, dsn, tool string, args ...string) error {
	env, err := toolEnvironment(dsn)
	if err != nil {
		return exit.Usagef("%v", err)
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s: %w: %s", tool, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// sslWords are the parameters of a DSN that PostgreSQL's programs read from environment variables.
var sslWords = map[string]string{"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY"}

// toolEnvironment is a DSN as environment variables of libpq.
func toolEnvironment(dsn string) ([]string, error) {
	cfg, err := pgpool.Parse(dsn, instance.DatabaseLimits())
	if err != nil {
		return nil, err
	}
	c := cfg.ConnConfig
	env := []string{"PGHOST=" + c.Host, fmt.Sprintf("PGPORT=%d", c.Port), "PGUSER=" + c.User, "PGDATABASE=" + c.Database}
	if c.Password != "" {
		env = append(env, "PGPASSWORD="+c.Password)
	}
	_, query, _ := strings.Cut(dsn, "?") // the query contains no secrets, and the rest may not be a URL
	words, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("the DSN cannot be read behind its \"?\": %w", err)
	}
	for name, variable := range sslWords {
		if words.Has(name) {
			env = append(env, variable+"="+words.Get(name))
		}
	}
	return env, nil
}
