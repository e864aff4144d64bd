package server

import (
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/api"
)

// Five wrong tokens within a minute close the login for their address, even for the right token, until the first of them is a minute old.
func TestLoginsPerAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l logins
		here, there := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
		for range 100 {
			if wait := l.attempt(here, true, time.Now()); wait != 0 {
				t.Fatalf("a right token has to wait for %s", wait)
			}
		}
		for n := range wrongLogins {
			if wait := l.attempt(here, false, time.Now()); wait != 0 {
				t.Fatalf("attempt %d has to wait for %s", n+1, wait)
			}
			time.Sleep(time.Second)
		}
		const left = wrongLoginsSpan - wrongLogins*time.Second
		for _, right := range []bool{false, true, false} { // refused attempts do not count: the wait does not grow
			if wait := l.attempt(here, right, time.Now()); wait != left {
				t.Errorf("right %t: wait for %s, want %s", right, wait, left)
			}
		}
		if wait := l.attempt(there, false, time.Now()); wait != 0 {
			t.Errorf("another address has to wait for %s", wait)
		}
		time.Sleep(left - time.Nanosecond)
		if wait := l.attempt(here, true, time.Now()); wait != time.Nanosecond {
			t.Errorf("just before the end: wait for %s", wait)
		}
		time.Sleep(time.Nanosecond)
		if wait := l.attempt(here, true, time.Now()); wait != 0 {
			t.Errorf("a minute after the first: wait for %s", wait)
		}
		if wait := l.attempt(here, false, time.Now()); wait != 0 {
			t.Errorf("a sixth wrong token, a minute after the first: wait for %s", wait)
		}
		if wait := l.attempt(here, true, time.Now()); wait != time.Second {
			t.Errorf("with five in the last minute again: wait for %s, want 1s", wait)
		}
	})
}

// A fixed number of addresses is stored however many guess; the addresses beyond that share one counter.
func TestLoginsOfManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l logins
		address := func(n int) netip.Prefix {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), 32)
		}
		for n := range loginAddresses {
			l.attempt(address(n), false, time.Now())
		}
		for n := range wrongLogins {
			if wait := l.attempt(address(loginAddresses+n), false, time.Now()); wait != 0 {
				t.Fatalf("address %d beyond the limit has to wait for %s", n+1, wait)
			}
		}
		if wait := l.attempt(address(2*loginAddresses), false, time.Now()); wait != wrongLoginsSpan {
			t.Errorf("the sixth address beyond the limit: wait for %s, want %s", wait, wrongLoginsSpan)
		}
		if wait := l.attempt(address(0), true, time.Now()); wait != 0 {
			t.Errorf("an address that is told apart has to wait for %s", wait)
		}
		if len(l.failed) > loginAddresses+1 {
			t.Errorf("%d addresses are kept", len(l.failed))
		}
		time.Sleep(wrongLoginsSpan)
		if wait := l.attempt(address(3*loginAddresses), false, time.Now()); wait != 0 || len(l.failed) != 1 {
			t.Errorf("a minute later: wait for %s, and %d addresses are kept", wait, len(l.failed))
		}
	})
}

func TestAddressesOfLogins(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.7:5000": "192.0.2.7/32", "[::ffff:192.0.2.7]:5000": "192.0.2.7/32", "[2001:db8::1]:1": "2001:db8::/64",
		"[2001:db8::ffff:1]:2": "2001:db8::/64", "[fe80::1%eth0]:1": "fe80::/64", "@": "invalid Prefix", "": "invalid Prefix",
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.RemoteAddr = remote
		if got := clientAddress(r).String(); got != want {
			t.Errorf("%q: %s, want %s", remote, got, want)
		}
	}
}

// Over HTTP the refusal is a problem with the duration of the wait, and other ways of access still work.
func TestTooManyLogins(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Tokens: []string{token}})
	for range wrongLogins {
		h.problem(t, 401, api.ProblemUnauthorized, "POST", sessionPath, `{"token":"wrong-0123456789abcdef"}`)
	}
	for _, given := range []string{"wrong-0123456789abcdef", token} {
		res, body := h.do(t, "POST", sessionPath, `{"token":"`+given+`"}`)
		seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
		if res.StatusCode != 429 || err != nil || seconds < 1 || seconds > 60 || !strings.Contains(string(body), api.ProblemTooManyLogins) || res.Header.Get("Set-Cookie") != "" {
			t.Errorf("login with %q: %s %v\n%s", given, res.Status, res.Header, body)
		}
	}
	if _, err := h.client.Stats(t.Context()); err != nil {
		t.Errorf("with the token in the header: %v", err)
	}
}
