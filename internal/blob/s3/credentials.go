package s3

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// credentials returns those of the address, or of the sources of AWS's programs.
func (a Address) credentials() *credentials.Credentials {
	if a.accessKey != "" {
		return credentials.NewStaticV4(a.accessKey, a.secretKey, "")
	}
	return credentials.New(newChain())
}

// chain tries the sources of keys in the order of AWS's programs: the environment and the files that it names, the shared file, then the
// roles of a token, a container or the machine. The library's own chain drops the errors and continues without keys, so that a short outage
// of the token service would be taken for a refusal.
type chain struct {
	providers []credentials.Provider
	current   credentials.Provider
}

func newChain() *chain {
	c := &chain{providers: []credentials.Provider{&environment{}, &credentials.FileAWSCredentials{}}}
	machine := !strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true")
	if machine || os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "" || os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "" || os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "" {
		// Outside of AWS, nothing answers at the address for a machine's role.
		patient := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 2 * time.Second}).DialContext}
		c.providers = append(c.providers, &credentials.IAM{Client: &http.Client{Transport: patient, Timeout: 10 * time.Second}, Endpoint: roleEndpoint()})
	}
	return c
}

// roleEndpoint returns the endpoint for a role's keys from the variables of AWS's programs; empty: AWS's default.
func roleEndpoint() string {
	switch {
	case os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
		return os.Getenv("AWS_ENDPOINT_URL_STS")
	case os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "", os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "":
		return ""
	}
	return os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT")
}

type noCredentials struct{ tried error }

func (e noCredentials) Error() string {
	return "there are no keys for it: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or each with _FILE, naming a file), AWS_PROFILE with a shared file, or give the machine or service account a role (" + e.tried.Error() + ")"
}

func (c *chain) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	var tried []string
	for _, p := range c.providers {
		v, err := p.RetrieveWithCredContext(cc)
		if err == nil && v.AccessKeyID != "" && v.SecretAccessKey != "" {
			c.current, v.SignerType = p, credentials.SignatureV4
			return v, nil
		}
		if err != nil {
			tried = append(tried, err.Error())
		}
	}
	return credentials.Value{}, noCredentials{errors.New(strings.Join(tried, "; "))}
}

func (c *chain) Retrieve() (credentials.Value, error) { return c.RetrieveWithCredContext(nil) }

func (c *chain) IsExpired() bool { return c.current == nil || c.current.IsExpired() }

// environment reads keys from variables, or from files that variables name, such as AWS_ACCESS_KEY_ID_FILE.
type environment struct{ until time.Time }

// reread is how long keys from files are cached, because a file may be rewritten, like a mounted secret.
const reread = time.Minute

func (e *environment) RetrieveWithCredContext(*credentials.CredContext) (v credentials.Value, err error) {
	e.until = time.Time{}
	for name, into := range map[string]*string{"AWS_ACCESS_KEY_ID": &v.AccessKeyID, "AWS_SECRET_ACCESS_KEY": &v.SecretAccessKey, "AWS_SESSION_TOKEN": &v.SessionToken} {
		if *into = os.Getenv(name); *into != "" {
			continue
		}
		if path := os.Getenv(name + "_FILE"); path != "" {
			b, err := os.ReadFile(path)
			if err != nil {
				return credentials.Value{}, fmt.Errorf("$%s_FILE: %w", name, err)
			}
			*into, e.until = strings.TrimSpace(string(b)), time.Now().Add(reread)
		}
	}
	if v.AccessKeyID == "" || v.SecretAccessKey == "" {
		return credentials.Value{}, errors.New("AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set")
	}
	return v, nil
}

func (e *environment) Retrieve() (credentials.Value, error) { return e.RetrieveWithCredContext(nil) }

func (e *environment) IsExpired() bool { return !e.until.IsZero() && time.Now().After(e.until) }
