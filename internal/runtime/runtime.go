// Package runtime is the port for running programs: start a program, watch it, stop it for certain, collect the files that it left.
// Backends differ in how much they isolate; a caller checks [Runtime.Isolation], never the name.
package runtime

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Verdict is how a run ended, decided by what the host recorded and counted, and never guessed from an exit code.
type Verdict string

// The verdicts, in the order in which they are decided: the host's failures, the host's decisions, the kernel's
// counters, the program's own end.
const (
	InfraError  Verdict = "infra_error"  // the host failed, not the program
	Killed      Verdict = "killed"       // ended by Kill: cancel, drain, lost lease
	Timeout     Verdict = "timeout"      // wall-clock limit
	CPUTimeout  Verdict = "cpu_timeout"  // CPU-time limit
	OutputLimit Verdict = "output_limit" // wrote more than Limits.Output
	OOM         Verdict = "oom"          // the kernel killed it for memory
	Signal      Verdict = "signal"       // died of a signal that Pawl did not send
	NonzeroExit Verdict = "nonzero_exit"
	OK          Verdict = "ok"
)

// Cause is the reason for which a host lost a run, for Verdict InfraError.
type Cause string

// The causes. None of them is the program's fault.
const (
	NodeLost     Cause = "node_lost"     // the machine does not answer any more
	NodeShutdown Cause = "node_shutdown" // the machine was shut down
	Preempted    Cause = "preempted"     // a run of higher priority took its place
	Evicted      Cause = "evicted"       // the machine was drained, or short of memory or disk
	Deleted      Cause = "deleted"       // a user or program other than Pawl deleted its pod or container
)

// Limits bounds one run. Zero means the backend's default; no field but CPUs means "unlimited".
type Limits struct {
	Wall   time.Duration // from start to exit
	CPU    time.Duration // user + system, all processes
	Memory int64         // bytes, all processes together, swap included
	Pids   int           // processes and threads at once
	CPUs   float64       // processors at once; zero here: all that are free
	Output int64         // bytes on stdout and stderr together
	Disk   int64         // bytes in the working directory and /tmp together
	Stack  int64         // bytes of the stack of each process's first thread; zero: see [Limits.StackOf]
	// Overrun is the fraction, such as 0.25, by which a run may exceed Wall and CPU before it is ended. The verdict still depends on Wall
	// and CPU: the result then shows by how much the run was late. Zero: the run is ended at its limits.
	Overrun float64
}

// StackOf is the limit on the stack: Stack if it is set, else the memory limit, but at most most.
func (l Limits) StackOf(most int64) int64 {
	if l.Stack > 0 {
		return l.Stack
	}
	return min(l.Memory, most)
}

// EndWall is the wall time at which a run is ended.
func (l Limits) EndWall() time.Duration { return beyond(l.Wall, l.Overrun) }

// EndCPU is the processor time at which a run is ended.
func (l Limits) EndCPU() time.Duration { return beyond(l.CPU, l.Overrun) }

func beyond(d time.Duration, part float64) time.Duration { return d + time.Duration(part*float64(d)) }

// File is an input placed in the working directory before the program starts.
type File struct {
	Path    string // relative, cleaned, beneath the working directory
	Mode    fs.FileMode
	Content []byte
	Source  string // a host file to copy from, used when Content is nil
}

func (f *File) Open() (io.ReadCloser, int64, fs.FileMode, error) {
	mode := f.Mode.Perm()
	if f.Content != nil || f.Source == "" {
		mode = cmp.Or(mode, 0o644)
		return io.NopCloser(strings.NewReader(string(f.Content))), int64(len(f.Content)), mode, nil
	}
	file, err := os.Open(f.Source)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("%w: input file %q: %w", ErrSpec, f.Path, err)
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, 0, 0, fmt.Errorf("%w: input file %q: %s is not a regular file", ErrSpec, f.Path, f.Source)
	}
	mode = cmp.Or(mode, info.Mode().Perm())
	return file, info.Size(), mode, nil
}

// Collected is a regular file found after the program ended, copied to the host without following links.
type Collected struct {
	Path string // relative to the working directory
	Size int64
	Mode fs.FileMode
	Host string // path of the copy, which belongs to the caller
}

// Mount binds a host directory or file read-only, nosuid and nodev at the same path (a language's toolchain).
type Mount struct {
	Path string
}

