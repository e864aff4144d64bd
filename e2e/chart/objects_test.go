package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

// helm lint finds nothing.
func TestLint(t *testing.T) {
	for name, values := range sets(t) {
		for _, m := range lint.All(chartDir, values, "pawl", true).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s: %v", name, m.Path, m.Err)
			}
		}
	}
}

// Every object has a kind, a version, a name that there is once, a namespace and the labels by which it is found again.
func TestObjects(t *testing.T) {
	each(t, func(t *testing.T, _ string, all []object) {
		seen := map[string]bool{}
		for _, o := range all {
			where := fmt.Sprintf("%v of %v", o.name(), o.at("metadata", "namespace"))
			if o["apiVersion"] == nil || seen[where] {
				t.Errorf("%s is there twice, or has no apiVersion", where)
			}
			seen[where] = true
			if o.kind() == "Namespace" {
				if o.at("metadata", "labels", "pod-security.kubernetes.io/enforce") != "restricted" {
					t.Errorf("%s takes any pod", where)
				}
				continue
			}
			if o.at("metadata", "namespace") == nil || o.at("metadata", "labels", "app.kubernetes.io/instance") != "pawl" {
				t.Errorf("%s has no namespace or no labels", where)
			}
			if strings.HasPrefix(o.kind(), "Cluster") || o.kind() == "Secret" {
				t.Errorf("%s: the chart gives rights in its namespaces only, and no secrets", where)
			}
		}
	})
}

// A Deployment selects its own pods and no others; services, budgets and policies select pods that there are.
func TestSelectors(t *testing.T) {
	each(t, func(t *testing.T, _ string, all []object) {
		deployments := ofKind(all, "Deployment")
		selects := func(selector any, d object) bool {
			want, _ := selector.(map[string]any)
			for k, v := range want {
				if d.at("spec", "template", "metadata", "labels", k) != v {
					return false
				}
			}
			return len(want) > 0
		}
		count := func(selector any) (n int) {
			for _, d := range deployments {
				if selects(selector, d) {
					n++
				}
			}
			return n
		}
		for _, o := range all {
			var selector any
			switch o.kind() {
			case "Deployment", "PodDisruptionBudget":
				selector = o.at("spec", "selector", "matchLabels")
			case "Service":
				selector = o.at("spec", "selector")
			case "NetworkPolicy":
				if selector = o.at("spec", "podSelector", "matchLabels"); o.at("metadata", "namespace") != "pawl" {
					continue // pods of runs, which the worker makes
				}
			default:
				continue
			}
			if n := count(selector); n != 1 {
				t.Errorf("%s selects the pods of %d deployments", o.name(), n)
			}
		}
		accounts := map[any]bool{}
		for _, a := range ofKind(all, "ServiceAccount") {
			accounts[a.at("metadata", "name")] = true
		}
		for _, d := range deployments {
			if name := d.pod()["serviceAccountName"]; !accounts[name] {
				t.Errorf("%s: there is no service account %v", d.name(), name)
			} else {
				delete(accounts, name)
			}
		}
		if len(accounts) > 0 {
			t.Errorf("accounts without pods, or two workers with one account: %v", accounts)
		}
	})
}

// Secrets come from Secrets: by name and key, as files or references, and no value holds one.
func TestSecrets(t *testing.T) {
	suspect := regexp.MustCompile(`(?i)(token|key|secret|password|dsn|_store$|database_url)`)
	each(t, func(t *testing.T, _ string, all []object) {
		for _, d := range ofKind(all, "Deployment") {
			env, _ := d.container()["env"].([]any)
			for _, e := range env {
				v := object(e.(map[string]any))
				name := v["name"].(string)
				if suspect.MatchString(name) && !strings.HasSuffix(name, "_FILE") && v["valueFrom"] == nil {
					t.Errorf("%s: %s has its value in the chart's output", d.name(), name)
				}
				if strings.HasSuffix(name, "_FILE") && !isMounted(d, v["value"].(string)) {
					t.Errorf("%s: %s names %v, which no secret puts there", d.name(), name, v["value"])
				}
			}
		}
	})
}

