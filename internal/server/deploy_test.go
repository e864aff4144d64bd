package server

import (
	"os"
	"regexp"
	"testing"
)

var probed = regexp.MustCompile(`httpGet: \{path: (\S+), port: http\}`)

// The probes of the server pods, which the Helm chart also has, use paths that need no token.
func TestProbesOfPods(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/kubernetes/server.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, Options{Tokens: []string{"a-token-that-is-long-enough"}})
	probes := probed.FindAllSubmatch(text, -1)
	if len(probes) != 3 {
		t.Errorf("%d probes: want startup, liveness and readiness", len(probes))
	}
	for _, p := range probes {
		if r, body := h.do(t, "GET", string(p[1]), ""); r.StatusCode != 200 {
			t.Errorf("%s: %s %s", p[1], r.Status, body)
		}
	}
}
