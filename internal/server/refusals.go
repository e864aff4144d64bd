package server

import (
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/problem"
)

// refusalsKept is how many refusals of one webhook are remembered.
const refusalsKept = 100

// refusals keeps the requests that webhooks have refused. It is in memory only, because a client without the secret must not be able to
// write rows. Only existing webhooks have an entry.
type refusals struct {
	mu   sync.Mutex
	last map[string][]api.HookRefusal // by webhook, the oldest first
}

// add remembers a refusal under the webhook's name.
func (k *refusals) add(hook, reason, message, remote string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil {
		k.last = map[string][]api.HookRefusal{}
	}
	list := k.last[hook]
	if len(list) == refusalsKept {
		list = slices.Delete(list, 0, 1)
	}
	k.last[hook] = append(list, api.HookRefusal{At: at.UTC(), Reason: reason, Message: problem.Clip(message, 300), Remote: remote})
}

// of returns the last refusals of a webhook, newest first.
func (k *refusals) of(hook string) []api.HookRefusal {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := slices.Clone(k.last[hook])
	slices.Reverse(list)
	return list
}
