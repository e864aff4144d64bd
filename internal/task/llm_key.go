package task

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// llmKey is an environment variable that tasks may have sent to a server.
type llmKey struct {
	name string
	host string // "": any server
	port string // "": that of the scheme
}

// parseLLMKey reads NAME, NAME@host or NAME@host:port. The host may be an address, one of IPv6 with or without brackets.
func parseLLMKey(text string) (llmKey, error) {
	name, place, bound := strings.Cut(text, "@")
	k := llmKey{name: name, host: place}
	if name == "" || strings.ContainsAny(name, "= ") {
		return k, fmt.Errorf("%q does not name an environment variable: write NAME, NAME@host or NAME@host:port", text)
	}
	if !bound {
		return k, nil
	}
	if address, isIP := strings.CutPrefix(place, "["); isIP && strings.HasSuffix(place, "]") {
		k.host = strings.TrimSuffix(address, "]")
	} else if _, err := netip.ParseAddr(place); err != nil && strings.Contains(place, ":") {
		k.host, k.port, err = net.SplitHostPort(place)
		if _, bad := strconv.ParseUint(k.port, 10, 16); err != nil || bad != nil {
			return k, fmt.Errorf("%q does not name a server: write NAME@host or NAME@host:port", text)
		}
	}
	if k.host == "" || strings.ContainsAny(k.host, "/@ ") {
		return k, fmt.Errorf("%q does not name a server: write NAME@host or NAME@host:port, without a scheme or path", text)
	}
	return k, nil
}

// key looks up a key that the operator lets tasks send to the server.
func (l *LLM) key(name string, server *url.URL) (string, error) {
	why, fix := "the worker's operator does not let tasks send it to "+server.Host, "name one that is allowed there"
	for _, k := range l.keys {
		if k.name != name || k.host != "" && !strings.EqualFold(k.host, server.Hostname()) {
			continue
		}
		if bad := k.refuses(server); bad != "" {
			why, fix = bad, "correct base_url, or ask the operator for a key that may go there (llm_keys)"
			continue
		}
		if v := os.Getenv(name); v != "" {
			return v, nil
		}
		return "", invalid("api_key_env", name, "the worker's environment does not have it", "set it where the worker runs")
	}
	return "", invalid("api_key_env", name, why, fix)
}

// refuses says why a key does not go to a server on its host; "" when it does. In clear it would be read on the way, and
// another port may be another program.
func (k *llmKey) refuses(server *url.URL) string {
	if k.host == "" {
		return ""
	}
	if server.Scheme != "https" && !loopback(server.Hostname()) {
		return fmt.Sprintf("the worker sends it to %s over https only, and base_url is of %s", k.host, server.Scheme)
	}
	usual := map[string]string{"http": "80", "https": "443"}[server.Scheme]
	port, wanted := server.Port(), k.port
	if port == "" {
		port = usual
	}
	if wanted == "" {
		wanted = usual
	}
	if port != wanted {
		return fmt.Sprintf("the worker's operator lets tasks send it to port %s of %s, not to port %s", wanted, k.host, port)
	}
	return ""
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}
