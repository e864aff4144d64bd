package sqlite

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/migration"
	"github.com/pawl-run/pawl/internal/store/row"
)

//go:embed schema/*.sql
var schemas embed.FS

// schema is the ordered list of migrations of one of the two databases: the files schema/<name>_<version>_<what>.sql.
type schema struct {
	name        string
	application int32 // PRAGMA application_id
	files       fs.FS
}

// The application ids are "Pawl" and "Pawm" in ASCII.
var (
	mainSchema = schema{"main", 0x5061776c, schemas}
	logsSchema = schema{"logs", 0x5061776d, schemas}
)

func (m schema) steps() ([]migration.Step, error) { return migration.Steps(m.files, m.name+"_") }

// prepare migrates the database; with asIs it only checks that no migration is missing.
func (m schema) prepare(c *conn, now func() time.Time, asIs bool) (err error) {
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin to migrate: %w", err)
	}
	defer func() {
		if c.inTransaction() {
			err = errors.Join(err, c.exec("ROLLBACK"))
		}
	}()
	if asIs {
		return m.upToDate(c)
	}
	return m.migrate(c, now)
}

// upToDate refuses a database with missing migrations. It changes nothing.
func (m schema) upToDate(c *conn) error {
	if err := m.owns(c); err != nil {
		return err
	}
	missing, err := m.missing(c)
	if err != nil || len(missing) == 0 {
		return err
	}
	wants := missing[len(missing)-1].Version
	return fmt.Errorf("its schema is at version %d and this program wants %d: start pawl server or pawl run on it once, which brings it up to date",
		missing[0].Version-1, wants)
}

// missing returns the migrations that the database lacks. It refuses a database with a migration that this program does not know.
func (m schema) missing(c *conn) ([]migration.Step, error) {
	had, err := hadMigrations(c)
	if err != nil {
		return nil, fmt.Errorf("read schema_migrations: %w", err)
	}
	all, err := m.steps()
	if err == nil {
		err = migration.Compare(all, had)
	}
	return slices.DeleteFunc(all, func(s migration.Step) bool { return had[s.Version] != "" }), err
}

// migrate applies the missing migrations in one transaction, so a database is never between versions.
func (m schema) migrate(c *conn, now func() time.Time) error {
	if err := m.claim(c); err != nil {
		return err
	}
	missing, err := m.missing(c)
	if err != nil {
		return err
	}
	for _, k := range missing {
		if err := c.exec(k.Script); err != nil {
			return fmt.Errorf("migration %s: %w", k.Name, err)
		}
		s := c.prepare(`INSERT INTO schema_migrations (version, name, sum, applied_at) VALUES (?, ?, ?, ?)`)
		if err := s.int(k.Version).text(k.Name).text(k.Sum).int(row.Micros(now())).runOnce(); err != nil {
			return fmt.Errorf("record migration %s: %w", k.Name, err)
		}
	}
	return c.exec("COMMIT")
}

// claim marks an empty database as Pawl's, and refuses a database of another program.
func (m schema) claim(c *conn) error {
	application, err := c.queryInt("PRAGMA application_id")
	if err != nil {
		return err
	}
	if int32(application) == m.application {
		return nil
	}
	tables, err := c.queryInt("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	if application != 0 || tables != 0 {
		return fmt.Errorf("it is another program's database (application id %#x, %d tables and indexes): name another file", uint32(application), tables)
	}
	return c.exec(fmt.Sprintf(`PRAGMA application_id = %d;
		CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, sum TEXT NOT NULL, applied_at INTEGER NOT NULL)`,
		m.application))
}

func hadMigrations(c *conn) (map[int64]string, error) {
	had := make(map[int64]string)
	s := c.prepare(`SELECT version, sum FROM schema_migrations`)
	for s.next() {
		version := s.getInt()
		had[version] = s.getText()
	}
	err := s.done()
	s.free()
	return had, err
}

// runOnce executes a statement that is used once.
func (s *stmt) runOnce() error {
	err := s.run()
	s.free()
	return err
}

// queryInt returns the first column of a statement's first row.
func (c *conn) queryInt(text string) (int64, error) {
	s := c.prepare(text)
	var v int64
	if s.next() {
		v = s.getInt()
	}
	err := s.done()
	s.free()
	return v, err
}

// explain says why a store could not be opened, and how to fix it.
func explain(path string, err error) error {
	var e *sqliteError
	if !errors.As(err, &e) {
		return err
	}
	switch e.primary() {
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%s is not a database: name another file (%w)", path, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%s is damaged: restore a copy (%w)", path, err)
	case sqlite3.SQLITE_READONLY:
		return fmt.Errorf("%s cannot be written: give this user write permission to it and to its directory (%w)", path, err)
	case sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("%s cannot be opened: its directory must exist and be writable (%w)", path, err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("there is no space for %s: free some (%w)", path, err)
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("%s is locked by another program: close it there (%w)", path, err)
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}
