package pid1

import (
	"runtime"
	"syscall"
	"unsafe"
)

// init makes the process a zygote when the backend has started it as one. It runs on the process's first thread.
func init() {
	if _, ours := syscall.Getenv(Marker); ours {
		leaveZygote()
		syscall.Exit(1)
	}
}

// leaveZygote reads the plan, forks the zygote, says what it is called, and ends. The zygote is a child of the host, as its own children
// are, and has only the one thread that forks: no other can hold a lock of Go's runtime in the moment of a fork, and such a lock would stay
// held in the child. So Go code that needs no second thread runs in all of them: no goroutines, no channels, no collection of garbage.
//
// In the moment of this fork there are other threads. A zygote that has inherited a lock of theirs, or a request of theirs to make room,
// stands still before it can say that it is ready; the host then starts another.
func leaveZygote() {
	plan := new(Plan)
	if receive(plan.decode, syscall.Read) != nil {
		return
	}
	rehearse()
	home, f := ownNamespaces()
	if f != nil {
		return
	}
	answer := make([]byte, 0, BornSize)
	// Go's runtime asks a goroutine that has run for 10 ms to make room. A child that inherited such a request would wait for a thread that
	// it does not have. After Gosched the next request is 10 ms away.
	runtime.Gosched()
	pid, errno := fork(syscall.CLONE_PARENT, -1)
	if pid != 0 || errno != 0 {
		syscall.Write(ControlFD, (&Born{PID: pid, Errno: int64(errno)}).put(answer))
		syscall.Exit(0)
	}
	// First, and without Go's check of the stack, where an inherited lock would show: a child that stands still dies with the host too.
	syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0)
	defaultSignals()
	z := &zygote{plan: plan, answer: answer, home: home}
	syscall.Write(ControlFD, (&Born{PID: int64(syscall.Getpid())}).put(z.answer))
	for z.receive() {
		born := z.bear()
		for _, fd := range z.fds {
			syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0)
		}
		syscall.RawSyscall(syscall.SYS_WRITE, ControlFD, uintptr(unsafe.Pointer(unsafe.SliceData(born.put(z.answer)))), BornSize)
	}
	syscall.Exit(0)
}

// rehearse has Go's runtime grow the stack, and open memory for objects of the sizes that an init makes, so that not each of the inits
// does. It saves an init 25 page faults of 147.
//
//go:noinline
func rehearse() {
	var deep [24 << 10]byte
	order := &Order{Rlimits: []Rlimit{{}}, Argv: []string{"/work/program"}, Env: []string{"PATH=/usr/bin:/bin"}, Files: []File{{Path: "main"}}}
	for i := range deep {
		deep[i] = byte(i)
	}
	config, message := new(Config), &Message{Kind: Started, Stage: string(deep[:8])}
	config.decode((&Config{Steps: []Step{{}}, TaskFDs: []int64{1}}).Encode()[8:])
	order.decode(order.Encode()[8:])
	DecodeMessage(message.encode())
	syscall.SlicePtrFromStrings(order.Env)
}

// zygote has all the memory that a birth needs: nothing would ever collect its garbage.
type zygote struct {
	plan   *Plan
	birth  Birth
	fds    []int32
	rights [2 + mostInherited/2]uint64 // a control message
	answer []byte
	path   [64]byte
	text   [64]byte
	home   [2]int // its own mount and network namespace
}

// ownNamespaces opens the mount namespace and the network namespace of this process.
func ownNamespaces() (fds [2]int, f *failure) {
	for i, name := range [...]string{"/proc/self/ns/mnt", "/proc/self/ns/net"} {
		fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return fds, failed("open the namespace", name, err)
		}
		fds[i] = fd
	}
	return fds, nil
}

// mostInherited is more than an init can be born with: 4 of its own, 4 of version 1's cgroups, its pressure, its directory.
const mostInherited = 16

// receive waits for the next birth; false when the host is gone.
func (z *zygote) receive() bool {
	var request [birthSize]byte
	part := syscall.Iovec{Base: &request[0]}
	part.SetLen(len(request))
	for {
		message := syscall.Msghdr{Iov: &part, Iovlen: 1, Control: (*byte)(unsafe.Pointer(&z.rights))}
		message.SetControllen(int(unsafe.Sizeof(z.rights)))
		n, _, errno := syscall.RawSyscall(syscall.SYS_RECVMSG, ControlFD, uintptr(unsafe.Pointer(&message)), syscall.MSG_CMSG_CLOEXEC)
		if errno == syscall.EINTR {
			continue
		}
		data := syscall.CmsgLen(0)
		if errno != 0 || n != birthSize || message.Flags&syscall.MSG_CTRUNC != 0 || int(message.Controllen) < data || !z.birth.decode(request[:]) {
			return false
		}
		count := (int((*syscall.Cmsghdr)(unsafe.Pointer(&z.rights)).Len) - data) / 4
		z.fds = unsafe.Slice((*int32)(unsafe.Pointer(&z.rights[data/8])), count)
		return true
	}
}

// namespaces are all that a sandbox has of its own. The cgroup namespace is entered by the program's process, after the cgroups.
const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
	syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// bear forks an init, a child of the host, and gives it its user and group. Until then it waits.
