package payload

import (
	"cmp"
	"encoding/json"
	"path"
	"reflect"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// Notice is the payload of kind "webhook".
type Notice struct {
	URL   string          `json:"url" check:"url"`
	Event string          `json:"event" check:"event"` // for example deploy.failed
	Data  json.RawMessage `json:"data,omitempty"`
	// SecretEnv and SecretFile name an environment variable or a file of the worker, never the secret itself. Exactly one of them is set.
	SecretEnv  string       `json:"secret_env,omitempty"`
	SecretFile string       `json:"secret_file,omitempty"`
	Timeout    api.Duration `json:"timeout,omitempty"`
}

// Webhook reads the payload of kind "webhook". The error is a *strictjson.Error that lists all errors.
func Webhook(payload []byte) (*Notice, error) {
	n, err := decode[Notice](payload)
	if err != nil {
		return nil, err
	}
	n.URL = EncodedURL(n.URL)
	return &n, nil
}

// Secret returns the name of the secret: a variable, or an absolute path.
func (n *Notice) Secret() string {
	return cmp.Or(n.SecretEnv, n.SecretFile)
}

func checkEvent(r *strictjson.Reader, at string, v reflect.Value) {
	if text := v.String(); text == "" || len(text) > 200 || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		r.ProblemAt(at, "", "it is not the name of an event", "write 1 to 200 characters without spaces, such as deploy.failed")
	}
}

func wholeNotice(r *strictjson.Reader, n *Notice) {
	switch {
	case n.SecretEnv == "" && n.SecretFile == "":
		r.ProblemAt("secret_env", "", "no secret is named", "name the variable of the worker that has it: a receiver tells by the signature who sent the request; http sends without one")
	case n.SecretEnv != "" && n.SecretFile != "":
		r.ProblemAt("secret_file", "", "it is given beside secret_env", "give one of them")
	case n.SecretEnv != "" && WrittenOut(n.SecretEnv):
		r.ProblemAt("secret_env", "", "it is not a name of a variable",
			"put the secret into a variable of the worker, and write its name, such as PAGER_SECRET")
	case n.SecretFile != "" && (!path.IsAbs(n.SecretFile) || path.Clean(n.SecretFile) != n.SecretFile):
		r.ProblemAt("secret_file", "", "it is not an absolute path",
			"put the secret into a file where the worker runs, and write its path, such as /run/secrets/pager")
	}
}

// WrittenOut reports whether a text cannot be the name of an environment variable: it may be the secret itself, so messages must not repeat
// it.
func WrittenOut(name string) bool {
	for i, c := range name {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return true
		}
	}
	return name == "" || len(name) > 100 || strings.HasPrefix(name, "whsec_")
}
