package wire

import "time"

// Greeting begins a worker's stream: it says how much of the output the worker has.
type Greeting struct {
	Version  int
	Out, Err int64
	// Look asks for one State and nothing else; the stream of the current worker continues.
	Look bool
}

func (g *Greeting) fields(c *coder) {
	if !c.version(&g.Version) {
		return
	}
	number(c, &g.Out)
	number(c, &g.Err)
	c.flag(&g.Look)
}

// Command is the program and its limits. Env is added to the image's own environment.
type Command struct {
	Argv    []string
	Env     []string
	Dir     string // empty: the image's, or the directory of the files
	Files   bool   // there are input files
	Stdin   bool   // there is an input; without it, stdin is empty
	Network bool   // the program may open internet sockets
	// CountUser is true when no other pod runs as the program's user, so that the kernel can count its processes by user.
	CountUser bool

	Wall, CPU    time.Duration // the program is ended at these
	Pids         int
	Output, Disk int64
	Stack        int64 // 0: the node's own limit
}

func (m *Command) fields(c *coder) {
	c.texts(&m.Argv)
	c.texts(&m.Env)
	text(c, &m.Dir)
	c.flag(&m.Files)
	c.flag(&m.Stdin)
	c.flag(&m.Network)
	c.flag(&m.CountUser)
	number(c, &m.Wall)
	number(c, &m.CPU)
	number(c, &m.Pids)
	number(c, &m.Output)
	number(c, &m.Disk)
	number(c, &m.Stack)
}

// Launch is the order of process 1 to its child, which becomes the program. The child answers with a Failure, or executes the program.
type Launch struct {
	Command Command
	Dir     string
	Own     int // tasks of process 1, which count for the same user
}

func (l *Launch) fields(c *coder) {
	l.Command.fields(c)
	text(c, &l.Dir)
	number(c, &l.Own)
}

// FileHeader announces a file of Size bytes.
type FileHeader struct {
	Path string
	Mode uint32
	Size int64
}

func (h *FileHeader) fields(c *coder) {
	text(c, &h.Path)
	number(c, &h.Mode)
	number(c, &h.Size)
}

// Wanted asks for files that the program left.
type Wanted struct {
	Patterns []string
	Most     int64 // bytes
}

func (w *Wanted) fields(c *coder) {
	c.texts(&w.Patterns)
	number(c, &w.Most)
}

// Refusals ends the answer to a Wanted.
type Refusals struct {
	Refused []string
	Failure string // the host's error; empty: none
}

func (r *Refusals) fields(c *coder) {
	c.texts(&r.Refused)
	text(c, &r.Failure)
}

// Failure is why the program was not started.
type Failure struct {
	Spec bool // the Spec is at fault
	Text string
}

func (f *Failure) fields(c *coder) {
	c.flag(&f.Spec)
	text(c, &f.Text)
}

type Phase string

const (
	Waiting Phase = "waiting" // process 1 has not started
	Ready   Phase = "ready"   // for an order
	Ordered Phase = "ordered"
	Running Phase = "running"
	Refused Phase = "refused" // Failure says why
	Exited  Phase = "exited"  // Report is set, and all output has been sent
	Lost    Phase = "lost"    // process 1 has died without a report
	Broken  Phase = "broken"  // a stream broke off within an order, or the keeper was restarted: the run cannot start
)

// State is the keeper's view of the run. It is sent when it changes, after the output that precedes the change.
type State struct {
	Version int
	Epoch   string // of the keeper's process
	Phase   Phase
	Stdin   int64 // bytes of the input that the program's pipe has taken
	Out     int64 // bytes kept in all
	Err     int64
	Failure *Failure
	Report  *Report
}

func (s *State) fields(c *coder) {
	if !c.version(&s.Version) {
		return
	}
	text(c, &s.Epoch)
	text(c, &s.Phase)
	number(c, &s.Stdin)
	number(c, &s.Out)
	number(c, &s.Err)
	optional(c, &s.Failure, (*Failure).fields)
	optional(c, &s.Report, (*Report).fields)
}

// Ending is the reason for which process 1 ended the program.
type Ending string

// The endings; empty: the program ended by itself.
const (
	ByWall Ending = "wall"
	ByCPU  Ending = "cpu"
	ByDisk Ending = "disk"
	ByPids Ending = "pids"
	ByKill Ending = "kill"
)

// Report is how the program ended. When it is sent, no process of the program is left.
type Report struct {
	Ending      Ending
	Code        int
	Signal      string // "SIGSEGV"; empty: it exited
	Wall, CPU   time.Duration
	Peak        int64
	OOMKills    int64
	HostFull    bool // the kernel killed for lack of memory before the container's own limit was reached
	Enforcement string
}

func (r *Report) fields(c *coder) {
	text(c, &r.Ending)
	number(c, &r.Code)
	text(c, &r.Signal)
	number(c, &r.Wall)
	number(c, &r.CPU)
	number(c, &r.Peak)
	number(c, &r.OOMKills)
	c.flag(&r.HostFull)
	text(c, &r.Enforcement)
}
