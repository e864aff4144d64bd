// Package outgoing contains the handlers that send HTTP requests (http, llm and webhook), and the check of the addresses to
// which they may connect.
package outgoing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/payload"
)

// EgressOptions says where these tasks may connect in addition to the public internet. The operator sets it; a task cannot widen it.
type EgressOptions struct {
	// AllowPrivate lets tasks reach private, loopback, link-local and metadata addresses.
	AllowPrivate bool
	// Allow lists exceptions: "host", "host:port", an address or a prefix in CIDR notation.
	Allow []string
}

// Egress makes all connections of tasks. It checks the dialled address, after the name was resolved, so a name that
// resolves to another address later does not circumvent the check.
type Egress struct {
	options  EgressOptions
	hosts    []string
	prefixes []netip.Prefix
	client   *http.Client
}

// errRedirects means that a call was redirected too often.
var errRedirects = errors.New("too many redirects")

// errRefusedAddress means that a task tried to connect to an address that is neither public nor allowed.
var errRefusedAddress = errors.New("address refused")

const mostRedirects = 10

func NewEgress(o EgressOptions) (*Egress, error) {
	e := &Egress{options: o}
	for _, a := range o.Allow {
		a = strings.ToLower(strings.TrimSpace(a))
		if p, err := netip.ParsePrefix(a); err == nil {
			e.prefixes = append(e.prefixes, p.Masked())
			continue
		}
		if ip, err := netip.ParseAddr(strings.Trim(a, "[]")); err == nil {
			e.prefixes = append(e.prefixes, netip.PrefixFrom(ip, ip.BitLen()))
			continue
		}
		if a == "" || strings.ContainsAny(a, "/ *") {
			return nil, fmt.Errorf("allow %q: write a host, host:port, an address or a prefix such as 10.0.0.0/8", a)
		}
		e.hosts = append(e.hosts, a)
	}
	e.client = &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // a proxy would connect to addresses that the task may not reach
			DialContext:            e.dial,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    16,
			IdleConnTimeout:        30 * time.Second,
			TLSHandshakeTimeout:    10 * time.Second,
			ExpectContinueTimeout:  time.Second,
			MaxResponseHeaderBytes: 256 << 10,
		},
		CheckRedirect: redirected,
	}
	return e, nil
}

// kept are the headers that follow a redirect to another host. Any other header may be a key, such as X-Api-Key, and
// is meant only for the host that the task named.
var kept = []string{"Accept", "Accept-Language", "Content-Type", "Idempotency-Key", "Traceparent", "User-Agent", "Referer", "Pawl-Chain"}

// redirected prepares the request that follows a redirect.
func redirected(req *http.Request, via []*http.Request) error {
	if len(via) >= mostRedirects {
		return fmt.Errorf("%w: stopped after %d", errRedirects, mostRedirects)
	}
	req.URL.RawQuery = payload.EncodedQuery(req.URL.RawQuery) // servers write spaces and other characters into Location unescaped
	first := via[0].URL
	if slices.ContainsFunc(append(slices.Clip(via), req), func(r *http.Request) bool {
		return r.URL.Host != first.Host || r.URL.Scheme != first.Scheme && r.URL.Scheme == "http"
	}) {
		maps.DeleteFunc(req.Header, func(name string, _ []string) bool { return !slices.Contains(kept, name) })
	}
	return nil
}

func (e *Egress) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if !e.options.AllowPrivate && !e.named(addr) {
		d.Control = func(_, address string, _ syscall.RawConn) error { return e.check(addr, address) }
	}
	return d.DialContext(ctx, network, addr)
}

// named reports whether the operator allowed a host by name.
func (e *Egress) named(addr string) bool {
	addr = strings.ToLower(addr)
	host, _, err := net.SplitHostPort(addr)
	return err == nil && (slices.Contains(e.hosts, addr) || slices.Contains(e.hosts, host))
}

// check refuses a resolved address that is not public. wanted is the host that the task named.
func (e *Egress) check(wanted, address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q is not an address", errRefusedAddress, address)
	}
	ip := ap.Addr().Unmap().WithZone("")
	if public(ip) || slices.ContainsFunc(e.prefixes, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	return fmt.Errorf("%w: %s is at %s, which is not a public address; the operator of the worker can allow it, with the setting allow_hosts", errRefusedAddress, wanted, ip)
}

// special are blocks outside of the public internet for which netip has no predicate.
var special = prefixes(
	"0.0.0.0/8",        // this network
	"100.64.0.0/10",    // shared by carriers, and the metadata service of a cloud
	"168.63.129.16/32", // a cloud's metadata
	"192.0.0.0/24",     // protocol assignments
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // 6to4 relays
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"240.0.0.0/4",      // reserved, and broadcast
	"64:ff9b::/96",     // IPv4 behind a translator
	"64:ff9b:1::/48",   // the same, local
	"100::/64",         // discard
	"2001::/23",        // protocol assignments, Teredo
	"2001:db8::/32",    // documentation
	"2002::/16",        // IPv4 inside
	"fec0::/10",        // site-local
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, p := range list {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

func public(ip netip.Addr) bool {
	return ip.IsGlobalUnicast() && !ip.IsPrivate() &&
		!slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) })
}
