//go:build !failpoints

package cli

import "github.com/pawl-run/pawl/internal/pgpool"

// databaseLimits are how long this process waits for PostgreSQL.
func databaseLimits() pgpool.Limits { return pgpool.Limits{} }