// Pull says when an image is fetched from its registry.
type Pull string

// The pull policies. The zero value is PullMissing.
const (
	PullMissing Pull = "missing" // when the host does not have it
	PullAlways  Pull = "always"  // before every run
	PullNever   Pull = "never"
)

// Labels name the entities that a run belongs to.
type Labels map[string]string

// In reports whether the labels of a container or pod include these, with the prefix before their names.
func (l Labels) In(have map[string]string, prefix string) bool {
	for name, value := range l {
		if have[prefix+name] != value {
			return false
		}
	}
	return true
}

// ContainerFiles is the writable directory of a container that Files are put in and Collect takes from.
const ContainerFiles = "/work/task"

// Container asks for a run from an image instead of the host's own programs. Backends without images refuse it.
type Container struct {
	Image string
	// Entrypoint replaces the image's own when it is not nil. With a Container, an empty Argv means the image's command.
	Entrypoint []string
	User       string // "uid", "uid:gid" or names of the image; empty: the image's, unless that is root
	// WorkDir is where the program starts, absolute; empty: ContainerFiles when there are Files or the image names none,
	// else the image's.
	WorkDir string
	Network string // one of the networks that the operator offers; empty: none
	Pull    Pull
}

// Template is the initial state of an interpreter from which programs may be forked: Python, with arguments and an environment that no
// user controls, and modules to import. Backends without templates ignore it.
type Template struct {
	Argv    []string // Spec.Argv begins with these
	Env     []string // the part of Spec.Env that an interpreter or a library may read as it starts
	Imports []string
}

// Spec is one program to run. A Spec is used for one run only.
type Spec struct {
	Name   string   // for people and for names of cgroups: execution and attempt
	Labels Labels   // put on containers and pods by backends that have labels
	Argv   []string // Argv[0] is looked up in Env's PATH inside the runtime
	Env    []string // the complete environment, "K=V"; nothing of the host's is added
	Mounts []Mount  // toolchains outside the standard system directories
	// Template allows the program to be forked from a template; nil: it is executed.
	Template *Template
	// Container is nil for a program of the host.
	Container *Container
	Files     []File
	// Stdin is read until EOF or until the program ends, whichever is first; nil is an empty input.
	Stdin io.Reader
	// Stdout and Stderr receive bytes as they appear, each from one goroutine; nil discards (still counted). A write
	// error stops the writing but not the program; a write that blocks holds up the program at its next write, and Wait.
	// If a writer has a method End(), it is called when the stream has ended: every process of the program has closed it.
	Stdout, Stderr io.Writer
	Limits         Limits
	// Note is called with what the run waits for outside of the program, such as a node or an image, in a sentence for people,
	// whenever that changes; empty: it no longer waits. It is called by one goroutine at a time. nil: no calls.
	Note func(waiting string) `json:"-"`
	// Lasting allows the run to continue without the process that started it, where the backend is a Keeper. It requires
	// Labels that no other run has, and no Stdin.
	Lasting bool
	// Collect names the files to copy after the end: paths or path.Match patterns beneath the working
	// directory; a directory includes all in it.
	Collect []string
	// CollectInto is a host directory that the caller owns, and the runtime makes for the first file; required when Collect is not empty.
	CollectInto string
}

