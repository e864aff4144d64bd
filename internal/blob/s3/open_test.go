package s3_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/s3"
	"github.com/pawl-run/pawl/internal/blob/s3/s3test"
)

func tryOpen(t *testing.T, u *url.URL) error {
	t.Helper()
	at, err := s3.Parse(u.String(), unset)
	if err != nil {
		t.Fatal(err)
	}
	s, err := s3.Open(t.Context(), at)
	if err == nil {
		_ = s.Close()
	}
	return err
}

func keys(u *url.URL, user *url.Userinfo) *url.URL {
	changed := *u
	changed.User = user
	return &changed
}

// Errors in the setting are reported at the start, with what to change.
func TestOpenRefused(t *testing.T) {
	t.Parallel()
	place := s3test.URL(t)
	other := *place
	other.Host = "no-such-bucket"
	for name, c := range map[string]struct {
		at   *url.URL
		want string
	}{
		"bucket":     {&other, "there is no bucket no-such-bucket: make it"},
		"key":        {keys(place, url.UserPassword("nobody", "pawltestsecret")), "check AWS_ACCESS_KEY_ID"},
		"secret":     {keys(place, url.UserPassword(place.User.Username(), "wrong")), "check AWS_ACCESS_KEY_ID"},
		"region":     {s3test.With(place, "region", "eu-west-9"), "write"},
		"not HTTPS":  {s3test.With(place, "endpoint", strings.Replace(place.Query().Get("endpoint"), "http:", "https:", 1)), "write endpoint=http://127.0.0.1:"},
		"clock":      {says(t, place, http.StatusForbidden, "RequestTimeTooSkewed", "", -20*time.Minute), "differ by 20m0s: set this one"},
		"rights":     {says(t, place, http.StatusForbidden, "AccessDenied", "", 0), "allow s3:ListBucket"},
		"elsewhere":  {says(t, place, http.StatusMovedPermanently, "PermanentRedirect", "<Region>eu-west-1</Region>", 0), "write region=eu-west-1"},
		"no service": {says(t, place, http.StatusNotFound, "", "", 0), "not the address of a bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tryOpen(t, c.at)
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, blob.ErrUnavailable) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "pawltestsecret") {
				t.Errorf("the secret is in %v", err)
			}
		})
	}
}

// says returns the URL of a service that has only one answer.
func says(t *testing.T, place *url.URL, status int, code, more string, ahead time.Duration) *url.URL {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		answer(w, status, fmt.Sprintf(`<?xml version="1.0"?><Error><Code>%s</Code><Message>No.</Message>%s</Error>`, code, more))
	}))
	t.Cleanup(s.Close)
	return s3test.With(place, "endpoint", s.URL)
}

func TestOpenUnavailable(t *testing.T) {
	t.Parallel()
	place := s3test.URL(t)
	for name, at := range map[string]*url.URL{
		"nothing listens": s3test.With(place, "endpoint", "http://127.0.0.1:1"),
		"busy":            says(t, place, http.StatusServiceUnavailable, "SlowDown", "", 0),
	} {
		if err := tryOpen(t, at); !errors.Is(err, blob.ErrUnavailable) || !strings.Contains(err.Error(), "endpoint") && !strings.Contains(err.Error(), "SlowDown") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Keys come from the environment, from files that it names, or from the shared file of AWS's programs.
func TestCredentials(t *testing.T) {
	place := s3test.URL(t)
	key := place.User.Username()
	secret, _ := place.User.Password()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bare := keys(place, nil)
	// The keys of a role, as a container requests them; the answer can also be an error.
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/role" || r.Header.Get("Authorization") != "token" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		fmt.Fprintf(w, `{"AccessKeyId": %q, "SecretAccessKey": %q, "Expiration": %q}`, key, secret, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	defer role.Close()
	for name, c := range map[string]struct {
		environment map[string]string
		want        string // part of the error; empty: there is none
	}{
		"variables":   {map[string]string{"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}, ""},
		"files":       {map[string]string{"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY_FILE": write("secret", secret+"\n")}, ""},
		"shared file": {map[string]string{"AWS_PROFILE": "pawl", "AWS_SHARED_CREDENTIALS_FILE": write("credentials", "[pawl]\naws_access_key_id = "+key+"\naws_secret_access_key = "+secret+"\n")}, ""},
		"role":        {map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": role.URL + "/role", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "token"}, ""},
		"no role":     {map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": role.URL + "/other"}, "502 Bad Gateway"},
		"none":        {nil, "there are no keys for it: set AWS_ACCESS_KEY_ID"},
		"no file":     {map[string]string{"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY_FILE": filepath.Join(dir, "none")}, "$AWS_SECRET_ACCESS_KEY_FILE: open"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN"} {
				t.Setenv(variable, "")
			}
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "nothing"))
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			for variable, value := range c.environment {
				t.Setenv(variable, value)
			}
			if err := tryOpen(t, bare); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// The machine's clock is compared with the service's.
func TestSkew(t *testing.T) {
	t.Parallel()
	if skew := open(t, s3test.URL(t)).Skew(); skew.Abs() > 5*time.Second {
		t.Errorf("the same clock differs by %s", skew)
	}
}

// Puts request the encryption of the setting.
func TestEncryption(t *testing.T) {
	t.Parallel()
	place := s3test.URL(t)
	asked := make(chan string, 100)
	at := s3test.With(through(t, place, &proxy{choose: func(r *http.Request) fault {
		if r.Method == http.MethodPut && !r.URL.Query().Has("partNumber") || r.URL.Query().Has("uploads") && r.Method == http.MethodPost {
			asked <- r.Header.Get("X-Amz-Server-Side-Encryption") + " " + r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id")
		}
		return none
	}}), "sse", "kms:my-key")
	s := open(t, at)
	for _, size := range []int{10, 9 << 20} {
		_, err := s.Put(t.Context(), "x", strings.NewReader(strings.Repeat("x", size)))
		if got := <-asked; got != "aws:kms my-key" {
			t.Errorf("%d bytes were put with %q, %v", size, got, err)
		}
	}
}
