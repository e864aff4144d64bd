package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	moby "github.com/moby/moby/client"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/programtest"
	"github.com/pawl-run/pawl/internal/runtime/docker/dockertest"
)

// restarting is a server, and a worker in another process that is killed and restarted.
type restarting struct {
	t      *testing.T
	env    []string // for the server and commands
	url    string
	worker []string // its command line
	now    *running
}

func newRestarting(t *testing.T, lease string, env []string, worker ...string) *restarting {
	t.Helper()
	server := start(t, env, "server", "--listen", "127.0.0.1:0", "--no-worker", "--lease", lease)
	r := &restarting{t: t, env: env}
	serving := regexp.MustCompile(`serving on (http://\S+)`)
	within(t, patience, "it serves", func() bool { return serving.MatchString(server.err.String()) })
	r.url = serving.FindStringSubmatch(server.err.String())[1]
	r.worker = append([]string{"worker", "--server", r.url, "--state-dir", filepath.Join(t.TempDir(), "worker"), "--slots", "2", "--log-level", "info"}, worker...)
	r.begin()
	return r
}

func (r *restarting) begin() { r.now = start(r.t, r.env, r.worker...) }

func (r *restarting) kill() {
	r.t.Helper()
	if err := r.now.Process.Kill(); err != nil {
		r.t.Fatal(err)
	}
	_ = r.now.Wait()
}

// submit runs a file in the background.
func (r *restarting) submit(text string) *running {
	r.t.Helper()
	return start(r.t, r.env, "run", writeFile(r.t, "work.yaml", text), "--server", r.url, "-o", "json")
}

