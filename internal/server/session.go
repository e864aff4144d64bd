package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/payload"
)

// A session gives a browser access with a cookie instead of the token, so that the page's scripts never see the token. The cookie contains
// its expiry time and a MAC under a key derived from the token. So every server with the same token accepts it, no server stores it, and it
// becomes invalid when the token is removed.
const (
	sessionPath   = "/api/v1/session"
	sessionLasts  = 12 * time.Hour
	sessionHeader = "X-Pawl-UI" // a page of another origin cannot send this header, because the API answers no preflight
	loginBody     = 16 << 10    // bytes of a request to log in, which needs no token
)

// sessionKey returns the key for the sessions of a token, derived from the token's digest.
func sessionKey(digest [sha256.Size]byte) []byte {
	m := hmac.New(sha256.New, digest[:])
	m.Write([]byte("pawl session"))
	return m.Sum(nil)
}

// sessionName returns the name of the cookie for a token. Browsers send cookies to every port of a host, so with a fixed name, logging in
// to a second Pawl would log out of the first. Over https the prefix __Host- keeps other hosts of the domain from setting it.
func sessionName(key []byte, secure bool) string {
	id := sha256.Sum256(key)
	name := "pawl-" + hex.EncodeToString(id[:4])
	if secure {
		name = "__Host-" + name
	}
	return name
}

func sealSession(key []byte, end time.Time) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(end.Unix()))
	m := hmac.New(sha256.New, key)
	m.Write(b)
	return base64.RawURLEncoding.EncodeToString(m.Sum(b))
}

// openSession returns the expiry time of a session from its cookie; false if the cookie was not made with this key or has expired.
func openSession(key []byte, value string, now time.Time) (time.Time, bool) {
	b, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(b) != 8+sha256.Size {
		return time.Time{}, false
	}
	m := hmac.New(sha256.New, key)
	m.Write(b[:8])
	end := time.Unix(int64(binary.BigEndian.Uint64(b)), 0)
	return end, hmac.Equal(m.Sum(nil), b[8:]) && now.Before(end)
}

// sessionOf finds the session in a request's cookies. A request that changes something must have the page's header, and its origin, if the
// browser names one, must be this server, because browsers also send cookies from pages of other ports.
func (s *Server) sessionOf(r *http.Request) (end time.Time, ok bool) {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return time.Time{}, false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Header.Get(sessionHeader) == "" {
		return time.Time{}, false
	}
	return s.cookieOf(r)
}

// cookieOf returns the expiry time of the session in a request's cookies, however the request was made.
func (s *Server) cookieOf(r *http.Request) (end time.Time, ok bool) {
	for _, digest := range s.tokens {
		key := sessionKey(digest)
		for _, secure := range []bool{true, false} {
			if c, err := r.Cookie(sessionName(key, secure)); err == nil {
				if end, ok = openSession(key, c.Value, time.Now()); ok {
					return end, true
				}
			}
		}
	}
	return time.Time{}, false
}

// session answers whether this browser is logged in, or has to log in.
func (c *call) session() error {
	out := api.Session{Tokens: len(c.tokens) > 0, Open: true}
	if out.Tokens {
		out.Open = c.mayUse(c.r)
		if end, ok := c.sessionOf(c.r); ok && out.Open {
			out.ExpiresAt = end.UTC()
		}
	}
	if out.Open {
		out.Version, out.Archive = c.Version, c.Archive
	}
	return c.json(http.StatusOK, out)
}

// logIn answers a token with a cookie. A wrong token and a malformed one get the same answer, so it reveals nothing about tokens. After
// several wrong tokens the address has to wait.
func (c *call) logIn() error {
	var in api.Login
	if _, err := c.mediaType(mediaJSON); err != nil {
		return err
	}
	tooLarge := func() error {
		c.w.Header().Set("Connection", "close")
		return refusal(http.StatusRequestEntityTooLarge, api.ProblemTooLarge, fmt.Sprintf("the body has more than the %d bytes of a token and its field", loginBody))
	}
	err := c.bytes(&c.bodies, loginBody, tooLarge, func(body []byte) error { return payload.Decode(body, "body", &in) })
	if err != nil {
		return err
	}
	if len(c.tokens) == 0 {
		return c.session() // without tokens, every client that can reach this server may use it
	}
	token := strings.TrimSpace(in.Token)
	if err := c.checkLogin(token); err != nil {
		return err
	}
	key, end := sessionKey(sha256.Sum256([]byte(token))), time.Now().Add(sessionLasts).Truncate(time.Second)
	secure := c.r.TLS != nil || strings.HasPrefix(c.r.Header.Get("Origin"), "https://") // TLS may end at a proxy
	c.setSession(sessionName(key, secure), sealSession(key, end), secure, int(sessionLasts/time.Second))
	return c.json(http.StatusOK, api.Session{Tokens: true, Open: true, ExpiresAt: end.UTC(), Version: c.Version})
}

// logOut deletes the cookies of this server's tokens. A copy of a cookie stays valid until it expires or the token changes.
func (c *call) logOut() error {
	for _, digest := range c.tokens {
		for _, secure := range []bool{true, false} {
			if name := sessionName(sessionKey(digest), secure); hasCookie(c.r, name) {
				c.setSession(name, "", secure, -1)
			}
		}
	}
	return c.json(http.StatusOK, api.Session{Tokens: len(c.tokens) > 0, Open: len(c.tokens) == 0})
}

func hasCookie(r *http.Request, name string) bool {
	_, err := r.Cookie(name)
	return err == nil
}

func (c *call) setSession(name, value string, secure bool, seconds int) {
	http.SetCookie(c.w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode})
}
