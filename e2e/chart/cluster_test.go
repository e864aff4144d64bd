package chart

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.yaml.in/yaml/v4"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/runtime/docker/dockertest"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/kubernetestest"
)

// collections are where the API has objects of the kinds that the chart makes, beneath a namespace.
var collections = map[string]string{
	"ConfigMap": "/api/v1/%s/configmaps", "Service": "/api/v1/%s/services", "ServiceAccount": "/api/v1/%s/serviceaccounts",
	"PersistentVolumeClaim": "/api/v1/%s/persistentvolumeclaims", "ResourceQuota": "/api/v1/%s/resourcequotas",
	"Deployment": "/apis/apps/v1/%s/deployments", "PodDisruptionBudget": "/apis/policy/v1/%s/poddisruptionbudgets",
	"Role": "/apis/rbac.authorization.k8s.io/v1/%s/roles", "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/%s/rolebindings",
	"NetworkPolicy": "/apis/networking.k8s.io/v1/%s/networkpolicies", "Ingress": "/apis/networking.k8s.io/v1/%s/ingresses",
}

// beyond are kinds of which a bare cluster has no definition.
var beyond = map[string]bool{"ServiceMonitor": true, "PrometheusRule": true, "ScaledObject": true}

// The API server accepts everything that the chart renders, and knows every field of it.
func TestClusterTakesAll(t *testing.T) {
	kubernetestest.Cluster(t)
	tried := 0
	each(t, func(t *testing.T, _ string, all []object) {
		renamed := map[string]string{}
		for _, o := range all {
			if beyond[o.kind()] {
				continue
			}
			collection := "/api/v1/namespaces"
			if o.kind() != "Namespace" {
				namespace := o.at("metadata", "namespace").(string)
				if renamed[namespace] == "" {
					renamed[namespace] = kubernetestest.Namespace(t)
				}
				o.at("metadata").(map[string]any)["namespace"] = renamed[namespace]
				path, ok := collections[o.kind()]
				if !ok {
					t.Fatalf("%s: where is that in the API?", o.name())
				}
				collection = fmt.Sprintf(path, "namespaces/"+renamed[namespace])
			}
			if code := kubernetestest.Do(t, "POST", collection+"?dryRun=All&fieldValidation=Strict", o, nil); code != http.StatusCreated {
				t.Errorf("%s: %d", o.name(), code)
			}
			tried++
		}
	})
	t.Logf("%d objects", tried)
}

// installation is a release of the chart on the cluster, and the ways to it: the cluster of the tests has neither names nor services'
// addresses, so this process passes connections on, at the node's address.
type installation struct {
	namespace string
	helm      string
	token     string
	values    map[string]any
	client    *client.Client
}

// command runs helm, or fails.
func (i *installation) command(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, i.helm, append(args, "--namespace", i.namespace, "--kubeconfig", kubernetestest.Cluster(t))...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		i.explain(t)
		t.Fatalf("helm %v: %v\n%s", args, err, out)
	}
}

// explain prints the cluster's state of the release's pods.
func (i *installation) explain(t *testing.T) {
	t.Helper()
	var pods struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   map[string]any
		}
	}
	kubernetestest.Do(t, "GET", "/api/v1/namespaces/"+i.namespace+"/pods", nil, &pods)
	for _, p := range pods.Items {
		text, _ := json.Marshal(map[string]any{"conditions": p.Status["conditions"], "containers": p.Status["containerStatuses"]})
		t.Logf("pod %s: %s", p.Metadata.Name, text)
	}
	var events struct {
		Items []struct{ Reason, Message string }
	}
	kubernetestest.Do(t, "GET", "/api/v1/namespaces/"+i.namespace+"/events", nil, &events)
	for _, e := range events.Items {
		if e.Reason != "Scheduled" && e.Reason != "Created" && e.Reason != "Started" {
			t.Logf("event %s: %s", e.Reason, e.Message)
		}
	}
}

