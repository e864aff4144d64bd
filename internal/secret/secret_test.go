package secret_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/secret"
)

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pager")
	g, err := secret.Parse([]string{path, path + "@hooks", path + ".bound@hooks.example.com", dir, dir + "@hooks"})
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse("https://hooks.example.com/x")
	if err != nil {
		t.Fatal(err)
	}
	absent := func(say string) {
		t.Helper()
		var e *secret.Error
		if _, err := g.For(path, server); !errors.As(err, &e) || !e.Absent || !strings.Contains(e.Message, say) {
			t.Errorf("%v, want %s", err, say)
		}
	}
	absent("no such file")
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("\n")
	absent("empty")
	write(strings.Repeat("x", 1<<20))
	absent("64 KiB")
	write("sesame\n")
	if v, err := g.For(path, server); err != nil || v != "sesame" {
		t.Errorf("%q, %v", v, err)
	}
	if v, err := g.Here(path); err != nil || v != "sesame" {
		t.Errorf("%q, %v", v, err)
	}
	write("sesame2\n") // rotated while the process runs
	if v, err := g.For(path, server); err != nil || v != "sesame2" {
		t.Errorf("%q, %v", v, err)
	}
	for _, name := range []string{filepath.Join(dir, "other"), "/etc/passwd", dir + "/x/../pager", "HOME", "", path + ".bound"} {
		var e *secret.Error
		if _, err := g.Here(name); !errors.As(err, &e) || e.Absent {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := g.Here(dir); err == nil {
		t.Error("a directory was read")
	}
}

// A secret that verifies requests to webhooks is not given out for servers, and vice versa.
func TestGrantsAreApart(t *testing.T) {
	t.Setenv("IN", "verifies")
	t.Setenv("OUT", "signs")
	g, err := secret.Parse([]string{"IN@hooks", "OUT", "OUT@hooks:443"})
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse("https://hooks/x")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := g.Here("IN"); err != nil || v != "verifies" {
		t.Errorf("%q, %v", v, err)
	}
	if v, err := g.For("OUT", server); err != nil || v != "signs" {
		t.Errorf("%q, %v", v, err)
	}
	if v, err := g.For("IN", server); err == nil {
		t.Errorf("a secret for hooks was given out for a server: %q", v)
	}
	if v, err := g.Here("OUT"); err == nil || !strings.Contains(err.Error(), "OUT@hooks") {
		t.Errorf("a secret for servers was given out for hooks: %q, %v", v, err)
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"", "A=b", "A B", "A@", "A@h:port", "A@http://h", "/a/../b", "/a/"} {
		if _, err := secret.Parse([]string{bad}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
