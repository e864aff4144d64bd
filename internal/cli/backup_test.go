package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

// The commands of docs/operations.md about backups work as documented, on both stores, while work is submitted. The restored state
// contains everything that was acknowledged before the backup began, and is a prefix of everything acknowledged; files and uploads are
// included.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash")
	blocks := documented(t, "operations.md", "Backup and restore", 2)
	for i, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			scratch, env := t.TempDir(), environment(t)
			from, to := "sqlite", "sqlite"
			if store == "postgres" {
				need(t, "pg_dump", "pg_restore")
				from, to = ownDatabase(t), ownDatabase(t)
				env = append(env, "DSN="+from, "NEW="+to)
			}
			server, at := serving(t, env, "--store", from)
			c, err := client.New(at)
			if err != nil {
				t.Fatal(err)
			}
			left, uploaded := leaving(t, env, at)
			acked, stop := submitting(t, c)
			within(t, time.Minute, "a hundred submissions", func() bool { return len(acked()) >= 100 })
			before := len(acked())
			run := func(script string) {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\n"+script)
				cmd.Env, cmd.WaitDelay = append(env, "PAWL_STORE="+from), 30*time.Second
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s\n%s", err, script, out)
				}
			}
			run(strings.NewReplacer("/var/", scratch+"/var/").Replace(blocks[i]))
			stop()
			if err := server.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			server.code()

			restored := append(env, "PAWL_STATE_DIR="+filepath.Join(scratch, "var/lib/pawl-restored"), "PAWL_STORE="+to)
			if left := unfinished(filepath.Join(scratch, "var/lib/pawl-restored")); left {
				t.Error("a copy that is not whole was left behind")
			}
			_, at = serving(t, restored)
			if c, err = client.New(at); err != nil {
				t.Fatal(err)
			}
			there := 0
			for i, id := range acked() {
				_, err := c.Get(t.Context(), id)
				if err == nil {
					if there++; there != i+1 {
						t.Fatalf("submission %d is there and one before it is not", i)
					}
				} else if !client.IsNotFound(err) || i < before {
					t.Fatalf("submission %d, of %d before the backup: %v", i, before, err)
				}
			}
			out, errs, code := pawl(t, restored, "files", left, "large")
			if code != exit.OK || len(out) != 300_000 {
				t.Errorf("a file of before: exit code %d, %d bytes\n%s", code, len(out), errs)
			}
			if out, errs, code := pawl(t, restored, "logs", left); code != exit.OK || !strings.Contains(out, "it was said") {
				t.Errorf("what it wrote: exit code %d, %q\n%s", code, out, errs)
			}
			x, err := c.Evaluate(t.Context(), api.Evaluation{Code: api.Code{Language: "python", Source: "print(len(input()))", Stdin: api.Content{Blob: uploaded}}})
			if err != nil {
				t.Fatal(err)
			}
			if x, err = c.Wait(t.Context(), x.ID); err != nil || !bytes.Contains(x.Output, []byte(`"stdout":"8\n"`)) {
				t.Errorf("an upload of before: %v, %s", err, x.Output)
			}
		})
	}
}

// leaving runs a program that leaves a large file and a line of output, and uploads something.
func leaving(t *testing.T, env []string, at string) (id, upload string) {
	t.Helper()
	out, errs, code := pawl(t, append(env, "PAWL_SERVER="+at), "eval", "-o", "json", "--collect", "large", "--collect-into", t.TempDir(),
		writeFile(t, "leave.py", "print('it was said')\nopen('large', 'w').write('x' * 300_000)\n"))
	var x struct{ ID string }
	if err := json.Unmarshal([]byte(out), &x); code != exit.OK || err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	upload, errs, code = pawl(t, append(env, "PAWL_SERVER="+at), "upload", writeFile(t, "sent", "uploaded"))
	if code != exit.OK {
		t.Fatal(errs)
	}
	return x.ID, strings.TrimSpace(upload)
}

// submitting submits executions one after another until stop is called; acked returns those acknowledged so far.
func submitting(t *testing.T, c *client.Client) (acked func() []string, stop func()) {
	t.Helper()
	var mu sync.Mutex
	var ids []string
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() {
		for ctx.Err() == nil {
			x, err := c.Submit(ctx, api.Submission{Action: "noop"})
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			ids = append(ids, x.ID)
			mu.Unlock()
		}
	})
	stop = func() { cancel(); over.Wait() }
	t.Cleanup(stop)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return ids[:len(ids):len(ids)]
	}, stop
}

// unfinished reports whether an unfinished copy is left.
func unfinished(dir string) bool {
	found := false
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error {
		found = found || strings.HasSuffix(path, ".part")
		return nil
	})
	return found
}