// write writes the values, with an image, and returns the file.
func (i *installation) write(t *testing.T, image string) string {
	t.Helper()
	i.values["server"].(map[string]any)["image"] = image
	i.values["workers"].([]any)[0].(map[string]any)["image"] = image
	text, err := yaml.Marshal(i.values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// secret makes a Secret of the release's namespace.
func (i *installation) secret(t *testing.T, name, key, value string) {
	t.Helper()
	kubernetestest.Do(t, "POST", "/api/v1/namespaces/"+i.namespace+"/secrets",
		map[string]any{"metadata": map[string]any{"name": name}, "stringData": map[string]any{key: value}}, nil)
}

// database makes a database, and returns its DSN for pods.
func database(t *testing.T, node string) string {
	t.Helper()
	dsn := os.Getenv("PAWL_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("no PostgreSQL: make kubernetes starts one")
	}
	connection, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := "chart_" + strings.ToLower(rand.Text()[:10])
	if _, err := connection.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := connection.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
		_ = connection.Close(context.Background())
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Host, u.Path = pass(t, node, func() string { return fmt.Sprintf("%s:%d", connection.Config().Host, connection.Config().Port) }), "/"+name
	return u.String()
}

// images are two of one program, for an upgrade from one to the other: cmd/pawl-kubernetes, for servers and workers. A third also
// contains the tools of the languages, for sandboxes.
func images(t *testing.T, tools []byte) (first, second, sandbox string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pawl")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", file, "./cmd/pawl-kubernetes")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	config := func(version string) map[string]any { // as in the Dockerfile's target server
		return map[string]any{"Entrypoint": []string{"pawl"}, "Env": []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, "Labels": map[string]string{"version": version}}
	}
	alone := layer(t, nil, program)
	return kubernetestest.Image(t, "pawl-test/pawl", alone, config("1")), kubernetestest.Image(t, "pawl-test/pawl", alone, config("2")),
		kubernetestest.Image(t, "pawl-test/pawl-tools", layer(t, tools, program), config("1"))
}

// layer is an archive with the program, after the content of another archive.
func layer(t *testing.T, before, program []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	to := tar.NewWriter(&out)
	for from := tar.NewReader(bytes.NewReader(before)); before != nil; {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = to.WriteHeader(h)
		}
		if err == nil {
			_, err = io.Copy(to, from)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	err := to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "usr/local/bin/pawl", Mode: 0o755, Size: int64(len(program))})
	if err == nil {
		_, err = to.Write(program)
	}
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// helm builds Helm's command.
func helm(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "real-helm")
	build := exec.Command("go", "build", "-o", file, "helm.sh/helm/v3/cmd/helm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build helm: %v\n%s", err, out)
	}
	return file
}

// ways are where pods reach the release's servers and the API server.
func (i *installation) ways(t *testing.T, node string) (service, apiServer string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubernetestest.Cluster(t))
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	host := regexp.MustCompile(`^https?://`).ReplaceAllString(config.Host, "")
	return "http://" + pass(t, node, i.readyServer(cluster, config.Host)), pass(t, node, func() string { return host })
}

// kubeconfigOf names the API server for a pod, which shows the token of its own account.
func kubeconfigOf(apiServer string) string {
	return `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], ` +
		`users: [{name: u, user: {tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token}}], ` +
		`clusters: [{name: c, cluster: {server: "https://` + apiServer + `", insecure-skip-tls-verify: true}}]}`
}

// prepare makes what must be there before the release: a namespace, secrets, a database, images, and ways.
func prepare(t *testing.T) (i *installation, first, second string) {
	t.Helper()
	node := nodeAddress(t)
	i = &installation{namespace: "pawl-" + strings.ToLower(rand.Text()[:8]), token: strings.ToLower(rand.Text()), helm: helm(t)}
	kubernetestest.Do(t, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": i.namespace}}, nil)
	t.Cleanup(func() {
		kubernetestest.Do(t, "DELETE", "/api/v1/namespaces/"+i.namespace, nil, nil)
		kubernetestest.Do(t, "DELETE", "/api/v1/namespaces/"+i.namespace+"-runs", nil, nil)
	})
	dsn := database(t, node)
	i.secret(t, "pawl-token", "token", i.token)
	i.secret(t, "pawl-database", "dsn", dsn)

	service, apiServer := i.ways(t, node)
	i.secret(t, "cluster", "kubeconfig", kubeconfigOf(apiServer))
	var err error
	if i.client, err = client.New(service, client.WithToken(i.token)); err != nil {
		t.Fatal(err)
	}
	tools, err := dockertest.Rootfs()
	if err != nil {
		t.Fatal(err)
	}
	first, second, sandbox := images(t, tools)
	small := map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "32Mi"}}
	i.values = map[string]any{
		"image":    map[string]any{"pullPolicy": "Never"},
		"database": map[string]any{"existingSecret": "pawl-database"},
		"server":   map[string]any{"resources": small},
		"workers": []any{map[string]any{
			"name": "default", "runtime": "kubernetes", "slots": 30, "graceSeconds": 120, "server": service, "resources": small,
			"kubernetes":        map[string]any{"image": kubernetestest.Image(t, "pawl-test/tools", tools, nil), "helperImage": kubernetestest.Helper(t), "pull": "never"},
			"extraEnv":          []any{map[string]any{"name": "PAWL_KUBERNETES_CONFIG", "value": "/cluster/kubeconfig"}},
			"extraVolumes":      []any{map[string]any{"name": "cluster", "secret": map[string]any{"secretName": "cluster"}}},
			"extraVolumeMounts": []any{map[string]any{"name": "cluster", "mountPath": "/cluster"}},
		}, map[string]any{
			// Privileged: the containerd of the tests' cluster knows no user namespaces.
			"name": "sandbox", "runtime": "sandbox", "queues": []string{"sandboxed"}, "slots": 2, "server": service, "image": sandbox, "resources": small,
			"sandbox": map[string]any{"privileged": true},
		}},
	}
	return i, first, second
}

