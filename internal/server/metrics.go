package server

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const mediaOpenAPI = "application/openapi+json"

// metrics are what /metrics tells: the engine's counters, the requests, and the process.
type metrics struct {
	server   *Server
	page     http.Handler
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	streams  prometheus.Gauge
}

// engineFigure is one of the engine's figures under its metric's name.
type engineFigure struct {
	name, help string
	gauge      bool
	desc       *prometheus.Desc
	value      func(engine.Stats) float64
}

func count(name, help string, value func(engine.Stats) int64) engineFigure {
	return engineFigure{name: name, help: help, value: func(s engine.Stats) float64 { return float64(value(s)) },
		desc: described(name+"_total", help)}
}

// described is a metric of Pawl's.
func described(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(telemetry.MetricPrefix+name, help, labels, nil)
}

func level(name, help string, value func(engine.Stats) int) engineFigure {
	return engineFigure{name: name, help: help, gauge: true, value: func(s engine.Stats) float64 { return float64(value(s)) },
		desc: described(name, help)}
}

var engineFigures = []engineFigure{
	count("executions_submitted", "Executions accepted.", func(s engine.Stats) int64 { return s.Submitted }),
	count("attempts_claimed", "Attempts handed to workers.", func(s engine.Stats) int64 { return s.Claimed }),
	count("executions_finished", "Executions that ended.", func(s engine.Stats) int64 { return s.Finished }),
	count("reports_fenced", "Reports of attempts that were over.", func(s engine.Stats) int64 { return s.Fenced }),
	count("reports_refused", "Reports that contradicted the history.", func(s engine.Stats) int64 { return s.Refused }),
	count("events_duplicate", "Events that were known already.", func(s engine.Stats) int64 { return s.Duplicates }),
	count("attempts_lost", "Attempts recovered from lost workers.", func(s engine.Stats) int64 { return s.Lost }),
	count("sessions_lost", "Worker sessions whose lease ran out.", func(s engine.Stats) int64 { return s.LostSessions }),
	count("event_gaps", "Attempts ended because an event never came.", func(s engine.Stats) int64 { return s.Gaps }),
	count("executions_purged", "Executions removed after their retention.", func(s engine.Stats) int64 { return s.Purged }),
	count("commits", "Commits of the engine.", func(s engine.Stats) int64 { return s.Commits }),
	count("commit_requests", "Requests that went into commits.", func(s engine.Stats) int64 { return s.Requests }),
	count("commits_failed", "Commits that failed.", func(s engine.Stats) int64 { return s.FailedCommits }),
	count("commit_conflicts", "Commits tried again because a row had changed.", func(s engine.Stats) int64 { return s.Conflicts }),
	level("requests_pending", "Requests that wait for a commit.", func(s engine.Stats) int { return s.Pending }),
	level("workers_waiting", "Workers that wait for work.", func(s engine.Stats) int { return s.Takers }),
}

// engineDistributions are the engine's histograms.
var engineDistributions = []struct {
	desc *prometheus.Desc
	read func(*engine.Distributions) *telemetry.Distribution
}{
	{described("commit_seconds", "Time of one commit: loading, deciding and writing a batch."),
		func(d *engine.Distributions) *telemetry.Distribution { return &d.Commit }},
	{described("commit_batch_requests", "Requests that went together into one commit."),
		func(d *engine.Distributions) *telemetry.Distribution { return &d.Batch }},
	{described("claim_seconds", "Time that finding and claiming work took within one commit."),
		func(d *engine.Distributions) *telemetry.Distribution { return &d.Claim }},
	{described("queue_wait_seconds", "Time from the moment an attempt was due to its hand-off to a worker, the wait for its key included."),
		func(d *engine.Distributions) *telemetry.Distribution { return &d.Queue }},
}

var buildInfo = described("build_info", "Which version this is; always 1.", "version")

func newMetrics(s *Server) *metrics {
	m := &metrics{
		server: s,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_http_requests_total", Help: "Requests answered, by route, method and status.",
		}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pawl_http_request_seconds", Help: "Time to answer, streams and waits left out.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 2.5, 10},
		}, []string{"route"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "pawl_streams_open", Help: "Streams and waits under way."}),
	}
	r := prometheus.NewRegistry()
	r.MustRegister(m, &s.surveys, m.requests, m.seconds, m.streams, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.page = promhttp.HandlerFor(r, promhttp.HandlerOpts{})
	return m
}

// Describe is for prometheus.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, f := range engineFigures {
		to <- f.desc
	}
	for _, d := range engineDistributions {
		to <- d.desc
	}
	to <- buildInfo
}

// Collect is for prometheus.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	s := m.server.Engine.Stats()
	for _, f := range engineFigures {
		kind := prometheus.CounterValue
		if f.gauge {
			kind = prometheus.GaugeValue
		}
		to <- prometheus.MustNewConstMetric(f.desc, kind, f.value(s))
	}
	all := m.server.Engine.Distributions()
	for _, d := range engineDistributions {
		seen := d.read(&all)
		to <- prometheus.MustNewConstHistogram(d.desc, seen.Count, seen.Sum, seen.Buckets)
	}
	to <- prometheus.MustNewConstMetric(buildInfo, prometheus.GaugeValue, 1, m.server.Version)
}

// counters are the engine's figures by name.
func (m *metrics) counters() map[string]float64 {
	s := m.server.Engine.Stats()
	out := make(map[string]float64, len(engineFigures))
	for _, f := range engineFigures {
		out[f.name] = f.value(s)
	}
	return out
}

// request begins to measure a request; the function it returns ends that.
func (m *metrics) request(r *http.Request, w *seenWriter) (done func()) {
	begun := time.Now()
	waits := r.URL.Query().Has("wait") || strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	if waits {
		m.streams.Inc()
	}
	return func() {
		route := r.Pattern // the mux has set it by now; its number is bounded, unlike that of paths
		if route == "" {
			route = "none"
		}
		status := w.status
		if status == 0 {
			status = http.StatusOK
		}
		m.requests.WithLabelValues(route, knownMethod(r.Method), strconv.Itoa(status)).Inc()
		if waits {
			m.streams.Dec()
			return
		}
		m.seconds.WithLabelValues(route).Observe(time.Since(begun).Seconds())
	}
}

func knownMethod(m string) string {
	switch m {
	case "GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS":
		return m
	}
	return "other"
}

func (c *call) metricsPage() error {
	c.surveys.look() // which may take a while, and is not the client's fault
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(c.Patience))
	c.metrics.page.ServeHTTP(c.w, c.r)
	return nil
}

func (c *call) openAPI() error {
	c.w.Header().Set("Content-Type", mediaOpenAPI)
	c.send(c.w, http.StatusOK, c.document)
	return nil
}

// seenWriter remembers the status that was sent.
type seenWriter struct {
	http.ResponseWriter
	status int
}

func (w *seenWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *seenWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *seenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func newRequestID() string { return rand.Text() }

// plainID reports whether a request's id from outside is fit to be passed on and logged.
func plainID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

func stack() string { return string(debug.Stack()) }

// residentBytes is the memory of this process that is in RAM; 0 where that cannot be told.
func residentBytes() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
