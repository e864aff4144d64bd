package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/programtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

// part is a server or a worker that the test keeps running: when its process ends, it starts another one.
type part struct {
	t    *testing.T
	name string
	args []string
	set  []string // environment of all its processes
	log  *os.File

	mu      sync.Mutex
	cmd     *exec.Cmd
	env     []string      // of the next process
	pause   time.Duration // before the next process
	stopped bool          // no other process is started
	lives   int
	current *process
	over    chan struct{}
}

// process is one process of a part.
type process struct {
	over chan struct{}
	err  error // how it ended, once it is over
}

// process returns the current process.
func (p *part) process() *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// run starts a part and keeps it running until the test ends.
func run(t *testing.T, dir, name string, args ...string) *part {
	t.Helper()
	return runSet(t, dir, name, nil, args...)
}

// hasty makes a server wait for its database a fifth as long as in production (internal/cli/instance/limits_failpoints.go), so that
// everything works again worksAgain after its connections have fallen silent; a busy machine gets some more time.
var hasty = []string{"PAWL_DATABASE_HASTE=5"}

const worksAgain = 45*time.Second/5 + 6*time.Second

// runSet is run with an environment.
func runSet(t *testing.T, dir, name string, set []string, args ...string) *part {
	t.Helper()
	if _, err := programtest.Pawl("failpoints"); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	p := &part{t: t, name: name, args: args, set: set, log: log, current: &process{over: make(chan struct{})}, over: make(chan struct{})}
	go p.keep()
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		_ = log.Close()
	})
	return p
}

const restartAfter = 100 * time.Millisecond

func (p *part) keep() {
	defer close(p.over)
	path, _ := programtest.Pawl("failpoints")
	for {
		p.mu.Lock()
		if p.stopped {
			p.mu.Unlock()
			return
		}
		cmd := exec.Command(path, p.args...)
		cmd.Env = slices.Concat(os.Environ(), p.set, p.env)
		cmd.Stdout, cmd.Stderr = p.log, p.log
		p.env = nil
		p.lives++
		err := programtest.Start(cmd)
		p.cmd = cmd
		now := p.current
		p.mu.Unlock()
		if err != nil {
			p.t.Errorf("start %s: %v", p.name, err)
			return
		}
		now.err = cmd.Wait()
		fmt.Fprintf(p.log, "--- %s: life %d ended: %v\n", p.name, p.lives, now.err)
		close(now.over)
		p.mu.Lock()
		p.current = &process{over: make(chan struct{})}
		pause := max(p.pause, restartAfter)
		p.pause = 0
		p.mu.Unlock()
		<-time.After(pause)
	}
}

// signal sends the current process a signal, and reports whether there is one.
func (p *part) signal(s syscall.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil && p.cmd.Process != nil && p.cmd.Process.Signal(s) == nil
}

// kill ends the process as a power cut would. The next process starts after the pause, with the environment.
func (p *part) kill(pause time.Duration, env ...string) {
	p.mu.Lock()
	p.pause, p.env = pause, slices.Clone(env)
	p.mu.Unlock()
	p.signal(syscall.SIGKILL)
}

// end ends the part for good.
func (p *part) end(s syscall.Signal) {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.signal(syscall.SIGCONT)
	p.signal(s)
	select {
	case <-p.over:
	case <-time.After(time.Minute):
		p.t.Errorf("%s did not end within a minute of %s", p.name, s)
		p.signal(syscall.SIGKILL)
		<-p.over
	}
}
