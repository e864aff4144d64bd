package server

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/server/metrics"
)

// page reads /metrics as a map of name and labels to value.
func (h *house) page(t *testing.T) map[string]string {
	t.Helper()
	res, body := h.do(t, "GET", "/metrics", "")
	if res.StatusCode != 200 {
		t.Fatalf("%s\n%s", res.Status, body)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(body)) {
		if line[0] == '#' {
			continue
		}
		i := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		all[line[:i]] = strings.TrimSpace(line[i:])
	}
	return all
}

func TestMetricsTellWhatIsUnfinished(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Version: "test"})
	long := strings.Repeat("k", 200)
	hold := func(key string) {
		x, err := h.client.Submit(t.Context(), api.Submission{Action: "code", Input: json.RawMessage(`{"language":"python","source":"hang"}`),
			Concurrency: &api.Concurrency{Key: key, Limit: 1}})
		if err != nil {
			t.Fatal(err)
		}
		h.await(t, x.ID, "running", running)
	}
	hold("acme")
	hold(long + "1")
	hold(long + "2") // same first bytes
	if _, err := h.client.Submit(t.Context(), api.Submission{Action: "noop", Concurrency: &api.Concurrency{Key: "acme", Limit: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.Submit(t.Context(), api.Submission{Action: "noop", NotBefore: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	page := h.page(t)
	for name, want := range map[string]string{
		`pawl_executions{queue="default",status="running"}`:            "3",
		`pawl_executions{queue="default",status="requested"}`:          "2",
		`pawl_key_slots{key="acme"}`:                                   "1",
		`pawl_key_waiting{key="acme"}`:                                 "1",
		`pawl_key_slots{key="` + strings.Repeat("k", 100) + "…" + `"}`: "2",
		`pawl_store_up`:                                "1",
		`pawl_events_unapplied`:                        "0",
		`pawl_workers`:                                 "1",
		`pawl_worker_slots`:                            "16",
		`pawl_queue_slots{queue="default"}`:            "16",
		`pawl_build_info{version="test"}`:              "1",
		`pawl_executions_submitted_total`:              "5",
		`pawl_attempts_claimed_total`:                  "3",
		`pawl_executions_put_aside_total`:              "0",
		`pawl_rows_skipped_total`:                      "0",
		`pawl_queue_wait_seconds_count`:                "3",
		`pawl_queue_wait_seconds_bucket{le="+Inf"}`:    "3",
		`pawl_commit_batch_requests_bucket{le="+Inf"}`: page["pawl_commits_total"],
		`pawl_commit_batch_requests_sum`:               page["pawl_commit_requests_total"],
		`pawl_commit_seconds_count`:                    page["pawl_commits_total"],
		`pawl_http_requests_total{method="POST",route="POST /api/v1/executions",status="202"}`: "5",
	} {
		if got := page[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if page["pawl_oldest_unfinished_age_seconds"] == "0" || page["pawl_claim_seconds_count"] == "0" {
		t.Errorf("oldest %s, claims %s", page["pawl_oldest_unfinished_age_seconds"], page["pawl_claim_seconds_count"])
	}
	for name := range page {
		if strings.Contains(name, "ex_") {
			t.Errorf("%s names an execution", name)
		}
	}
	// Figures from the store are cached for a while; counters of this process are always current.
	hold("other")
	again := h.page(t)
	if again[`pawl_key_slots{key="other"}`] != "" || again["pawl_executions_submitted_total"] != "6" {
		t.Errorf("another survey was made at once: %q; submitted %s", again[`pawl_key_slots{key="other"}`], again["pawl_executions_submitted_total"])
	}
}

// Slots of programs with handlers are counted in the queues that they serve.
func TestMetricsOfHandlers(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	within(t, "the worker of the house has not connected", func() bool {
		workers, err := h.client.Workers(t.Context())
		return err == nil && len(workers) == 1
	})
	if _, err := h.engine.Open(t.Context(), handoff.Session{Name: "thumbs", Queues: []string{"resize", "default"}, Kinds: []string{"resize"}, Slots: 3}); err != nil {
		t.Fatal(err)
	}
	page := h.page(t)
	for queue, want := range map[string]string{"default": "16", "resize@kind:resize": "3", "default@kind:resize": "3", "resize": ""} {
		if got := page[`pawl_queue_slots{queue="`+queue+`"}`]; got != want {
			t.Errorf("slots of %s are %q, want %q", queue, got, want)
		}
	}
}

// The counters of ends have a series for each status from the start, and add up to the figure of the cluster's state.
func TestMetricsOfEnds(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	ends := func(completed, cancelled string) {
		t.Helper()
		page := h.page(t)
		for status, want := range map[string]string{"completed": completed, "failed": "0", "cancelled": cancelled, "timed_out": "0"} {
			if got := page[`pawl_executions_finished_total{status="`+status+`"}`]; got != want {
				t.Errorf("%q ended as %s, want %q", got, status, want)
			}
		}
	}
	ends("0", "0")
	for range 2 {
		x, err := h.client.Submit(t.Context(), api.Submission{Action: "noop"})
		if err != nil {
			t.Fatal(err)
		}
		h.await(t, x.ID, "completed", func(x *api.Execution) bool { return x.Status == api.Completed })
	}
	late, err := h.client.Submit(t.Context(), api.Submission{Action: "noop", NotBefore: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.Cancel(t.Context(), late.ID, "no longer wanted", 0); err != nil {
		t.Fatal(err)
	}
	ends("2", "1")
	if n := h.metrics.Counters()["executions_finished"]; n != 3 {
		t.Errorf("%v ended in all, want 3", n)
	}
}

// within waits until a condition holds.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(what)
		}
	}
}

// awaitRetention returns the metrics after the first pass of retention.
func (h *house) awaitRetention(t *testing.T) (page map[string]string) {
	t.Helper()
	within(t, "retention has not been through what has ended", func() bool {
		page = h.page(t)
		return page["pawl_retention_last_pass_timestamp_seconds"] != ""
	})
	return page
}

func TestMetricsOfRetention(t *testing.T) {
	t.Parallel()
	began := time.Now()
	page := start(t, Options{}).awaitRetention(t)
	if s := page["pawl_retention_seconds"]; s != "2.592e+06" {
		t.Errorf("what has ended is kept for %s seconds, want those of 30 days", s)
	}
	at, err := strconv.ParseFloat(page["pawl_retention_last_pass_timestamp_seconds"], 64)
	if now := time.Now(); err != nil || at < float64(began.Unix()) || at > float64(now.Unix()+1) {
		t.Errorf("the last pass was at %f, not between %s and %s: %v", at, began, now, err)
	}
}

var metricName = regexp.MustCompile(`\b(?:pawl|process)_[a-z_]+\b`)

// The dashboard and the alerts use only metrics that exist, and the manual lists every metric.
func TestMetricsThatOthersName(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Wires: []Wire{echo(nil)}, Broker: func() metrics.Broker {
		return metrics.Broker{Lines: map[string]metrics.BrokerLine{"tell": {Waiting: 1}}}
	}})
	hanging, err := h.client.Submit(t.Context(), api.Submission{Action: "code", Input: json.RawMessage(`{"language":"python","source":"hang"}`),
		Concurrency: &api.Concurrency{Key: "k", Limit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	h.await(t, hanging.ID, "running", running)
	h.do(t, "POST", "/hooks/nobody", "{}") // refusals of webhooks are absent until there is one
	exposed := map[string]bool{}
	for name := range h.awaitRetention(t) {
		base, _, _ := strings.Cut(name, "{")
		exposed[base] = true
	}
	// A queue is absent while it is empty.
	exposed["pawl_queue_ready"], exposed["pawl_queue_oldest_age_seconds"] = true, true
	for _, file := range []string{"../../deploy/grafana/pawl.json", "../../deploy/prometheus/alerts.yaml", "../../docs/operations.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		named := metricName.FindAllString(string(text), -1)
		if len(named) < 10 {
			t.Errorf("%s names %d metrics: the test does not see them", file, len(named))
		}
		for _, name := range named {
			if !exposed[name] && !exposed[name+"_count"] {
				t.Errorf("%s names %s, which /metrics does not have", file, name)
			}
		}
		if !strings.HasSuffix(file, ".md") {
			continue
		}
		for name := range exposed {
			base := name
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				if stem, ok := strings.CutSuffix(name, suffix); ok && exposed[stem+"_bucket"] {
					base = stem
				}
			}
			if strings.HasPrefix(base, "pawl_") && !slices.Contains(named, base) {
				t.Errorf("%s does not explain %s", file, base)
			}
		}
	}
}
