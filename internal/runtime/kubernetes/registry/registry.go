// Package registry reads from image registries what an image runs by default: its entrypoint and command, which a pod with a command of
// its own must know beforehand. It reads the manifest and the configuration of an image, but no layer.
package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Image is the part of an image's configuration that a run needs.
type Image struct {
	Entrypoint, Cmd []string
	User            string // a number or name, optionally with a group after a colon; empty: root
}

// ErrAway means that a registry does not answer or limits the rate: the same request may succeed later.
var ErrAway = errors.New("the registry cannot be asked just now")

// Client queries registries and caches their answers. It is safe for concurrent use.
type Client struct {
	logins map[string]login // by the registry's host
	http   *http.Client
	arch   string // the architecture to choose from a multi-platform image

	mu    sync.Mutex
	known map[string]known
}

type login struct{ user, password string }

type known struct {
	image Image
	until time.Time
}

const (
	// most bounds the size of a manifest or a configuration; registries refuse manifests beyond 4 MiB.
	most = 4 << 20
	// staysFor is how long the image behind a tag is assumed to be the same; mostKnown bounds the cache.
	staysFor  = 5 * time.Minute
	mostKnown = 1000
	// lookWithin bounds one query for an image.
	lookWithin = 20 * time.Second
)

var (
	lists = []string{"application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"}
	ones  = []string{"application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"}
)

