// Package runtime is the port to where code runs: start a program, watch it, stop it for certain, collect what it
// left. Backends differ in how much they isolate; a caller asks for that by [Runtime.Isolation], never by name.
package runtime

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Verdict is how a run ended, decided by what the host recorded and counted and never guessed from an exit code.
type Verdict string

// The verdicts, in the order in which they are decided: what the host could not do, what the host decided, what the
// kernel counted, what the program did.
const (
	InfraError  Verdict = "infra_error"  // the host failed, not the program
	Killed      Verdict = "killed"       // ended by Kill: cancel, drain, lost lease
	Timeout     Verdict = "timeout"      // wall-clock limit
	CPUTimeout  Verdict = "cpu_timeout"  // CPU-time limit
	OutputLimit Verdict = "output_limit" // wrote more than Limits.Output
	OOM         Verdict = "oom"          // the kernel killed it for memory
	Signal      Verdict = "signal"       // died of a signal of its own making
	NonzeroExit Verdict = "nonzero_exit"
	OK          Verdict = "ok"
)

// Cause is by what a host lost a run, for Verdict InfraError.
type Cause string

// The causes. None of them is the program's fault.
const (
	NodeLost     Cause = "node_lost"     // the machine that it ran on does not answer any more
	NodeShutdown Cause = "node_shutdown" // that machine was shut down
	Preempted    Cause = "preempted"     // it made room for something more important
	Evicted      Cause = "evicted"       // the machine was drained, or short of memory or disk
	Deleted      Cause = "deleted"       // another than Pawl deleted what it ran in
)

// Limits bounds one run. Zero means the backend's default; no field but CPUs means "unlimited".
type Limits struct {
	Wall   time.Duration // from start to exit
	CPU    time.Duration // user + system, all processes
	Memory int64         // bytes, all processes together, swap included
	Pids   int           // processes and threads at once
	CPUs   float64       // processors at once; zero here: as many as the machine has free
	Output int64         // bytes on stdout and stderr together
	Disk   int64         // bytes in the working directory and /tmp together
	Stack  int64         // bytes of the stack of each process's first thread; zero: see [Limits.StackOf]
	// Overrun is by how much of Wall and CPU a run may go beyond them before it is ended, as in 0.25. It is judged by Wall and CPU all the
	// same: the result then tells by how much it was late. Zero: it is ended at its limits.
	Overrun float64
}

// StackOf is the limit on the stack: as much as the memory and no more than most, unless it is given.
func (l Limits) StackOf(most int64) int64 {
	if l.Stack > 0 {
		return l.Stack
	}
	return min(l.Memory, most)
}

// EndWall is when a run is ended.
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

