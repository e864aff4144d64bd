package chart

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pawl-run/pawl/internal/runtime/docker/dockertest"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/kubernetestest"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// blocks are the commands beneath a heading of docs/kubernetes.md.
func blocks(t *testing.T, heading string) []string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", document, heading)
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	var all []string
	for _, m := range shellBlock.FindAllStringSubmatch(section, -1) {
		all = append(all, m[1])
	}
	return all
}

// The first block of docs/kubernetes.md has the five commands that it promises, and the first of them makes the images
// that the chart names.
func TestFiveCommands(t *testing.T) {
	first := blocks(t, "From an empty cluster to an evaluation")[0]
	if n := strings.Count(first, "\n"); n != 5 {
		t.Errorf("%d commands", n)
	}
	line, _, _ := strings.Cut(first, "\n")
	var chart struct {
		AppVersion string `yaml:"appVersion"`
	}
	readYAML(t, chartDir+"/Chart.yaml", &chart)
	if want := "for i in server worker kubernetes pod; do docker build --push --target $i -t $REGISTRY/pawl-$i:" + chart.AppVersion + " .; done"; line != want {
		t.Errorf("%s\nwant\n%s", line, want)
	}
}

// The commands of docs/kubernetes.md work as documented: on SQLite, then with PostgreSQL, an upgrade, the uninstallation, and the
// manifests without Helm. A script gives helm values for what the tests' cluster lacks: names and addresses of services.
func TestClusterCommands(t *testing.T) {
	node := nodeAddress(t)
	i := &installation{namespace: "pawl", helm: helm(t)}
	dsn := database(t, node)
	tools, err := dockertest.Rootfs()
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := images(t, tools)
	const registry = "docker.io/pawl-test/document"
	for tag, image := range map[string]string{"0.1.0": first, "0.2.0": second} {
		kubernetestest.Tag(t, image, registry+"/pawl-server:"+tag)
		kubernetestest.Tag(t, image, registry+"/pawl-kubernetes:"+tag)
		kubernetestest.Tag(t, kubernetestest.Helper(t), registry+"/pawl-pod:"+tag)
	}
	kubernetestest.Tag(t, kubernetestest.Image(t, "pawl-test/tools", tools, nil), "docker.io/library/python:3.13-slim")
	volume(t)
	t.Cleanup(func() {
		for _, name := range []string{"pawl", "pawl-runs"} {
			kubernetestest.Do(t, "DELETE", "/api/v1/namespaces/"+name, nil, nil)
		}
		for _, name := range []string{"pawl", "pawl-runs"} {
			gone(t, name)
		}
	})
	service, apiServer := i.ways(t, node)
	extra, err := yaml.Marshal(map[string]any{"workerDefaults": map[string]any{"server": service,
		"extraEnv":          []any{map[string]any{"name": "PAWL_KUBERNETES_CONFIG", "value": "/cluster/kubeconfig"}},
		"extraVolumes":      []any{map[string]any{"name": "cluster", "secret": map[string]any{"secretName": "cluster"}}},
		"extraVolumeMounts": []any{map[string]any{"name": "cluster", "mountPath": "/cluster"}}}})
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(i.helm)
	for name, text := range map[string]string{
		"extra.yaml": string(extra),
		"helm":       fmt.Sprintf("#!/bin/sh\ncase $1 in install|upgrade) set -- \"$@\" --values %s/extra.yaml ;; esac\nexec %s \"$@\"\n", bin, i.helm),
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "kubectl"), "./kubectl")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build kubectl: %v\n%s", err, out)
	}
	shell := func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\n"+script)
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+kubernetestest.Cluster(t), "REGISTRY="+registry, "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			i.explain(t)
			t.Fatalf("%v\n%s\n%s", err, script, out)
		}
		return string(out)
	}
	answer := func(script string) {
		t.Helper()
		if out := shell(script); !regexp.MustCompile(`(?m)^42$`).MatchString(out) {
			t.Errorf("%s\nsaid\n%s", script, out)
		}
	}

	start := blocks(t, "From an empty cluster to an evaluation")
	_, five, _ := strings.Cut(start[0], "\n") // without docker, which is not here: its images are
	before, after, _ := strings.Cut(five, "helm install")
	shell(before)
	i.secret(t, "cluster", "kubeconfig", kubeconfigOf(apiServer))
	// The tests' image has bash and no Python.
	const python, pythonName = "print(6*7)", "--language python"
	if !strings.Contains(after, python) || !strings.Contains(after, pythonName) {
		t.Fatalf("the last command is another one:\n%s", after)
	}
	after = strings.NewReplacer(python, "echo $((6*7))", pythonName, "--language bash").Replace(after)
	answer("helm install" + after)
	lines := strings.Split(strings.TrimSpace(after), "\n")
	evaluate := lines[len(lines)-1]

	shell(strings.Replace(start[1], "postgres://pawl:…@db.example:5432/pawl?sslmode=verify-full", dsn, 1) + "kubectl rollout status -n pawl deployment/pawl-server\n")
	if n := len(kubernetestest.Pods(t, "pawl", "app.kubernetes.io/component=server")); n != 2 {
		t.Errorf("%d servers", n)
	}
	answer(evaluate)
	upgrade, uninstall, _ := strings.Cut(blocks(t, "Upgrade and uninstall")[0], "\n")
	answer(upgrade + "\n" + evaluate)
	shell(uninstall + "kubectl delete pvc -n pawl pawl-server\n")
	i.nothingLeft(t)

	shell("kubectl delete namespace pawl\n")
	out := shell(blocks(t, "Without Helm")[0])
	if !strings.Contains(out, "deployment.apps/pawl-server created") || !strings.Contains(out, "role.rbac.authorization.k8s.io/pawl-worker created") {
		t.Error(out)
	}
}

// volume makes a volume that any claim gets, as a cluster's default StorageClass would.
func volume(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	name := "pawl-test-" + filepath.Base(filepath.Dir(dir))
	name = strings.ToLower(regexp.MustCompile(`[^a-zA-Z0-9]+`).ReplaceAllString(name, "-"))
	kubernetestest.Do(t, "POST", "/api/v1/persistentvolumes", map[string]any{"metadata": map[string]any{"name": name},
		"spec": map[string]any{"capacity": map[string]any{"storage": "10Gi"}, "accessModes": []string{"ReadWriteOnce"}, "hostPath": map[string]any{"path": dir},
			"persistentVolumeReclaimPolicy": "Retain"}}, nil)
	t.Cleanup(func() { kubernetestest.Do(t, "DELETE", "/api/v1/persistentvolumes/"+name, nil, nil) })
}

// gone waits until a namespace no longer exists.
func gone(t *testing.T, namespace string) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); kubernetestest.Do(t, "GET", "/api/v1/namespaces/"+namespace, nil, nil) != http.StatusNotFound; <-tick.C {
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("namespace %s is still there", namespace)
		}
	}
}
