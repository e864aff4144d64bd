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

// Failed logins are counted by address: a script that guesses gets 7,200 guesses a day, and a person who mistypes waits a minute at most.
// Tokens in headers are not counted: workers behind one address share it, and one of them with an old token would lock the others out.
const (
	wrongLogins     = 5 // within wrongLoginsSpan; then every login from that address is refused, even with the right token
	wrongLoginsSpan = time.Minute
	loginAddresses  = 4096 // addresses tracked at a time; further ones share one counter, so that many addresses cannot fill the memory
)

// logins counts failed logins. The zero value is ready to use.
type logins struct {
	mu     sync.Mutex
	failed map[netip.Prefix][]time.Time // the latest failures, at most wrongLogins of them, oldest first
}

// attempt counts one login. It returns how long the address has to wait, 0 if the login may be answered. The caller checks the token
// before, so that concurrent attempts are counted one after the other.
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

// hookLogins counts wrong secrets for each webhook separately. The zero value is ready to use; only existing webhooks have an entry.
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

// retryAfter sets the header Retry-After, and returns its seconds.
func (c *call) retryAfter(wait time.Duration) int {
	seconds := int(math.Ceil(wait.Seconds()))
	c.w.Header().Set("Retry-After", strconv.Itoa(seconds))
	return seconds
}

// clientAddress returns the address of a request's client, for IPv6 its /64 network, which one client usually has to itself. All requests
// without such an address (over a Unix socket) count as one client.
func clientAddress(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	address, bits := at.Addr().Unmap().WithZone(""), 64
	if address.Is4() {
		bits = 32
	}
	p, _ := address.Prefix(bits) // bits fits the address, so there is no error
	return p
}

// checkLogin compares the token of a login. Every wrong token gets the same answer, until there were too many.
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
