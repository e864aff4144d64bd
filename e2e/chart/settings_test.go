package chart

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v4"
)

// scratch is where programs are built; empty: none was.
var scratch string

// program is pawl, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pawl-chart-")
	if err != nil {
		return "", err
	}
	scratch = dir
	path := filepath.Join(dir, "pawl")
	build := exec.Command("go", "build", "-o", path, "./cmd/pawl")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build pawl: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if scratch != "" {
		_ = os.RemoveAll(scratch)
	}
	os.Exit(code)
}

// pawl runs a command with an environment of its own.
func pawl(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The settings in the chart's output are Pawl's and have valid values; its commands have the flags.
func TestSettings(t *testing.T) {
	each(t, func(t *testing.T, _ string, all []object) {
		for _, d := range ofKind(all, "Deployment") {
			args := list(d.container()["args"])
			if len(args) == 0 || args[0] != "server" && args[0] != "worker" {
				continue // another's program
			}
			help, err := pawl(t, nil, args[0].(string), "--help")
			if err != nil {
				t.Fatalf("%v\n%s", err, help)
			}
			for _, arg := range args[1:] {
				if flag, ok := arg.(string); ok && strings.HasPrefix(flag, "--") && !strings.Contains(help, flag+" ") {
					t.Errorf("%s: pawl %s has no flag %s", d.name(), args[0], flag)
				}
			}
			dir := t.TempDir()
			var env []string
			given := map[string]string{}
			for _, e := range list(d.container()["env"]) {
				v := e.(map[string]any)
				name, _ := v["name"].(string)
				value, isText := v["value"].(string)
				if !strings.HasPrefix(name, "PAWL_") || !isText {
					continue
				}
				switch {
				case name == "PAWL_CONFIG":
					value = filepath.Join(dir, "pawl.yaml")
					if err := os.WriteFile(value, []byte(configOf(t, all, d)), 0o600); err != nil {
						t.Fatal(err)
					}
				case strings.HasSuffix(name, "_FILE"):
					file := filepath.Join(dir, name)
					content := map[string]string{"PAWL_STORE_FILE": "postgres://db/pawl", "PAWL_STORE_NOTIFY_FILE": "postgres://db/pawl", "PAWL_BROKER_FILE": "redis://redis"}[name]
					if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
						t.Fatal(err)
					}
					value = file
				default:
					given[strings.ToLower(strings.TrimPrefix(name, "PAWL_"))] = value
				}
				env = append(env, name+"="+value)
			}
			said, err := pawl(t, env, "config", "print")
			if err != nil {
				t.Errorf("%s: %v\n%s", d.name(), err, said)
				continue
			}
			var settings map[string]any
			if err := yaml.Unmarshal([]byte(said), &settings); err != nil {
				t.Fatal(err)
			}
			for key, value := range given {
				if fmt.Sprint(settings[key]) != value {
					t.Errorf("%s: %s=%s: pawl takes it for %v", d.name(), key, value, settings[key])
				}
			}
		}
	})
}

// configOf is the configuration file of a Deployment's pods.
func configOf(t *testing.T, all []object, d object) string {
	t.Helper()
	for _, v := range list(d.pod()["volumes"]) {
		name := object(v.(map[string]any)).at("configMap", "name")
		for _, c := range ofKind(all, "ConfigMap") {
			if name != nil && c.at("metadata", "name") == name {
				text, _ := c.at("data", "pawl.yaml").(string)
				return text
			}
		}
	}
	t.Errorf("%s: its configuration is not there", d.name())
	return ""
}

// The settings that the schema allows are Pawl's, and include all that the chart does not set itself.
func TestSettingsOfTheSchema(t *testing.T) {
	said, err := pawl(t, []string{"HOME=" + t.TempDir()}, "config", "print")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	known := []string{"languages"}
	for line := range strings.Lines(said) { // a setting without a value is a comment: "# token:"
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "# "), ":")
		if empty := strings.TrimSpace(rest) == ""; ok && !slices.Contains(known, name) && strings.HasPrefix(line, "#") == empty {
			known = append(known, name)
		}
	}
	// Settings that the chart derives from its own values, and those without a meaning in a pod.
	ours := []string{"server", "token", "broker", "state_dir", "store", "store_notify", "blobs", "listen", "slots", "queues", "labels", "runtime", "allow_degraded",
		"docker_image", "docker_pull", "docker_runtime", "docker_networks", "kubernetes_config", "kubernetes_namespace", "kubernetes_helper_image", "kubernetes_image",
		"kubernetes_pull", "kubernetes_networks", "kubernetes_runtime_class", "kubernetes_orphan_after"}
	var schema map[string]any
	readYAML(t, chartDir+"/values.schema.json", &schema)
	var allowed []string
	for _, at := range [][]any{{"properties", "server"}, {"definitions", "worker"}} {
		of, _ := object(schema).at(append(at, "properties", "settings", "properties")...).(map[string]any)
		allowed = slices.AppendSeq(allowed, maps.Keys(of))
	}
	for _, key := range allowed {
		if !slices.Contains(known, key) || slices.Contains(ours, key) {
			t.Errorf("the schema allows %v, which is not a setting or the chart's own", key)
		}
	}
	for _, key := range known {
		if !slices.Contains(ours, key) && !slices.Contains(allowed, key) {
			t.Errorf("the schema does not allow the setting %s", key)
		}
	}
}
