package server

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/problem"
)

// refusalsKept is how many refusals of one webhook are remembered.
const refusalsKept = 100

// refusals remembers the requests that webhooks have refused. It is in memory only, because a client without the secret must
// not be able to write rows. Only existing webhooks have an entry.
type refusals struct {
	mu   sync.Mutex
	last map[string][]api.HookRefusal // by webhook, the oldest first
	sums map[[2]string]int64          // by webhook and reason
}

// add counts a refusal and remembers it under the webhook's name; "" is for requests to webhooks that do not exist.
func (k *refusals) add(hook, reason, message, remote string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sums == nil {
		k.last, k.sums = map[string][]api.HookRefusal{}, map[[2]string]int64{}
	}
	k.sums[[2]string{hook, reason}]++
	if hook == "" {
		return
	}
	list := k.last[hook]
	if len(list) == refusalsKept {
		list = slices.Delete(list, 0, 1)
	}
	k.last[hook] = append(list, api.HookRefusal{At: at.UTC(), Reason: reason, Message: problem.Clip(message, 300), Remote: remote})
}

// of returns the last refusals of a webhook, the latest first.
func (k *refusals) of(hook string) []api.HookRefusal {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := slices.Clone(k.last[hook])
	slices.Reverse(list)
	return list
}

var webhooksRefused = described("webhooks_refused_total", "Requests that webhooks refused; without a webhook those to names that there are not.", "hook", "reason")

// Describe implements prometheus.Collector.
func (k *refusals) Describe(to chan<- *prometheus.Desc) { to <- webhooksRefused }

// Collect implements prometheus.Collector.
func (k *refusals) Collect(to chan<- prometheus.Metric) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for of, n := range k.sums {
		to <- prometheus.MustNewConstMetric(webhooksRefused, prometheus.CounterValue, float64(n), of[0], of[1])
	}
}
