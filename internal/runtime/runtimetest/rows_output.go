//go:build unix

package runtimetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

// outputRows leave files that are traps for the collection.
var outputRows = []row{
	{"44 odd outputs", func(t testing.TB, h *hostile) {
		spec := h.spec("leave-traps", h.canaries.file)
		spec.Collect, spec.CollectInto = []string{"out"}, t.TempDir()
		result, _, stderr := h.finish(t, spec)
		if result.Verdict != runtime.OK {
			t.Fatalf("%+v %s", result, stderr)
		}
		plain := map[string]string{
			"out/good": "good\n", "out/set-user-id": "s\n", "out/new\nline": "n\n", "out/\x1b[31mred\xff": "e\n", "out/...": "d\n",
			"out/-rf": "r\n", "out/" + strings.Repeat("l", 255): "l\n",
		}
		// Root can open what its owner has locked; other users cannot.
		optional := []string{"out/locked", "out/closed/file"}
		for _, f := range result.Files {
			text, err := os.ReadFile(f.Host)
			if err != nil || f.Size != int64(len(text)) {
				t.Errorf("%q has %d bytes instead of %d (%v)", f.Path, len(text), f.Size, err)
			}
			if f.Mode&^0o777 != 0 {
				t.Errorf("%q has mode %v", f.Path, f.Mode)
			}
			if want, ok := plain[f.Path]; ok && want == string(text) {
				delete(plain, f.Path)
				continue
			}
			if !slices.Contains(optional, f.Path) {
				t.Errorf("%q was taken: %.100q", f.Path, text)
			}
		}
		if len(plain) > 0 {
			t.Errorf("these were not taken: %q", plain)
		}
		refused := strings.Join(result.Refused, "\n")
		for _, name := range []string{"link", "root", "magic", "init", "inside", "loop", "up", "fifo", "socket", "twice", "twin", "sparse", "long", "deep"} {
			if !strings.Contains(refused, "out/"+name) {
				t.Errorf("%s was not refused: %s", name, refused)
			}
		}
		nothingBut(t, spec.CollectInto, result.Files)
	}},
	{"45 swap links during collection", func(t testing.TB, h *hostile) {
		for range 10 {
			spec := h.spec("swap-links", h.canaries.file)
			spec.Collect, spec.CollectInto = []string{"out"}, t.TempDir()
			result, _, stderr := h.finish(t, spec)
			if result.Verdict != runtime.OK {
				t.Fatalf("%+v %s", result, stderr)
			}
			for _, f := range result.Files {
				if text, err := os.ReadFile(f.Host); err != nil || string(text) != "good\n" {
					t.Fatalf("%s is %q (%v)", f.Path, text, err)
				}
			}
			nothingBut(t, spec.CollectInto, result.Files)
		}
		spec := h.spec("grow-file")
		spec.Collect, spec.CollectInto = []string{"out"}, t.TempDir()
		result, _, _ := h.finish(t, spec)
		wantVerdict(t, result, runtime.OK)
		for _, f := range result.Files {
			if info, err := os.Stat(f.Host); err != nil || info.Size() != f.Size || f.Size > spec.Limits.Disk {
				t.Errorf("a file that grew was collected as %+v, %v (%v)", f, info, err)
			}
		}
	}},
}

// nothingBut checks that a directory contains only the collected files, and no links.
func nothingBut(t testing.TB, dir string, files []runtime.Collected) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		known := slices.ContainsFunc(files, func(f runtime.Collected) bool { return f.Host == path })
		if !entry.IsDir() && (!known || !entry.Type().IsRegular()) {
			t.Errorf("the host got %q, %v", path, entry.Type())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
