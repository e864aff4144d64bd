//go:build !failpoints

package instance

import "github.com/pawl-run/pawl/internal/pgpool"

// DatabaseLimits are how long this process waits for PostgreSQL.
func DatabaseLimits() pgpool.Limits { return pgpool.Limits{} }
