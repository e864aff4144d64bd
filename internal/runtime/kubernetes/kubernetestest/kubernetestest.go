//go:build unix

// Package kubernetestest gives tests a real cluster of one node, and images that need no registry.
package kubernetestest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is the kubeconfig of the cluster that scripts/services has started; without one the test is skipped.
func Cluster(t testing.TB) string {
	t.Helper()
	path := os.Getenv("PAWL_TEST_KUBERNETES")
	if path == "" {
		t.Skip("no Kubernetes: make kubernetes starts one (it builds it first, which takes minutes) and runs these tests; PAWL_TEST_KUBERNETES names its kubeconfig")
	}
	return path
}

// connection is the administrator's client for the cluster.
var connection = sync.OnceValues(func() (*http.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("PAWL_TEST_KUBERNETES"))
	if err != nil {
		return nil, err
	}
	return rest.HTTPClientFor(config)
})

// Do makes a request to a path of the API as the administrator, and decodes the response into answer unless that is nil. It
// returns the status; any other than success, 404 or 409 fails the test.
func Do(t testing.TB, method, path string, body, answer any) int {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", Cluster(t))
	if err != nil {
		t.Fatal(err)
	}
	client, err := connection()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, config.Host+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	switch code := response.StatusCode; {
	case err != nil || code/100 != 2 && code != http.StatusNotFound && code != http.StatusConflict:
		t.Fatalf("%s %s: %s %v\n%s", method, path, response.Status, err, said)
	case code/100 == 2 && answer != nil:
		if err := json.Unmarshal(said, answer); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return response.StatusCode
}

// Namespace creates a namespace that accepts only restricted pods; the end of the test removes it with its content.
func Namespace(t testing.TB) string {
	t.Helper()
	name := "test-" + strings.ToLower(rand.Text()[:10])
	Do(t, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": name,
		"labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"}}}, nil)
	t.Cleanup(func() { Do(t, "DELETE", "/api/v1/namespaces/"+name, nil, nil) })
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	// Pods are refused until the controller has created the service account.
	for begin := time.Now(); Do(t, "GET", "/api/v1/namespaces/"+name+"/serviceaccounts/default", nil, nil) != http.StatusOK; <-tick.C {
		if time.Since(begin) > time.Minute {
			t.Fatalf("namespace %s gets no service account", name)
		}
	}
	return name
}

// Pods lists the pods of a namespace that have a label and are not being deleted.
func Pods(t testing.TB, namespace, label string) []string {
	t.Helper()
	var found struct {
		Items []struct {
			Metadata struct{ Name, DeletionTimestamp string }
			Status   struct{ Phase string }
		}
	}
	Do(t, "GET", "/api/v1/namespaces/"+namespace+"/pods?labelSelector="+label, nil, &found)
	var names []string
	for _, p := range found.Items {
		if p.Metadata.DeletionTimestamp == "" {
			names = append(names, p.Metadata.Name+" "+p.Status.Phase)
		}
	}
	return names
}

// Helper builds cmd/pawl-pod and imports an image of it into the node. The image's name contains a digest of its content.
func Helper(t testing.TB) string {
	t.Helper()
	program, err := helper()
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	err = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "pawl-pod", Mode: 0o755, Size: int64(len(program))})
	if err == nil {
		_, err = archive.Write(program)
	}
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return Image(t, "pawl-test/pod", layer.Bytes(), nil)
}

var helper = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "pawl-pod-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "pawl-pod")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/pawl-run/pawl/cmd/pawl-pod")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build pawl-pod: %w\n%s", err, out)
	}
	return os.ReadFile(path)
})

// Image imports an image of one layer into the node, and returns its name with a tag derived from its content.
func Image(t testing.TB, name string, layer []byte, config map[string]any) string {
	t.Helper()
	image, full, err := archiveOf(name, layer, config)
	if err != nil {
		t.Fatal(err)
	}
	if known(t, full) {
		return full
	}
	ctr(t, image, "import", "-")
	await(t, full)
	return full
}

// Tag adds a name to an image of the node, with the tag of that image.
func Tag(t testing.TB, image, name string) {
	t.Helper()
	ctr(t, nil, "tag", "--force", image, name)
	await(t, name)
}

// ctr runs a command on the images of the node's containerd.
func ctr(t testing.TB, stdin []byte, args ...string) string {
	t.Helper()
	socket := filepath.Join(filepath.Dir(Cluster(t)), "containerd.sock")
	cmd := exec.Command("ctr", append([]string{"-a", socket, "-n", "k8s.io", "images"}, args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

// known reports whether the kubelet's side of containerd knows an image: containerd marks it some time after the import.
func known(t testing.TB, full string) bool {
	t.Helper()
	return strings.Contains(ctr(t, nil, "ls", "name=="+full), "io.cri-containerd.image=managed")
}

func await(t testing.TB, full string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); !known(t, full); <-tick.C {
		if time.Since(begin) > time.Minute {
			t.Fatalf("the node does not know image %s", full)
		}
	}
}

// archiveOf writes an image as docker save does.
func archiveOf(name string, layer []byte, config map[string]any) (archive []byte, full string, err error) {
	described, err := json.Marshal(map[string]any{"architecture": goruntime.GOARCH, "os": "linux", "config": config,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}}})
	if err != nil {
		return nil, "", err
	}
	full = fmt.Sprintf("docker.io/%s:%x", name, sha256.Sum256(described))[:len("docker.io/")+len(name)+13]
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{full}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, "", err
	}
	var all bytes.Buffer
	w := tar.NewWriter(&all)
	for _, part := range []struct {
		name    string
		content []byte
	}{{"manifest.json", manifest}, {"config.json", described}, {"layer.tar", layer}} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: part.name, Mode: 0o644, Size: int64(len(part.content))}); err != nil {
			return nil, "", err
		}
		if _, err := w.Write(part.content); err != nil {
			return nil, "", err
		}
	}
	return all.Bytes(), full, w.Close()
}