// New returns a client that logs in with the credentials of a file: Docker's config.json or a Secret's .dockerconfigjson; empty: it does
// not log in.
func New(file, arch string) (*Client, error) {
	c := &Client{http: &http.Client{Timeout: lookWithin}, arch: arch, known: map[string]known{}, logins: map[string]login{}}
	if file == "" {
		return c, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the registries' logins: %w", err)
	}
	var all struct {
		Auths map[string]struct{ Auth, Username, Password string } `json:"auths"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s is not a config.json of Docker's: %w", file, err)
	}
	for host, a := range all.Auths {
		if a.Auth != "" {
			pair, err := base64.StdEncoding.DecodeString(a.Auth)
			if err != nil {
				return nil, fmt.Errorf("%s: auth of %s is not base64", file, host)
			}
			a.Username, a.Password, _ = strings.Cut(string(pair), ":")
		}
		c.logins[hostOf(host)] = login{a.Username, a.Password}
	}
	return c, nil
}

// hostOf is the host in a key of a config.json: some keys are URLs.
func hostOf(key string) string {
	_, rest, found := strings.Cut(key, "://")
	if !found {
		rest = key
	}
	host, _, _ := strings.Cut(rest, "/")
	return canonical(host)
}

// hub is the registry of image names without a host.
const hub = "registry-1.docker.io"

func canonical(host string) string {
	switch host {
	case "docker.io", "index.docker.io":
		return hub
	}
	return host
}

// reference is a parsed image name.
type reference struct {
	host, path string
	tag        string // or a digest
}

func parse(name string) (reference, error) {
	rest, digest, pinned := strings.Cut(name, "@")
	r := reference{host: hub, path: rest, tag: "latest"}
	if first, path, ok := strings.Cut(rest, "/"); ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		r.host, r.path = canonical(first), path
	}
	if i := strings.LastIndexByte(r.path, ':'); i >= 0 {
		r.path, r.tag = r.path[:i], r.path[i+1:]
	}
	if pinned {
		r.tag = digest
	}
	if r.host == hub && !strings.Contains(r.path, "/") {
		r.path = "library/" + r.path
	}
	if r.path == "" || r.tag == "" || pinned && !strings.HasPrefix(digest, "sha256:") {
		return r, fmt.Errorf("%q is not an image's name", name)
	}
	return r, nil
}

// scheme is http for this machine only, as in container engines.
func (r reference) scheme() string {
	host := r.host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return "http"
	}
	return "https"
}

// Look returns what an image runs by default. While its registry is away, Look returns the last known answer.
func (c *Client) Look(ctx context.Context, name string) (Image, error) {
	c.mu.Lock()
	k, ok := c.known[name]
	c.mu.Unlock()
	if ok && time.Now().Before(k.until) {
		return k.image, nil
	}
	r, err := parse(name)
	if err != nil {
		return Image{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	image, err := c.look(ctx, &session{client: c, reference: r})
	if errors.Is(err, ErrAway) && ok {
		return k.image, nil
	}
	if err != nil {
		return Image{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= mostKnown {
		clear(c.known)
	}
	c.known[name] = known{image, time.Now().Add(staysFor)}
	return image, nil
}

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Platform  struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

func (c *Client) look(ctx context.Context, s *session) (Image, error) {
	var manifest struct {
		MediaType string       `json:"mediaType"`
		Manifests []descriptor `json:"manifests"`
		Config    descriptor   `json:"config"`
	}
	tag := s.tag
	for range 2 {
		if err := s.get(ctx, "manifests/"+tag, &manifest); err != nil {
			return Image{}, err
		}
		if len(manifest.Manifests) == 0 {
			break
		}
		tag = choose(manifest.Manifests, c.arch)
		if tag == "" {
			return Image{}, errors.New("the registry has it for no Linux")
		}
		manifest.Manifests = nil
	}
	if manifest.Config.Digest == "" {
		return Image{}, errors.New("the registry's manifest names no configuration")
	}
	var config struct{ Config Image }
	if err := s.get(ctx, "blobs/"+manifest.Config.Digest, &config); err != nil {
		return Image{}, err
	}
	return config.Config, nil
}

// choose is the digest of the image for an architecture; other architectures seldom have another entrypoint.
func choose(all []descriptor, arch string) string {
	digest := ""
	for _, d := range all {
		if d.Platform.OS != "linux" {
			continue
		}
		if d.Platform.Architecture == arch {
			return d.Digest
		}
		digest = cmp.Or(digest, d.Digest)
	}
	return digest
}

// session is one query for an image, with the token that the registry issued for it.
type session struct {
	client *Client
	reference
	authorization string
}

// get reads a part of the image. Content that is named by a digest must match it.
func (s *session) get(ctx context.Context, part string, into any) error {
	for again := true; ; again = false {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://%s/v2/%s/%s", s.scheme(), s.host, s.path, part), nil)
		if err != nil {
			return err
		}
		request.Header.Set("Accept", strings.Join(slices.Concat(lists, ones), ", "))
		if s.authorization != "" {
			request.Header.Set("Authorization", s.authorization)
		}
		text, challenge, status, err := s.client.read(request)
		switch {
		case err != nil:
			return err
		case status == http.StatusUnauthorized && again:
			if s.authorization, err = s.authorize(ctx, challenge); err != nil {
				return err
			}
			continue
		case status == http.StatusUnauthorized, status == http.StatusForbidden:
			return fmt.Errorf("registry %s refuses access to %s (%d)", s.host, s.path, status)
		case busy(status):
			return fmt.Errorf("%w: registry %s answers %d for %s of %s", ErrAway, s.host, status, part, s.path)
		case status != http.StatusOK:
			return fmt.Errorf("registry %s answers %d for %s of %s", s.host, status, part, s.path)
		}
		if _, digest, ok := strings.Cut(part, "/sha256:"); ok && fmt.Sprintf("%x", sha256.Sum256(text)) != digest {
			return fmt.Errorf("registry %s gives other contents than %s names", s.host, part)
		}
		if err := json.Unmarshal(text, into); err != nil {
			return fmt.Errorf("registry %s: %s of %s: %w", s.host, part, s.path, err)
		}
		return nil
	}
}

func (c *Client) read(request *http.Request) (text []byte, challenge string, status int, err error) {
	response, err := c.http.Do(request)
	if missing, ok := errors.AsType[*net.DNSError](err); ok && missing.IsNotFound {
		return nil, "", 0, err // an invalid name
	}
	if err != nil {
		return nil, "", 0, fmt.Errorf("%w: %w", ErrAway, err)
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrAway, err)
	} else if len(text) > most {
		err = fmt.Errorf("registry %s answers with more than %d bytes", request.URL.Host, most)
	}
	return text, response.Header.Get("WWW-Authenticate"), response.StatusCode, err
}

// busy reports whether a status means that the same request may succeed later.
func busy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500
}

// authorize answers a registry's challenge: with a token of its token service, or with a login.
func (s *session) authorize(ctx context.Context, challenge string) (string, error) {
	l, logs := s.client.logins[s.host]
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(l.user+":"+l.password))
	kind, rest, _ := strings.Cut(challenge, " ")
	if strings.EqualFold(kind, "Basic") && logs {
		return basic, nil
	}
	realm, err := url.Parse(field(rest, "realm"))
	if !strings.EqualFold(kind, "Bearer") || err != nil || realm.Scheme != "https" && realm.Scheme != s.scheme() {
		return "", fmt.Errorf("registry %s wants a login for %s", s.host, s.path)
	}
	query := realm.Query()
	query.Set("service", field(rest, "service"))
	query.Set("scope", "repository:"+s.path+":pull")
	realm.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), nil)
	if err != nil {
		return "", err
	}
	if logs {
		request.Header.Set("Authorization", basic)
	}
	text, _, status, err := s.client.read(request)
	if err != nil {
		return "", err
	}
	var given struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if busy(status) {
		return "", fmt.Errorf("%w: %s answers %d to the request for a token for %s", ErrAway, realm.Host, status, s.path)
	}
	if status != http.StatusOK || json.Unmarshal(text, &given) != nil || given.Token+given.AccessToken == "" {
		return "", fmt.Errorf("registry %s gives no token for %s: %s answers %d", s.host, s.path, realm.Host, status)
	}
	given.Token = cmp.Or(given.Token, given.AccessToken)
	return "Bearer " + given.Token, nil
}

// field is a quoted parameter of a challenge.
func field(parameters, name string) string {
	_, rest, found := strings.Cut(parameters, name+`="`)
	if !found {
		return ""
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}
