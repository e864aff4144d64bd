package e2e

import (
	"fmt"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

const callingItself = `
kind: webhook
name: back
verify: {scheme: standard, secret_env: BACK_SECRET}
trigger: ping
---
kind: rule
name: by-webhook
on: ping
if: default(signal.data.data.how, default(signal.data.how, "")) == "webhook"
run: {action: webhook, input: {url: "http://%[1]s/hooks/back", event: ping, data: {how: webhook}, secret_env: BACK_SECRET}}
---
kind: rule
name: by-http
on: ping
if: default(signal.data.how, "") == "http"
run: {action: http, input: {method: POST, url: "http://%[1]s/api/v1/signals", body: {trigger: ping, data: {how: http}}}}
---
kind: rule
name: by-program
on: ping
if: default(signal.data.how, "") == "program"
run: {action: code, input: {language: bash, env: {H: "%[1]s"}, source: 'exec 3<>/dev/tcp/${H%%%%:*}/${H##*:}; B="{\"trigger\":\"ping\",\"data\":{\"how\":\"program\"}}"; printf "POST /api/v1/signals HTTP/1.1\r\nHost: $H\r\nContent-Type: application/json\r\nPawl-Chain: $PAWL_CHAIN\r\nConnection: close\r\nContent-Length: ${#B}\r\n\r\n$B" >&3; cat <&3'}}
`

// A rule that calls its own server, by a webhook, by the API or from a program, runs once: the signal that comes back is refused.
func TestRulesThatCallTheirOwnServer(t *testing.T) {
	t.Setenv("BACK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	t.Setenv("PAWL_WEBHOOK_SECRETS", "BACK_SECRET,BACK_SECRET@hooks")
	t.Setenv("PAWL_ALLOW_HOSTS", "127.0.0.1")
	s := serve(t, filepath.Join(t.TempDir(), "state"), "--slots", "2", "--runtime", "process")
	at, err := url.Parse(s.address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Define(t.Context(), fmt.Appendf(nil, callingItself, at.Host), "r.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"webhook", "http", "program"} {
		if _, err := s.client.Emit(t.Context(), api.Emission{Trigger: "ping", Data: []byte(fmt.Sprintf(`{"how":%q}`, how))}); err != nil {
			t.Fatal(err)
		}
		rule := "by-" + how
		var states []string
		for deadline := time.Now().Add(time.Minute); len(states) < 2 && time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
			states = states[:0]
			for e, err := range s.client.AllEnforcements(t.Context(), client.EnforcementFilter{Rule: rule}) {
				if err != nil {
					t.Fatal(err)
				}
				states = append(states, e.State)
				if e.Reason != nil && e.Reason.Code != "loop" {
					t.Errorf("%s: %+v", rule, e.Reason)
				}
			}
		}
		if fmt.Sprint(states) != "[refused ran]" {
			t.Errorf("%s: %v", rule, states)
		}
	}
	if err := s.stop(); err != nil {
		t.Errorf("server: %v", err)
	}
}
