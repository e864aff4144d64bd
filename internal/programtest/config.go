package programtest

import (
	"os"
	"path/filepath"
	"testing"
)

// ConfigHome is a new directory for a program's XDG_CONFIG_HOME, without a configuration of Pawl, and with the go command's telemetry
// switched off. pawl asks the go command for its version, and the go command writes telemetry from a process that outlives both, into a
// directory that the end of the test is removing.
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
