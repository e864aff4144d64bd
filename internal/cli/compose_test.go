package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/rabbitmq/rabbitmqtest"
	"github.com/pawl-run/pawl/internal/handoff/redis/redistest"
	"github.com/pawl-run/pawl/internal/programtest"
)

// The profiles of compose.yaml work: their services, started on this machine with the commands and settings of the file, but with its
// hosts replaced by local addresses. The worker is behind the broker and does not know the server. Not tested is what Docker adds: images
// and networks.
func TestComposeProfiles(t *testing.T) {
	t.Parallel()
	need(t, "bash", "python3", "redis-server")
	var file struct {
		Services map[string]composeService `yaml:"services"`
	}
	text := readYAML(t, "../../compose.yaml", &file)
	for profile, start := range map[string]func(*testing.T, composeService) string{
		"redis": func(t *testing.T, s composeService) string { return redistest.Start(t, s.Command[1:]...).URL() },
		// Its one setting allows guest from other hosts, which is not needed here.
		"rabbitmq": func(t *testing.T, _ composeService) string { return rabbitmqtest.URL(t) },
	} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			var behind string
			for name, s := range file.Services {
				if slices.Contains(s.Profiles, profile) && s.Build != "" {
					behind = name
				}
			}
			worker, server := file.Services[behind], file.Services["server-1"]
			at := slices.Index(worker.Command, "--broker") + 1
			if at == 0 || !strings.HasPrefix(worker.Command[at], "redis://redis:") && !strings.HasPrefix(worker.Command[at], "amqp://rabbitmq:") {
				t.Fatalf("%s is behind no broker: %q", behind, worker.Command)
			}
			if order := "PAWL_BROKER=" + worker.Command[at] + " docker compose --profile " + profile + " up"; !strings.Contains(text, order) {
				t.Errorf("the head of compose.yaml does not say %q", order)
			}
			dir, broker, port := t.TempDir(), start(t, file.Services[profile]), programtest.FreePort(t)
			token, program := filepath.Join(dir, "token"), filepath.Join(dir, "program.py")
			if err := errors.Join(os.WriteFile(token, []byte("0123456789abcdef0123456789abcdef"), 0o600), os.WriteFile(program, []byte("print(6*7)"), 0o600)); err != nil {
				t.Fatal(err)
			}
			hosts := map[string]string{"PAWL_STORE": emptyDatabase(t), "PAWL_BROKER": broker, "PAWL_TOKEN_FILE": token}
			run := func(s composeService, args []string) {
				t.Helper()
				cmd := exec.Command(filepath.Join(bin, "pawl"), args...)
				cmd.Env, cmd.WaitDelay = environment(t), 30*time.Second
				for name, value := range s.Environment {
					if here, ok := hosts[name]; ok {
						value = here
					}
					cmd.Env = append(cmd.Env, name+"="+composeDefault.ReplaceAllString(value, "$1"))
				}
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := programtest.Start(cmd); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					_ = cmd.Process.Signal(os.Interrupt) // it may have ended
					if err := cmd.Wait(); err != nil || t.Failed() {
						t.Errorf("pawl %s: %v\n%s", strings.Join(args, " "), err, out.String())
					}
				})
			}
			run(server, replaced(t, server.Command, "0.0.0.0:7411", "127.0.0.1:"+port))
			run(worker, replaced(t, worker.Command, worker.Command[at], broker))
			env := append(environment(t), "PAWL_SERVER=http://127.0.0.1:"+port, "PAWL_TOKEN_FILE="+token)
			var out, errs string
			for deadline, code := time.Now().Add(time.Minute), 1; code != 0; {
				// The server is ready when it answers; a submission waits for its worker.
				if out, errs, code = pawl(t, env, "eval", program, "-o", "json"); code != 0 && time.Now().After(deadline) {
					t.Fatalf("%d %s%s", code, out, errs)
				}
			}
			if !strings.Contains(out, `"stdout": "42\n"`) {
				t.Errorf("%s", out)
			}
			if out, _, _ = pawl(t, env, "get", "workers"); !strings.Contains(out, behind) || strings.Count(out, "\n") != 2 {
				t.Errorf("workers: %s", out)
			}
		})
	}
}

// replaced is a command line with one of its words replaced; the word must occur.
func replaced(t *testing.T, args []string, word, by string) []string {
	t.Helper()
	at := slices.Index(args, word)
	if at < 0 {
		t.Fatalf("%q has no %s", args, word)
	}
	args = slices.Clone(args)
	args[at] = by
	return args
}
