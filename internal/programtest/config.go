package programtest

import (
	"os"
	"path/filepath"
	"testing"
)

// ConfigHome is a new directory for XDG_CONFIG_HOME of a program, without Pawl's configuration, and in which the go command does not count
// its calls. pawl asks the go command for its version; it writes these counts in a process that outlives both, into a directory that the
// end of the test is removing.
func ConfigHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	mode := filepath.Join(home, "go", "telemetry", "mode")
	if err := os.MkdirAll(filepath.Dir(mode), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mode, []byte("off"), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}
