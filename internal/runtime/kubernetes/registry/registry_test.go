package registry

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func digest(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

// registryOf plays a registry with one image for two architectures, which requires a token, or a login if login is set.
func registryOf(t *testing.T, login string) (host string, asked *[]string) {
	t.Helper()
	config := `{"architecture":"amd64","config":{"Entrypoint":["/bin/app","--now"],"Cmd":["serve"],"User":"1000"}}`
	manifest := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"digest":"` + digest(config) + `"},"layers":[]}`
	index := `{"schemaVersion":2,"manifests":[{"digest":"` + digest("unknown") + `","platform":{"os":"unknown"}},{"digest":"` + digest("arm") +
		`","platform":{"os":"linux","architecture":"arm64"}},{"digest":"` + digest(manifest) + `","platform":{"os":"linux","architecture":"amd64"}}]}`
	asked = new([]string)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path)
		user, password, _ := r.BasicAuth()
		if r.URL.Path == "/token" {
			if r.URL.Query().Get("scope") != "repository:team/app:pull" || r.URL.Query().Get("service") != "reg" || login != "" && user+":"+password != login {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, `{"access_token":"t0k"}`)
			return
		}
		if r.Header.Get("Authorization") != "Bearer t0k" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+server.URL+`/token",service="reg",scope="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer, ok := map[string]string{
			"/v2/team/app/manifests/1": index, "/v2/team/app/manifests/" + digest(manifest): manifest,
			"/v2/team/app/blobs/" + digest(config): config, "/v2/team/app/manifests/" + digest("wrong"): manifest,
		}[r.URL.Path]
		if !ok || !strings.Contains(r.Header.Get("Accept"), "oci.image.index") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), asked
}

func TestLook(t *testing.T) {
	t.Parallel()
	host, asked := registryOf(t, "")
	c, err := New("", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		image, err := c.Look(t.Context(), host+"/team/app:1")
		if err != nil || !slices.Equal(image.Entrypoint, []string{"/bin/app", "--now"}) || !slices.Equal(image.Cmd, []string{"serve"}) || image.User != "1000" {
			t.Fatalf("%+v %v", image, err)
		}
	}
	if len(*asked) != 5 { // 401, the token, the index, the manifest, the configuration; and nothing the second time
		t.Errorf("asked %q", *asked)
	}
	for name, say := range map[string]string{
		host + "/team/app:2":                      "answers 404",
		host + "/team/app@" + digest("wrong"):     "other contents",
		host + "/team/other:1":                    "gives no token",
		"127.0.0.1:1/team/app":                    "connection refused",
		host + "/team/app:":                       "not an image's name",
		"app@md5:0123":                            "not an image's name",
		strings.ToUpper(host) + "\x7f/team/app:1": "invalid",
	} {
		if _, err := c.Look(t.Context(), name); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want %q", name, err, say)
		}
	}
}

// If a registry is away, or limits the rate, the image is not at fault, and earlier answers are still used.
func TestAway(t *testing.T) {
	t.Parallel()
	host, _ := registryOf(t, "")
	answers := http.StatusTooManyRequests
	tired := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answers) }))
	defer tired.Close()
	c, err := New("", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	for name, away := range map[int]bool{http.StatusTooManyRequests: true, http.StatusBadGateway: true, http.StatusNotFound: false, http.StatusForbidden: false} {
		answers = name
		if _, err := c.Look(t.Context(), strings.TrimPrefix(tired.URL, "http://")+"/team/app:1"); errors.Is(err, ErrAway) != away || err == nil {
			t.Errorf("%d: %v", name, err)
		}
	}
	if _, err := c.Look(t.Context(), "127.0.0.1:1/team/app"); !errors.Is(err, ErrAway) {
		t.Errorf("nobody listens: %v", err)
	}
	const away = "127.0.0.1:1/team/app:1"
	seen, err := c.Look(t.Context(), host+"/team/app:1")
	if err != nil {
		t.Fatal(err)
	}
	c.known[away] = known{image: seen} // long ago
	if image, err := c.Look(t.Context(), away); err != nil || !slices.Equal(image.Entrypoint, seen.Entrypoint) {
		t.Errorf("%+v %v", image, err)
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	host, _ := registryOf(t, "me:secret")
	file := filepath.Join(t.TempDir(), "config.json")
	text := fmt.Sprintf(`{"auths":{"https://%s/v1/":{"auth":%q},"other":{"username":"u","password":"p"}}}`, host, base64.StdEncoding.EncodeToString([]byte("me:secret")))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := New(file, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	if image, err := c.Look(t.Context(), host+"/team/app:1"); err != nil || len(image.Entrypoint) != 2 {
		t.Errorf("%+v %v", image, err)
	}
	anonymous, _ := New("", "amd64")
	if _, err := anonymous.Look(t.Context(), host+"/team/app:1"); err == nil || !strings.Contains(err.Error(), "gives no token") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(file, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(file, ""); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("%v", err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]reference{
		"python:3.13":                     {hub, "library/python", "3.13"},
		"team/app":                        {hub, "team/app", "latest"},
		"docker.io/python":                {hub, "library/python", "latest"},
		"ghcr.io/a/b:v1":                  {"ghcr.io", "a/b", "v1"},
		"localhost:5000/a":                {"localhost:5000", "a", "latest"},
		"r.io/a:v1@" + digest("contents"): {"r.io", "a", digest("contents")},
	} {
		if got, err := parse(name); err != nil || got != want {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}
