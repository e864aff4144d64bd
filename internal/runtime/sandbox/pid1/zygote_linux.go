package pid1

import (
	"runtime"
	"syscall"
	"unsafe"
)

// init turns the process into a zygote when the backend has started it as one. It runs on the process's first thread.
func init() {
	if _, ours := syscall.Getenv(Marker); ours {
		leaveZygote()
		syscall.Exit(1)
	}
}

// leaveZygote reads the plan, forks the zygote, reports its pid, and exits. The zygote becomes a child of the host, as its own children do,
// and has only the one thread that forks: no other thread can hold a lock of Go's runtime at the moment of a fork, and such a lock would
// stay held in the child. So Go code that needs no second thread works in the zygote and its children: no goroutines, no channels, no
// garbage collection.
//
// At the moment of this first fork there are other threads. A zygote that has inherited one of their locks, or a request to yield, hangs
// before it can report that it is ready; the host then starts another.
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
	// Go's runtime asks a goroutine that has run for 10 ms to yield. A child that inherits such a request would wait for a thread that it
	// does not have. After Gosched the next request is at least 10 ms away.
	runtime.Gosched()
	pid, errno := fork(syscall.CLONE_PARENT, -1)
	if pid != 0 || errno != 0 {
		syscall.Write(ControlFD, (&Born{PID: pid, Errno: int64(errno)}).put(answer))
		syscall.Exit(0)
	}
	// This comes first, and by a raw call without Go's stack check, where an inherited lock would block: so even a child that hangs
	// dies with the host.
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

// rehearse makes Go's runtime grow the stack, and allocate spans for objects of the sizes that an init uses, so that each init does
// not have to. It saves an init 25 of 147 page faults.
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

// zygote contains all memory that a birth needs: its garbage would never be collected.
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

// mostInherited is more than an init can inherit: 4 of its own, 4 cgroup files of version 1, the pressure file, the cgroup directory.
const mostInherited = 16

// receive waits for the next birth; it returns false when the host is gone.
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

// namespaces are the sandbox's own namespaces. The program's process enters the cgroup namespace itself, after the cgroups.
const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
	syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// bear forks an init, a child of the host, and maps its user and group. The init waits until that is done.
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

// comeHome returns from the namespaces that a birth entered. A zygote that cannot return exits.
func (z *zygote) comeHome() {
	if z.birth.OntoBase && setns(z.home[0], syscall.CLONE_NEWNS) != 0 || z.birth.Network && setns(z.home[1], syscall.CLONE_NEWNET) != 0 {
		syscall.Exit(1)
	}
}

// fork creates a child with one thread, in a cgroup of version 2 unless cgroup is -1.
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

// mapIDs maps the program's user and group inside to those on the host.
func (z *zygote) mapIDs(pid int64) syscall.Errno {
	// When the machine itself runs out of memory, a program dies before the server does. Raising the value needs no privilege. On a
	// host without that file only the cgroup's limit applies.
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

// begin turns the child into the init of a sandbox. It never returns.
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
	for i, fd := range inherited { // ascending from 4 on: each is moved before its own number is reused
		if err := syscall.Dup3(int(fd), i, 0); err != nil && f == nil {
			f = failed("take the descriptors", "", err)
		}
	}
	closeFrom(uintptr(len(inherited)), 0)
	// This process must die with the host. If the host died before this call, its end of the socket is closed.
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

// becomeUser drops the zygote's ids, and keeps all capabilities in the new user namespace. Go's own functions would wait for other
// threads.
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
	// The init leaves the terminal's foreground group but does not create a session: with scheduler autogroups every
	// session is a scheduling group, which on a busy machine waits its turn for milliseconds.
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETPGID, 0, 0, 0); errno != 0 {
		return failed("make a process group", "", errno)
	}
	return nil
}

// hungUp reports whether the other end of a socket is closed.
func hungUp(fd int32) bool {
	polled := struct { // struct pollfd
		fd             int32
		events, result int16
	}{fd: fd}
	var now syscall.Timespec
	n, _, errno := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&polled)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return errno == 0 && n == 1 && polled.result&pollHangUp != 0
}