// The chart is installed, runs an execution, is upgraded with 20 under way, of which none is lost or begun again, and is uninstalled
// without leaving anything.
func TestClusterInstallation(t *testing.T) {
	i, first, second := prepare(t)
	began := time.Now()
	i.command(t, "install", "pawl", chartDir, "--wait", "--timeout", "3m", "--values", i.write(t, first))
	t.Logf("installed in %v", time.Since(began).Round(100*time.Millisecond))

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	evaluate := func(queue, source string) *api.Execution {
		x, err := i.client.Evaluate(ctx, api.Evaluation{Queue: queue, Code: api.Code{Language: "bash", Source: source, Limits: api.CodeLimits{Wall: api.Duration(3 * time.Minute)}}})
		if err != nil {
			i.explain(t)
			t.Fatal(err)
		}
		return x
	}
	ended := func(x *api.Execution, stdout string) {
		t.Helper()
		x, err := i.client.Wait(ctx, x.ID)
		if err != nil {
			i.explain(t)
			t.Fatal(err)
		}
		var out api.CodeResult
		if err := json.Unmarshal(x.Output, &out); err != nil || x.Attempt != 1 || out.Stdout != stdout {
			t.Errorf("%s: %s in attempt %d: %v %s %s", x.ID, x.Status, x.Attempt, x.Error, x.Output, out.Stdout)
		}
	}
	ended(evaluate("default", "echo $((6*7))"), "42\n")
	ended(evaluate("sandboxed", "echo $((6*7)); id -u"), "42\n1000\n")

	const many = 20
	var under []*api.Execution
	for range many {
		under = append(under, evaluate("default", "sleep 30; echo done"))
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for running := 0; running < many; <-tick.C {
		page, err := i.client.List(ctx, client.Filter{Status: []api.Status{api.Running}, Limit: many})
		if err != nil {
			t.Fatal(err)
		}
		running = len(page.Executions)
	}
	before := i.pods(t)
	began = time.Now()
	i.command(t, "upgrade", "pawl", chartDir, "--wait", "--timeout", "3m", "--values", i.write(t, second))
	t.Logf("upgraded in %v", time.Since(began).Round(100*time.Millisecond))
	for _, x := range under {
		ended(x, "done\n")
	}
	ended(evaluate("default", "echo $((6*7))"), "42\n")
	for name := range i.pods(t) {
		if before[name] != strings.HasPrefix(name, "pawl-worker-sandbox-") {
			t.Errorf("pod %s: replaced and should not be, or the other way round", name)
		}
	}

	i.command(t, "uninstall", "pawl", "--wait", "--timeout", "3m")
	i.nothingLeft(t)
}

// pods are those of the release without a time of deletion, and whether each is ready.
func (i *installation) pods(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, p := range kubernetestest.Pods(t, i.namespace, "app.kubernetes.io/instance=pawl") {
		name, _, _ := strings.Cut(p, " ")
		all[name] = true
	}
	return all
}

// nothingLeft looks for objects that an uninstalled release has left, other than those of the cluster and the test.
func (i *installation) nothingLeft(t *testing.T) {
	t.Helper()
	theirs := map[string]bool{"kube-root-ca.crt": true, "default": true}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); ; <-tick.C {
		var left []string
		for kind, path := range collections {
			var found struct {
				Items []struct{ Metadata struct{ Name string } }
			}
			kubernetestest.Do(t, "GET", fmt.Sprintf(path, "namespaces/"+i.namespace), nil, &found)
			for _, o := range found.Items {
				if !theirs[o.Metadata.Name] {
					left = append(left, kind+" "+o.Metadata.Name)
				}
			}
		}
		left = append(left, kubernetestest.Pods(t, i.namespace, "app.kubernetes.io/instance=pawl")...)
		if kubernetestest.Do(t, "GET", "/api/v1/namespaces/"+i.namespace+"-runs", nil, nil) != http.StatusNotFound {
			left = append(left, "the namespace of runs")
		}
		if len(left) == 0 {
			return
		}
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("left: %v", left)
		}
	}
}
