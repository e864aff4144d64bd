package metrics

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Limits on the work of /metrics in the store. A survey reads every unfinished execution. The next one begins surveyEvery after the last
// one, or surveyShare times the duration of the last one if that is longer, so surveys never take more than a twentieth of a core and of
// the database's time.
const (
	surveyEvery    = 5 * time.Second
	surveyShare    = 20
	surveyPatience = 2 * time.Second       // how long a scrape waits for the survey; after that it shows the previous one
	surveyQuick    = 50 * time.Millisecond // the same if the last survey took longer and is recent; a million open waits take seconds
	surveyFresh    = time.Minute
	surveyTimeout  = 60 * time.Second // for a whole survey
	topKeys        = 20
	mostQueues     = 200 // in the labels of one metric
	mostLabel      = 100 // bytes of a label's value
)

// surveys collects figures about all replicas from the store. Every replica reports the same figures: take their maximum, not their sum.
type surveys struct {
	engine *engine.Engine
	log    *slog.Logger

	mu       sync.Mutex
	last     *surveyed
	ongoing  chan struct{} // closed when the running survey has ended
	failures float64
}

type surveyed struct {
	at       time.Time
	took     time.Duration
	err      error
	sums     store.Survey
	queues   []store.QueueDepth
	keys     map[string]store.KeyUse
	sessions []store.Session
	paused   []store.Pause
	bytes    int64
}

// look starts a survey if one is due, and waits a while for it. Collect uses the latest result.
func (s *surveys) look() {
	s.mu.Lock()
	if s.ongoing == nil && (s.last == nil || time.Since(s.last.at) > max(surveyEvery, surveyShare*s.last.took)) {
		s.ongoing = make(chan struct{})
		go s.survey(s.ongoing)
	}
	ongoing, patience := s.ongoing, surveyPatience
	if s.last != nil && s.last.err == nil && s.last.took > surveyQuick && time.Since(s.last.at) < surveyFresh {
		patience = surveyQuick
	}
	s.mu.Unlock()
	if ongoing != nil {
		select {
		case <-ongoing:
		case <-time.After(patience):
		}
	}
}

func (s *surveys) survey(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), surveyTimeout)
	defer cancel()
	begun := time.Now()
	v := s.ask(ctx)
	v.at, v.took = time.Now(), time.Since(begun)
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.err != nil {
		s.failures++
		s.log.Warn("survey for the metrics failed", telemetry.Err, v.err)
	}
	s.last, s.ongoing = v, nil
	close(done)
}

func (s *surveys) ask(ctx context.Context) *surveyed {
	var v surveyed
	reader := s.engine.Reader()
	for _, step := range []func() error{
		func() (err error) { v.sums, err = reader.Survey(ctx); return err },
		func() (err error) { v.queues, err = reader.Queues(ctx); return err },
		func() (err error) { v.keys, err = reader.Keys(ctx, topKeys); return err },
		func() (err error) { v.sessions, err = reader.LiveSessions(ctx); return err },
		func() (err error) { v.paused, err = s.engine.Paused(ctx); return err },
		func() (err error) { v.bytes, err = reader.Size(ctx); return err },
	} {
		if v.err = step(); v.err != nil {
			break
		}
	}
	return &v
}

var (
	surveyUp        = described("store_up", "Whether the store answered the last survey.")
	surveyFailures  = described("survey_failures_total", "Surveys that the store did not answer.")
	surveyTook      = described("survey_seconds", "Time that the last survey of the store took.")
	surveyAge       = described("survey_age_seconds", "Age of what the store told: of the metrics that are the same on every replica.")
	executions      = described("executions", "Executions that have not ended.", "status", "queue")
	queueReady      = described("queue_ready", "Executions that a worker could take now.", "queue")
	queueOldest     = described("queue_oldest_age_seconds", "How long the one that has waited longest has been in the queue.", "queue")
	queueSlots      = described("queue_slots", "Slots of the live workers that serve the queue; a worker of several queues counts in each.", "queue")
	workers         = described("workers", "Live worker sessions.")
	workerSlots     = described("worker_slots", "Slots of the live workers.")
	keySlots        = described("key_slots", "Slots held of a concurrency key, for the fullest keys.", "key")
	keyWaiting      = described("key_waiting", "Executions in a concurrency key's line, for the fullest keys.", "key")
	eventsUnapplied = described("events_unapplied", "Events that are kept until those before them have come.")
	oldestAge       = described("oldest_unfinished_age_seconds", "Age of the oldest execution that has not ended.")
	oldestTx        = described("oldest_transaction_age_seconds", "Age of the oldest transaction of any client of the database; 0 where there is no such thing.")
	inquiriesOpen   = described("inquiries_open", "Questions to people that wait for an answer.")
	pausedNow       = described("paused", "What is paused now, by what it is: queues, workers and actions.", "kind")
	storeBytes      = described("store_bytes", "What the store takes.")
)

