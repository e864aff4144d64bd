package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/nobody"
)

// Errors of the server or the system are rewritten in terms of the command line: what to give, and where.
func TestMessagesNameTheSettings(t *testing.T) {
	t.Parallel()
	const token = "a-token-that-is-long-enough"
	env := environment(t)
	server := start(t, append(env, "PAWL_TOKEN="+token), "server", "--no-worker", "--listen", "127.0.0.1:0")
	within(t, patience, "it serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	_, url, _ := strings.Cut(server.err.String(), "serving on ")
	url, _, _ = strings.Cut(url, " ")
	const closed = "http://127.0.0.1:1"
	empty := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	state := environment(t)
	for name, c := range map[string]struct {
		env  []string
		args []string
		code int
		want string
	}{
		"no token":         {nil, []string{"get", "workers", "--server", url}, exit.General, url + " wants a token (401): give it with --token-file FILE, PAWL_TOKEN or PAWL_TOKEN_FILE"},
		"another token":    {[]string{"PAWL_TOKEN=another-token-of-another-server"}, []string{"get", "workers", "--server", url}, exit.General, url + " refuses the token that $PAWL_TOKEN gives (401)"},
		"no server":        {nil, []string{"get", "workers", "--server", closed}, exit.General, "nothing answers at " + closed + " (--server): is pawl server running there?"},
		"address in use":   {nil, []string{"server", "--listen", strings.TrimPrefix(url, "http://")}, exit.General, "is in use by another process, perhaps another pawl server"},
		"no address":       {nil, []string{"server", "--listen", "nonsense"}, exit.Misuse, `listen (--listen): "nonsense" is not an address to listen on: write host and port, as in 127.0.0.1:7411`},
		"port too high":    {nil, []string{"server", "--listen", "127.0.0.1:99999"}, exit.Misuse, "is not an address to listen on"},
		"foreign address":  {nil, []string{"server", "--listen", "192.0.2.7:0", "--token", token}, exit.General, "192.0.2.7:0 is not an address of this machine"},
		"short token":      {nil, []string{"server", "--token", "short", "--listen", "127.0.0.1:0"}, exit.Misuse, "a token of 5 characters is too easy to guess"},
		"no problems":      {nil, []string{"grade", "samples.jsonl"}, exit.Misuse, "needs the problems of the samples: name their file"},
		"no samples":       {nil, []string{"grade"}, exit.Misuse, "pawl grade takes one file of samples, as in: pawl grade samples.jsonl"},
		"empty token file": {nil, []string{"server", "--token-file", empty, "--listen", "127.0.0.1:0"}, exit.Misuse, empty + " is empty"},
		"short, for a run": {nil, []string{"run", "nothing", "--token", "short"}, exit.Misuse, "a token of 5 characters is too easy to guess"},
	} {
		out, errs, code := pawl(t, append(state, c.env...), c.args...)
		if code != c.code || !strings.Contains(errs, c.want) || strings.Contains(errs, "level=") {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s%s", name, code, c.code, c.want, out, errs)
		}
	}
}

// An unreadable state directory is reported as such, although its configuration is looked for first.
func TestStateDirectoryOfAnotherUser(t *testing.T) {
	t.Parallel()
	if nobody.Runs(t) {
		return
	}
	dir := filepath.Join(t.TempDir(), "theirs")
	if err := os.Mkdir(dir, 0o000); err != nil {
		t.Fatal(err)
	}
	_, errs, code := pawl(t, append(environment(t), "PAWL_STATE_DIR="+dir), "get", "executions")
	if want := fmt.Sprintf("the state directory %s cannot be used", dir); code != exit.Misuse || !strings.Contains(errs, want) {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestUnfinishedText(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1 unfinished execution", 999: "999 unfinished executions", 1000: "1,000 or more unfinished executions"} {
		if got := instance.UnfinishedText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
