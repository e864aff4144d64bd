//go:build unix

package collect

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func collectFrom(t *testing.T, dir string, limit int64, patterns ...string) (names, refused []string) {
	t.Helper()
	work, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer work.Close()
	into := t.TempDir()
	files, refused, err := From(work, patterns, into, limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Host, into+"/") {
			t.Errorf("%s was copied to %s", f.Path, f.Host)
		}
		names = append(names, f.Path)
	}
	return names, refused
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNothingButRegularFiles(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "good"), "good")
	write(t, filepath.Join(dir, "sub/good"), "good")
	write(t, filepath.Join(dir, "twice"), "twice")
	for _, err := range []error{
		os.Symlink(secret, filepath.Join(dir, "link")),
		os.Symlink(filepath.Dir(secret), filepath.Join(dir, "dirlink")),
		os.Symlink("good", filepath.Join(dir, "inside")),
		os.Link(filepath.Join(dir, "twice"), filepath.Join(dir, "twin")),
		unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	names, refused := collectFrom(t, dir, 1<<20, ".")
	slices.Sort(names)
	if want := []string{"good", "sub/good"}; !slices.Equal(names, want) {
		t.Errorf("took %v, want %v", names, want)
	}
	for _, name := range []string{"link:", "dirlink:", "inside:", "twice:", "twin:", "fifo:"} {
		if !slices.ContainsFunc(refused, func(r string) bool { return strings.HasPrefix(r, name) }) {
			t.Errorf("%s was not refused: %v", name, refused)
		}
	}
}

func TestPatterns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.txt", "b.csv", "out/x", "out/deep/y", "logs/1.log", "logs/deep/2.log"} {
		write(t, filepath.Join(dir, name), name)
	}
	for pattern, want := range map[string][]string{
		"*.txt": {"a.txt"}, "out": {"out/x", "out/deep/y"}, "out/": {"out/x", "out/deep/y"}, "logs/*.log": {"logs/1.log"},
		"*/deep": {"out/deep/y", "logs/deep/2.log"}, "nothing": nil, "./b.csv": {"b.csv"},
		"*": {"a.txt", "b.csv", "out/x", "out/deep/y", "logs/1.log", "logs/deep/2.log"},
	} {
		names, refused := collectFrom(t, dir, 1<<20, pattern)
		slices.Sort(names)
		slices.Sort(want)
		if !slices.Equal(names, want) || len(refused) > 0 {
			t.Errorf("%s: took %v and refused %v, want %v", pattern, names, refused, want)
		}
	}
}

func TestBounds(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), strings.Repeat("x", 600))
	write(t, filepath.Join(dir, "b"), strings.Repeat("x", 600))
	sparse := filepath.Join(dir, "c")
	write(t, sparse, "")
	if err := os.Truncate(sparse, 1<<40); err != nil {
		t.Fatal(err)
	}
	names, refused := collectFrom(t, dir, 1000, "*")
	if len(names) != 1 || len(refused) != 2 {
		t.Errorf("took %v and refused %v, want one file within 1000 bytes", names, refused)
	}

	deep := t.TempDir()
	write(t, filepath.Join(deep, strings.Repeat("d/", MaxDepth+5)+"file"), "x")
	if names, refused := collectFrom(t, deep, 1000, "d"); len(names) != 0 || len(refused) != 1 {
		t.Errorf("took %v and refused %v from a directory that is too deep", names, refused)
	}

	many := t.TempDir()
	for i := range MaxFiles + 10 {
		write(t, filepath.Join(many, fmt.Sprint(i)), "")
	}
	if names, refused := collectFrom(t, many, 1000, "*"); len(names) != MaxFiles || len(refused) != 1 {
		t.Errorf("took %d files, refused %v", len(names), refused)
	}
	if names, refused := collectFrom(t, many, 1000, "*", "7"); len(names) != MaxFiles || !slices.Contains(names, "7") || len(refused) != 1 {
		t.Errorf("took %d files, refused %v; a file that is named comes before what a pattern finds", len(names), refused)
	}
	write(t, filepath.Join(many, "value"), strings.Repeat("x", 900))
	write(t, filepath.Join(many, "0"), strings.Repeat("x", 900))
	names, _ = collectFrom(t, many, 1000, "[0-9]*", "missing", "value", "value")
	if !slices.Contains(names, "value") || slices.Contains(names, "0") {
		t.Errorf("took %d files; the bytes are the named file's", len(names))
	}
}

// TestNames collects files whose names the host cannot take, or that are meant to mislead a reader.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "good"), "good")
	write(t, filepath.Join(dir, "new\nline"), "odd")
	if err := os.Symlink("good", filepath.Join(dir, "a\x1b[31m\nb")); err != nil {
		t.Fatal(err)
	}
	// The path is longer than allowed: it can only be created step by step.
	long := strings.Repeat("l", 255)
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { unix.Close(at) }()
	for range 20 {
		if err := unix.Mkdirat(at, long, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, long, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(at)
		at = next
	}
	file, err := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(file)
	names, refused := collectFrom(t, dir, 1000, "*")
	slices.Sort(names)
	if want := []string{"good", "new\nline"}; !slices.Equal(names, want) {
		t.Errorf("took %q, want %q", names, want)
	}
	if len(refused) != 2 {
		t.Errorf("refused %q, want two", refused)
	}
	for _, line := range refused {
		if strings.ContainsAny(line, "\n\x1b") || len(line) > 400 {
			t.Errorf("refused with the words %q", line)
		}
	}
}

// Refusals take no more memory than those that are listed, however many a program causes.
func TestRefusalsAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range maxRefused + 7 {
		if err := os.Symlink("x", filepath.Join(dir, fmt.Sprintf("link%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, refused := collectFrom(t, dir, 1<<20, "."); len(refused) != maxRefused+1 || refused[maxRefused] != "and 7 more" {
		t.Errorf("%d refusals, the last %q", len(refused), refused[len(refused)-1])
	}
	c := &collection{}
	for range 1000 * maxRefused {
		c.refuse("name", "why")
	}
	if cap(c.refused) > 2*maxRefused {
		t.Errorf("room for %d refusals", cap(c.refused))
	}
}
