package operate

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDoctorTriesBlobs(t *testing.T) {
	t.Parallel()
	if c := checkBlobDir(filepath.Join(t.TempDir(), "new")); !c.OK {
		t.Errorf("%+v", c)
	}
	taken := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c := checkBlobDir(taken); c.OK || c.Fix == "" {
		t.Errorf("%+v", c)
	}
}