func (z *zygote) bear() Born {
	var gate [2]int32
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PIPE2, uintptr(unsafe.Pointer(&gate)), syscall.O_CLOEXEC, 0); errno != 0 {
		return Born{Errno: int64(errno)}
	}
	inherited, cgroup := z.fds, int32(-1)
	last := func() (fd int32) {
		inherited, fd = inherited[:len(inherited)-1], inherited[len(inherited)-1]
		return fd
	}
	if z.birth.IntoCgroup {
		cgroup = last()
	}
	flags, errno := uintptr(syscall.CLONE_PARENT|namespaces), syscall.Errno(0)
	if z.birth.Template {
		flags &^= syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	}
	if z.birth.Network {
		flags &^= syscall.CLONE_NEWNET
		errno = setns(int(last()), syscall.CLONE_NEWNET)
	}
	if z.birth.OntoBase && errno == 0 {
		errno = setns(int(last()), syscall.CLONE_NEWNS)
	}
	var pid int64
	if errno == 0 {
		pid, errno = fork(flags, cgroup)
	}
	if pid == 0 && errno == 0 {
		z.begin(inherited, gate)
	}
	z.comeHome()
	if errno == 0 {
		errno = z.mapIDs(pid)
	}
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(gate[1]), uintptr(unsafe.Pointer(&gate)), 1)
	}
	for _, end := range gate {
		syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(end), 0, 0)
	}
	return Born{PID: pid, Errno: int64(errno)}
}

// comeHome leaves the namespaces that a birth went into. A zygote that cannot is of no further use.
func (z *zygote) comeHome() {
	if z.birth.OntoBase && (setns(z.home[0], syscall.CLONE_NEWNS) != 0 || setns(z.home[1], syscall.CLONE_NEWNET) != 0) {
		syscall.Exit(1)
	}
}

// fork makes a child of one thread, in a cgroup of version 2 unless that is -1.
func fork(flags uintptr, cgroup int32) (pid int64, errno syscall.Errno) {
	var result uintptr
	if cgroup < 0 {
		result, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, flags|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	} else {
		args := [11]uint64{0: uint64(flags) | cloneIntoCgroup, 10: uint64(cgroup)} // struct clone_args
		result, _, errno = syscall.RawSyscall(sysClone3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	}
	if errno != 0 {
		return 0, errno
	}
	return int64(result), 0
}

// mapIDs makes the program's user and group out of those that it has on the host.
func (z *zygote) mapIDs(pid int64) syscall.Errno {
	// When the machine itself runs out of memory, a program dies before the server does. Raising the value needs no privilege. A host
	// without its /proc there leaves it to the cgroup's limit.
	z.write(pid, "/oom_score_adj", append(z.text[:0], "1000"...))
	if z.birth.Template {
		return 0
	}
	if errno := z.tell(pid, "/uid_map", UserID, z.birth.UID); errno != 0 {
		return errno
	}
	if !z.birth.SetGroups {
		if errno := z.tell(pid, "/setgroups", 0, 0); errno != 0 {
			return errno
		}
	}
	return z.tell(pid, "/gid_map", GroupID, z.birth.GID)
}

// tell writes a map of one id, or "deny" if inside is 0, to a file of the process.
func (z *zygote) tell(pid int64, file string, inside, outside int64) syscall.Errno {
	text := append(z.text[:0], "deny"...)
	if inside != 0 {
		text = append(appendDecimal(append(appendDecimal(z.text[:0], inside), ' '), outside), " 1"...)
	}
	return z.write(pid, file, text)
}

func (z *zygote) write(pid int64, file string, text []byte) syscall.Errno {
	path := append(appendDecimal(append(z.path[:0], "/proc/"...), pid), file...)
	path = append(path, 0)
	fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, atCwd, uintptr(unsafe.Pointer(&path[0])), syscall.O_WRONLY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	_, _, errno = syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)))
	syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
	return errno
}

// begin makes the child the init of a sandbox. It never returns.
func (z *zygote) begin(inherited []int32, gate [2]int32) {
	syscall.Close(int(gate[1]))
	var open [1]byte
	if n, err := syscall.Read(int(gate[0]), open[:]); n != 1 || err != nil {
		syscall.Exit(1)
	}
	var f *failure
	if !z.birth.Template {
		f = z.becomeUser()
	}
	for i, fd := range inherited { // ascending from 4 on: each is moved before its number is needed
		if err := syscall.Dup3(int(fd), i, 0); err != nil && f == nil {
			f = failed("take the descriptors", "", err)
		}
	}
	closeFrom(uintptr(len(inherited)), 0)
	// The host's death must be ours. When it has died before this was said, its end of the socket is closed.
	prctl(syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL))
	switch {
	case f != nil || hungUp(ControlFD):
	case z.birth.Template:
		f = becomeTemplate()
	default:
		f = serve(z.plan, z.birth)
	}
	if f != nil {
		send(f.message())
		syscall.Exit(1)
	}
	syscall.Exit(0)
}

// becomeUser gives up the ids that the zygote has, and keeps all capabilities in the new user namespace. Go's own functions would wait for
// the other threads.
func (z *zygote) becomeUser() *failure {
	if z.birth.SetGroups {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
			return failed("leave the groups", "", errno)
		}
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESGID, GroupID, GroupID, GroupID); errno != 0 {
		return failed("become the group", decimal(GroupID), errno)
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, UserID, UserID, UserID); errno != 0 {
		return failed("become the user", decimal(UserID), errno)
	}
	// Out of the terminal's foreground, but not a session of its own: with scheduler autogroups every new session is
	// a new scheduling group, which on a busy machine waits its turn for milliseconds.
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETPGID, 0, 0, 0); errno != 0 {
		return failed("make a process group", "", errno)
	}
	return nil
}

// hungUp says whether the other end of a socket is closed.
func hungUp(fd int32) bool {
	polled := struct { // struct pollfd
		fd             int32
		events, result int16
	}{fd: fd}
	var now syscall.Timespec
	n, _, errno := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&polled)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return errno == 0 && n == 1 && polled.result&pollHangUp != 0
}
