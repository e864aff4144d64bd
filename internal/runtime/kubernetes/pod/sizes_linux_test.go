package pod

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Files count with the blocks that they take, at any depth; links are not followed.
func TestSizes(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	want := int64(3 * perEntry) // the three themselves
	file := func(at string, size int) {
		t.Helper()
		path := filepath.Join(dir, at)
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		want += perEntry + st.Blocks*512
	}
	s := sizes{dirs: []string{dir + "\x00", other + "\x00", filepath.Join(dir, "missing\x00")}, most: math.MaxInt64}
	if got := s.sum(); got != want {
		t.Errorf("empty: %d, want %d", got, want)
	}
	deep := "."
	for range 20 {
		deep = filepath.Join(deep, "d")
		want += perEntry
	}
	if err := os.MkdirAll(filepath.Join(dir, deep), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 100 { // more than one read of the directory returns
		file(fmt.Sprintf("%03d%s", i, strings.Repeat("x", 200)), 1)
	}
	file(filepath.Join(deep, "deep"), 100_000)
	file(".hidden", 5)
	file("..more", 5)
	if err := os.WriteFile(filepath.Join(other, "one"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want += perEntry
	if err := os.Symlink(dir, filepath.Join(other, "link")); err != nil {
		t.Fatal(err)
	}
	want += perEntry
	if got := s.sum(); got != want {
		t.Errorf("%d, want %d", got, want)
	}
	if took := testing.AllocsPerRun(20, func() { s.sum() }); took > 0 {
		t.Errorf("a look takes %v pieces of memory", took)
	}
	s.most = 5 * perEntry
	if got := s.sum(); got >= want || got+perEntry <= s.most {
		t.Errorf("of more than %d, %d were counted", s.most, got)
	}
	over := make(chan struct{})
	close(over)
	s.most, s.over = math.MaxInt64, over
	if got := s.sum(); got >= want {
		t.Errorf("%d were counted when nobody wanted to know", got)
	}
}

// Reading the cgroup, which happens several times a second, allocates nothing.
func TestCounter(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "cpu.stat"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c := counter{file: file}
	for text, want := range map[string]int64{"usage_usec 12\nuser_usec 5\n": 12, "nr 1\nusage_usec 7": 7, "99\n": 99, "other 3\n": 0} {
		if err := file.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt([]byte(text), 0); err != nil {
			t.Fatal(err)
		}
		var got int64
		look := func() { got = c.field("usage_usec") }
		if text == "99\n" {
			look = func() { got = c.number() }
		}
		if took := testing.AllocsPerRun(20, look); got != want || took > 0 {
			t.Errorf("%q: %d, want %d, and %v pieces of memory", text, got, want, took)
		}
	}
	if missing := (&counter{}).number(); missing != 0 {
		t.Errorf("a file that is not there says %d", missing)
	}
}
