package wires

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/e2e/pythontest"
)

// python is a Python with the real clients.
type python struct {
	program string
	path    string // of modules that are loaded alone
}

// clients returns a Python with the clients of requirements.txt, and the parts of the clients of unpacked.txt that tests load.
func clients(t *testing.T) python {
	t.Helper()
	p := python{pythontest.Environment(t, pythontest.Interpreters(t)[0], "requirements.txt"), t.TempDir()}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	archives := t.TempDir()
	get := exec.CommandContext(ctx, p.program, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--require-hashes", "-r", "unpacked.txt", "-d", archives)
	switch out, err := get.CombinedOutput(); {
	case err != nil && bytes.Contains(out, []byte("DO NOT MATCH THE HASHES")):
		t.Fatalf("%s", out)
	case err != nil:
		t.Skipf("NOT TESTED: a package index is needed and not here: %v: %.300s", err, out)
	}
	for pattern, take := range map[string]func(name string) (string, bool){
		"verl-*.whl": func(name string) (string, bool) {
			return name, strings.HasPrefix(name, "verl/utils/reward_score/sandbox_fusion/")
		},
		"aiopyston-*.tar.gz": func(name string) (string, bool) {
			_, beneath, _ := strings.Cut(name, "/")
			return beneath, strings.HasPrefix(beneath, "pyston/") && strings.HasSuffix(beneath, ".py")
		},
	} {
		found, _ := filepath.Glob(filepath.Join(archives, pattern))
		if len(found) != 1 {
			t.Fatalf("%s: %q", pattern, found)
		}
		p.unpack(t, found[0], take)
	}
	return p
}

func (p python) unpack(t *testing.T, archive string, take func(string) (string, bool)) {
	t.Helper()
	put := func(name string, open func() (io.ReadCloser, error)) {
		name, wanted := take(name)
		if !wanted || strings.HasSuffix(name, "/") {
			return
		}
		to := filepath.Join(p.path, filepath.FromSlash(name))
		r, err := open()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if strings.HasSuffix(archive, ".whl") {
		z, err := zip.OpenReader(archive)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		for _, f := range z.File {
			put(f.Name, f.Open)
		}
		return
	}
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for all := tar.NewReader(z); ; {
		h, err := all.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		put(h.Name, func() (io.ReadCloser, error) { return io.NopCloser(all), nil })
	}
}

// transcript is a script in a document, and what it prints.
var transcript = regexp.MustCompile("(?s)```python\n(.*?)```\n\n```text\n(.*?)```")

// With the real clients, the scripts of the documents print what the documents show.
func TestClients(t *testing.T) {
	t.Parallel()
	p := clients(t)
	s := serve(t, t.TempDir())
	documents, err := filepath.Glob("../../docs/leave-*.md")
	if err != nil {
		t.Fatal(err)
	}
	scripts := 0
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range transcript.FindAllStringSubmatch(string(text), -1) {
			scripts++
			t.Run(filepath.Base(document), func(t *testing.T) {
				t.Parallel()
				if got := p.run(t, s, m[1]); got != m[2] {
					t.Errorf("%s\nprints %s\nnot    %s", m[1], got, m[2])
				}
			})
		}
	}
	if scripts < 3 {
		t.Errorf("the documents have %d scripts", scripts)
	}
}

// run runs a script against a server.
func (p python) run(t *testing.T, s *process, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.program, "-c", strings.ReplaceAll(script, "http://127.0.0.1:7411", s.url))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+p.path, "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return string(out)
}
