package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
)

// A database that cannot be reached is an error, which the next start may not meet; a DSN that cannot be read is wrong usage.
// Neither message shows the password or a part of it.
func TestRefusedDatabase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dsn, say string
		code     int
	}{
		{"postgres://fpawl:s3@cr/et:w0rd@127.0.0.1:1/db", "the DSN cannot be read", exit.Misuse},
		{"postgres://fpawl:s3cret:w0rd@127.0.0.1:1/db?sslmode=disable", "cannot reach the server", exit.General},
	} {
		for _, command := range [][]string{
			{"server", "--listen", "127.0.0.1:0", "--no-worker"},
			{"migrate", "up"},
			{"migrate", "status"},
			{"doctor", "--verify"},
		} {
			var out bytes.Buffer
			a := &app.App{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(string) string { return "" }}
			code := execute(a, append(command, "--state-dir", t.TempDir(), "--store", c.dsn))
			said := out.String()
			if code != c.code || !strings.Contains(said, c.say) {
				t.Errorf("pawl %v: exit code %d, want %d and %q:\n%s", command, code, c.code, c.say, said)
			}
			if helps := strings.Contains(said, "--help"); helps != (c.code == exit.Misuse) {
				t.Errorf("pawl %v names its help: %v:\n%s", command, helps, said)
			}
			for _, part := range []string{"s3", "cr/", "et:", "w0rd"} {
				if strings.Contains(said, part) {
					t.Errorf("pawl %v shows %q:\n%s", command, part, said)
				}
			}
		}
	}
}