// isMounted reports whether a file beneath /run/pawl comes from a secret.
func isMounted(d object, file string) bool {
	volumes, _ := d.pod()["volumes"].([]any)
	for _, v := range volumes {
		sources, _ := object(v.(map[string]any)).at("projected", "sources").([]any)
		for _, s := range sources {
			items, _ := object(s.(map[string]any)).at("secret", "items").([]any)
			for _, i := range items {
				if file == "/run/pawl/"+i.(map[string]any)["path"].(string) {
					return true
				}
			}
		}
	}
	return false
}

// The grace period of a pod is longer than its shutdown: the wait before, and the drain of docs/replicas.md.
func TestGrace(t *testing.T) {
	each(t, func(t *testing.T, _ string, all []object) {
		for _, d := range ofKind(all, "Deployment") {
			grace, _ := d.pod()["terminationGracePeriodSeconds"].(int)
			needs := 5 + 10 // preStop, requests under way
			for i, arg := range list(d.container()["args"]) {
				if arg == "--grace" {
					if _, err := fmt.Sscanf(fmt.Sprint(list(d.container()["args"])[i+1]), "%ds", &needs); err != nil {
						t.Error(err)
					}
				}
			}
			if grace < needs+10 {
				t.Errorf("%s: %d s of grace, and it takes %d s to stop", d.name(), grace, needs)
			}
		}
	})
}

func list(v any) []any { l, _ := v.([]any); return l }

// Only pods of workers that need it have a token of the cluster, and only the sandbox has more privileges than the level restricted.
func TestPrivileges(t *testing.T) {
	each(t, func(t *testing.T, _ string, all []object) {
		for _, d := range ofKind(all, "Deployment") {
			c, pod := d.container(), d.pod()
			runtime := ""
			for _, e := range list(c["env"]) {
				if v := e.(map[string]any); v["name"] == "PAWL_RUNTIME" {
					runtime = v["value"].(string)
				}
			}
			if got := pod["automountServiceAccountToken"]; got != (runtime == "kubernetes") {
				t.Errorf("%s (%s): automountServiceAccountToken is %v", d.name(), runtime, got)
			}
			restricted := pod.at("securityContext", "runAsNonRoot") == true && c.at("securityContext", "allowPrivilegeEscalation") == false &&
				slices.Contains(list(c.at("securityContext", "capabilities", "drop")), "ALL") && c.at("securityContext", "seccompProfile") == nil &&
				c.at("securityContext", "procMount") == nil && pod.at("securityContext", "seccompProfile", "type") == "RuntimeDefault"
			if restricted == (runtime == "sandbox") {
				t.Errorf("%s (%s): restricted is %v", d.name(), runtime, restricted)
			}
			privileged := c.at("securityContext", "privileged") == true
			if runtime == "sandbox" && privileged == (pod["hostUsers"] == false) {
				t.Errorf("%s: a sandbox is in a user namespace or privileged", d.name())
			}
			if c.at("securityContext", "readOnlyRootFilesystem") != true {
				t.Errorf("%s can write to its image", d.name())
			}
		}
	})
}

