package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/store/postgres"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

// The files in a backup's directory.
const (
	backupNote   = "backup.json" // written last: without it the backup is incomplete
	backupFile   = "pawl.db"
	backupDump   = "pawl.dump"
	backupBlobs  = "blobs"
	backupFormat = 1
)

// backup is the description of a backup.
type backup struct {
	Format int       `json:"format"`
	Pawl   string    `json:"pawl"`  // the version that created it
	Store  string    `json:"store"` // "sqlite" or "postgres"
	Begun  time.Time `json:"begun"`
	Ended  time.Time `json:"ended"`
	Blobs  int       `json:"blobs"` // files of blobs
}

func BackupCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy everything that Pawl keeps into a directory, without stopping it",
		Long: `Copy the database, its logs and the blobs into a directory, which is created and must be empty. Servers and
commands may keep working: everything acknowledged before the backup began is included. PostgreSQL is copied
with pg_dump, which must be installed. Settings are those of the server: run the command as the server's user,
with its --state-dir, --store and --blobs. Content in an S3 bucket stays there and is not copied.

pawl restore creates a state directory or a database from the copy. docs/operations.md describes both step by
step.`,
		Example: `  pawl backup /var/backups/pawl-2026-11-22
  pawl backup /var/backups/pawl-2026-11-22 --store postgres://pawl@db.example.com/pawl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := app.Interruptible(cmd.Context())
			defer stop()
			return copyInto(ctx, a, args[0])
		},
	}
}

func RestoreCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "restore DIR",
		Short: "Create a state directory or a PostgreSQL database from a backup",
		Long: `Restore a backup: into the state directory, which must be empty or absent, or with --store postgres://… into a
database without Pawl data (with pg_restore, which must be installed). Existing data is never overwritten.

Work that was running when the backup was made is tried again once a server uses the restored data. Never run
the original and the copy at the same time: both would do the same work.`,
		Example: `  pawl restore /var/backups/pawl-2026-11-22 --state-dir /var/lib/pawl
  pawl doctor --verify --state-dir /var/lib/pawl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := app.Interruptible(cmd.Context())
			defer stop()
			return restore(ctx, a, args[0])
		},
	}
}

// copyInto copies the blobs, then the database, then the blobs that were added meanwhile. A blob that the copy of the database names
// was either there during the first pass or is copied by the second.
func copyInto(ctx context.Context, a *app.App, dir string) error {
	if server := a.Config.Text("server"); server != "" {
		return exit.Usagef("a backup reads the database and the blobs themselves: run it where %s runs, with its --store and --state-dir, and without --server", server)
	}
	dsn := a.Config.Text("store")
	b := backup{Format: backupFormat, Pawl: app.Version(), Store: "sqlite", Begun: time.Now().UTC()}
	if config.IsPostgres(dsn) {
		b.Store = "postgres"
		if err := hasTool("pg_dump", dsn, dir); err != nil {
			return err
		}
	}
	path := instance.SQLitePath(dsn, a.Config.Text("state_dir"))
	if _, err := os.Stat(path); !config.IsPostgres(dsn) && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database %s to back up: name the server's state directory with --state-dir, or its --store", path)
	}
	if err := makeEmpty(dir); err != nil {
		return err
	}
	copyBlobs := func() error {
		for _, from := range blobDirs(&a.Config) {
			n, err := copyTree(ctx, filepath.Join(from, "blobs"), filepath.Join(dir, backupBlobs, "blobs"))
			if b.Blobs += n; err != nil {
				return fmt.Errorf("back up the blobs: %w", err)
			}
		}
		return nil
	}
	if err := copyBlobs(); err != nil {
		return err
	}
	var err error
	if config.IsPostgres(dsn) {
		err = dumpPostgres(ctx, dsn, filepath.Join(dir, backupDump))
	} else {
		err = sqlite.Backup(ctx, path, filepath.Join(dir, backupFile))
	}
	if err == nil {
		err = copyBlobs()
	}
	if err != nil {
		return err
	}
	b.Ended = time.Now().UTC()
	if err := b.write(dir); err != nil {
		return err
	}
	a.Say("pawl: backed up to %s in %s, with %s", dir, b.Ended.Sub(b.Begun).Round(time.Millisecond), output.Plural(b.Blobs, "blob", "blobs"))
	for _, place := range a.Config.List("blobs") {
		if config.IsBucket(place) {
			a.Say("pawl: what lies in %s is not copied: the service keeps it, and a restored Pawl with the same setting finds it there", config.Redacted(place))
		}
	}
	return nil
}

