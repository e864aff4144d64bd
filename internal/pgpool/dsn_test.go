package pgpool_test

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/pgpool"
)

// A DSN that can be read in several ways is refused, and no part of it is repeated.
func TestUncertainDSN(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://fpawl:p@ss/w:rd@127.0.0.1:5432/db",
		"postgres://fpawl:p@ss@127.0.0.1:5432/db",
		"postgres://fpawl:ss/rd@127.0.0.1:5432/db",
		"postgres://fpawl:ss?rd@127.0.0.1:5432/db",
		"postgres://fpawl:ss?rd/rd@127.0.0.1:5432/db",
		"postgres://fpawl:ss#rd@127.0.0.1:5432/db",
		"postgres://fpawl:ss rd@127.0.0.1:5432/db",
		"postgres://fpawl:ss%rd@127.0.0.1:5432/db",
		"postgres://fpawl:ss%zzrd@127.0.0.1:5432/db",
		"postgres://fpawl:ss%@127.0.0.1:5432/db",
		"postgres://fpawl:ss[rd@127.0.0.1:5432/db",
		"postgres://fpawl:ss\\rd@127.0.0.1:5432/db",
		"postgres://fpawl:ssärd@127.0.0.1:5432/db",
		"postgres://fpawl:ss\"rd@127.0.0.1:5432/db",
		"postgres://fpawl:ss\x00rd@127.0.0.1:5432/db",
		"postgres://fpawl@ss@127.0.0.1:5432/db",
		"postgres://fpawl:ss@127.0.0.1:5432/db?application_name=rd@home",
		"postgres://fpawl:ss",                // the rest is missing: the password would be the port
		"postgres://127.0.0.1:ss:rd/db",      //
		"postgres://fpawl:rd@ss:port/db",     //
		"postgres://fpawl:rd@127.0.0.1:/d%b", //
		"fpawl:p@ss/w:rd@127.0.0.1:5432/db",
		"mysql://fpawl:ss@127.0.0.1/db",
		"host=127.0.0.1 user=fpawl password=ss rd",
		"postgres://fpawl:ss@127.0.0.1/db?sslmode=rd",
		"",
	} {
		_, err := pgpool.Parse(dsn, pgpool.Limits{})
		if err == nil {
			t.Errorf("%q was read", dsn)
			continue
		}
		said := strings.ReplaceAll(err.Error(), "postgres://user:password@host:5432/database?sslmode=require", "")
		said = strings.NewReplacer("password", "", "characters", "").Replace(said)
		for _, part := range []string{"fpawl", "ss", "rd", "127.0.0.1", "w:", "home"} {
			if strings.Contains(said, part) {
				t.Errorf("%q: the error %q repeats %q", dsn, err, part)
			}
		}
		if !strings.Contains(err.Error(), "the DSN cannot be read") || !strings.Contains(err.Error(), "percent-encoded") {
			t.Errorf("%q: the error %q does not say what to do", dsn, err)
		}
	}
}

func TestCertainDSN(t *testing.T) {
	t.Parallel()
	type parts struct {
		user, password, host, database string
		port                           uint16
	}
	for dsn, want := range map[string]parts{
		"postgres://fpawl:p%40ss%2Fw:rd@127.0.0.1:5433/db":                    {"fpawl", "p@ss/w:rd", "127.0.0.1", "db", 5433},
		"postgresql://fpawl:a!$&'()*+,;=.~_-:z@db.example/db?sslmode=disable": {"fpawl", "a!$&'()*+,;=.~_-:z", "db.example", "db", 5432},
		"postgres://fpawl@[::1]:5433/db":                                      {"fpawl", "", "::1", "db", 5433},
		"postgres://fpawl@one:5433,two/db?target_session_attrs=read-write":    {"fpawl", "", "one", "db", 5433},
		"postgres://fpawl:x@%2Fvar%2Frun%2Fpostgresql/db":                     {"fpawl", "x", "/var/run/postgresql", "db", 5432},
		"postgres://fpawl:x@/db?host=/var/run/postgresql":                     {"fpawl", "x", "/var/run/postgresql", "db", 5432},
		"postgres://fpawl:%F0%9F%90%98%25@h?dbname=db":                        {"fpawl", "🐘%", "h", "db", 5432},
	} {
		cfg, err := pgpool.Parse(dsn, pgpool.Limits{})
		if err != nil {
			t.Errorf("%q: %v", dsn, err)
			continue
		}
		c := cfg.ConnConfig
		if got := (parts{c.User, c.Password, c.Host, c.Database, c.Port}); got != want {
			t.Errorf("%q was read as %+v, want %+v", dsn, got, want)
		}
	}
}
