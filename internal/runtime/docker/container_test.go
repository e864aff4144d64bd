//go:build unix

package docker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/docker/dockertest"
)

// appImage has its own directory, user and command.
const appImage = "pawl-test/app:2"

func finish(t *testing.T, r runtime.Runtime, spec runtime.Spec) (runtime.Result, string) {
	t.Helper()
	var out bytes.Buffer
	spec.Stdout = &out
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	result := started.Wait()
	return result, out.String()
}

func TestContainer(t *testing.T) {
	t.Parallel()
	r := openRuntime(t, Options{})
	defer r.Close()
	dockertest.Image(t, dockertest.Engine(t), appImage, "WORKDIR /opt/app", "USER 1234:1234",
		`ENTRYPOINT ["echo", "entry"]`, `CMD ["usual"]`, "ENV OF=image KEPT=yes")
	sh := func(script string) runtime.Spec {
		return runtime.Spec{Argv: []string{script}, Container: &runtime.Container{Image: appImage, Entrypoint: []string{"sh", "-c"}}}
	}
	for name, c := range map[string]struct {
		spec runtime.Spec
		want string
	}{
		"the image's command": {runtime.Spec{Container: &runtime.Container{Image: appImage}}, "entry usual\n"},
		"arguments":           {runtime.Spec{Container: &runtime.Container{Image: appImage}, Argv: []string{"mine"}}, "entry mine\n"},
		"entrypoint":          {sh("echo other"), "other\n"},
		"the image's user":    {sh("id -u; id -g"), "1234\n1234\n"},
		"the image's place":   {sh("pwd"), "/opt/app\n"},
		"environment": {func() runtime.Spec {
			s := sh("echo $OF $KEPT")
			s.Env = []string{"OF=ours"}
			return s
		}(), "ours yes\n"},
		"read-only root": {sh("exec 2>&1; echo x > /opt/app/x || echo x > /etc/x || echo no; echo y > /tmp/y && cat /tmp/y; cd /work/task && echo z > z && cat z"),
			"sh: 1: cannot create /opt/app/x: Read-only file system\nsh: 1: cannot create /etc/x: Read-only file system\nno\ny\nz\n"},
		"no privileges": {sh("grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t\\n' '  '"),
			"CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 "},
		"files move the place": {func() runtime.Spec {
			s := sh("pwd; cat a/b; echo more >> a/b && tail -1 a/b")
			s.Files = []runtime.File{{Path: "a/b", Content: []byte("file\n")}}
			return s
		}(), "/work/task\nfile\nmore\n"},
		"a place of one's own": {func() runtime.Spec {
			s := sh("pwd; id -u")
			s.Container.WorkDir, s.Container.User = "/tmp", "77"
			return s
		}(), "/tmp\n77\n"},
		"a user by name": {func() runtime.Spec {
			s := sh("id -u; cat in; echo x > out && cat out")
			s.Container.User = "app"
			s.Files = []runtime.File{{Path: "in", Content: []byte("in\n")}}
			return s
		}(), "1500\nin\nx\n"},
		"root, by name": {func() runtime.Spec {
			s := sh("id -u; echo x > /tmp/x && cat /tmp/x; echo x > /work/x || echo no")
			s.Container.User = "root"
			return s
		}(), "0\nx\n"},
	} {
		t.Run(name, func(t *testing.T) {
			result, out := finish(t, r, c.spec)
			if result.Verdict != runtime.OK || out != c.want {
				t.Errorf("%q, want %q: %+v", out, c.want, result)
			}
		})
	}
	t.Run("root only by name", func(t *testing.T) {
		result, out := finish(t, r, runtime.Spec{Argv: []string{"id", "-u"}, Container: &runtime.Container{Image: testImage}})
		if result.Verdict != runtime.OK || out != "65534\n" {
			t.Errorf("%q %+v", out, result)
		}
	})
}

