package server

import (
	"sync"
	"time"
)

// saidAgain is the shortest time between two logs of the same message about requests that need no token.
const saidAgain = time.Minute

// said stores when each message was last logged. Its keys are names of existing webhooks and parts of the server, so it stays small.
type said struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// due reports whether a message may be logged now, because it was not logged within saidAgain.
func (k *said) due(what string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if last, ok := k.last[what]; ok && now.Sub(last) < saidAgain {
		return false
	}
	if k.last == nil {
		k.last = map[string]time.Time{}
	}
	k.last[what] = now
	return true
}
