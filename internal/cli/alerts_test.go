package cli

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const prometheusDir = "../../deploy/prometheus"

// rule is an alert of deploy/prometheus/alerts.yaml.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alertRules(t *testing.T) (rules []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	readYAML(t, prometheusDir+"/alerts.yaml", &file)
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	if len(rules) < 10 {
		t.Fatalf("%d alerts: the test does not see them", len(rules))
	}
	return rules
}

// Every alert is complete, and the manual says what to do about it.
func TestAlerts(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range alertRules(t) {
		if r.Expr == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" ||
			!slices.Contains([]string{"critical", "warning"}, r.Labels["severity"]) || seen[r.Alert] {
			t.Errorf("alert %q lacks a part or comes twice: %+v", r.Alert, r)
		}
		seen[r.Alert] = true
		if !strings.Contains(string(manual), "| `"+r.Alert+"` |") {
			t.Errorf("docs/operations.md does not say what to do about %s", r.Alert)
		}
	}
	for _, name := range regexp.MustCompile("`(Pawl[A-Z][A-Za-z]+)`").FindAllStringSubmatch(string(manual), -1) {
		if !seen[name[1]] {
			t.Errorf("docs/operations.md explains %s, which is not an alert", name[1])
		}
	}
}

// Every alert has a case that fires it, and one that shows that it does not fire on the series of healthy servers: those contain all
// metrics of its expression, because an alert without one of its metrics never fires.
func TestAlertsHaveCases(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			Name        string `yaml:"name"`
			InputSeries []struct {
				Series string `yaml:"series"`
			} `yaml:"input_series"`
			AlertRuleTest []struct {
				Alertname string           `yaml:"alertname"`
				ExpAlerts []map[string]any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	readYAML(t, prometheusDir+"/alerts_test.yaml", &file)
	fired, healthy, measured := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, group := range file.Tests {
		for _, c := range group.AlertRuleTest {
			switch {
			case len(c.ExpAlerts) > 0:
				fired[c.Alertname] = true
			case group.Name == "healthy":
				healthy[c.Alertname] = true
			}
		}
		for _, s := range group.InputSeries {
			if name, _, _ := strings.Cut(s.Series, "{"); group.Name == "healthy" {
				measured[name] = true
			}
		}
	}
	metric := regexp.MustCompile(`\b(?:pawl|process)_[a-z_]+\b|\bup\b`)
	for _, r := range alertRules(t) {
		if !fired[r.Alert] {
			t.Errorf("no case of alerts_test.yaml fires %s", r.Alert)
		}
		if !healthy[r.Alert] {
			t.Errorf("the healthy servers of alerts_test.yaml are not asked about %s", r.Alert)
		}
		names := metric.FindAllString(r.Expr, -1)
		if len(names) == 0 {
			t.Errorf("%s: the test sees no metric in %s", r.Alert, r.Expr)
		}
		for _, name := range names {
			if !measured[name] {
				t.Errorf("the healthy servers of alerts_test.yaml lack %s, of which %s speaks", name, r.Alert)
			}
		}
	}
}

// Prometheus accepts the rules and the configuration, and each case of alerts_test.yaml fires the alerts that it lists.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	need(t, "promtool") // Debian: the package prometheus, which .ci/run installs
	for _, args := range [][]string{
		{"check", "rules", "alerts.yaml"},
		{"check", "config", "--syntax-only", "prometheus.yaml"}, // the token's file does not exist here
		{"test", "rules", "alerts_test.yaml"},
	} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Dir = prometheusDir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
