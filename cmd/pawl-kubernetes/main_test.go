//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/programtest"
	"github.com/pawl-run/pawl/internal/runtime/docker/dockertest"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/kubernetestest"
)

// program is the command under test, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pawl-kubernetes-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "pawl-kubernetes")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// account applies deploy/kubernetes/runs.yaml in the test's namespace, and returns the kubeconfig of an account with its role.
func account(t *testing.T, namespace string) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/kubernetes/runs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mapped := regexp.MustCompile(`namespace: pawl(-runs)?\b`).ReplaceAllString(string(text), "namespace: "+namespace)
	paths := map[string]string{"Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/roles",
		"RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/rolebindings", "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/%s/networkpolicies"}
	account := ""
	for documents := yaml.NewDecoder(strings.NewReader(mapped)); ; {
		var one map[string]any
		if err := documents.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		kind := one["kind"].(string)
		if kind == "Namespace" { // the namespace exists, with the same label
			continue
		}
		kubernetestest.Do(t, "POST", fmt.Sprintf(paths[kind], namespace), one, nil)
		if kind == "RoleBinding" {
			account = one["subjects"].([]any)[0].(map[string]any)["name"].(string)
		}
	}
	accounts := "/api/v1/namespaces/" + namespace + "/serviceaccounts"
	kubernetestest.Do(t, "POST", accounts, map[string]any{"metadata": map[string]any{"name": account}}, nil)
	var answer struct{ Status struct{ Token string } }
	kubernetestest.Do(t, "POST", accounts+"/"+account+"/token",
		map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}, &answer)
	admin, err := os.ReadFile(kubernetestest.Cluster(t))
	if err != nil {
		t.Fatal(err)
	}
	mine := regexp.MustCompile(`token: "[^"]*"`).ReplaceAll(admin, []byte(fmt.Sprintf("token: %q", answer.Status.Token)))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, mine, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts a command that runs until the test ends, and returns the submatches of the first line of its standard error that matches.
func start(t *testing.T, until *regexp.Regexp, args ...string) []string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = programtest.Start(cmd)
	}
	if err != nil {
		t.Fatal(err)
	}
	found, read := make(chan []string, 1), make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if m := until.FindStringSubmatch(lines.Text()); m != nil {
				found <- m
			}
			fmt.Fprintln(t.Output(), args[0]+":", lines.Text())
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-read
		_ = cmd.Wait()
	})
	select {
	case m := <-found:
		return m
	case <-read:
		t.Fatalf("%v ended", args)
	}
	return nil
}

// A container that is submitted to a server is run by another worker as a pod on a real kubelet, with only the permissions of the
// manifest; code runs in an image, too.
func TestContainerAsPod(t *testing.T) {
	kubernetestest.Cluster(t)
	layer, err := dockertest.Rootfs()
	if err != nil {
		t.Fatal(err)
	}
	image, helper, namespace := kubernetestest.Image(t, "pawl-test/tools", layer, nil), kubernetestest.Helper(t), kubernetestest.Namespace(t)
	cluster := []string{"--kubernetes-config", account(t, namespace), "--kubernetes-namespace", namespace, "--kubernetes-helper-image", helper}
	server := start(t, regexp.MustCompile(`serving on (http://\S+)`), "server", "--no-worker", "--listen", "127.0.0.1:0", "--state-dir", t.TempDir())[1]
	worker := append([]string{"worker", "--server", server, "--state-dir", t.TempDir(), "--runtime", "kubernetes", "--kubernetes-image", image}, cluster...)
	start(t, regexp.MustCompile(`taking work|working for|worker`), worker...)

	text, err := os.ReadFile("../../examples/container.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "container.yaml")
	mine := strings.Replace(string(text), "image: debian:bookworm-slim", "image: "+image+"\n      entrypoint: []", 1)
	if err := os.WriteFile(file, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	var x api.Execution
	run(t, 0, &x, "run", file, "--server", server, "-o", "json")
	var out struct{ Words int }
	if err := json.Unmarshal(x.Output, &out); err != nil || out.Words != 9 {
		t.Errorf("%v: %s", err, x.Output)
	}

	script := filepath.Join(t.TempDir(), "where.sh")
	if err := os.WriteFile(script, []byte("id -u; echo 7 > $PAWL_OUTPUT; exit 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var r api.CodeResult
	run(t, 3, &r, "eval", script, "--server", server, "-o", "json")
	if r.Runtime != "kubernetes" || r.ExitCode == nil || *r.ExitCode != 3 || string(r.Result) != "7" || !strings.HasPrefix(r.Stdout, "1") {
		t.Errorf("%+v", r)
	}
	if left := kubernetestest.Pods(t, namespace, "run.pawl.owner"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	said := run(t, 0, nil, append([]string{"doctor", "--runtime", "kubernetes", "--kubernetes-image", image, "--state-dir", t.TempDir()}, cluster...)...)
	if !strings.Contains(said, "ok   runtime kubernetes: a program was run in it") {
		t.Errorf("%s", said)
	}
}

// run runs a command to its end and reads its JSON.
func run(t *testing.T, code int, into any, args ...string) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("%v: exit code %d, want %d\n%s%s", args, got, code, stdout.String(), stderr.String())
	}
	if into != nil {
		if err := json.Unmarshal(stdout.Bytes(), into); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, stdout.String())
		}
	}
	return stdout.String()
}

// Without a cluster, the error says what is missing and how to configure it.
func TestNoCluster(t *testing.T) {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "none")
	for name, c := range map[string]struct {
		args []string
		say  string
	}{
		"no helper image": {nil, "--kubernetes-helper-image"},
		"no kubeconfig":   {[]string{"--kubernetes-helper-image", "x", "--kubernetes-config", nowhere}, "--kubernetes-config or KUBECONFIG"},
		"no image":        {[]string{"--kubernetes-helper-image", "x"}, "--kubernetes-image"},
	} {
		cmd := exec.Command(path, append([]string{"worker", "--server", "http://127.0.0.1:1", "--state-dir", t.TempDir(), "--runtime", "kubernetes"}, c.args...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+unreachable(t))
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.say) {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
}

// unreachable is a kubeconfig of a cluster that does not answer.
func unreachable(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: t}}], clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
