package s3_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/s3"
	"github.com/pawl-run/pawl/internal/blob/s3/s3test"
)

// roles provides keys like AWS's services: for a machine's role (IMDSv2), for the token of a service account (STS), for a container.
type roles struct {
	mu     sync.Mutex
	key    string
	secret string
	asked  []string
}

func (s *roles) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	keys := fmt.Sprintf(`{"Code":"Success","AccessKeyId":%q,"SecretAccessKey":%q,"Expiration":%q}`, s.key, s.secret, until)
	const session, list = "session-of-v2", "/latest/meta-data/iam/security-credentials/"
	switch {
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" && r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") != "":
		fmt.Fprint(w, session)
	case r.URL.Path == list && r.Header.Get("X-aws-ec2-metadata-token") == session:
		fmt.Fprint(w, "pawl-role")
	case r.URL.Path == list+"pawl-role" && r.Header.Get("X-aws-ec2-metadata-token") == session:
		fmt.Fprint(w, keys)
	case r.URL.Path == "/container" && r.Header.Get("Authorization") == "of-the-container":
		fmt.Fprint(w, keys)
	case r.Method == http.MethodPost && r.FormValue("Action") == "AssumeRoleWithWebIdentity" && r.FormValue("WebIdentityToken") == "of-the-account" && r.FormValue("RoleArn") == "arn:aws:iam::1:role/pawl":
		fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>`+
			`<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><Expiration>%s</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, s.key, s.secret, until)
	default:
		w.WriteHeader(http.StatusForbidden)
	}
}

// Keys come from the role of a machine, of a service account or of a container, and a blob can be put and read with them.
func TestRoles(t *testing.T) {
	place := s3test.URL(t)
	secret, _ := place.User.Password()
	account := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(account, []byte("of-the-account"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env   func(url string) map[string]string
		asked string
		wrong map[string]string // requests that the role's service refuses
	}{
		"machine": {func(url string) map[string]string { return map[string]string{"AWS_EC2_METADATA_SERVICE_ENDPOINT": url} },
			"PUT /latest/api/token GET /latest/meta-data/iam/security-credentials/ GET /latest/meta-data/iam/security-credentials/pawl-role", map[string]string{"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"}},
		"service account": {func(url string) map[string]string {
			return map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": account, "AWS_ROLE_ARN": "arn:aws:iam::1:role/pawl", "AWS_ENDPOINT_URL_STS": url}
		}, "POST /", map[string]string{"AWS_ROLE_ARN": "arn:aws:iam::1:role/another"}},
		"container": {func(url string) map[string]string {
			return map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": url + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "of-the-container"}
		}, "GET /container", map[string]string{"AWS_CONTAINER_AUTHORIZATION_TOKEN": "of-another"}},
	} {
		t.Run(name, func(t *testing.T) {
			service := &roles{key: place.User.Username(), secret: secret}
			server := httptest.NewServer(service)
			defer server.Close()
			for _, unset := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_EC2_METADATA_DISABLED"} {
				t.Setenv(unset, "")
			}
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
			for k, v := range c.env(server.URL) {
				t.Setenv(k, v)
			}
			at, err := s3.Parse(keys(place, nil).String(), unset)
			if err != nil {
				t.Fatal(err)
			}
			s, err := s3.Open(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Put(t.Context(), "of-"+name[:3], strings.NewReader("role")); err != nil {
				t.Fatal(err)
			}
			if got, err := get(s, "of-"+name[:3], 0); err != nil || string(got) != "role" {
				t.Errorf("read %q, %v", got, err)
			}
			service.mu.Lock()
			asked := strings.Join(service.asked, " ")
			service.mu.Unlock()
			if asked != c.asked { // once: the keys are valid for an hour
				t.Errorf("asked %s", asked)
			}
			for k, v := range c.wrong {
				t.Setenv(k, v)
			}
			if _, err := s3.Open(t.Context(), at); !errors.Is(err, blob.ErrUnavailable) || !strings.Contains(err.Error(), "there are no keys for it") || strings.Contains(err.Error(), secret) {
				t.Errorf("without the role: %v", err)
			}
		})
	}
}