func (s *surveys) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{surveyUp, surveyFailures, surveyTook, surveyAge, executions, queueReady, queueOldest, queueSlots,
		workers, workerSlots, keySlots, keyWaiting, eventsUnapplied, oldestAge, oldestTx, inquiriesOpen, pausedNow, storeBytes} {
		to <- d
	}
}

// Collect implements prometheus.Collector. If the store did not answer, it reports only that.
func (s *surveys) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s.mu.Lock()
	v, failures := s.last, s.failures
	s.mu.Unlock()
	to <- prometheus.MustNewConstMetric(surveyFailures, prometheus.CounterValue, failures)
	if v == nil || v.err != nil {
		gauge(surveyUp, 0)
		return
	}
	gauge(surveyUp, 1)
	gauge(surveyTook, v.took.Seconds())
	gauge(surveyAge, time.Since(v.at).Seconds())
	gauge(storeBytes, float64(v.bytes))
	gauge(inquiriesOpen, float64(v.sums.Inquiries))
	for _, u := range v.sums.Unfinished[:min(len(v.sums.Unfinished), 5*mostQueues)] {
		gauge(executions, float64(u.Count), u.Stage.String(), u.Queue)
	}
	gauge(eventsUnapplied, float64(v.sums.Unapplied))
	gauge(oldestAge, age(v.at, v.sums.OldestCreated))
	gauge(oldestTx, v.sums.OldestTransaction.Seconds())
	v.collectQueues(gauge)
	paused := map[store.PauseKind]int{store.PausedQueue: 0, store.PausedWorker: 0, store.PausedAction: 0}
	for i := range v.paused {
		paused[v.paused[i].Of]++
	}
	for of, n := range paused {
		gauge(pausedNow, float64(n), of.String())
	}
	keys := map[string]store.KeyUse{} // by label, because long keys may have the same label
	for key, u := range v.keys {
		sum := keys[labelled(key)]
		keys[labelled(key)] = store.KeyUse{Holders: sum.Holders + u.Holders, Waiting: sum.Waiting + u.Waiting}
	}
	for key, u := range keys {
		gauge(keySlots, float64(u.Holders), key)
		gauge(keyWaiting, float64(u.Waiting), key)
	}
}

func (v *surveyed) collectQueues(gauge func(*prometheus.Desc, float64, ...string)) {
	for _, q := range v.queues[:min(len(v.queues), mostQueues)] {
		gauge(queueReady, float64(q.Ready), q.Queue)
		gauge(queueOldest, age(v.at, q.Oldest), q.Queue)
	}
	slots, all := map[string]int{}, 0
	for _, q := range v.queues {
		slots[q.Queue] = 0 // a queue with executions and no slot shows 0, which is worth an alert
	}
	reaches := make([]flow.Reach, len(v.sessions))
	for i, s := range v.sessions {
		all += s.Slots
		reaches[i] = flow.ReachOf(s.Queues, s.Kinds)
		for _, q := range reaches[i].Shown() {
			slots[q] += 0 // other parts of a queue are shown only while executions wait there
		}
	}
	for i, s := range v.sessions {
		reach := reaches[i]
		for q := range slots {
			if reach.Serves(q) {
				slots[q] += s.Slots
			}
		}
	}
	gauge(workers, float64(len(v.sessions)))
	gauge(workerSlots, float64(all))
	names := slices.Sorted(maps.Keys(slots))
	for _, q := range names[:min(len(names), mostQueues)] {
		gauge(queueSlots, float64(slots[q]), q)
	}
}

// age returns the time from t to "at", never negative, although the database's clock may be a little ahead.
func age(at, t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(0, at.Sub(t).Seconds())
}

// labelled returns text shortened and cleaned for use as a label.
func labelled(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > mostLabel {
		text = strings.ToValidUTF8(text[:mostLabel], "") + "…"
	}
	return text
}
