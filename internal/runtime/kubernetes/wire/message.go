package wire

import "time"

// Greeting begins a worker's stream: how much of the output it has.
type Greeting struct {
	Version  int
	Out, Err int64
	// Look asks for one State and nothing else: the stream that serves a worker goes on.
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

// Command is the program and what bounds it. Env is added to the image's own environment.
type Command struct {
	Argv    []string
	Env     []string
	Dir     string // empty: the image's, or the directory of the files
	Files   bool   // there are input files
	Stdin   bool   // there is an input; else it is empty
	Network bool   // the program may open sockets of the internet
	// CountUser says that no other pod runs as the program's user, so that the kernel can count its processes by that.
	CountUser bool

	Wall, CPU    time.Duration // at which it is ended
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

// Launch is what process 1 tells its child, which becomes the program. The child answers with a Failure, or by becoming it.
type Launch struct {
	Command Command
	Dir     string
	Own     int // tasks of process 1, which count as the same user's
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

// Wanted asks for files that the program has left.
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
	Failure string // of the host's; empty: none
}

func (r *Refusals) fields(c *coder) {
	c.texts(&r.Refused)
	text(c, &r.Failure)
}

// Failure is why the program was not started.
type Failure struct {
	Spec bool // what was asked for is at fault
	Text string
}

func (f *Failure) fields(c *coder) {
	c.flag(&f.Spec)
	text(c, &f.Text)
}

// Phase is how far a run is.
type Phase string

// The phases, in their order.
const (
	Waiting Phase = "waiting" // process 1 has not started
	Ready   Phase = "ready"   // for an order
	Ordered Phase = "ordered"
	Running Phase = "running"
	Refused Phase = "refused" // Failure says why
	Exited  Phase = "exited"  // Report is there, and all output has been sent
	Lost    Phase = "lost"    // process 1 has died without a report
	Broken  Phase = "broken"  // a stream broke off within an order, or the keeper was started again: nothing can come of it
)

// State is what the keeper knows. It is sent when it changes, after the output that belongs before it.
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

// Ending is why process 1 has ended the program.
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
	HostFull    bool // the kernel killed for want of memory before the container's own limit was reached
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
