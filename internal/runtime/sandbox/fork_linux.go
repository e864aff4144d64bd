package sandbox

import (
	"errors"
	"syscall"

	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
)

// errClosed is returned by a start after Close.
var errClosed = errors.New("runtime is closed")

// fork creates an init. The thread that does it lives as long as the runtime.
func (r *Runtime) fork(attr *syscall.ProcAttr) (pid int, err error) {
	r.thread.Do(func() { pid, err = syscall.ForkExec(r.self.path, []string{"pawl-init"}, attr) })
	return pid, err
}

// namespaces are all that a sandbox has of its own. The cgroup namespace is entered by the init, after the cgroups.
const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
	syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// initEnv is the init's whole environment. It allocates so little that collecting garbage would cost more than it frees.
var initEnv = []string{pid1.Marker + "=1", "GOGC=off", "GOMAXPROCS=1"}

// allCapabilities are wanted by the init within its own user namespace, to build the sandbox; the kernel's newest is 40.
func allCapabilities() []uintptr {
	caps := make([]uintptr, 41)
	for i := range caps {
		caps[i] = uintptr(i)
	}
	return caps
}

// birth describes the clone of an init for the host user uid and group gid.
func birth(files []uintptr, uid, gid int, privileged bool, cgroup *group, pidfd *int) *syscall.ProcAttr {
	sys := &syscall.SysProcAttr{
		Cloneflags:  namespaces,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: pid1.UserID, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: pid1.GroupID, HostID: gid, Size: 1}},
		// Only a privileged parent may let its child give up the supplementary groups that it was born with.
		GidMappingsEnableSetgroups: privileged,
		Credential:                 &syscall.Credential{Uid: pid1.UserID, Gid: pid1.GroupID, NoSetGroups: !privileged},
		AmbientCaps:                allCapabilities(),
		Pdeathsig:                  syscall.SIGKILL,
		// Out of the terminal's foreground, but not a session of its own: with scheduler autogroups every new session is
		// a new scheduling group, which on a busy machine waits its turn for milliseconds.
		Setpgid: true,
		PidFD:   pidfd,
	}
	if cgroup != nil && cgroup.dir != nil {
		sys.UseCgroupFD, sys.CgroupFD = true, int(cgroup.dir.Fd())
	}
	return &syscall.ProcAttr{Dir: "/", Env: initEnv, Files: files, Sys: sys}
}