func TestRefusedSpecs(t *testing.T) {
	t.Parallel()
	r := openRuntime(t, Options{Networks: []string{"backend"}})
	defer r.Close()
	for name, c := range map[string]struct {
		change func(*runtime.Container)
		is     error
		say    string
	}{
		"never pulled":   {func(c *runtime.Container) { c.Image, c.Pull = "pawl-test/absent:1", runtime.PullNever }, runtime.ErrUnavailable, "pull policy is never"},
		"no such syntax": {func(c *runtime.Container) { c.Image = "Not An Image" }, runtime.ErrSpec, "Not An Image"},
		"network":        {func(c *runtime.Container) { c.Network = "host" }, runtime.ErrSpec, `network "host"; this worker offers backend`},
		"user":           {func(c *runtime.Container) { c.User = "nobody-knows" }, runtime.ErrUnavailable, "nobody-knows"},
		"pull policy":    {func(c *runtime.Container) { c.Pull = "often" }, runtime.ErrSpec, "often"},
		"place":          {func(c *runtime.Container) { c.WorkDir = "app" }, runtime.ErrSpec, "working directory"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := runtime.Spec{Argv: []string{"true"}, Container: &runtime.Container{Image: testImage}}
			c.change(spec.Container)
			started, err := r.Start(t.Context(), spec)
			if err == nil {
				t.Fatalf("started: %+v", started.Wait())
			}
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%v, want %v with %q", err, c.is, c.say)
			}
		})
	}
	if _, err := r.Start(t.Context(), runtime.Spec{Argv: []string{"true"}}); !errors.Is(err, runtime.ErrSpec) || !strings.Contains(err.Error(), "name one") {
		t.Errorf("without an image: %v", err)
	}
}

// A missing engine is the host's fault; the error has its words and the fix.
func TestNoEngine(t *testing.T) {
	t.Parallel()
	r, err := New(Options{Host: "unix://" + filepath.Join(t.TempDir(), "none")})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = r.Start(t.Context(), runtime.Spec{Container: &runtime.Container{Image: "x"}})
	if !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(err.Error(), "no such file") || !strings.Contains(err.Error(), "DOCKER_HOST") {
		t.Errorf("%v", err)
	}
	if f := r.Diagnose(t.Context()); len(f) != 1 || f[0].OK || f[0].Fix == "" {
		t.Errorf("%+v", f)
	}
	if _, err := New(Options{Host: "nonsense"}); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("an address that is none: %v", err)
	}
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	r := openRuntime(t, Options{OCIRuntime: "no-such-runtime"})
	defer r.Close()
	for _, f := range r.Diagnose(t.Context()) {
		if f.Say == "" || f.OK != (f.Fix == "") || f.OK == (f.What == "OCI runtime") {
			t.Errorf("%+v", f)
		}
	}
	_, err := r.Start(t.Context(), runtime.Spec{Argv: []string{"true"}, Container: &runtime.Container{Image: testImage}})
	if err == nil || !strings.Contains(err.Error(), "no-such-runtime") {
		t.Errorf("%v", err)
	}
}

// Containers of dead workers are removed, and those of living ones stay.
func TestOrphans(t *testing.T) {
	t.Parallel()
	r := openRuntime(t, Options{})
	defer r.Close()
	started, err := r.Start(t.Context(), runtime.Spec{Name: "ex_7/2", Labels: runtime.Labels{"execution": "ex_7", "attempt": "2"},
		Argv: []string{"sleep", "60"}, Container: &runtime.Container{Image: testImage}})
	if err != nil {
		t.Fatal(err)
	}
	engine := dockertest.Client(t, dockertest.Engine(t))
	mine := dockertest.Containers(t, dockertest.Engine(t), "run.pawl.execution=ex_7")
	if len(mine) != 1 || !strings.Contains(mine[0], "/pawl-ex_7-2-") || !strings.HasSuffix(mine[0], "running") {
		t.Errorf("containers: %v", mine)
	}
	host, _, _ := strings.Cut(self(), fmt.Sprintf("/%d/", os.Getpid()))
	soon, past := fmt.Sprint(time.Now().Add(time.Hour).Unix()), fmt.Sprint(time.Now().Add(-time.Hour).Unix())
	stays := map[string]bool{}
	for name, labels := range map[string]map[string]string{
		"dead":         {labelOwner: host + "/4194304/1", labelExpires: soon},
		"reused pid":   {labelOwner: host + fmt.Sprintf("/%d/1", os.Getppid()), labelExpires: soon},
		"elsewhere":    {labelOwner: "another-host/1/1/1", labelExpires: soon},
		"expired":      {labelOwner: "another-host/1/1/1", labelExpires: past},
		"somebody's":   {"com.example": "x"},
		"not readable": {labelOwner: "x", labelExpires: "x"},
	} {
		made, err := engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{
			Config: &container.Config{Image: testImage, Cmd: []string{"true"}, Labels: labels},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.remove(t.Context(), made.ID) })
		stays[made.ID] = name == "elsewhere" || name == "somebody's" || name == "not readable"
	}
	if _, err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, stay := range stays {
		_, err := engine.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
		for deadline := time.Now().Add(20 * time.Second); err == nil && !stay && time.Now().Before(deadline); { // a parallel sweep may remove it
			_, err = engine.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
		}
		if (err == nil) != stay {
			t.Errorf("%.12s should stay (%v): %v", id, stay, err)
		}
		_, _ = engine.ContainerRemove(t.Context(), id, client.ContainerRemoveOptions{Force: true})
	}
	started.Kill("the end")
	if result := started.Wait(); result.Verdict != runtime.Killed {
		t.Errorf("a living container was swept up: %+v", result)
	}
}

