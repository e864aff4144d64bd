// Package pid1 is the first process of every sandbox. It builds the file system, drops every privilege, starts the program, reaps the
// processes that the program leaves and reports how it ended.
//
// Executing a binary of Pawl's size and starting Go's runtime in it takes more processor time than all of that. So this is done once: the
// zygote is a process that has executed the binary and forks an init for each sandbox, and that init executes nothing.
//
// Importing the package is enough: when the sandbox backend starts a process, [init] takes over before any heavier package of the binary
// initializes, and never returns. For that reason the package imports only syscall, unsafe and runtime: among packages whose imports are
// ready, Go initializes in the order of import paths, so every added import lets other packages initialize first and makes the zygote and
// its forks larger.
package pid1

// Marker is the environment variable that makes a process the zygote of a sandbox backend.
const Marker = "PAWL_SANDBOX_ZYGOTE"

// The descriptors that the init inherits, in addition to 0, 1 and 2, which are the program's. The zygote has the first one, too.
const (
	ControlFD = 3 // a stream socket to the host: it carries the configuration in and messages out
	FirstFD   = 4 // the first of the descriptors that Config refers to by number
)

// The program's user and group as it sees them. On the host they are the caller's, or an unprivileged id of the
// run's own when the caller is root.
const (
	UserID  = 1000
	GroupID = 1000
)

// WorkDir is the program's working directory inside the sandbox.
const WorkDir = "/work"

// StepKind is what a Step does to the new root.
type StepKind int64

// The kinds of steps. All targets are relative to the new root and their parents are created with mode 0755.
const (
	MakeDir      StepKind = iota + 1 // create Target with mode Number
	MakeLink                         // create the symbolic link Target with the content Source
	MakeFile                         // create the file Target with the content Source
	BindReadOnly                     // bind the host's Source at Target: read-only, nosuid, nodev
	BindDevice                       // bind the character device Source, whose device number is Number, at Target
	MountProc                        // mount a fresh /proc at Target
	Mask                             // cover the file or directory Target, if it exists, with nothing
	Freeze                           // make the existing Target read-only, if it exists
	MountScratch                     // mount the tmpfs of the run and bind its parts at /work, /tmp and /dev/shm
)

// Step is one step of building the file system.
type Step struct {
	Kind           StepKind
	Source, Target string
	Number         int64
}

// File is an input of the program; its content follows the configuration on the control socket, in order.
type File struct {
	Path string // relative to WorkDir
	Mode int64
	Size int64
}

// Rlimit is a resource limit of the program, soft and hard alike.
type Rlimit struct {
	Resource int64
	Value    uint64
}

// Plan is what the host sends the zygote: the part that is the same in every sandbox.
type Plan struct {
	// Cover is a host directory over which the new root is mounted while it is built, in the init's own mount namespace.
	Cover string
	// Layout is a list of steps in their encoded form (EncodeSteps).
	Layout []byte
	Filter []byte // a seccomp program: an array of struct sock_filter

	steps []Step // Layout, in the zygote
}

// Birth is the host's request to the zygote for one init. Descriptors come with it: first those that the init inherits, then that of its
// cgroup's directory, if IntoCgroup is set.
type Birth struct {
	UID, GID int64 // the program's user and group on the host
	// SetGroups lets the init drop the supplementary groups that it inherits. Only a privileged zygote can allow it.
	SetGroups  bool
	IntoCgroup bool // the init is forked into a cgroup of version 2
	// OntoBase lets the init start in a copy of a mount namespace that contains the root already (see Config.Base). Its descriptor
	// follows those that the init inherits.
	OntoBase bool
	// Network puts the init into an existing network namespace, whose descriptor comes next.
	Network bool
	// Template makes the process the template of interpreters instead of an init. It stays in the user and pid namespaces of the zygote, and
	// needs OntoBase and Network.
	Template bool
}

// ofRun reports whether a step is done for each run. The other steps create what no program can change.
func (k StepKind) ofRun() bool {
	return k == Freeze || k == Mask || k == MountProc || k == MountScratch
}

// Born is the zygote's answer to a Birth. The zygote also sends one about itself first.
type Born struct {
	PID   int64 // of the process; 0 if none was forked
	Errno int64 // the error; 0: success
}

// Config is what the host sends the init at its birth: the part that does not depend on the program.
type Config struct {
	// Steps are carried out after those of the plan.
	Steps         []Step
	ScratchSize   int64 // bytes in /work, /tmp and /dev/shm together, unless the order says otherwise
	ScratchInodes int64
	// TaskFDs are descriptors of the `tasks` files of the cgroup v1 directories that the program's process enters.
	TaskFDs []int64
	// PressureFD is a descriptor of the `cpu.pressure` file of the run's cgroup, open for reading; 0: there is none.
	PressureFD int64
	// Announce makes the init send Ready when it has done all of this and waits for the order.
	Announce bool
	// Base makes the init build what several runs can share, with the mounts of the order: the root without /proc and scratch. It sends
	// Ready, with the descriptor of the mount namespace, and waits for its end.
	Base bool

	plan  *Plan
	birth Birth
}

// Order is what the host sends an init about the program. Descriptors come with its first byte: the standard input, if
// Input is set, then the mounts.
type Order struct {
	Input         bool // else the standard input is the one that the init inherited
	ScratchSize   int64
	ScratchInodes int64
	Mounts        []string // the targets of detached mounts, relative to the root
	Rlimits       []Rlimit
	Argv          []string // empty: start nothing, only try whether everything works
	Env           []string
	Files         []File
	CPUs          []int64 // the processors that the program may run on; empty: any
	// Template has the program forked from a template; a descriptor of its socket follows those of the mounts.
	Template   bool
	Shared     int64 // number of elements of Argv that the template was started with
	IntoCgroup bool  // the program is forked into a cgroup of version 2; its directory's descriptor follows the template's
	Trial      bool  // the fork ends where the program would start

	trees    []int // the mounts' descriptors, in the init
	template []int // the template's descriptors, in the init
}

// MostDescriptors is the most that can come with an order: the kernel's limit for one message.
const MostDescriptors = 253

// MessageKind is the first byte of a message from the init to the host.
type MessageKind byte

// The messages. A start is followed by an exit, or by the end of the stream when the init was killed.
const (
	Ready   MessageKind = 'R' // the sandbox is built and waits for its order, or a base is built
	Started MessageKind = 'S' // the program is executing; the working directory's descriptor comes with it
	Failed  MessageKind = 'F' // nothing was started: Stage, Errno and Detail give the reason
	Exited  MessageKind = 'X' // the program has ended and all processes that it left are dead
)

// Message is what the init sends the host.
type Message struct {
	Kind   MessageKind
	Stage  string // Failed: the step that failed
	Detail string // Failed: to what
	Errno  int64  // Failed
	// AtFault is true when the run's own specification is the cause and not the host.
	AtFault bool
	Status  int64 // Exited: the wait status of the program
	CPU     int64 // Exited: nanoseconds, user and system, of all reaped processes
	MaxRSS  int64 // Exited: bytes of the largest process
	// Time is CLOCK_MONOTONIC in nanoseconds. Started: just before the program was executed; Exited's CPU excludes what its process
	// used until then. Exited: when the program had ended.
	Time int64
	// Starved is how long, in nanoseconds, the run's cgroup had work to do and no processor, from its creation until Time;
	// 0 without Config.PressureFD. The difference between Exited and Started is the program's; the rest is the init's.
	Starved int64
	// Warm means, in Started, that the program was forked from a template. If it should have been and was not, Detail gives the reason.
	Warm bool
}
