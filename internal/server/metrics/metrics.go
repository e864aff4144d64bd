// Package metrics exports Prometheus metrics of a server and its engine: the engine's counters, surveys of the store, requests, the broker
// and the process.
package metrics

import (
	"cmp"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Options configures Metrics. Engine and Log are required.
type Options struct {
	Engine  *engine.Engine
	Log     *slog.Logger
	Version string
	// Broker returns the figures of the message broker between the server and its workers. It is nil without a broker.
	Broker func() Broker
}

// Metrics is an http.Handler that answers a scrape. For the store it shows the latest survey, so call Look before. It is safe for
// concurrent use.
type Metrics struct {
	http.Handler
	options  Options
	surveys  surveys
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	streams  prometheus.Gauge
	refused  *prometheus.CounterVec
	wires    *prometheus.CounterVec
}

// engineFigure is one of the engine's figures with the description of its metric.
type engineFigure struct {
	name  string
	kind  prometheus.ValueType
	desc  *prometheus.Desc
	value func(engine.Stats) (v float64, known bool) // if the value is not known, the metric is left out
}

func count(name, help string, value func(engine.Stats) int64) engineFigure {
	return engineFigure{name: name, kind: prometheus.CounterValue, desc: described(name+"_total", help),
		value: func(s engine.Stats) (float64, bool) { return float64(value(s)), true }}
}

// described returns the description of one of Pawl's metrics.
func described(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(telemetry.MetricPrefix+name, help, labels, nil)
}

func level(name, help string, value func(engine.Stats) int) engineFigure {
	return reading(name, help, func(s engine.Stats) (float64, bool) { return float64(value(s)), true })
}

func ageOf(name, help string, value func(engine.Stats) time.Duration) engineFigure {
	return reading(name, help, func(s engine.Stats) (float64, bool) { return value(s).Seconds(), true })
}

func reading(name, help string, value func(engine.Stats) (float64, bool)) engineFigure {
	return engineFigure{name: name, kind: prometheus.GaugeValue, desc: described(name, help), value: value}
}

var engineFigures = []engineFigure{
	count("executions_submitted", "Executions accepted.", func(s engine.Stats) int64 { return s.Submitted }),
	count("attempts_claimed", "Attempts handed to workers.", func(s engine.Stats) int64 { return s.Claimed }),
	count("reports_fenced", "Reports of attempts that were over.", func(s engine.Stats) int64 { return s.Fenced }),
	count("reports_refused", "Reports that contradicted the history.", func(s engine.Stats) int64 { return s.Refused }),
	count("events_duplicate", "Events that were known already.", func(s engine.Stats) int64 { return s.Duplicates }),
	count("attempts_lost", "Attempts taken back from workers that were lost, or had lost their history.", func(s engine.Stats) int64 { return s.Lost }),
	count("attempts_handed_back", "Attempts that workers gave up because they were shut down, had no handler for them, or lost the machine or the server that they ran on.", func(s engine.Stats) int64 { return s.HandedBack }),
	count("sessions_lost", "Worker sessions whose lease ran out.", func(s engine.Stats) int64 { return s.LostSessions }),
	count("event_gaps", "Attempts ended because an event never came.", func(s engine.Stats) int64 { return s.Gaps }),
	count("executions_purged", "Executions removed after their retention.", func(s engine.Stats) int64 { return s.Purged }),
	count("ticks_fired", "Ticks of schedules that started an execution.", func(s engine.Stats) int64 { return s.TicksFired }),
	count("rows_skipped", "Rows that a loop of the engine could not handle and passed over.", func(s engine.Stats) int64 { return s.Skipped }),
	count("executions_put_aside", "Times that an execution, a signal or a wait was put aside because a decision about it was refused.", func(s engine.Stats) int64 { return s.PutAside }),
	count("commits", "Commits of the engine.", func(s engine.Stats) int64 { return s.Commits }),
	count("commit_requests", "Requests that went into commits.", func(s engine.Stats) int64 { return s.Requests }),
	count("commits_failed", "Commits that failed.", func(s engine.Stats) int64 { return s.FailedCommits }),
	count("commit_conflicts", "Commits tried again because a row had changed.", func(s engine.Stats) int64 { return s.Conflicts }),
	reading("commit_operations_most", "Operations of users' expressions that one commit has computed at most, since the start.",
		func(s engine.Stats) (float64, bool) { return float64(s.MostComputed), true }),
	ageOf("commit_longest_decision_seconds", "The longest time, since the start, that what one commit decides has taken.",
		func(s engine.Stats) time.Duration { return s.LongestDecision }),
	level("requests_pending", "Requests that wait for a commit.", func(s engine.Stats) int { return s.Pending }),
	ageOf("commit_oldest_seconds", "Age of the oldest commit under way; 0 when none is.", func(s engine.Stats) time.Duration { return s.CommitAge }),
	ageOf("commit_pending_seconds", "Age of the oldest request that waits for a commit; 0 when none does.", func(s engine.Stats) time.Duration { return s.PendingAge }),
	reading("retention_seconds", "How long finished executions are kept; absent when for ever.",
		func(s engine.Stats) (float64, bool) { return s.Retention.Seconds(), s.Retention > 0 }),
	reading("retention_last_pass_timestamp_seconds", "When retention was last through all that has ended; absent until the first time.",
		func(s engine.Stats) (float64, bool) {
			return float64(s.Retained.UnixMicro()) / 1e6, !s.Retained.IsZero()
		}),
	level("rows_unreadable", "Rows of live executions that the store cannot decode and passes over.", func(s engine.Stats) int { return s.Unreadable }),
	level("workers_waiting", "Workers that wait for work.", func(s engine.Stats) int { return s.Takers }),
}

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
	{described("tick_lag_seconds", "Time from the moment a tick of a schedule was due to the transaction that started its execution."),
		func(d *engine.Distributions) *telemetry.Distribution { return &d.Lag }},
}