// Open opens an input, and tells its size and the mode that it is to have.
func (f *File) Open() (io.ReadCloser, int64, fs.FileMode, error) {
	mode := f.Mode.Perm()
	if f.Content != nil || f.Source == "" {
		if mode == 0 {
			mode = 0o644
		}
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
	if mode == 0 {
		mode = info.Mode().Perm()
	}
	return file, info.Size(), mode, nil
}

// Collected is a regular file found after the program ended, copied to the host without following links.
type Collected struct {
	Path string // relative to the working directory
	Size int64
	Mode fs.FileMode
	Host string // where the copy lies; it belongs to the caller
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

// Labels name what a run belongs to.
type Labels map[string]string

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
	Network string // a network that the operator offers; empty: none
	Pull    Pull
}

// Template is the start of an interpreter that programs may be forked from: Python, with arguments and an environment that no user has a
// say in, and modules to import. Backends without templates start the program as if there were none.
type Template struct {
	Argv    []string // Spec.Argv begins with these
	Env     []string // those of Spec.Env that an interpreter or a library may read as it starts
	Imports []string
}

// Spec is one program to run. A Spec is used for one run only.
type Spec struct {
	Name   string   // for people and for names of cgroups: execution and attempt
	Labels Labels   // what a backend that has labels puts on what it makes
	Argv   []string // Argv[0] is looked up in Env's PATH inside the runtime
	Env    []string // the complete environment, "K=V"; nothing of the host's leaks in
	Mounts []Mount  // toolchains outside the standard system directories
	// Template lets the program be forked from one; nil: it is executed.
	Template *Template
	// Container is nil for a program of the host.
	Container *Container
	Files     []File
	// Stdin is read until EOF or until the program ends, whichever is first; nil is an empty input.
	Stdin io.Reader
	// Stdout and Stderr receive bytes as they appear, each from one goroutine; nil discards (still counted). A write
	// error stops the writing and not the program; a write that blocks holds the program at its next write, and Wait. One
	// with a method End() has it called when the stream has ended: every process of the program has closed it.
	Stdout, Stderr io.Writer
	Limits         Limits
	// Note is told what the run waits for outside of the program, such as a node or an image, in a sentence for people, when that
	// changes; empty: for nothing any more. One goroutine at a time calls it. nil: it is not told.
	Note func(waiting string) `json:"-"`
	// Lasting allows the run to go on without the process that started it, where the backend is a Keeper. It must have no
	// Stdin, and Labels that tell it from every other.
	Lasting bool
	// Collect names what to copy out after the end: paths or path.Match patterns beneath the working directory;
	// a directory stands for all in it.
	Collect []string
	// CollectInto is a host directory that the caller owns; required when Collect is not empty.
	CollectInto string
}

// Result is the end of a run. When it is returned nothing of the run is left: no process, cgroup or mount.
type Result struct {
	Verdict  Verdict
	ExitCode int    // meaningful for OK and NonzeroExit
	Signal   string // "SIGSEGV", for Verdict Signal
	Reason   string // a sentence for people: the limit and its value, the kill's reason, the infrastructure error
	Cause    Cause  // with InfraError, where the backend knows
	ChildOOM bool   // a child was OOM-killed though the program itself ended by itself
	// LimitsHit names the limits that were met, in the order of Limits: "wall", "cpu", "memory", "pids", "output", "disk".
	// A program can meet a limit on memory or processes and still end by itself.
	LimitsHit []string
	// Wall is the time from the moment before the program is executed to its end.
	Wall time.Duration
	CPU  time.Duration
	// Starved is how long the run had work to do and none of its threads was given a processor; 0 where the kernel does not
	// count that by run.
	Starved time.Duration
	// PinnedCPUs are the processors that the run was restricted to, by their numbers on the host; nil: all that Pawl may use. SharedCPUs
	// says that another run of the same backend was restricted to one of them at the same time.
	PinnedCPUs []int
	SharedCPUs bool
	// PeakMemory in bytes, of all processes together where cgroups count it, else the largest process.
	PeakMemory int64
	// PageCache is the part of PeakMemory that the kernel has kept of files which the run was the first to read: the next run
	// finds them there and pays nothing. It is measured at the end; 0 where no cgroup of Pawl's own counts it.
	PageCache   int64
	StdoutBytes int64
	StderrBytes int64
	Stack       int64 // the limit on the stack of a process's first thread; 0: not known
	Files       []Collected
	// Refused lists what matched Collect and was not taken, with the reason (a link, a device, too large).
	Refused []string
	// Enforcement says what held the limits beside the clock and the output cap: "cgroup-v1", "cgroup-v2", "hybrid" (v1
	// for limits, v2 for the kill), "rlimit+watchdog", "rlimit", "none".
	Enforcement string
	// Warm says that the program was forked from a template (Spec.Template).
	Warm bool
}

// Run is a program that has been started.
type Run interface {
	// Kill records the reason (the first reason wins) and begins to kill every process of the run.
	// It does not wait; Wait does. Safe to call at any time, from any goroutine, any number of times.
	Kill(reason string)
	// Terminate is Kill with a warning: the program's processes get SIGTERM at once, and what is left of the run when the grace is over
	// is killed. (Docker signals the first process only.) The run ends as soon as its first process has, as always; limits hold
	// meanwhile, and Kill ends it at once. A grace of 0 is Kill.
	Terminate(reason string, grace time.Duration)
	// Wait blocks until nothing of the run is left and returns the same Result to every caller.
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
// Container, and one without in an image of their own choice, if they have one.
type Imaged interface{ Imaged() }

// Keeper is implemented by backends whose runs can outlive the process that started them, to be taken up again by the next
// process that works in its place.
type Keeper interface {
	// Outlived returns the labels of the lasting runs that an earlier process has left: they go on, or have ended in a way
	// that is certainly the program's own. Nothing of theirs is removed before Settle.
	Outlived(ctx context.Context) ([]Labels, error)
	// Settle says which of them will be taken up. The others are removed, sooner or later.
	Settle(kept []Labels)
	// Resume is Start for a run that is there already: the one with the Labels of spec, which otherwise is as it was when
	// the run was started. All that the program has written is written again from its beginning; limits count from its
	// start.
	Resume(ctx context.Context, spec Spec) (Run, error)
}

// Serial is implemented by backends that set up once what several runs can share.
type Serial interface {
	Series() Series
}

// Series starts runs of one caller that share what no program can change, or what none of them has used yet. They see no more of one
// another than runs that share nothing. It is safe for concurrent use.
type Series interface {
	// Start is Runtime.Start.
	Start(ctx context.Context, spec Spec) (Run, error)
	// Close releases what is shared. Runs go on, and later ones share nothing.
	Close()
}

// Pinner is implemented by backends that can restrict each run to processors of its own.
type Pinner interface {
	// Pins reports whether this one does: a run has as many processors as Limits.CPUs says, or else one.
	Pins() bool
}

// Runtime starts programs. It is safe for concurrent use.
type Runtime interface {
	Name() string
	Isolation() Isolation
	// Diagnose says what works on this host, what is missing and how to get it. A Finding that is not OK and whose
	// absence makes Start refuse comes first.
	Diagnose(ctx context.Context) []Finding
	// Start begins a run. ctx bounds the start only, not the run. An error means that nothing was started and wraps
	// ErrUnavailable when the host cannot isolate, or ErrSpec when the Spec is at fault.
	Start(ctx context.Context, spec Spec) (Run, error)
	// Close ends every run and releases what the backend holds on the host.
	Close() error
}
