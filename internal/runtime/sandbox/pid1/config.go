// Package pid1 is the first process of every sandbox. It builds the file system, gives up every privilege, starts the
// program, reaps whatever the program leaves behind and reports how it ended.
//
// To execute a binary of Pawl's size, and to start Go's runtime in it, costs more processor time than all of that. So it is done once: the
// zygote is a process that has executed the binary and forks an init for each sandbox, and that init executes nothing.
//
// Importing the package is enough: when a process is started by the sandbox backend, [init] takes it over before any
// heavier package of the binary initializes, and never returns. For that reason the package imports nothing but
// syscall, unsafe and runtime; Go initializes packages in the order of their import paths among those whose imports are
// ready, so every import that is added here lets other packages go first and makes the zygote and all that it forks larger.
package pid1

// Marker is the environment variable that makes a process the zygote of a sandbox backend.
const Marker = "PAWL_SANDBOX_ZYGOTE"

// The descriptors that the init is born with, beside 0, 1 and 2, which are the program's. The zygote has the first one too.
const (
	ControlFD = 3 // a stream socket to the host: configuration in, messages out
	FirstFD   = 4 // descriptors that Config refers to by number follow
)

// The user and group that a program sees itself as. On the host this is the caller, or an unprivileged id of its own
// when the caller is root.
const (
	UserID  = 1000
	GroupID = 1000
)

// WorkDir is the program's working directory inside the sandbox.
const WorkDir = "/work"

// StepKind says what a Step does to the new root.
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

// Plan is what the host tells the zygote: all that is the same in every sandbox.
type Plan struct {
	// Cover is a host directory over which the new root is mounted while it is built, in the init's own mount namespace.
	Cover string
	// Layout is a list of steps in their encoded form (EncodeSteps).
	Layout []byte
	Filter []byte // a seccomp program: an array of struct sock_filter

	steps []Step // Layout, in the zygote
}

// Birth is what the host tells the zygote about one init. Descriptors come with it: first those that the init is born with, then that of
// its cgroup's directory, if IntoCgroup says so.
type Birth struct {
	UID, GID int64 // what the program's user and group are on the host
	// SetGroups lets the init give up the supplementary groups that it was born with. Only a privileged zygote can allow it.
	SetGroups  bool
	IntoCgroup bool // the init is born in a cgroup of version 2
	// OntoBase lets the init go on from a copy of a mount namespace that has the root already (see Config.Base). Its descriptor follows
	// those that the init is born with.
	OntoBase bool
	// Network puts the init into a network namespace that is there, whose descriptor comes next. It needs OntoBase.
	Network bool
	// Template makes the process the template of interpreters instead of an init. It stays in the user and pid namespaces of the zygote, and
	// needs OntoBase and Network.
	Template bool
}

// ofRun says whether a step is done for each run. The others make what no program can change.
func (k StepKind) ofRun() bool {
	return k == Freeze || k == Mask || k == MountProc || k == MountScratch
}

// Born is the zygote's answer to a Birth. The zygote also says this of itself, before it answers any.
type Born struct {
	PID   int64 // of the process; 0 where none was made
	Errno int64 // why it failed; 0: it did not
}

// Config is what the host tells the init at its birth: all that does not depend on the program.
type Config struct {
	// Steps follow those of the plan.
	Steps         []Step
	ScratchSize   int64 // bytes in /work, /tmp and /dev/shm together, unless the order says otherwise
	ScratchInodes int64
	// TaskFDs are descriptors of the `tasks` files of cgroup v1 hierarchies that the program is to be born in.
	TaskFDs []int64
	// PressureFD is a descriptor of the `cpu.pressure` file of the run's cgroup, open for reading; 0: there is none.
	PressureFD int64
	// Announce makes the init say Ready when all of this is done and it waits for the order.
	Announce bool
	// Base makes the init build what several runs can share, with the mounts of the order: the root without /proc and scratch, and the
	// network namespace. It says Ready, with the descriptors of both namespaces, and waits for its end.
	Base bool

	plan  *Plan
	birth Birth
}

// Order is what the host tells an init about the program. Descriptors come with its first byte: the standard input, if
// Input says so, then the mounts.
type Order struct {
	Input         bool // otherwise the standard input is what the init was born with
	ScratchSize   int64
	ScratchInodes int64
	Mounts        []string // where detached mounts are attached, relative to the root
	Rlimits       []Rlimit
	Argv          []string // empty: start nothing, only find out whether all works
	Env           []string
	Files         []File
	CPUs          []int64 // the processors that the program may run on; empty: any
	// Template has the program forked from a template, to whose socket a descriptor follows those of the mounts.
	Template   bool
	Shared     int64 // how many of Argv the template was started with
	IntoCgroup bool  // the program is born in a cgroup of version 2, whose directory's descriptor follows the template's
	Trial      bool  // the fork ends where the program would begin

	trees    []int // the mounts' descriptors, in the init
	template []int // the template's descriptors, in the init
}

// MostDescriptors is how many can come with an order; it is the kernel's own limit for one message.
const MostDescriptors = 253

// MessageKind is the first byte of a message from the init to the host.
type MessageKind byte

// The messages. A start is followed by an exit, or by the end of the stream when the init was killed.
const (
	Ready   MessageKind = 'R' // the sandbox is built and waits for its order, or the base of several is built
	Started MessageKind = 'S' // the program is executing; the working directory's descriptor comes with it
	Failed  MessageKind = 'F' // nothing was started: Stage, Errno and Detail say why
	Exited  MessageKind = 'X' // the program ended and all it left behind is dead
)

// Message is what the init tells the host.
type Message struct {
	Kind   MessageKind
	Stage  string // Failed: what was being done
	Detail string // Failed: to what
	Errno  int64  // Failed
	// AtFault is true when the run's own specification is to blame and not the host.
	AtFault bool
	Status  int64 // Exited: the wait status of the program
	CPU     int64 // Exited: nanoseconds, user and system, of everything that was reaped
	MaxRSS  int64 // Exited: bytes of the largest process
	// Time is CLOCK_MONOTONIC in nanoseconds. Started: just before the program was executed; what its process did until then is not in
	// Exited's CPU. Exited: when the program had ended.
	Time int64
	// Starved is how long, in nanoseconds, the run's cgroup had work to do and no processor from its making until Time;
	// 0 without Config.PressureFD. The difference of Exited and Started is the program's; what is before is the init's own.
	Starved int64
	// Network is a digest of the network namespace's counters: two that are equal say that nothing has used it in between. Ready of a base,
	// and Exited with Birth.Network.
	Network int64
	// Warm says of Started that the program was forked from a template. If it was to be and was not, Detail says why.
	Warm bool
}
