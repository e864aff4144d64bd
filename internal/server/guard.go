package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/pawl-run/pawl/api"
)

// minToken is the smallest number of characters of a token.
const minToken = 16

// CheckToken returns an error if a token is not fit for a server.
func CheckToken(token string) error {
	if len(token) < minToken {
		return fmt.Errorf("a token of %d characters is too easy to guess: use at least %d, as from: openssl rand -hex 24", len(token), minToken)
	}
	return nil
}

// guard refuses requests without permission. It allows:
//
//  1. requests from this process;
//  2. if no tokens are configured, requests over a loopback address whose Host is a name of the loopback interface: otherwise a page in a
//     browser on this machine could reach the API with a domain name of its own that resolves to 127.0.0.1;
//  3. requests with a token.
//
// Requests to webhooks are checked by their signatures instead.
//
// A request that changes something must not come from a page of another site. No request may have both a token and a session cookie.
func (s *Server) guard(r *http.Request) error {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || strings.HasPrefix(r.URL.Path, hooksPath) { // webhooks check signatures instead
		return nil
	}
	if len(s.tokens) > 0 {
		token, given := s.tokenOf(r)
		if _, ok := s.cookieOf(r); ok && given && !s.needsNoToken(r) {
			return unreadable(api.FieldError{Path: "Authorization", Message: "the request has a token and the cookie of a session, and which of them counts would be a guess",
				Fix: "send one of them; DELETE " + sessionPath + " (Log out) takes the cookie away"})
		}
		if !s.needsNoToken(r) && !s.mayUse(r) {
			detail := "the token is none of this server's: send the one that the server was started with"
			if token == "" {
				detail = "this server asks for a token: send it in the header: Authorization: Bearer TOKEN"
			}
			return refusal(http.StatusUnauthorized, api.ProblemUnauthorized, detail)
		}
	} else {
		if !isLocal(local) {
			return refusal(http.StatusUnauthorized, api.ProblemUnauthorized,
				"this server has no token and answers on loopback addresses only: start it with a token to reach it from elsewhere")
		}
		if local.Network() != "unix" && !ownName(r.Host) {
			return refusal(http.StatusForbidden, api.ProblemForbidden,
				"the Host header does not name this machine's loopback interface: call the server by 127.0.0.1 or localhost, or start it with a token")
		}
	}
	if r.URL.Path == verifyPath { // it changes nothing, but is too much work to be started by an image tag on another site's page
		write := *r
		write.Method = http.MethodPost
		r = &write
	}
	if err := crossOrigin.Check(r); err != nil {
		return refusal(http.StatusForbidden, api.ProblemForbidden,
			"the request was made by another site's page (Origin or Sec-Fetch-Site): send it from the server's own pages, or from a program")
	}
	return nil
}

var crossOrigin = http.NewCrossOriginProtection()

// needsNoToken reports whether a request needs no token: probes send none, the page's files contain no data, and a session begins with a
// token in the body.
func (s *Server) needsNoToken(r *http.Request) bool {
	switch path := r.URL.Path; {
	case path == "/healthz", path == "/readyz", path == sessionPath:
		return true
	case strings.HasPrefix(path, answerPath): // the link itself is the proof
		return true
	case s.Page != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return path == "/" || strings.HasPrefix(path+"/", pagePath)
	}
	return false
}

// mayUse reports whether a request comes from a client that may use the API. If there are tokens, it must have one, or come from a browser
// that has logged in. If it has a token, only the token counts.
func (s *Server) mayUse(r *http.Request) bool {
	if token, given := s.tokenOf(r); given && len(s.tokens) > 0 {
		return s.knownToken(token)
	}
	_, ok := s.sessionOf(r)
	return ok || len(s.tokens) == 0
}

// tokenOf returns the token of a request; some wires have a header of their own for it.
func (s *Server) tokenOf(r *http.Request) (token string, given bool) {
	for _, w := range s.Wires {
		if token = r.Header.Get(w.TokenHeader); w.TokenHeader != "" && token != "" && strings.HasPrefix(r.URL.Path, w.prefix()) {
			return token, true
		}
	}
	return bearer(r)
}

// bearer returns the bearer token in a request's header, or "" if there is none. Credentials of another scheme (Basic) are for a proxy,
// which may pass them on.
func bearer(r *http.Request) (token string, given bool) {
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimSpace(rest), true
}

// knownToken compares digests, and always all of them, so that the duration reveals nothing.
func (s *Server) knownToken(token string) bool {
	digest := sha256.Sum256([]byte(token))
	known := 0
	for _, t := range s.tokens {
		known |= subtle.ConstantTimeCompare(t[:], digest[:])
	}
	return known == 1
}

// ownName reports whether the Host header names the loopback interface.
func ownName(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() {
		return true
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// isLocal reports whether only programs on this machine can reach the address.
func isLocal(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}