// A backup and a restore overwrite nothing, and an incomplete backup is not restored.
func TestBackupRefuses(t *testing.T) {
	t.Parallel()
	env, dir := environment(t), t.TempDir()
	whole := filepath.Join(dir, "whole")
	if out, errs, code := pawl(t, env, "get", "executions"); code != exit.OK {
		t.Fatal(out, errs)
	}
	if out, errs, code := pawl(t, env, "backup", whole); code != exit.OK {
		t.Fatal(out, errs)
	}
	for name, c := range map[string]struct {
		say  string
		code int
		args []string
	}{
		"backup to what is not empty":     {"is not empty", exit.Misuse, []string{"backup", whole}},
		"backup to a file":                {"is a file: name a directory", exit.Misuse, []string{"backup", filepath.Join(whole, "pawl.db")}},
		"restore of a file":               {"is not a backup, or one that was broken off", exit.Misuse, []string{"restore", filepath.Join(whole, "pawl.db"), "--state-dir", filepath.Join(dir, "x")}},
		"backup of nothing":               {"to back up: name the server's state directory", exit.General, []string{"backup", filepath.Join(dir, "none"), "--state-dir", filepath.Join(dir, "nothing")}},
		"backup of a server elsewhere":    {"run it where http://127.0.0.1:1 runs", exit.Misuse, []string{"backup", filepath.Join(dir, "x"), "--server", "http://127.0.0.1:1"}},
		"restore to what is not empty":    {"is empty or not there with --state-dir", exit.Misuse, []string{"restore", whole}},
		"restore of nothing":              {"is not a backup, or one that was broken off", exit.Misuse, []string{"restore", filepath.Join(dir, "none"), "--state-dir", filepath.Join(dir, "x")}},
		"restore to the other store":      {"can be restored to sqlite only", exit.Misuse, []string{"restore", whole, "--store", "postgres://u@127.0.0.1:1/db", "--state-dir", filepath.Join(dir, "x")}},
		"restore to a file that is there": {"is there: nothing is written over", exit.General, []string{"restore", whole, "--state-dir", filepath.Join(dir, "y"), "--store", "sqlite:" + filepath.Join(whole, "pawl.db")}},
	} {
		out, errs, code := pawl(t, env, c.args...)
		if code != c.code || !strings.Contains(errs, c.say) {
			t.Errorf("%s: exit code %d\n%s%s", name, code, out, errs)
		}
	}
	serving(t, env)
	if out, errs, code := pawl(t, env, "restore", whole); code != exit.General || !strings.Contains(errs, "(pawl server): name another one, which is empty or not there, with --state-dir") {
		t.Errorf("restore to what a server works on: exit code %d\n%s%s", code, out, errs)
	}
	restored := filepath.Join(dir, "restored")
	if out, errs, code := pawl(t, env, "restore", whole, "--state-dir", restored); code != exit.OK {
		t.Error(out, errs)
	}
	if out, errs, code := pawl(t, env, "doctor", "--verify", "--state-dir", restored); code != exit.OK {
		t.Error(out, errs)
	}
}

// If PostgreSQL's programs are missing the message says what to install and what to run, and nothing is created.
func TestBackupWithoutTools(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "b")
	env := append(environment(t), "PATH="+bin, "PAWL_STORE=postgres://u:s3cret@127.0.0.1:1/db")
	out, errs, code := pawl(t, env, "backup", dir)
	if code != exit.General || !strings.Contains(errs, "pg_dump --format=custom --schema=pawl") || strings.Contains(errs, "s3cret") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s: %v", dir, err)
	}
}

// A database restored without its logs can be verified at the first call, which creates no file.
func TestVerifyWithoutLogs(t *testing.T) {
	t.Parallel()
	env, dir := environment(t), t.TempDir()
	if out, errs, code := pawl(t, env, "get", "executions"); code != exit.OK {
		t.Fatal(out, errs)
	}
	var state string
	for _, v := range env {
		if at, ok := strings.CutPrefix(v, "PAWL_STATE_DIR="); ok {
			state = at
		}
	}
	if err := sqlite.Backup(t.Context(), filepath.Join(state, "pawl.db"), filepath.Join(dir, "pawl.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "pawl.db-logs")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if out, errs, code := pawl(t, env, "doctor", "--verify", "--state-dir", dir); code != exit.OK {
			t.Errorf("exit code %d\n%s%s", code, out, errs)
		}
		if _, err := os.Stat(filepath.Join(dir, "pawl.db-logs")); !os.IsNotExist(err) {
			t.Errorf("a file was made: %v", err)
		}
	}
}
