package e2e

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxBinary bounds the size of the stripped binary. It has 45 MiB on Linux, and 16 MiB more as soon as it links one function that calls
// methods by names that are not constants, as templates do: then the linker keeps all exported methods of all types.
const maxBinary = 48 << 20

// maxKubernetes bounds the size of pawl-kubernetes. It has 52.1 MiB: the 45.0 of pawl, 1.6 of types of Kubernetes' API, and the client with
// its dependencies. With the library's typed client it had 59.
const maxKubernetes = 53 << 20

// maxPod bounds the size of pawl-pod: it has 2.2 MB, all of which both of its processes in a pod have in memory. With package net and JSON
// it had 2.7.
const maxPod = 5 << 19

// The cluster's client adds a few megabytes to pawl-kubernetes, and the helper is small enough to be copied into each pod.
func TestBinariesForKubernetes(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int64{"pawl-kubernetes": maxKubernetes, "pawl-pod": maxPod} {
		path := filepath.Join(t.TempDir(), name)
		cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", path, "../cmd/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS=linux")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if info, err := os.Stat(path); err != nil || info.Size() > most {
			t.Errorf("%s has %d bytes, at most %d: %v", name, info.Size(), most, err)
		}
	}
}

// The linker removes functions that are not called, and the binary stays below its bound.
func TestBinary(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pawl")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w -dumpdep", "-o", path, "../cmd/pawl")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	edges, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	callers := map[string]bool{}
	lines := 0
	s := bufio.NewScanner(edges)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		lines++
		from, _, _ := strings.Cut(s.Text(), " -> ")
		if name, marked := strings.CutSuffix(from, " <ReflectMethod>"); marked {
			callers[name] = true
		}
	}
	_, _ = io.Copy(io.Discard, edges)
	if err := cmd.Wait(); err != nil || s.Err() != nil {
		t.Fatal(err, s.Err())
	}
	for name := range callers {
		t.Errorf("%s calls methods by their names: the linker keeps all of them", name)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxBinary || lines < 10_000 {
		t.Errorf("the binary has %d bytes, at most %d; %d lines about it", info.Size(), maxBinary, lines)
	}
}