// If another program removes the container, the host is at fault and not the program.
func TestRemovedWhileItRuns(t *testing.T) {
	t.Parallel()
	r := openRuntime(t, Options{})
	defer r.Close()
	started, err := r.Start(t.Context(), runtime.Spec{Argv: []string{"sleep", "60"}, Container: &runtime.Container{Image: testImage}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.remove(t.Context(), started.(*run).id); err != nil {
		t.Fatal(err)
	}
	if result := started.Wait(); result.Verdict != runtime.InfraError || result.Reason == "" {
		t.Errorf("%+v", result)
	}
}

// Files come in the archive of an engine on another host; the same rules apply.
func TestCollectFromArchive(t *testing.T) {
	t.Parallel()
	r := openRuntime(t, Options{})
	defer r.Close()
	spec := runtime.Spec{
		Argv: []string{"sh", "-c", `mkdir -p out/deep; echo a > out/deep/a; echo b > out/b; ln -s /etc/passwd out/link; ln out/b out/twin
			mkfifo out/pipe; echo no > other; head -c 3000000 /dev/zero > out/zz`},
		Container:   &runtime.Container{Image: testImage, WorkDir: runtime.ContainerFiles},
		Collect:     []string{"out"},
		CollectInto: t.TempDir(),
		Limits:      runtime.Limits{Disk: 2 << 20},
	}
	n := newRun(r, spec)
	n.spec.Limits = n.spec.Limits.Or(runtime.DefaultLimits())
	n.where.Do(func() {}) // prevents the search for the volume
	if err := r.runs.Add(n); err != nil {
		t.Fatal(err)
	}
	if err := n.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	result := n.Wait()
	if result.Verdict != runtime.OK || len(result.Files) != 1 || result.Files[0].Path != "out/deep/a" {
		t.Errorf("%+v", result)
	}
	if text, err := os.ReadFile(result.Files[0].Host); err != nil || string(text) != "a\n" {
		t.Errorf("%q, %v", text, err)
	}
	refused := strings.Join(result.Refused, "\n")
	for _, name := range []string{"out/link", "out/twin", "out/b", "out/pipe", "out/zz"} {
		if !strings.Contains(refused, name+":") {
			t.Errorf("%s was not refused: %s", name, refused)
		}
	}
	left, _ := os.ReadDir(spec.CollectInto)
	if len(left) != 1 {
		t.Errorf("left %v", left)
	}
}

// The kernel's count decides, whatever the engine reports, and however short the program was.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	r := openRuntime(t, Options{})
	defer r.Close()
	seen := map[runtime.Verdict]int{}
	for range 20 {
		result, _ := finish(t, r, runtime.Spec{Argv: []string{"sh", "-c", "tail /dev/zero"}, Container: &runtime.Container{Image: testImage},
			Limits: runtime.Limits{Memory: 24 << 20}})
		seen[result.Verdict]++
	}
	if seen[runtime.OOM] != 20 {
		t.Errorf("%v", seen)
	}
	for _, memory := range []int64{24 << 20, 256 << 20} { // the end of a cgroup must not count as a memory kill
		result, _ := finish(t, r, runtime.Spec{Argv: []string{"sh", "-c", "exit 137"}, Container: &runtime.Container{Image: testImage},
			Limits: runtime.Limits{Memory: memory}})
		if result.Verdict != runtime.NonzeroExit || result.ExitCode != 137 {
			t.Errorf("%+v", result)
		}
	}
}

// A program that gets input while it runs can answer while it runs.
func TestConversation(t *testing.T) {
	t.Parallel()
	r := openRuntime(t, Options{})
	defer r.Close()
	stdin, feed := io.Pipe()
	answers, out := io.Pipe()
	started, err := r.Start(t.Context(), runtime.Spec{Argv: []string{"sh", "-c", "while read -r line; do echo \"got $line\"; done; echo end"},
		Stdin: stdin, Stdout: out, Container: &runtime.Container{Image: testImage}, Limits: runtime.Limits{Wall: 20 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 100)
	for _, word := range []string{"one", "two"} {
		fmt.Fprintln(feed, word)
		n, err := answers.Read(buffer)
		if got := string(buffer[:n]); err != nil || got != "got "+word+"\n" {
			t.Errorf("%q, %v", got, err)
		}
	}
	feed.Close()
	if n, _ := answers.Read(buffer); string(buffer[:n]) != "end\n" {
		t.Errorf("%q", buffer[:n])
	}
	if result := started.Wait(); result.Verdict != runtime.OK {
		t.Errorf("%+v", result)
	}
}
