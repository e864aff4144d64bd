//go:build unix

// Package dockertest gives tests a Docker engine and images that need no registry.
package dockertest

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
)

// Engine is the address of the engine that scripts/services has started; without one the test is skipped. Until the test ends no
// other process uses the engine; see take.
func Engine(t testing.TB) string {
	t.Helper()
	host := os.Getenv("PAWL_TEST_DOCKER")
	if host == "" {
		t.Skip("no Docker engine: scripts/services up starts one, and PAWL_TEST_DOCKER names it")
	}
	if err := take(host); err != nil {
		t.Fatalf("wait for the Docker engine: %v", err)
	}
	t.Cleanup(release)
	return host
}

// programs are the programs in the image.
var programs = []string{"sh", "bash", "env", "cat", "cp", "echo", "false", "grep", "head", "id", "ln", "ls", "mkdir", "mkfifo", "ps",
	"printf", "pwd", "rm", "seq", "sleep", "sort", "tail", "touch", "tr", "true", "uniq", "wc"}

// Rootfs is a root file system, as an archive, with some programs of this host and the libraries that they need.
var Rootfs = sync.OnceValues(func() ([]byte, error) {
	var all bytes.Buffer
	archive := tar.NewWriter(&all)
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib64"} {
		if link, err := os.Readlink(dir); err == nil { // as on this host
			if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: dir[1:], Linkname: link}); err != nil {
				return nil, err
			}
		}
	}
	const users = "root:x:0:0::/:/bin/sh\napp:x:1500:1500::/:/bin/sh\n"
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644, Size: int64(len(users))}); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(archive, users); err != nil {
		return nil, err
	}
	var files []string
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		files = append(files, path)
		libraries, _ := exec.Command("ldd", path).Output() // fails for a static program
		for word := range strings.FieldsSeq(string(libraries)) {
			if filepath.IsAbs(word) {
				files = append(files, word)
			}
		}
	}
	slices.Sort(files)
	for _, path := range slices.Compact(files) {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(path)) // a file beneath a link would replace the link
		if err != nil {
			return nil, err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.Join(dir, filepath.Base(path))[1:], Mode: 0o755, Size: int64(len(content))}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return all.Bytes(), nil
})

// Image imports a small image under the given name, unless the engine has it. Changes are Dockerfile instructions, such
// as "WORKDIR /app". The image is not removed: other tests may be using it.
func Image(t testing.TB, host, name string, changes ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	engine := Client(t, host)
	if _, err := engine.ImageInspect(ctx, name); err == nil {
		return
	}
	content, err := Rootfs()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := engine.ImageImport(ctx, client.ImageImportSource{Source: bytes.NewReader(content), SourceName: "-"}, name,
		client.ImageImportOptions{Changes: changes})
	if err != nil {
		t.Fatalf("import image %s: %v", name, err)
	}
	defer answer.Close()
	if said, err := io.ReadAll(answer); err != nil || bytes.Contains(said, []byte(`"error"`)) {
		t.Fatalf("import image %s: %v %s", name, err, said)
	}
}

// Client returns a client of the engine that is closed at the end of the test.
func Client(t testing.TB, host string) *client.Client {
	t.Helper()
	engine, err := client.New(client.WithHost(host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	return engine
}

// Containers lists the engine's containers with the label.
func Containers(t testing.TB, host, label string) []string {
	t.Helper()
	found, err := Client(t, host).ContainerList(t.Context(), client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", label),
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range found.Items {
		names = append(names, strings.Join(c.Names, ",")+" "+string(c.State))
	}
	return names
}
