package cli

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
)

// For deploy/, the tests check what a reader would believe: that commands and settings are Pawl's, and that names exist. Package server
// checks the names of metrics.

func readYAML(t *testing.T, path string, into any) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return string(b)
}

type composeService struct {
	Image       string            `yaml:"image"`
	Build       string            `yaml:"build"`
	Profiles    []string          `yaml:"profiles"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Volumes     []string          `yaml:"volumes"`
	Secrets     []string          `yaml:"secrets"`
	DependsOn   map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Healthcheck struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
	Networks map[string]struct {
		Aliases []string `yaml:"aliases"`
	} `yaml:"networks"`
}

func TestComposeFile(t *testing.T) {
	t.Parallel()
	var file struct {
		Services map[string]composeService `yaml:"services"`
		Volumes  map[string]any            `yaml:"volumes"`
		Secrets  map[string]any            `yaml:"secrets"`
	}
	readYAML(t, "../../compose.yaml", &file)
	kinds := map[string]int{}
	for name, s := range file.Services {
		for on, d := range s.DependsOn {
			other, ok := file.Services[on]
			if !ok || d.Condition == "service_healthy" && len(other.Healthcheck.Test) == 0 {
				t.Errorf("%s waits for %s to be %q, which cannot be seen", name, on, d.Condition)
			}
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := file.Volumes[volume]; !ok && !strings.HasPrefix(volume, ".") {
				t.Errorf("%s: there is no volume %s", name, volume)
			}
		}
		for _, secret := range s.Secrets {
			if _, ok := file.Secrets[secret]; !ok {
				t.Errorf("%s: there is no secret %s", name, secret)
			}
		}
		if s.Build == "" {
			kinds[strings.Split(s.Image, ":")[0]]++
			continue
		}
		kinds[s.Command[0]]++
		for _, wrong := range wrongCall(s.Command, s.Environment) {
			t.Errorf("%s: %s", name, wrong)
		}
		if i := slices.Index(s.Command, "--server"); i >= 0 {
			host, _, _ := strings.Cut(strings.TrimPrefix(s.Command[i+1], "http://"), ":")
			behind := 0
			for other, o := range file.Services {
				if !slices.Contains(o.Networks["default"].Aliases, host) {
					continue
				}
				behind++
				if _, waits := s.DependsOn[other]; !waits || o.Command[0] != "server" {
					t.Errorf("%s works for %s, which is %s, and does not wait for it, or it is not a server", name, host, other)
				}
			}
			if behind != 2 {
				t.Errorf("%s works for %s, which is %d services: it must go on when one is gone", name, host, behind)
			}
		}
	}
	if kinds["server"] != 2 || kinds["worker"] != 4 || kinds["postgres"] != 1 || kinds["redis"] != 1 || kinds["rabbitmq"] != 1 {
		t.Errorf("services: %v", kinds)
	}
}

// composeDefault matches a variable of Compose with a default.
var composeDefault = regexp.MustCompile(`\$\{[A-Z_]+:-([^}]*)\}`)

// wrongCall lists the parts of a command line and its environment that Pawl does not have.
func wrongCall(args []string, environment map[string]string) []string {
	var wrong []string
	a := &app.App{Getenv: func(name string) string {
		if strings.HasSuffix(name, "_FILE") {
			return "" // it is not here
		}
		return composeDefault.ReplaceAllString(environment[name], "$1")
	}}
	cmd, rest, err := root(a).Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err == nil {
		err = a.Configure(cmd.Flags())
	}
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	for name := range environment {
		if strings.HasPrefix(name, "PAWL_") && !slices.ContainsFunc(config.Settings, func(s config.Setting) bool {
			return name == s.Variable() || name == s.Alias || s.File && name == s.Variable()+"_FILE"
		}) {
			wrong = append(wrong, name+" is not a setting")
		}
	}
	return wrong
}

func TestWrongCallsAreSeen(t *testing.T) {
	t.Parallel()
	if w := wrongCall([]string{"server", "--lisden", "x"}, nil); len(w) != 1 {
		t.Error(w)
	}
	if w := wrongCall([]string{"worker"}, map[string]string{"PAWL_TOKENS": "x", "PAWL_SLOTS": "many"}); len(w) != 2 {
		t.Error(w)
	}
	if w := wrongCall([]string{"serve"}, nil); len(w) == 0 {
		t.Error("no such command")
	}
}

// The image's default command is Pawl's, and it is built with the Go version of go.mod.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	cmd := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindSubmatch(b)
	var args []string
	if cmd == nil || json.Unmarshal(cmd[1], &args) != nil {
		t.Fatalf("no CMD in JSON: %s", b)
	}
	for _, wrong := range wrongCall(args, nil) {
		t.Error(wrong)
	}
	for _, target := range []string{"server", "worker", "kubernetes", "pod"} { // docs/kubernetes.md builds pawl-TARGET of each
		if !regexp.MustCompile(`(?m)^FROM \S+ AS ` + target + `$`).Match(b) {
			t.Errorf("no target %s", target)
		}
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)[1]
	if !strings.Contains(string(b), "FROM golang:"+string(version)+"-") {
		t.Errorf("go.mod asks for Go %s", version)
	}
}

func TestDashboard(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../deploy/grafana/pawl.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		UID, Title string
		Templating struct {
			List []struct{ Name string }
		}
		Panels []struct {
			ID          int
			Title, Type string
			Description string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, "$"+v.Name)
	}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W == 0 {
			t.Errorf("panel %d %q: its id, title or place", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && (len(p.Targets) == 0 || p.Description == "") {
			t.Errorf("panel %q shows or says nothing", p.Title)
		}
		for _, q := range p.Targets {
			if strings.Count(q.Expr, "(") != strings.Count(q.Expr, ")") || strings.Count(q.Expr, "{") != strings.Count(q.Expr, "}") {
				t.Errorf("panel %q: parentheses of %s", p.Title, q.Expr)
			}
			for _, v := range regexp.MustCompile(`\$[a-z_]+`).FindAllString(q.Expr, -1) {
				if v != "$__rate_interval" && v != "$__rate" && !slices.Contains(variables, v) {
					t.Errorf("panel %q: there is no variable %s", p.Title, v)
				}
			}
		}
	}
	if len(d.Panels) < 15 || d.UID == "" {
		t.Errorf("%d panels in %q", len(d.Panels), d.UID)
	}
}
