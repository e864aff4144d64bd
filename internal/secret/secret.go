// Package secret gives access to the secrets of this process: the environment variables and files that its operator has named,
// and nothing else that the process could read.
package secret

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Grants are the secrets that may be used.
type Grants []grant

// grant allows a secret to be used for a server, or within this process.
type grant struct {
	name string // environment variable, or absolute path
	host string // "": any server; Hooks: none
	port string // "": the scheme's default
}

// Hooks replaces the host for secrets that verify requests to webhooks: such a secret may only be used within this process.
const Hooks = "hooks"

// Parse parses grants, each as NAME, NAME@host, NAME@host:port or NAME@hooks, where NAME is an environment variable or an absolute
// path. The host may be an address; IPv6 addresses may be in brackets.
func Parse(texts []string) (Grants, error) {
	var all Grants
	for _, text := range texts {
		g, err := parse(text)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

func parse(text string) (grant, error) {
	name, place, bound := strings.Cut(text, "@")
	g := grant{name: name, host: place}
	if name == "" || strings.ContainsAny(name, "= ") && !isFile(name) || isFile(name) && filepath.Clean(name) != name {
		return g, fmt.Errorf("%q names neither an environment variable nor a file: write NAME, NAME@host or NAME@host:port, or an absolute path instead of NAME", text)
	}
	if !bound {
		return g, nil
	}
	if address, isIP := strings.CutPrefix(place, "["); isIP && strings.HasSuffix(place, "]") {
		g.host = strings.TrimSuffix(address, "]")
	} else if _, err := netip.ParseAddr(place); err != nil && strings.Contains(place, ":") {
		g.host, g.port, err = net.SplitHostPort(place)
		if _, bad := strconv.ParseUint(g.port, 10, 16); err != nil || bad != nil {
			return g, fmt.Errorf("%q does not name a server: write NAME@host or NAME@host:port", text)
		}
	}
	if g.host == "" || strings.ContainsAny(g.host, "/@ ") {
		return g, fmt.Errorf("%q does not name a server: write NAME@host or NAME@host:port, without a scheme or path", text)
	}
	return g, nil
}

func isFile(name string) bool { return strings.HasPrefix(name, "/") }

// Error is the reason why a secret is refused.
type Error struct {
	// Absent means that the operator allows the secret, but it does not exist: it may exist later.
	Absent  bool
	Message string
	Fix     string
}

func (e *Error) Error() string { return e.Message + " (" + e.Fix + ")" }

// For is the named secret, to be sent to a server or to sign what is sent there. The error is an *Error.
func (all Grants) For(name string, server *url.URL) (string, error) {
	no := &Error{Message: "the operator does not let tasks use it for " + server.Host, Fix: "name one that is allowed there"}
	for _, g := range all {
		if g.name != name || g.here() || g.host != "" && !strings.EqualFold(g.host, server.Hostname()) {
			continue
		}
		if bad := g.refuses(server); bad != "" {
			no.Message, no.Fix = bad, "correct the URL, or ask the operator for one that may be used there"
			continue
		}
		return g.value()
	}
	return "", no
}

// Here is the named secret for use within this process. A grant for servers does not allow that. The error is an *Error.
func (all Grants) Here(name string) (string, error) {
	for _, g := range all {
		if g.name == name && g.here() {
			return g.value()
		}
	}
	return "", &Error{Message: "the operator does not let documents use it", Fix: "name one that is allowed, or add " + name + "@" + Hooks + " to the setting webhook_secrets of the server"}
}

// here reports whether a grant is only for use within this process: a secret that verifies requests is not sent, and does not
// sign what is sent.
func (g *grant) here() bool { return g.host == Hooks && g.port == "" }

// fileLimit bounds the bytes of a file that are read for a secret.
const fileLimit = 64 << 10

// value reads the secret at every use: files are replaced while the process runs, and a secret that is not kept in memory is not
// in a dump.
func (g *grant) value() (string, error) {
	if !isFile(g.name) {
		if v := os.Getenv(g.name); v != "" {
			return v, nil
		}
		return "", &Error{Absent: true, Message: "the environment does not have it", Fix: "set it where the process runs"}
	}
	info, err := os.Stat(g.name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > fileLimit) {
		return "", &Error{Absent: true, Message: "it is not a file of at most 64 KiB", Fix: "write the secret into a file of its own"}
	}
	var content []byte
	if err == nil {
		content, err = os.ReadFile(g.name)
	}
	v := strings.TrimSpace(string(content))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &Error{Absent: true, Message: "there is no such file", Fix: "write it where the process runs"}
	case err != nil:
		return "", &Error{Absent: true, Message: "it cannot be read", Fix: "let the user of the process read it"}
	case v == "":
		return "", &Error{Absent: true, Message: "the file is empty", Fix: "write the secret into it"}
	}
	return v, nil
}

// refuses is the reason why a secret must not be sent to a server on its host; "" if it may. Unencrypted, it could be read
// in transit, and another port may belong to another program.
func (g *grant) refuses(server *url.URL) string {
	if g.host == "" {
		return ""
	}
	if server.Scheme != "https" && !loopback(server.Hostname()) {
		return fmt.Sprintf("it is for %s over https only, and the URL is of %s", g.host, server.Scheme)
	}
	usual := map[string]string{"http": "80", "https": "443"}[server.Scheme]
	port, wanted := server.Port(), g.port
	port = cmp.Or(port, usual)
	wanted = cmp.Or(wanted, usual)
	if port != wanted {
		return fmt.Sprintf("the operator lets tasks use it for port %s of %s, not for port %s", wanted, g.host, port)
	}
	return ""
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}