// Result is the end of a run. When it is returned no process, cgroup or mount of the run is left.
type Result struct {
	Verdict  Verdict
	ExitCode int    // meaningful for OK and NonzeroExit
	Signal   string // "SIGSEGV", for Verdict Signal
	Reason   string // a sentence for people: the limit and its value, the kill's reason, the infrastructure error
	Cause    Cause  // with InfraError, where the backend knows
	ChildOOM bool   // a child was OOM-killed, but the program itself was not
	// LimitsHit names the limits that were met, in the order of Limits: "wall", "cpu", "memory", "pids", "output", "disk".
	// A program can meet a limit on memory or processes and still end by itself.
	LimitsHit []string
	// Wall is the time from just before the program is executed to its end.
	Wall time.Duration
	CPU  time.Duration
	// Starved is how long the run had work to do and no processor; 0 where the kernel does not count that per run.
	Starved time.Duration
	// PinnedCPUs are the host's numbers of the processors that the run was restricted to; nil: all that Pawl may use. SharedCPUs is true
	// when another run of the same backend was restricted to one of them at the same time.
	PinnedCPUs []int
	SharedCPUs bool
	// PeakMemory is in bytes: of all processes together where cgroups count it, else of the largest process.
	PeakMemory int64
	// PageCache is the part of PeakMemory for files that this run was the first to read and that the kernel still caches: the
	// next run finds them cached and is not charged. It is measured at the end; 0 where no cgroup of Pawl counts it.
	PageCache   int64
	StdoutBytes int64
	StderrBytes int64
	Stack       int64 // the limit on the stack of a process's first thread; 0: not known
	Files       []Collected
	// Refused lists the files that matched Collect and were not collected, with the reason (a link, a device, too large).
	Refused []string
	// Enforcement says what enforced the limits other than the clock and the output limit: "cgroup-v1", "cgroup-v2",
	// "hybrid" (v1 for limits, v2 for the kill), "rlimit+watchdog", "rlimit", "none".
	Enforcement string
	// Warm is true when the program was forked from a template (Spec.Template).
	Warm bool
}

// Run is a program that has been started.
type Run interface {
	// Kill records the reason (the first reason wins) and begins to kill every process of the run. It does not wait; Wait does. It is safe
	// to call at any time, from any goroutine, any number of times.
	Kill(reason string)
	// Terminate is Kill with a warning: the program's processes get SIGTERM at once, and those that remain after the grace period are
	// killed. (Docker signals the first process only.) The run ends, as always, as soon as its first process has; limits apply
	// meanwhile, and Kill ends it at once. A grace of 0 is Kill.
	Terminate(reason string, grace time.Duration)
	// Wait blocks until every process of the run is gone and returns the same Result to every caller.
	Wait() Result
}

// Finding is one line of a diagnosis.
type Finding struct {
	What string // "user namespaces"
	OK   bool
	Say  string // what was found; when not OK, what is missing
	Fix  string // what to do about it; empty when OK
}

// Isolation says how far a backend separates a program from its host.
type Isolation int

const (
	// None: the program can do what the user who runs Pawl can do. Only for trusted work.
	None Isolation = iota
	// Contained: fit for untrusted code.
	Contained
)

// Imaged is implemented by backends whose programs come from an image and not from the host: they start a Spec with a
// Container, and, if they have a default image, one without.
type Imaged interface{ Imaged() }

// Keeper is implemented by backends whose runs can outlive the process that started them; the next process of the same
// worker takes them up.
type Keeper interface {
	// Outlived returns the labels of the lasting runs that an earlier process left: they still run, or have certainly
	// ended by themselves. None of them is removed before Settle.
	Outlived(ctx context.Context) ([]Labels, error)
	// Settle tells the backend which of them will be taken up. It removes the others, at once or later.
	Settle(kept []Labels)
	// Resume is Start for an existing run: the one with the Labels of spec, which must otherwise equal the Spec of its
	// Start. The program's output is written again from its beginning; limits count from the start of the program.
	Resume(ctx context.Context, spec Spec) (Run, error)
}

// Serial is implemented by backends that can share set-up work among several runs.
type Serial interface {
	Series() Series
}

// Series starts runs of one caller that share only what no program can change, or what no run has used yet. They see no more of one
// another than runs that share nothing. It is safe for concurrent use.
type Series interface {
	// Start is Runtime.Start.
	Start(ctx context.Context, spec Spec) (Run, error)
	// Close releases the shared resources. Runs continue, and later runs share nothing.
	Close()
}

// Pinner is implemented by backends that can restrict each run to its own processors.
type Pinner interface {
	// Pins reports whether this backend does so: a run gets as many processors as Limits.CPUs says, or else one.
	Pins() bool
}

// Runtime starts programs. It is safe for concurrent use.
type Runtime interface {
	Name() string
	Isolation() Isolation
	// Diagnose says what works on this host, what is missing and how to get it. A Finding that is not OK and that
	// makes Start fail comes first.
	Diagnose(ctx context.Context) []Finding
	// Start begins a run. ctx bounds the start only, not the run. An error means that nothing was started; it wraps
	// ErrUnavailable when the host cannot isolate, or ErrSpec when the Spec is at fault.
	Start(ctx context.Context, spec Spec) (Run, error)
	// Close ends every run and releases the backend's resources on the host.
	Close() error
}
