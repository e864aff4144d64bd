package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	sqlite3 "modernc.org/sqlite/lib"
)

// Backup copies a store to a new file, and its logs to the file next to it. It may run while this or another process uses the store. Each
// copy is one state of its database, and the state of the logs is not older than the other, so ended executions have all their logs. During
// the copy the write-ahead log cannot be emptied.
func Backup(ctx context.Context, from, to string) error {
	if err := mainSchema.copy(ctx, from, to); err != nil {
		return fmt.Errorf("back up %s: %w", from, err)
	}
	err := logsSchema.copy(ctx, logsOf(from), logsOf(to))
	if errors.Is(err, fs.ErrNotExist) { // it is created when the copy is opened
		err = nil
	}
	if err == nil {
		err = syncDirectory(filepath.Dir(to))
	}
	if err != nil {
		return fmt.Errorf("back up %s: %w", logsOf(from), err)
	}
	return nil
}

func logsOf(path string) string { return path + "-logs" }

// copy writes one state of a database to a new file, and returns when the file is on disk.
func (m schema) copy(ctx context.Context, from, to string) (err error) {
	if _, err := os.Stat(from); err != nil {
		return err
	}
	c, err := open(from, sqlite3.SQLITE_OPEN_READWRITE) // SQLite must be able to write next to the file, to read the log of a dead process
	if err != nil {
		return explain(from, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := m.owns(c); err != nil {
		return explain(from, err)
	}
	defer c.interruptOn(ctx)()
	s := c.prepare(`VACUUM INTO ?`)
	if err := s.text(to).runOnce(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return explain(to, err)
	}
	f, err := os.OpenFile(to, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Sync(), f.Close())
}

// owns refuses a database with another schema.
func (m schema) owns(c *conn) error {
	application, err := c.queryInt("PRAGMA application_id")
	if err == nil && int32(application) != m.application {
		err = fmt.Errorf("it is not a database of Pawl's (application id %#x): name another file", uint32(application))
	}
	return err
}
