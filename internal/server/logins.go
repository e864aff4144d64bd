package server

import (
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Wrong tokens of logins are counted by the address that they come from: a script that guesses gets 7,200 guesses a day, and a person
// who mistypes waits for a minute at most. A token of a header is not counted: workers behind one address share it, and one of them
// with an old token would lock the others out.
const (
	wrongLogins     = 5 // within wrongLoginsSpan; then every login from there is refused, with the right token too
	wrongLoginsSpan = time.Minute
	loginAddresses  = 4096 // are told apart at a time; further ones are counted as one, so that many addresses cannot fill the memory
)

// logins counts the logins that failed. Its zero value has none.
type logins struct {
	mu     sync.Mutex
	failed map[netip.Prefix][]time.Time // the latest, at most wrongLogins of them, oldest first
}

// attempt counts one login. It is how long the address has to wait, and 0 where the login may be answered. Whether the token was right
// is decided before the call, so that attempts made at once are counted one after the other.
func (l *logins) attempt(from netip.Prefix, right bool, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failed) >= loginAddresses {
		for address, times := range l.failed {
			if now.Sub(times[len(times)-1]) >= wrongLoginsSpan {
				delete(l.failed, address)
			}
		}
		if _, ok := l.failed[from]; !ok && len(l.failed) >= loginAddresses {
			from = netip.Prefix{}
		}
	}
	times := l.failed[from]
	if len(times) == wrongLogins {
		if wait := wrongLoginsSpan - now.Sub(times[0]); wait > 0 {
			return wait
		}
		times = times[1:]
	}
	if !right {
		if l.failed == nil {
			l.failed = map[netip.Prefix][]time.Time{}
		}
		l.failed[from] = append(times[:len(times):len(times)], now)
	}
	return 0
}

// hookLogins counts wrong secrets for each webhook apart. Its zero value has none; only webhooks that there are have an entry.
type hookLogins struct {
	mu  sync.Mutex
	all map[string]*logins
}

func (l *hookLogins) of(hook string) *logins {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]*logins{}
	}
	if l.all[hook] == nil {
		l.all[hook] = &logins{}
	}
	return l.all[hook]
}

// retryAfter says in the answer how long the client has to wait, and returns the seconds.
func (c *call) retryAfter(wait time.Duration) int {
	seconds := int(math.Ceil(wait.Seconds()))
	c.w.Header().Set("Retry-After", strconv.Itoa(seconds))
	return seconds
}

// clientAddress is the address that a request came from: of IPv6 the network of 64 bits, which one client has to itself. All that have
// no such address (a Unix socket) count as one.
func clientAddress(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	address, bits := at.Addr().Unmap().WithZone(""), 64
	if address.Is4() {
		bits = 32
	}
	p, _ := address.Prefix(bits) // the address has as many
	return p
}

// checkLogin compares the token of a login. Every wrong one gets the same answer, until there were too many.
func (c *call) checkLogin(token string) error {
	right := c.knownToken(token)
	wait := c.logins.attempt(clientAddress(c.r), right, time.Now())
	var err error
	switch {
	case wait > 0:
		seconds := c.retryAfter(wait)
		err = refusal(http.StatusTooManyRequests, api.ProblemTooManyLogins, fmt.Sprintf("%d logins from this address failed within a minute: try again in %d s", wrongLogins, seconds))
	case !right:
		err = refusal(http.StatusUnauthorized, api.ProblemUnauthorized, "the token is none of this server's: enter one that the server was started with (--token, PAWL_TOKEN)")
	default:
		return nil
	}
	c.log.Warn("login refused", telemetry.RequestID, c.w.Header().Get("X-Request-Id"), telemetry.Remote, c.r.RemoteAddr, telemetry.Why, err)
	return err
}
