package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/runtime/docker/dockertest"
)

// withEngine is an environment with a Docker engine that has the example's image; without one the test is skipped.
func withEngine(t *testing.T) []string {
	t.Helper()
	host := dockertest.Engine(t)
	dockertest.Image(t, host, "debian:bookworm-slim")
	return append(environment(t), "DOCKER_HOST="+host)
}

func TestExampleContainer(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := pawl(t, withEngine(t), "run", "--runtime", "sandbox,docker", "../../examples/container.yaml", "-o", "json")
	var x api.Execution
	if err := json.Unmarshal([]byte(stdout), &x); code != exit.OK || err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	var out struct {
		Words int
		Table string
	}
	if err := json.Unmarshal(x.Output, &out); err != nil || out.Words != 9 || !strings.HasPrefix(strings.TrimSpace(out.Table), "3 the") {
		t.Errorf("%v: %s", err, x.Output)
	}
}

// If only this process works, a container that it cannot run would wait for ever.
func TestNobodyRunsContainers(t *testing.T) {
	t.Parallel()
	_, stderr, code := pawl(t, environment(t), "run", "../../examples/container.yaml")
	if code != exit.Misuse || !strings.Contains(stderr, "workflow count-words runs containers") || !strings.Contains(stderr, "--runtime "+runtimeHere()+",docker") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// If only this process works, an execution that needs a program with a handler would wait for ever.
func TestNobodyHasHandlers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "thumb.yaml")
	if err := os.WriteFile(file, []byte("name: thumb\nhandler: resize\nqueue: default\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := pawl(t, environment(t), "run", file)
	if code != exit.Misuse || !strings.Contains(stderr, `action thumb is run by programs that serve handler "resize"`) {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func TestDoctorOfDocker(t *testing.T) {
	t.Parallel()
	env := append(environment(t), "DOCKER_HOST=unix:///no/such/socket")
	stdout, _, code := pawl(t, env, "doctor", "--runtime", "sandbox,docker")
	if code != exit.Failed && code == exit.OK || !strings.Contains(stdout, "FAIL runtime docker") || !strings.Contains(stdout, "name another with DOCKER_HOST") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	if stdout, _, code = pawl(t, env, "doctor"); code != exit.OK || !strings.Contains(stdout, "-    runtime docker") {
		t.Errorf("exit code %d, though docker is not in use\n%s", code, stdout)
	}
	stdout, _, code = pawl(t, withEngine(t), "doctor", "--runtime", "docker", "--docker-image", "debian:bookworm-slim")
	if code != exit.OK || !strings.Contains(stdout, "ok   runtime docker: a program was run in it; it is the one that code runs in") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}

// Code runs in an image, too, if its worker's first runtime is docker: that is how a queue gets a runtime.
func TestCodeInAnImage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "where.sh")
	if err := os.WriteFile(file, []byte("[ -e /.dockerenv ] && echo boxed; echo 7 > $PAWL_OUTPUT; exit 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := pawl(t, withEngine(t), "eval", file, "--runtime", "docker", "--docker-image", "debian:bookworm-slim", "-o", "json")
	var r api.CodeResult
	if err := json.Unmarshal([]byte(stdout), &r); code != exit.Failed || err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if r.Runtime != "docker" || r.ExitCode == nil || *r.ExitCode != 3 || string(r.Result) != "7" || r.Stdout != "boxed\n" {
		t.Errorf("%s", stdout)
	}
}