// restore puts the database in place last: until then Pawl does not accept the directory as its state directory.
func restore(ctx context.Context, a *app.App, dir string) error {
	if a.Config.Text("server") != "" {
		return exit.Usagef("a restore writes the database and the blobs themselves: leave --server out, and say where with --state-dir or --store")
	}
	b, err := readBackup(dir)
	if err != nil {
		return err
	}
	dsn, state := a.Config.Text("store"), a.Config.Text("state_dir")
	if (b.Store == "postgres") != config.IsPostgres(dsn) {
		return exit.Usagef("%s is a backup of %s and the setting store is %s: it can be restored to %s only", dir, b.Store, config.Redacted(dsn), b.Store)
	}
	blobs, place := filepath.Join(state, "blobs"), "--state-dir"
	if chosen := a.Config.List("blobs")[0]; filepath.IsAbs(chosen) {
		blobs, place = filepath.Clean(chosen), "--blobs"
	}
	if config.IsPostgres(dsn) {
		if err := hasTool("pg_restore", dsn, dir); err != nil {
			return err
		}
		if err := mustBeWithoutPawl(ctx, dsn); err != nil {
			return err
		}
	} else {
		lock, err := lockEmpty(state)
		if err != nil {
			return err
		}
		defer func() { _ = lock.Close() }()
	}
	if b.Blobs > 0 {
		if err := mustBeEmpty(blobs, place); err != nil {
			return err
		}
	}
	n, err := copyTree(ctx, filepath.Join(dir, backupBlobs, "blobs"), filepath.Join(blobs, "blobs"))
	if err != nil {
		return fmt.Errorf("restore the blobs: %w", err)
	}
	if config.IsPostgres(dsn) {
		err = restorePostgres(ctx, dsn, filepath.Join(dir, backupDump))
	} else {
		err = restoreSQLite(ctx, dir, instance.SQLitePath(dsn, state))
	}
	if err != nil {
		return err
	}
	a.Say("pawl: restored what %s had on %s, with %s; pawl doctor --verify checks every row", dir, b.Begun.Local().Format(time.DateTime), output.Plural(n, "blob", "blobs"))
	return nil
}

func restoreSQLite(ctx context.Context, dir, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("restore the database: %w", err)
	}
	for _, suffix := range []string{"-logs", ""} {
		if _, err := os.Stat(path + suffix); err == nil {
			return fmt.Errorf("%s is there: nothing is written over", path+suffix)
		}
		_, err := copyFile(ctx, filepath.Join(dir, backupFile+suffix), path+suffix)
		if suffix != "" && errors.Is(err, fs.ErrNotExist) {
			continue // there were no logs
		}
		if err != nil {
			return fmt.Errorf("restore the database: %w", err)
		}
	}
	return nil
}

// mustBeWithoutPawl refuses a database that contains tables of Pawl.
func mustBeWithoutPawl(ctx context.Context, dsn string) error {
	all, err := postgres.Status(ctx, dsn, postgres.Options{})
	if err != nil {
		return instance.Refused(err)
	}
	if pending(all) < len(all) {
		return fmt.Errorf("the database %s has a schema %s of Pawl's: restore to another database, or drop the schema first", config.Redacted(dsn), pawlSchema)
	}
	return nil
}

