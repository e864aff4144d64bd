package sandbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
)

//go:embed template.py
var templateSource string

const (
	// mostTemplates bounds the templates. With numpy and pandas imported each takes 70 MB.
	mostTemplates = 8
	// mostForks bounds the forks of a template, which share one hash seed and one memory layout; after oldestTemplate a template is
	// replaced, because its modules may have changed on the host.
	mostForks      = 1000
	oldestTemplate = 10 * time.Minute
	// templateIdle is how long a template must be unused before another may replace it, and templateRest the pause after a failed one.
	templateIdle, templateRest = time.Minute, time.Minute
	// templateWithin bounds a template's imports, and forkWithin one fork, which takes some milliseconds on a busy machine.
	templateWithin, forkWithin = time.Minute, 5 * time.Second
	// mostStart is the size of arguments and environment that a pipe always accepts.
	mostStart = 4096
	// templateDir is the directory of the source in a template's root.
	templateDir = "/.pawl"
)

// templates are the interpreters that programs are forked from. The first run that could use one starts it and is itself executed. It is
// safe for concurrent use.
type templates struct {
	runtime *Runtime
	filter  []byte
	failed  func(error)
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	byKey map[string]*template
}

// template is an interpreter that has started and waits for forks.
type template struct {
	box   *box
	ready bool
	forks int
	born  time.Time
	used  time.Time
	view  []unix.Stat_t // as for a sandbox in the pool
	err   error         // the reason why it failed; used is then the time of the failure
}

func newTemplates(r *Runtime, filter []byte, failed func(error)) *templates {
	t := &templates{runtime: r, filter: filter, failed: failed, byKey: map[string]*template{}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// templateKey is all that an interpreter and the kernel read at its start.
func (r *Runtime) templateKey(spec *runtime.Spec) string {
	of := spec.Template
	parts := slices.Concat(of.Argv, []string{""}, of.Env, []string{""}, of.Imports, []string{""})
	for _, m := range spec.Mounts {
		parts = append(parts, m.Path)
	}
	parts = append(parts, strconv.FormatInt(stackOf(spec.Limits, r.cgroups), 10), strconv.FormatBool(spec.Stdin != nil))
	return strings.Join(parts, "\x00")
}

// forkable reports whether a fork of the template starts in the same state as an executed program.
func forkable(spec *runtime.Spec) bool {
	of := spec.Template
	if of == nil || len(spec.Argv) < len(of.Argv) || !slices.Equal(spec.Argv[:len(of.Argv)], of.Argv) || spec.Limits.Pids < 2 {
		return false
	}
	size := 0
	for _, s := range slices.Concat(spec.Argv[len(of.Argv):], spec.Env) {
		size += len(s) + 1
	}
	return size <= mostStart
}

// lend gives a delivery access to a template if one matches, and else starts one.
func (t *templates) lend(d *delivery) {
	if !t.runtime.privileged || !forkable(&d.spec) || len(d.mounts) > pid1.MostDescriptors/2 || len(d.steps) > 0 {
		return
	}
	key := t.runtime.templateKey(&d.spec)
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	found := t.byKey[key]
	switch {
	case found == nil:
	case found.err != nil && now.Sub(found.used) > templateRest:
		found = nil
	case found.ready && (found.forks == mostForks || now.Sub(found.born) > oldestTemplate || !slices.Equal(found.view, hostView())):
		found.retire()
		delete(t.byKey, key)
		found = nil
	}
	if found == nil {
		if t.ctx.Err() == nil && t.room(now) {
			found = &template{born: now, used: now, view: hostView()}
			t.byKey[key] = found
			spec := runtime.Spec{Name: "template", Template: d.spec.Template, Mounts: slices.Clone(d.spec.Mounts), Limits: d.spec.Limits}
			t.running.Go(func() { t.tend(key, found, spec, d.stdin != nil) })
		}
		return
	}
	if !found.ready || found.err != nil {
		return
	}
	found.used = now
	found.forks++
	found.give(d)
}

// room reports whether another template may be started, and ends one that was not used for a while if that is necessary.
func (t *templates) room(now time.Time) bool {
	if len(t.byKey) < mostTemplates {
		return true
	}
	for key, other := range t.byKey {
		if now.Sub(other.used) > templateIdle && (other.ready || other.err != nil) {
			other.retire()
			delete(t.byKey, key)
			return true
		}
	}
	return false
}

// retire lets a template end once it has carried out its pending requests.
func (t *template) retire() {
	if t.box == nil {
		return
	}
	if conn, err := t.box.control.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
	}
}

// give gives a delivery access to the template.
func (t *template) give(d *delivery) {
	conn, err := t.box.control.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		if copied, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3); err == nil {
			d.template, d.asked, d.order.Shared = t, copied, int64(len(d.spec.Template.Argv))
		}
	})
}

// guard kills a template that keeps a run waiting for too long. The run is then executed.
func (t *template) guard() (release func()) {
	if t == nil {
		return func() {}
	}
	timer := time.AfterFunc(forkWithin, t.box.kill)
	return func() { timer.Stop() }
}

