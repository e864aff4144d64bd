package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRatios(t *testing.T) {
	var all []*figure
	for _, v := range []struct{ release, commit float64 }{{100, 90}, {120, 96}, {110, 110}} {
		all = add(all, []line{{"steady", "submitted/s", map[string]float64{"pawl": v.release}}, {"steady", "peak RSS MB", map[string]float64{"pawl": 1}}}, true)
		all = add(all, []line{{"steady", "submitted/s", map[string]float64{"pawl": v.commit}}}, false)
	}
	if len(all) != 1 {
		t.Fatalf("%d figures are compared, not 1", len(all))
	}
	ratio, least, most := all[0].ratio()
	if ratio != 96.0/110 || least != 0.8 || most != 1 {
		t.Errorf("ratio %v, %v to %v", ratio, least, most)
	}
	history := filepath.Join(t.TempDir(), "history.csv")
	for range 2 {
		if err := report(all, [2]build{{name: "v1"}, {name: "abc"}}, history); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(history)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "date,commit,") {
		t.Errorf("history:\n%s", text)
	}
}