// blobDirs are the directories that may contain blobs of these settings.
func blobDirs(c *config.Config) []string {
	dirs := []string{filepath.Join(c.Text("state_dir"), "blobs")}
	for _, place := range c.List("blobs") {
		if dir := filepath.Clean(place); filepath.IsAbs(place) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// write marks the backup as complete.
func (b *backup) write(dir string) error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return fmt.Errorf("describe the backup: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, backupNote), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync(), f.Close(), syncDir(dir), syncDir(filepath.Dir(filepath.Clean(dir))))
}

func readBackup(dir string) (b backup, err error) {
	text, err := os.ReadFile(filepath.Join(dir, backupNote))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return b, exit.Usagef("%s is not a backup, or one that was broken off: it has no %s, which pawl backup writes last", dir,
			backupNote)
	}
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil {
		return b, fmt.Errorf("read %s: %w", filepath.Join(dir, backupNote), err)
	}
	if b.Format != backupFormat {
		return b, exit.Usagef("%s has format %d and this program reads %d: use the pawl that made it (%s) or a newer one", dir, b.Format, backupFormat, b.Pawl)
	}
	return b, nil
}

// makeEmpty creates a directory; an existing one must be empty.
func makeEmpty(dir string) error {
	if err := mustBeEmpty(dir, ""); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	return nil
}

func lockEmpty(state string) (*os.File, error) {
	empty := mustBeEmpty(state, "--state-dir", instance.LockName)
	if empty != nil && instance.ReadOwner(state).PID == 0 {
		return nil, empty // nothing is created in a directory that is not Pawl's
	}
	lock, err := instance.LockState(state)
	if errors.Is(err, instance.ErrHeld) {
		return nil, fmt.Errorf("the state directory %s is held by %s: name another one, which is empty or not there, with --state-dir", state, instance.ReadOwner(state))
	}
	if err == nil && empty != nil {
		_ = lock.Close()
		return nil, empty
	}
	return lock, err
}

// mustBeEmpty refuses a directory that contains anything but files of the given names. flag is the flag that named the
// directory; "": an argument did.
func mustBeEmpty(dir, flag string, except ...string) error {
	fix := "name a directory that is empty or not there"
	if flag != "" {
		fix += " with " + flag
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return exit.Usagef("%s is a file: %s; nothing is written over", dir, fix)
	}
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return slices.Contains(except, e.Name()) })
	if len(entries) > 0 {
		return exit.Usagef("%s is not empty (it has %s): %s; nothing is written over", dir, entries[0].Name(), fix)
	}
	return nil
}

// copyTree copies the regular files beneath from that are missing beneath to, and counts them. It skips files that
// are removed meanwhile; a directory that does not exist has no files.
func copyTree(ctx context.Context, from, to string) (n int, err error) {
	made := map[string]bool{}
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !d.Type().IsRegular():
			return ctx.Err()
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if _, err := os.Lstat(target); err == nil {
			return nil
		}
		if dir := filepath.Dir(target); !made[dir] {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			made[dir] = true
		}
		copied, err := copyFile(ctx, path, target)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if copied {
			n++
		}
		return err
	})
	for dir := range made { // each directory on the way may be new
		for ; err == nil && len(dir) >= len(to); dir = filepath.Dir(dir) {
			err = syncDir(dir)
		}
	}
	return n, err
}

// copyFile copies a file to a name that does not exist. The copy is complete and synced before it gets its name.
func copyFile(ctx context.Context, from, to string) (copied bool, err error) {
	in, err := os.Open(from)
	if err != nil {
		return false, err
	}
	defer func() { _ = in.Close() }()
	part := to + ".part"
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(out, stopping{ctx, in})
	err = errors.Join(err, out.Sync(), out.Close())
	if err == nil {
		err = os.Rename(part, to)
	}
	if err != nil {
		return false, errors.Join(err, os.Remove(part))
	}
	return true, nil
}

// stopping is a reader that fails when ctx ends.
type stopping struct {
	ctx context.Context
	r   io.Reader
}

func (s stopping) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