// tend starts a template, tries it out, and waits for its end.
func (t *templates) tend(key string, made *template, spec runtime.Spec, input bool) {
	b, err := t.start(spec, input)
	if err == nil {
		t.mu.Lock()
		made.box = b
		t.mu.Unlock()
		defer context.AfterFunc(t.ctx, b.kill)()
		if err = t.tryOut(made, spec, input); err == nil {
			t.mu.Lock()
			made.ready = true
			t.mu.Unlock()
			_, _ = io.Copy(io.Discard, b.control)
			err = errors.New("the template has died")
		}
	}
	t.mu.Lock()
	lasted := made.ready
	made.err, made.ready, made.used = err, false, time.Now()
	t.mu.Unlock()
	if !lasted && t.ctx.Err() == nil && t.failed != nil {
		t.failed(fmt.Errorf("make a template of %s: %w", strings.Join(spec.Template.Argv, " "), err))
	}
	if b != nil {
		_ = b.destroy()
	}
}

// start starts an interpreter on its own base, and waits until it has done its imports.
func (t *templates) start(spec runtime.Spec, input bool) (_ *box, err error) {
	r := t.runtime
	ctx, cancel := context.WithTimeout(t.ctx, templateWithin)
	defer cancel()
	source := fmt.Sprintf("IMPORTS = %s\nFILTER = bytes.fromhex(\"%x\")\n%s", pythonList(spec.Template.Imports), t.filter, templateSource)
	on := &base{mounts: spec.Mounts}
	defer on.close()
	if err := r.raiseBase(ctx, on, pid1.Step{Kind: pid1.MakeFile, Target: templateDir[1:] + "/sitecustomize.py", Source: source}); err != nil {
		return nil, err
	}
	b := r.newBox()
	defer func() {
		if err != nil {
			_ = b.destroy()
		}
	}()
	inside, err := b.openChannels()
	channels := inside
	defer func() { closeAll(channels) }()
	if err != nil {
		return nil, err
	}
	if input { // what the interpreter finds out about its input must also hold for programs
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer write.Close()
		channels[0].Close()
		channels[0] = read
	}
	order := pid1.Order{Argv: spec.Template.Argv, Env: templateEnv(spec.Template.Env)}
	for _, limit := range rlimits(spec.Limits, r.cgroups) {
		if limit.Resource == unix.RLIMIT_STACK || limit.Resource == unix.RLIMIT_CORE {
			order.Rlimits = append(order.Rlimits, limit)
		}
	}
	if _, err := b.control.Write(order.Encode()); err != nil {
		return nil, err
	}
	request := pid1.Birth{Template: true, OntoBase: true, Network: true}
	if err := b.bear(request, append(slices.Clip(inside), on.root, on.network.namespace)); err != nil {
		return nil, err
	}
	closeAll(channels) // else its end would not be seen
	release := b.bound(ctx)
	said, err := b.await(ctx, pid1.Ready)
	release()
	switch {
	case said.Kind == pid1.Failed:
		err = fmt.Errorf("%s: %s", said.Stage, said.Detail)
	case errors.Is(err, errSilent):
		err = errors.New("the interpreter has ended; it needs the module ctypes, and to import sitecustomize (no -I, -E or -S)")
	case err == nil:
		err = sharesNothing(b.pid)
	}
	return b, err
}

// sharesNothing returns an error if a process has memory through which its forks could communicate.
func sharesNothing(pid int) error {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return fmt.Errorf("look for shared memory: %w", err)
	}
	for line := range strings.Lines(string(maps)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1][3] == 's' && fields[1][1] == 'w' {
			return fmt.Errorf("an import shares memory with the forks: %s", strings.TrimSpace(line))
		}
	}
	return nil
}

// tryOut has a template fork a program that ends where it would start.
func (t *templates) tryOut(made *template, spec runtime.Spec, input bool) error {
	r := t.runtime
	trial := runtime.Spec{Name: "trial", Argv: spec.Template.Argv, Env: spec.Template.Env, Template: spec.Template, Limits: runtime.DefaultLimits()}
	trial.Limits.Stack = stackOf(spec.Limits, r.cgroups)
	d, err := r.pack(trial, nil)
	defer d.close()
	if err != nil {
		return err
	}
	d.order.Trial = true
	made.give(d)
	n, err := r.assign(t.ctx, r.newBox(), d)
	if err != nil {
		return err
	}
	if result := n.Wait(); !result.Warm {
		return fmt.Errorf("the trial of a fork: %s", n.cold)
	}
	return nil
}

// templateEnv adds the directory of the source to Python's module path.
func templateEnv(env []string) []string {
	env = slices.Clone(env)
	for i, kv := range env {
		if rest, ok := strings.CutPrefix(kv, "PYTHONPATH="); ok {
			env[i] = "PYTHONPATH=" + templateDir + ":" + rest
			return env
		}
	}
	return append(env, "PYTHONPATH="+templateDir)
}

func pythonList(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func (t *templates) close() {
	t.cancel()
	t.running.Wait()
}
