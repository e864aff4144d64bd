package sandbox

import (
	"errors"
	"os"
	goruntime "runtime"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// networks keeps unused network namespaces for the next sandboxes: to make one and to take it apart costs 1.4 ms of processor time, half of
// it in threads of the kernel. A program can change a network namespace only through an internet socket. A BPF program on the cgroup of
// each run records in a map that one was made; see decision 100. A nil networks keeps nothing. It is safe for concurrent use.
type networks struct {
	makers  int // descriptor of the map, whose keys are the ids of the cgroups in which a socket was made
	program int // descriptor of the BPF program

	mu     sync.Mutex
	stock  []*network
	closed bool
}

// network is a network namespace that a sandbox can be built in.
type network struct {
	namespace *os.File
	// sockets is the file /proc/net/sockstat of the namespace; nil if it cannot be opened. It is opened once: each run's /proc is new, and to
	// open the file in it would cost 50 µs.
	sockets *os.File
}

// empty reports whether no socket of any kind is in the namespace, for example one that was sent through itself.
func (n *network) empty() bool {
	const none = "sockets: used 0\n"
	var buffer [len(none)]byte
	if n.sockets == nil {
		return false
	}
	size, err := unix.Pread(int(n.sockets.Fd()), buffer[:], 0)
	return err == nil && string(buffer[:size]) == none
}

// close releases the namespace. A nil network is allowed.
func (n *network) close() {
	if n != nil {
		closeAll([]*os.File{n.namespace, n.sockets})
	}
}

// mostNetworks bounds the stock. A namespace holds some 100 KB of the kernel's memory.
const mostNetworks = 16

// mostMakers bounds the runs that have made a socket and have not ended. A further run is refused its sockets.
const mostMakers = 1 << 16

// newNetworks returns nil where the BPF program cannot be loaded: that takes cgroup v2, CAP_BPF and CAP_NET_ADMIN.
func newNetworks(c *cgroups, privileged bool) *networks {
	if !privileged || c == nil || c.unified == "" {
		return nil
	}
	makers, err := callBPF(unix.BPF_MAP_CREATE, &struct{ kind, key, value, entries, flags uint32 }{
		unix.BPF_MAP_TYPE_HASH, 8, 8, mostMakers, unix.BPF_F_NO_PREALLOC,
	})
	if err != nil {
		return nil
	}
	var pinner goruntime.Pinner
	defer pinner.Unpin()
	instructions, license := noteMaker(makers), []byte("Apache-2.0\x00")
	pinner.Pin(&instructions[0])
	pinner.Pin(&license[0])
	program, err := callBPF(unix.BPF_PROG_LOAD, &struct {
		kind, count           uint32
		instructions, license uint64
		_                     [24]byte // no log
		_, _                  uint32
		_                     [16]byte
		_, attached           uint32
	}{
		kind: unix.BPF_PROG_TYPE_CGROUP_SOCK, count: uint32(len(instructions)), attached: unix.BPF_CGROUP_INET_SOCK_CREATE,
		instructions: uint64(uintptr(unsafe.Pointer(&instructions[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0]))),
	})
	if err != nil {
		unix.Close(makers)
		return nil
	}
	return &networks{makers: makers, program: program}
}

// noteMaker is the BPF program. The kernel runs it whenever a process of the cgroup makes an internet socket. It puts the id of the cgroup
// into the map, or refuses the socket if it cannot. It looks first whether the id is there: each update takes new memory, which a loop that
// makes sockets could use up.
func noteMaker(table int) []uint64 {
	instruction := func(code, dst, src uint8, offset int16, value int32) uint64 {
		return uint64(code) | uint64(dst|src<<4)<<8 | uint64(uint16(offset))<<16 | uint64(uint32(value))<<32
	}
	const (
		call, exit, set, move, add, store, load, ifZero, ifNotZero = 0x85, 0x95, 0xb7, 0xbf, 0x07, 0x7b, 0x18, 0x15, 0x55
		mapLookup, mapUpdate, currentCgroupID                      = 1, 2, 80
		mapDescriptor                                              = 1
	)
	return []uint64{
		instruction(call, 0, 0, 0, currentCgroupID),
		instruction(store, 10, 0, -8, 0), // the key, on the stack
		instruction(load, 1, mapDescriptor, 0, int32(table)), 0,
		instruction(move, 2, 10, 0, 0),
		instruction(add, 2, 0, 0, -8),
		instruction(call, 0, 0, 0, mapLookup),
		instruction(ifNotZero, 0, 0, 10, 0), // to the end
		instruction(load, 1, mapDescriptor, 0, int32(table)), 0,
		instruction(move, 2, 10, 0, 0),
		instruction(add, 2, 0, 0, -8),
		instruction(move, 3, 2, 0, 0), // any value
		instruction(set, 4, 0, 0, 0),
		instruction(call, 0, 0, 0, mapUpdate),
		instruction(ifZero, 0, 0, 2, 0), // to the end
		instruction(set, 0, 0, 0, 0),    // refuse
		instruction(exit, 0, 0, 0, 0),
		instruction(set, 0, 0, 0, 1), // allow
		instruction(exit, 0, 0, 0, 0),
	}
}

// watch attaches the BPF program to a cgroup; false if that fails.
func (n *networks) watch(cgroup *os.File) bool {
	if n == nil {
		return false
	}
	_, err := callBPF(unix.BPF_PROG_ATTACH, &struct{ target, program, kind, flags uint32 }{
		uint32(cgroup.Fd()), uint32(n.program), unix.BPF_CGROUP_INET_SOCK_CREATE, unix.BPF_F_ALLOW_MULTI,
	})
	return err == nil
}

// used reports whether a process of the cgroup made an internet socket, and removes the entry. No process is left in the cgroup.
func (n *networks) used(cgroup *os.File) bool {
	var st unix.Stat_t
	if err := unix.Fstat(int(cgroup.Fd()), &st); err != nil {
		return true
	}
	var pinner goruntime.Pinner
	defer pinner.Unpin()
	pinner.Pin(&st.Ino) // the id of a cgroup
	_, err := callBPF(unix.BPF_MAP_DELETE_ELEM, &struct {
		table uint64
		key   uint64
		_     [2]uint64
	}{table: uint64(n.makers), key: uint64(uintptr(unsafe.Pointer(&st.Ino)))})
	return !errors.Is(err, unix.ENOENT)
}

// take returns a namespace that is the caller's, or nil.
func (n *networks) take() (taken *network) {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if last := len(n.stock) - 1; last >= 0 {
		taken, n.stock = n.stock[last], n.stock[:last]
	}
	return taken
}

// put takes over a namespace that no program has used.
func (n *networks) put(unused *network) {
	if n == nil {
		unused.close()
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || len(n.stock) == mostNetworks {
		unused.close()
		return
	}
	n.stock = append(n.stock, unused)
}

func (n *networks) close() {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, unused := range n.stock {
		unused.close()
	}
	n.stock = nil
	unix.Close(n.program)
	unix.Close(n.makers)
}

// networkOf opens the network namespace of a process; nil when it cannot.
func networkOf(pid int) *network {
	dir := "/proc/" + strconv.Itoa(pid)
	namespace, err := os.Open(dir + "/ns/net")
	if err != nil {
		return nil
	}
	sockets, _ := os.Open(dir + "/net/sockstat")
	return &network{namespace, sockets}
}

// mostInterruptions bounds how often a load of a BPF program is repeated.
const mostInterruptions = 1000

// callBPF makes the system call of that name. The kernel ends a load of a program with EAGAIN when a signal arrives, such as the one with
// which Go preempts a thread.
func callBPF[T any](command uintptr, attributes *T) (int, error) {
	for attempt := 0; ; attempt++ {
		result, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(unsafe.Pointer(attributes)), unsafe.Sizeof(*attributes))
		if errno == 0 {
			return int(result), nil
		}
		if errno != unix.EAGAIN || attempt == mostInterruptions {
			return 0, errno
		}
	}
}
