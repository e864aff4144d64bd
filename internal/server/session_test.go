package server

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/api"
)

// A browser that has logged in needs no header. It is refused if its token was removed, if its cookie was changed or has expired, or if the
// request comes from a page of another origin.
func TestSession(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Tokens: []string{token, "another-0123456789"}})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	ask := func(method, path, body string, header ...string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, h.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	const list, submit, noop = "/api/v1/executions", "/api/v1/executions", `{"action":"noop"}`
	if got := ask("GET", list, ""); got != 401 {
		t.Errorf("before the login: %d", got)
	}
	for _, wrong := range []string{"", "wrong", token + "x"} {
		if got := ask("POST", sessionPath, `{"token":"`+wrong+`"}`); got != 401 {
			t.Errorf("login with %q: %d", wrong, got)
		}
	}
	if got := ask("POST", sessionPath, `{"token":"`+token+`"}`, "Sec-Fetch-Site", "cross-site"); got != 403 {
		t.Errorf("login by another site's page: %d", got)
	}
	if got := ask("POST", sessionPath, `{"token":"`+token+`"}`); got != 200 {
		t.Fatalf("login: %d", got)
	}
	for _, x := range []struct {
		what, method, path, body string
		header                   []string
		want                     int
	}{
		{"a read", "GET", list, "", nil, 200},
		{"a read by this origin's page", "GET", list, "", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"a read by a page of another port", "GET", list, "", []string{"Sec-Fetch-Site", "same-site"}, 401},
		{"a change without the page's header", "POST", submit, noop, nil, 401},
		{"a change", "POST", submit, noop, []string{sessionHeader, "1"}, 202},
		{"a change by a page of another port", "POST", submit, noop, []string{sessionHeader, "1", "Sec-Fetch-Site", "same-site"}, 401},
		{"a wrong token beside the cookie", "GET", list, "", []string{"Authorization", "Bearer wrong"}, 400},
		{"the token beside the cookie", "GET", list, "", []string{"Authorization", "Bearer " + token}, 400},
		{"a change with the token beside the cookie", "POST", submit, noop, []string{"Authorization", "Bearer " + token}, 400},
		{"credentials for a proxy beside the cookie", "GET", list, "", []string{"Authorization", "Basic dXNlcjpwYXNz"}, 200},
		{"asking for the session with the token beside the cookie", "GET", sessionPath, "", []string{"Authorization", "Bearer " + token}, 200},
	} {
		if got := ask(x.method, x.path, x.body, x.header...); got != x.want {
			t.Errorf("%s: %d, want %d", x.what, got, x.want)
		}
	}
	u, err := url.Parse(h.url)
	if err != nil {
		t.Fatal(err)
	}
	cookies := jar.Cookies(u)
	if len(cookies) != 1 || strings.Contains(cookies[0].Value, token) {
		t.Fatalf("cookies %v", cookies)
	}
	// Removed: another server with the other token only.
	other := start(t, Options{Tokens: []string{"another-0123456789"}})
	forged := func(value string) int {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", other.url+list, nil)
		req.AddCookie(&http.Cookie{Name: cookies[0].Name, Value: value})
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if got := forged(cookies[0].Value); got != 401 {
		t.Errorf("a cookie of a token that was taken away: %d", got)
	}
	if got := ask("DELETE", sessionPath, "", sessionHeader, "1"); got != 200 {
		t.Errorf("logout: %d", got)
	}
	if got := ask("GET", list, ""); got != 401 {
		t.Errorf("after the logout: %d", got)
	}
}

func TestSessionCookie(t *testing.T) {
	t.Parallel()
	for origin, secure := range map[string]bool{"http://127.0.0.1:7411": false, "https://pawl.example": true} {
		h := build(t, Options{Tokens: []string{token}})
		r := httptest.NewRequestWithContext(t.Context(), "POST", "https://pawl.example"+sessionPath, strings.NewReader(`{"token":"`+token+`"}`))
		r.TLS = nil
		r.Host = strings.TrimPrefix(strings.TrimPrefix(origin, "https://"), "http://")
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, r)
		set := w.Header().Get("Set-Cookie")
		for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} {
			if !strings.Contains(set, want) {
				t.Errorf("%s: %q lacks %s", origin, set, want)
			}
		}
		if strings.HasPrefix(set, "__Host-") != secure || strings.Contains(set, "Secure") != secure {
			t.Errorf("%s: %q", origin, set)
		}
	}
}

func TestSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := sessionKey([32]byte{1})
		value := sealSession(key, time.Now().Add(sessionLasts))
		if _, ok := openSession(key, value, time.Now()); !ok {
			t.Error("a fresh cookie is refused")
		}
		if _, ok := openSession(sessionKey([32]byte{2}), value, time.Now()); ok {
			t.Error("the cookie of another token is taken")
		}
		for i := range value {
			changed := []byte(value)
			changed[i] ^= 1
			if end, ok := openSession(key, string(changed), time.Now()); ok {
				t.Errorf("a cookie whose byte %d was changed is good until %s", i, end)
			}
		}
		time.Sleep(sessionLasts)
		if _, ok := openSession(key, value, time.Now()); ok {
			t.Error("a cookie is good after its end")
		}
	})
}

func TestSessionWithoutTokens(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	var s api.Session
	h.get(t, sessionPath, &s)
	if s.Tokens || !s.Open {
		t.Errorf("%+v", s)
	}
}

// A client without a token cannot make the server read more than a token.
func TestLoginBody(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Tokens: []string{token}})
	res, body := h.do(t, "POST", "/api/v1/session", `{"token":"`+strings.Repeat("x", 1<<20)+`"}`, sessionHeader, "1", "Content-Type", "application/json")
	if res.StatusCode != 413 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}