// client makes calls to the server without starting a process. These tests poll every 20 ms for as long as a lease lasts: a pawl for each
// poll would take 25 ms of processor time.
func (r *restarting) client() *client.Client {
	r.t.Helper()
	c, err := client.New(r.url)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// tasks are the executions of the only workflow's tasks.
func (r *restarting) tasks() []api.Execution {
	r.t.Helper()
	page, err := r.client().List(r.t.Context(), client.Filter{})
	if err != nil {
		r.t.Fatal(err)
	}
	return slices.DeleteFunc(page.Executions, func(x api.Execution) bool { return x.Workflow == "" })
}

// task is the only task's execution.
func (r *restarting) task() api.Execution {
	r.t.Helper()
	if all := r.tasks(); len(all) == 1 {
		return all[0]
	}
	return api.Execution{}
}

// written is the number of bytes that a stream of an execution's only attempt has so far.
func (r *restarting) written(id, stream string) (size int64) {
	r.t.Helper()
	summary, err := r.client().LogSummary(r.t.Context(), id, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, s := range summary.Streams {
		if s.Stream == stream {
			size += s.Bytes
		}
	}
	return size
}

// log is a stream of the task, of one attempt.
func (r *restarting) log(id, stream string) string {
	out, errs, code := pawl(r.t, r.env, "logs", id, "--server", r.url, "--stream", stream)
	if code != exit.OK {
		r.t.Fatalf("logs: %d %s", code, errs)
	}
	return out
}

func containersOf(t *testing.T, id string) []string {
	return dockertest.Containers(t, dockertest.Engine(t), "run.pawl.execution="+id)
}

// letGo creates the file that the only container of an execution waits for.
func letGo(t *testing.T, id string) {
	t.Helper()
	engine := dockertest.Client(t, dockertest.Engine(t))
	ofIt := make(moby.Filters).Add("label", "run.pawl.execution="+id)
	all, err := engine.ContainerList(t.Context(), moby.ContainerListOptions{All: true, Filters: ofIt})
	if err != nil || len(all.Items) != 1 {
		t.Fatalf("%d containers, %v", len(all.Items), err)
	}
	for _, m := range all.Items[0].Mounts {
		if m.Destination == "/work" {
			if err := os.WriteFile(filepath.Join(m.Source, "task", "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("it has no working directory")
}

const waits = `name: waits
tasks:
  wait:
    action: container
    with:
      image: debian:bookworm-slim
      workdir: /work/task
      command: [sh, -c, 'printf "one \377\n"; echo err >&2; while [ ! -e go ]; do sleep 0.05; done; echo two; printf end; echo 7 > $PAWL_OUTPUT; echo left > out']
      collect: [out]
      limits: {wall: 10m}
`

const waited = "one \xff\ntwo\nend"

// runs submits a waiting program and returns its task once it has written its first line.
func (r *restarting) runs() (*running, string) {
	r.t.Helper()
	command := r.submit(waits)
	id := ""
	within(r.t, 5*time.Minute, "the container writes", func() bool {
		if x := r.task(); x.Status == api.Running {
			id = x.ID
			return r.written(id, "stdout") > 0 && r.written(id, "stderr") > 0
		}
		return false
	})
	return command, id
}

// ends checks the end: all output of the program exactly once, in the given attempt, and nothing left.
func (r *restarting) ends(command *running, id string, attempt int) {
	r.t.Helper()
	if code := command.code(); code != exit.OK {
		r.t.Errorf("exit code %d\n%s%s\n%s", code, command.out.String(), command.err.String(), r.now.err.String())
	}
	x := r.task()
	var result api.CodeResult
	if x.ID != id || x.Status != api.Completed || x.Attempt != attempt {
		r.t.Errorf("%s is %s in attempt %d, want %d", x.ID, x.Status, x.Attempt, attempt)
	}
	out, errs, code := pawl(r.t, r.env, "describe", id, "--server", r.url, "-o", "json")
	if err := json.Unmarshal([]byte(out), &x); err != nil || code != exit.OK {
		r.t.Fatalf("%v %d %s%s", err, code, out, errs)
	}
	if err := json.Unmarshal(x.Output, &result); err != nil {
		r.t.Fatalf("%v: %s", err, x.Output)
	}
	if string(result.Out()) != waited || string(result.Err()) != "err\n" || string(result.Result) != "7" || len(result.Files) != 1 {
		r.t.Errorf("%s", x.Output)
	}
	if attempt == 1 {
		if got := r.log(id, "stdout"); got != waited {
			r.t.Errorf("log %q", got)
		}
		if got := r.log(id, "stderr"); got != "err\n" {
			r.t.Errorf("log %q", got)
		}
		events, _, _ := pawl(r.t, r.env, "events", id, "--server", r.url)
		if strings.Contains(events, "lost") || strings.Count(events, "running") != 1 {
			r.t.Errorf("events:\n%s", events)
		}
	}
	within(r.t, patience, "nothing is left", func() bool { return len(containersOf(r.t, id)) == 0 })
}

// A worker that is killed and restarted continues with its container without a visible effect.
func TestRestartedWorkerTakesUpItsContainers(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]bool{"it goes on": false, "it has ended meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRestarting(t, "30s", withEngine(t), "--runtime", "sandbox,docker")
			command, id := r.runs()
			first := containersOf(t, id)
			r.kill()
			if meanwhile {
				letGo(t, id)
				within(t, patience, "the container has ended", func() bool {
					c := containersOf(t, id)
					return len(c) == 1 && strings.HasSuffix(c[0], "exited")
				})
			}
			r.begin()
			within(t, patience, "it resumes", func() bool { return strings.Contains(r.now.err.String(), "kept=1") })
			if !meanwhile {
				if now := containersOf(t, id); len(now) != 1 || now[0] != first[0] {
					t.Errorf("containers: %v, before %v", now, first)
				}
				r.kill() // once more
				r.begin()
				within(t, patience, "it resumes again", func() bool { return strings.Contains(r.now.err.String(), "kept=1") })
				letGo(t, id)
			}
			r.ends(command, id, 1)
		})
	}
}

// A server on PostgreSQL is also such a worker.
func TestRestartedServerTakesUpItsContainers(t *testing.T) {
	t.Parallel()
	env := withEngine(t)
	address := "127.0.0.1:" + programtest.FreePort(t)
	r := &restarting{t: t, env: env, url: "http://" + address, worker: []string{"server", "--listen", address, "--store", database(t),
		"--state-dir", filepath.Join(t.TempDir(), "server"), "--runtime", "sandbox,docker", "--log-level", "info"}}
	r.begin()
	serves := func() bool { return strings.Contains(r.now.err.String(), "serving on") }
	within(t, patience, "it serves", serves)
	command, id := r.runs()
	first := containersOf(t, id)
	r.kill()
	r.begin()
	within(t, patience, "it serves again", serves)
	within(t, patience, "it resumes", func() bool { return strings.Contains(r.now.err.String(), "kept=1") })
	if now := containersOf(t, id); len(now) != 1 || now[0] != first[0] {
		t.Errorf("containers: %v, before %v", now, first)
	}
	letGo(t, id)
	r.ends(command, id, 1)
}

// database makes a PostgreSQL database of the test's own.
func database(t *testing.T) string {
	t.Helper()
	dsn := os.Getenv("PAWL_TEST_POSTGRES")
	u, err := url.Parse(dsn)
	if dsn == "" || err != nil {
		t.Skip("no PostgreSQL: scripts/services up starts one, and PAWL_TEST_POSTGRES names it")
	}
	name := strings.ToLower("pawl_" + rand.Text())
	execute := func(ctx context.Context, sql string) {
		c, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		if _, err := c.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	execute(t.Context(), "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

const talks = `name: talks
tasks:
  talk:
    action: container
    with:
      image: debian:bookworm-slim
      command: [sh, -c, 'i=0; while [ $i -lt 80 ]; do seq $((i*2000)) $((i*2000+1999)); echo $i >&2; sleep 0.15; i=$((i+1)); done']
      limits: {wall: 10m}
`

// However often a worker is killed while a program writes, its log has every byte once.
func TestLogOfARestartedWorker(t *testing.T) {
	t.Parallel()
	r := newRestarting(t, "30s", withEngine(t), "--runtime", "sandbox,docker")
	command := r.submit(talks)
	var out, errs strings.Builder
	for i := range 80 * 2000 {
		fmt.Fprintln(&out, i)
	}
	for i := range 80 {
		fmt.Fprintln(&errs, i)
	}
	var x api.Execution
	for range 3 {
		before, now := r.writtenByTask(&x), int64(0)
		within(t, 5*time.Minute, "it writes more", func() bool {
			now = r.writtenByTask(&x)
			return now > before || x.Status == api.Completed
		})
		if now > int64(out.Len()*3/4) {
			break // a worker that dies between the program's end and the receipt of its report loses the attempt
		}
		r.kill()
		r.begin()
	}
	if code := command.code(); code != exit.OK {
		t.Fatalf("exit code %d\n%s%s", code, command.out.String(), command.err.String())
	}
	if x = r.task(); x.Status != api.Completed || x.Attempt != 1 {
		t.Errorf("%s in attempt %d", x.Status, x.Attempt)
	}
	if got := r.log(x.ID, "stdout"); got != out.String() {
		t.Errorf("the log has %d bytes, or others, want %d", len(got), out.Len())
	}
	if got := r.log(x.ID, "stderr"); got != errs.String() {
		t.Errorf("the log of stderr has %d bytes, or others, want %d", len(got), errs.Len())
	}
}

// writtenByTask is the number of bytes that the task has written to standard output; 0 before it runs.
func (r *restarting) writtenByTask(x *api.Execution) int64 {
	r.t.Helper()
	if *x = r.task(); x.ID == "" {
		return 0
	}
	return r.written(x.ID, "stdout")
}

// An execution that is cancelled while no worker is there is ended by the next one, and only then is it cancelled.
func TestCancelledWhileNobodyWorks(t *testing.T) {
	t.Parallel()
	r := newRestarting(t, "5m", withEngine(t), "--runtime", "sandbox,docker")
	command, id := r.runs()
	r.kill()
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	within(t, patience, "it is told to", func() bool { return strings.Contains(command.err.String(), "cancelling") })
	if x := r.task(); x.Status != api.Running || len(containersOf(t, id)) != 1 {
		t.Errorf("%s, and nobody has ended it", x.Status)
	}
	r.begin()
	if code := command.code(); code != exit.Interrupted {
		t.Errorf("exit code %d\n%s", code, command.err.String())
	}
	if x := r.task(); x.Status != api.Cancelled || x.Attempt != 1 {
		t.Errorf("%s in attempt %d", x.Status, x.Attempt)
	}
	if all := containersOf(t, id); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
}

// When the lease has expired the attempt is over: the container is removed, and the next attempt has its own.
func TestContainerOfALostSession(t *testing.T) {
	t.Parallel()
	// A busy machine sometimes needs more than a second to start a worker and let it renew: then the next attempts would be lost as well.
	r := newRestarting(t, "10s", withEngine(t), "--runtime", "sandbox,docker")
	command, id := r.runs()
	first := containersOf(t, id)
	r.kill()
	within(t, patience, "it is lost", func() bool { return r.task().Attempt == 2 })
	r.begin()
	within(t, 5*time.Minute, "the next attempt runs in another container", func() bool {
		c := containersOf(t, id)
		return len(c) == 1 && c[0] != first[0] && strings.HasSuffix(c[0], "running")
	})
	letGo(t, id)
	r.ends(command, id, 2)
}

// Work that dies with its worker is tried again as soon as the worker is back.
func TestRestartedWorkerGivesUpTheRestAtOnce(t *testing.T) {
	t.Parallel()
	r := newRestarting(t, "5m", environment(t))
	const mark = "mark-of-the-restarted"
	command := start(t, r.env, "run", sleeperFile(t, mark, "6"), "--server", r.url, "-o", "json")
	within(t, patience, "it runs", func() bool { return aliveWith(t, mark) > 0 })
	r.kill()
	within(t, patience, "the sandbox dies with its worker", func() bool { return aliveWith(t, mark) == 0 })
	r.begin()
	within(t, patience, "the next attempt", func() bool { return r.task().Attempt == 2 })
	if code := command.code(); code != exit.OK {
		t.Errorf("exit code %d\n%s", code, command.err.String())
	}
	if x := r.task(); x.Status != api.Completed || x.Attempt != 2 {
		t.Errorf("%s in attempt %d", x.Status, x.Attempt)
	}
}

// A worker that gets two stop signals abandons everything without a report: the programs that it kills were not cancelled by a user.
func TestWorkerStoppedTwice(t *testing.T) {
	t.Parallel()
	const mark, tasks = "mark-of-the-stopped", 6
	r := newRestarting(t, "5m", environment(t), "--slots", fmt.Sprint(tasks))
	command := start(t, r.env, "run", writeFile(t, "many.yaml", `name: many
tasks:
  one:
    foreach: ${{ [1, 2, 3, 4, 5, 6] }}
    action: code
    with: {language: bash, args: [`+mark+`], source: "sleep 50; exit 0", limits: {wall: 60s}}
`), "--server", r.url)
	within(t, 60*time.Second, "all run", func() bool { return aliveWith(t, mark) >= tasks })
	for range 2 {
		if err := r.now.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		within(t, patience, "it heard that", func() bool { return strings.Contains(r.now.err.String(), "pawl: stopping") })
	}
	if code := r.now.code(); code != exit.Interrupted || aliveWith(t, mark) > 0 {
		t.Errorf("exit code %d, and %d programs run", code, aliveWith(t, mark))
	}
	for _, x := range r.tasks() {
		if x.Status != api.Running || x.Attempt != 1 {
			t.Errorf("%s is %s in attempt %d", x.ID, x.Status, x.Attempt)
		}
	}
	r.begin()
	within(t, patience, "the next attempts", func() bool {
		again := 0
		for _, x := range r.tasks() {
			if x.Attempt == 2 {
				again++
			}
		}
		return again == tasks
	})
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
}