// The rights are the same in every set: deploy/kubernetes/runs.yaml has them as well, and the runtime's own tests compare those with
// what its code asks for.
func TestRights(t *testing.T) {
	var plain any
	roles := 0
	text, err := os.ReadFile(filepath.Join(manifestDir, "runs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	some, err := decode(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range ofKind(some, "Role") {
		plain = o["rules"]
	}
	each(t, func(t *testing.T, name string, all []object) {
		bound := map[any]bool{}
		for _, o := range ofKind(all, "RoleBinding") {
			for _, s := range list(o["subjects"]) {
				bound[s.(map[string]any)["name"]] = true
			}
		}
		for _, d := range ofKind(all, "Deployment") {
			if d.pod()["automountServiceAccountToken"] != bound[d.pod()["serviceAccountName"]] {
				t.Errorf("%s: a token without rights, or rights without a token", d.name())
			}
		}
		for _, o := range ofKind(all, "Role") {
			roles++
			if !sameYAML(o["rules"], plain) {
				t.Errorf("%v", o["rules"])
			}
			if ns := o.at("metadata", "namespace"); ns == "pawl" {
				t.Error("rights where the secrets of servers are")
			}
		}
	})
	if roles < 4 || plain == nil {
		t.Errorf("%d roles", roles)
	}
}

// Alerts and dashboard are those of deploy/prometheus and deploy/grafana.
func TestMonitoring(t *testing.T) {
	all := objects(t, sets(t)["everything"])
	var alerts struct {
		Groups any `yaml:"groups"`
	}
	readYAML(t, "../../deploy/prometheus/alerts.yaml", &alerts)
	if rules := ofKind(all, "PrometheusRule"); len(rules) != 1 || !sameYAML(rules[0].at("spec", "groups"), alerts.Groups) {
		t.Errorf("the rule differs from deploy/prometheus/alerts.yaml: %v", rules)
	}
	dashboard, err := os.ReadFile("../../deploy/grafana/pawl.json")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, o := range ofKind(all, "ConfigMap") {
		if text, ok := o.at("data", "pawl.json").(string); ok {
			found = strings.TrimSpace(text) == strings.TrimSpace(string(dashboard)) && json.Valid([]byte(text))
		}
	}
	if !found {
		t.Error("the dashboard differs from deploy/grafana/pawl.json")
	}
	operations, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	scaled := ofKind(all, "ScaledObject")
	if len(scaled) != 1 {
		t.Fatalf("%d ScaledObjects", len(scaled))
	}
	query := scaled[0].at("spec", "triggers", 0, "metadata", "query").(string)
	const want = `(sum(max by (queue) (pawl_queue_ready{queue=~"(default|gpu\\.large)(@.*)?",namespace="pawl"})) or vector(0)) ` +
		`+ (sum(max by (queue) (pawl_executions{status="running",queue=~"(default|gpu\\.large)(@.*)?",namespace="pawl"})) or vector(0))`
	if query != want {
		t.Errorf("%s\nwant\n%s", query, want)
	}
	for _, metric := range regexp.MustCompile(`pawl_[a-z_]+`).FindAllString(query, -1) {
		if !strings.Contains(string(operations), "`"+metric+"`") {
			t.Errorf("the query asks for %s, which docs/operations.md does not name", metric)
		}
	}
	if monitor := ofKind(all, "ServiceMonitor"); len(monitor) != 1 || monitor[0].at("spec", "endpoints", 0, "authorization", "credentials", "name") != "credentials" {
		t.Errorf("%v", monitor)
	}
}

// Workers behind a broker have no access to a server, and other workers none to the broker.
func TestBrokerWorkers(t *testing.T) {
	all := objects(t, sets(t)["broker"])
	for _, d := range ofKind(all, "Deployment") {
		var env []string
		for _, e := range list(d.container()["env"]) {
			env = append(env, e.(map[string]any)["name"].(string))
		}
		behind := slices.Contains([]any{"pawl-worker-plant", "pawl-worker-pods"}, d.at("metadata", "name"))
		if slices.Contains(env, "PAWL_BROKER_FILE") == strings.HasSuffix(d.name(), "elsewhere") || slices.Contains(env, "PAWL_SERVER") == behind {
			t.Errorf("%s: %v", d.name(), env)
		}
	}
	for _, p := range ofKind(all, "NetworkPolicy") {
		text := fmt.Sprint(p.at("spec", "egress"))
		switch p.at("metadata", "name") {
		case "pawl-worker-plant":
			if strings.Contains(text, "server") || !strings.Contains(text, "6379") {
				t.Error(text)
			}
		case "pawl-worker-elsewhere":
			if strings.Contains(text, "6379") || !strings.Contains(text, "443") {
				t.Error(text)
			}
		}
	}
}