// ticksMissed has a series for each reason from the start, for the same reason as executionsFinished.
var ticksMissed = described("ticks_missed_total", "Ticks of schedules that were due and started no execution, by why.", "why")

const finished = "executions_finished"

// executionsFinished has a series for each status from the start, because Prometheus sees no increase in a series that begins
// at 1.
var executionsFinished = described(finished+"_total", "Executions that ended, by status.", "status")

var (
	signalsAccepted = described("signals_total", "Signals accepted, by the kind of their source.", "source")
	enforcements    = described("enforcements_total", "What rules have made of signals, by state.", "state")
)

var buildInfo = described("build_info", "Which version this is; always 1.", "version")

func New(o Options) *Metrics {
	m := &Metrics{
		options: o,
		surveys: surveys{engine: o.Engine, log: o.Log},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_http_requests_total", Help: "Requests answered, by route, method and status.",
		}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pawl_http_request_seconds", Help: "Time to answer, streams and waits left out.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 2.5, 10},
		}, []string{"route"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "pawl_streams_open", Help: "Streams and waits under way."}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_webhooks_refused_total", Help: "Requests that webhooks refused; without a webhook those to names that there are not.",
		}, []string{"hook", "reason"}),
		wires: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_compat_evaluations_total", Help: "Requests of other evaluators' clients to run programs, by what became of them.",
		}, []string{"wire", "outcome"}),
	}
	r := prometheus.NewRegistry()
	r.MustRegister(m, &m.surveys, m.requests, m.seconds, m.streams, m.refused, m.wires, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if o.Broker != nil {
		r.MustRegister(brokerFigures{o.Broker})
	}
	m.Handler = promhttp.HandlerFor(r, promhttp.HandlerOpts{})
	return m
}

func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, f := range engineFigures {
		to <- f.desc
	}
	for _, d := range engineDistributions {
		to <- d.desc
	}
	to <- executionsFinished
	to <- signalsAccepted
	to <- enforcements
	to <- ticksMissed
	to <- buildInfo
}

func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	s := m.options.Engine.Stats()
	for _, f := range engineFigures {
		if v, known := f.value(s); known {
			to <- prometheus.MustNewConstMetric(f.desc, f.kind, v)
		}
	}
	for stage, n := range s.Ended {
		to <- prometheus.MustNewConstMetric(executionsFinished, prometheus.CounterValue, float64(n), stage.String())
	}
	for kind, n := range s.Signals {
		to <- prometheus.MustNewConstMetric(signalsAccepted, prometheus.CounterValue, float64(n), kind)
	}
	for state, n := range s.Enforcements {
		to <- prometheus.MustNewConstMetric(enforcements, prometheus.CounterValue, float64(n), state)
	}
	for why, n := range s.TicksMissed {
		to <- prometheus.MustNewConstMetric(ticksMissed, prometheus.CounterValue, float64(n), why)
	}
	all := m.options.Engine.Distributions()
	for _, d := range engineDistributions {
		seen := d.read(&all)
		to <- prometheus.MustNewConstHistogram(d.desc, seen.Count, seen.Sum, seen.Buckets)
	}
	to <- prometheus.MustNewConstMetric(buildInfo, prometheus.GaugeValue, 1, m.options.Version)
}

// Counters returns the engine's figures by name.
func (m *Metrics) Counters() map[string]float64 {
	s := m.options.Engine.Stats()
	out := map[string]float64{finished: float64(s.Finished)}
	for _, n := range s.TicksMissed {
		out["ticks_missed"] += float64(n)
	}
	for _, f := range engineFigures {
		if v, known := f.value(s); known {
			out[f.name] = v
		}
	}
	return out
}

// Look starts a survey of the store if one is due, and waits a while for its result.
func (m *Metrics) Look() { m.surveys.look() }

// Refused counts a request that a webhook refused; hook is "" if there is no such webhook.
func (m *Metrics) Refused(hook, reason string) { m.refused.WithLabelValues(hook, reason).Inc() }

// Wired counts an evaluation that came over the wire of another evaluator.
func (m *Metrics) Wired(wire, outcome string) { m.wires.WithLabelValues(wire, outcome).Inc() }

// Wire creates the series of a wire, so that Prometheus sees the first increase of each.
func (m *Metrics) Wire(wire string, outcomes []string) {
	for _, o := range outcomes {
		m.wires.WithLabelValues(wire, o)
	}
}

// Request starts measuring a request; the returned function ends it with the status that was sent, 0 if none was.
func (m *Metrics) Request(r *http.Request) (done func(status int)) {
	begun := time.Now()
	waits := r.URL.Query().Has("wait") || strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	if waits {
		m.streams.Inc()
	}
	return func(status int) {
		route := r.Pattern // set by the mux; unlike paths, patterns are bounded in number
		route = cmp.Or(route, "none")
		status = cmp.Or(status, http.StatusOK)
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
