package server

import (
	"sync"
	"time"
)

// saidAgain is how often the log repeats a message about requests that need no token.
const saidAgain = time.Minute

// said remembers when the log has said something last. What it is asked about are webhooks that there are, and parts of the server.
type said struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// due reports whether the log may say a message now: it has not for saidAgain.
func (k *said) due(what string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if last, is := k.last[what]; is && now.Sub(last) < saidAgain {
		return false
	}
	if k.last == nil {
		k.last = map[string]time.Time{}
	}
	k.last[what] = now
	return true
}
