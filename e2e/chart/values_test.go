package chart

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// A wrong value is refused before anything is installed, with the value's place and the allowed values.
func TestWrongValues(t *testing.T) {
	for name, c := range map[string]struct {
		values string
		say    []string
	}{
		"no registry":            {`{}`, []string{"image.registry is empty", "--set image.registry="}},
		"unknown value":          {`{image: {registry: r}, servers: {}}`, []string{"servers"}},
		"unknown setting":        {`{image: {registry: r}, server: {settings: {retentoin: 1h}}}`, []string{"settings", "retentoin"}},
		"a setting of the chart": {`{image: {registry: r}, server: {settings: {token: abc}}}`, []string{"settings", "token"}},
		"two servers on SQLite":  {`{image: {registry: r}, server: {replicas: 2}}`, []string{"server.replicas is 2", "database.existingSecret"}},
		"a DSN":                  {`{image: {registry: r}, database: {existingSecret: "postgres://pawl:sesame@db/pawl"}}`, []string{"database.existingSecret is not the name of a Secret", "kubectl create secret"}},
		"a key in a URL":         {`{image: {registry: r}, blobs: {url: "s3://KEY:SECRET@pawl"}}`, []string{"blobs.url holds", "blobs.existingSecret"}},
		"a password in a URL":    {`{image: {registry: r}, broker: {url: "redis://pawl:sesame@redis:6379"}}`, []string{"broker.url holds", "broker.existingSecret"}},
		"no token":               {`{image: {registry: r}, token: {existingSecret: ""}}`, []string{"token.existingSecret is empty", "openssl rand"}},
		"a worker's password":    {`{image: {registry: r}, workers: [{name: a, server: "https://pawl:sesame@pawl"}]}`, []string{"the server of a holds"}},
		"a token":                {`{image: {registry: r}, server: {extraEnv: [{name: PAWL_TOKEN, value: abc}]}}`, []string{"extraEnv"}},
		"a worker without name":  {`{image: {registry: r}, workers: [{slots: 2}]}`, []string{"workers", "name"}},
		"a name twice":           {`{image: {registry: r}, workers: [{name: a}, {name: a}]}`, []string{"two entries have the name a"}},
		"no such runtime":        {`{image: {registry: r}, workers: [{name: a, runtime: docker}]}`, []string{"runtime", "sandbox"}},
		"no slots":               {`{image: {registry: r}, workers: [{name: a, slots: 0}]}`, []string{"slots"}},
		"no image":               {`{image: {registry: r}, workers: [{name: a, runtime: none}]}`, []string{"a has runtime none and no image"}},
		"no broker":              {`{image: {registry: r}, workers: [{name: a, connection: broker}]}`, []string{"connection broker", "broker.existingSecret"}},
		"no Prometheus":          {`{image: {registry: r}, workers: [{name: a, autoscaling: {enabled: true}}]}`, []string{"autoscaling.prometheus"}},
		"runs beside secrets":    {`{image: {registry: r}, runs: {namespace: pawl}}`, []string{"runs.namespace is pawl", "name another"}},
		"network none":           {`{image: {registry: r}, runs: {networks: {none: []}}}`, []string{"runs.networks has the name none"}},
	} {
		t.Run(name, func(t *testing.T) {
			var values map[string]any
			if err := yaml.Unmarshal([]byte(c.values), &values); err != nil {
				t.Fatal(err)
			}
			_, err := render(values)
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, say := range c.say {
				if !strings.Contains(err.Error(), say) {
					t.Errorf("%q is not in: %v", say, err)
				}
			}
			if strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "SECRET@") {
				t.Errorf("a secret is in: %v", err)
			}
		})
	}
}

// The settings of an entry of workers take precedence over workerDefaults, even false and 0.
func TestWorkerDefaults(t *testing.T) {
	var values map[string]any
	text := `{image: {registry: r}, workerDefaults: {slots: 7, queues: [a, b]}, workers: [{name: x, replicas: 0, sandbox: {allowDegraded: false}}, {name: y, queues: [c]}]}`
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	for _, d := range ofKind(objects(t, values), "Deployment") {
		env := fmt.Sprint(d.container()["env"])
		switch d.at("metadata", "name") {
		case "pawl-server":
			if !strings.Contains(env, "a,b,c") {
				t.Errorf("the servers do not know all queues: %s", env)
			}
		case "pawl-worker-x":
			if d.at("spec", "replicas") != 0 || strings.Contains(env, "DEGRADED") || !strings.Contains(env, "value:7") || !strings.Contains(env, "value:a,b") {
				t.Errorf("%v replicas, %s", d.at("spec", "replicas"), env)
			}
		case "pawl-worker-y":
			if d.at("spec", "replicas") != 1 || !strings.Contains(env, "DEGRADED") || !strings.Contains(env, "value:c") {
				t.Errorf("%v replicas, %s", d.at("spec", "replicas"), env)
			}
		}
	}
}

const (
	tableBegin = "<!-- values: written by scripts/manifests from deploy/helm/pawl/values.yaml -->\n"
	tableEnd   = "<!-- values end -->\n"
	document   = "../../docs/kubernetes.md"
)

// The table of values in docs/kubernetes.md matches the comments of values.yaml.
func TestTable(t *testing.T) {
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| value | default | meaning |\n|---|---|---|\n")
	if err := rows(&table, "", root.Content[0]); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableBegin)
	inside, after, closed := strings.Cut(rest, tableEnd)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table: %q … %q", document, tableBegin, tableEnd)
	}
	if inside == table.String() {
		return
	}
	if !*update {
		t.Fatalf("%s is not what values.yaml says: run scripts/manifests", document)
	}
	if err := os.WriteFile(document, []byte(before+tableBegin+table.String()+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// rows writes a row for each value with a comment; a block without one is gone into.
func rows(to *strings.Builder, prefix string, n *yaml.Node) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		comment := strings.TrimSpace(strings.ReplaceAll(key.HeadComment, "# ", ""))
		switch {
		case value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 && len(value.Content) > 0:
			if err := rows(to, prefix+key.Value+".", value); err != nil {
				return err
			}
		case comment == "":
			return fmt.Errorf("values.yaml:%d: %s has no comment, which would be its row in the table", key.Line, prefix+key.Value)
		default:
			shown, err := inFlow(value)
			if err != nil {
				return err
			}
			fmt.Fprintf(to, "| `%s` | `%s` | %s |\n", prefix+key.Value, shown, strings.ReplaceAll(comment, "\n", " "))
		}
	}
	return nil
}

// inFlow writes a value on one line.
func inFlow(n *yaml.Node) (string, error) {
	style := func(n *yaml.Node) {}
	style = func(n *yaml.Node) {
		n.HeadComment, n.LineComment, n.FootComment = "", "", ""
		if n.Kind != yaml.ScalarNode {
			n.Style = yaml.FlowStyle
		}
		for _, c := range n.Content {
			style(c)
		}
	}
	style(n)
	text, err := yaml.Marshal(n)
	return strings.Join(strings.Fields(string(text)), " "), err
}
