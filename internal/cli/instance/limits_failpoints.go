//go:build failpoints

package instance

import (
	"os"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/internal/pgpool"
)

// DatabaseLimits are how long this process waits for PostgreSQL: in a program with fail points only a fraction of the
// usual time, so that a test of outages takes seconds. $PAWL_DATABASE_HASTE is the divisor.
func DatabaseLimits() pgpool.Limits {
	l := pgpool.Limits{}.Filled()
	haste, err := strconv.Atoi(os.Getenv("PAWL_DATABASE_HASTE"))
	if err != nil || haste < 1 {
		return l
	}
	for _, d := range []*time.Duration{&l.Connect, &l.Ping, &l.Answer, &l.Unacknowledged, &l.Quiet} {
		*d /= time.Duration(haste)
	}
	return l
}
