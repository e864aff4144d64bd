package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/runs"
)

// trusted is the hint for users who do not need isolation.
const trusted = "or use --runtime process for code that you trust"

// explainClone is the error for namespaces that could not be created.
func explainClone(err error) error {
	return fmt.Errorf("%w: create the sandbox's namespaces: %w; %s", runtime.ErrUnavailable, err, cloneCure(err))
}

// cloneCure names the setting by which a distribution or container forbids user namespaces.
func cloneCure(err error) string {
	switch {
	case errors.Is(err, runs.ErrClosed):
		return "start before closing"
	case errors.Is(err, unix.EAGAIN):
		return "too many processes: raise the process limit (ulimit -u) or run fewer at once"
	case sysctl("/proc/sys/user/max_user_namespaces") == "0" || errors.Is(err, unix.ENOSPC):
		return "allow user namespaces with: sysctl -w user.max_user_namespaces=15000, " + trusted
	case sysctl("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "allow user namespaces with: sysctl -w kernel.unprivileged_userns_clone=1, " + trusted
	case sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "allow user namespaces with: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, " + trusted
	case errors.Is(err, unix.EINVAL):
		return "the kernel is built without one of the user, pid, mount, net, ipc and uts namespaces; use another kernel, " + trusted
	}
	return "in a container, allow clone with namespaces (docker: --security-opt seccomp=unconfined " +
		"--security-opt systempaths=unconfined, or --privileged), " + trusted
}

// cure is the remedy for a failed step of the init.
func cure(stage string, errno syscall.Errno) string {
	switch {
	case errno == unix.ENOSYS:
		return "the sandbox needs Linux 5.12 or newer, " + trusted
	case strings.HasPrefix(stage, "mount a fresh /proc"):
		return "parts of the host's /proc are covered, so the kernel allows no new one; in a container, " +
			"start it with --security-opt systempaths=unconfined, " + trusted
	case strings.HasPrefix(stage, "install the seccomp"):
		return "the kernel needs CONFIG_SECCOMP_FILTER, " + trusted
	case errno == unix.EPERM || errno == unix.EACCES:
		if sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
			return "allow user namespaces with: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, " + trusted
		}
		return "something forbids mounts in a user namespace (a container's AppArmor or SELinux profile?): relax it, " + trusted
	}
	return "see pawl doctor, " + trusted
}

func sysctl(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Diagnose builds a sandbox without a program and reports on each part.
func (r *Runtime) Diagnose(ctx context.Context) []runtime.Finding {
	findings := []runtime.Finding{r.diagnoseIsolation(ctx)}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err == nil {
		findings = append(findings, runtime.Finding{
			What: "kernel", OK: true, Say: "Linux " + unix.ByteSliceToString(uts.Release[:]),
		})
	}
	user := runtime.Finding{What: "user of programs", OK: true}
	if uid, _ := r.ids.pick(); r.privileged {
		user.Say = fmt.Sprintf("an unprivileged id of the host, such as %d", uid)
	} else {
		user.Say = fmt.Sprintf("the caller's own id %d, in a user namespace", uid)
	}
	findings = append(findings, user)
	limits := runtime.Finding{What: "limits", OK: true, Say: r.cgroups.enforcement()}
	if r.cgroups != nil {
		limits.Say += ", beneath " + strings.Join(r.cgroups.roots(), ", ")
	} else {
		limits.OK = false
		limits.Say += fmt.Sprintf(" instead of cgroups: %v", r.whyNot)
		limits.Fix = "run Pawl as root, or as a systemd service with Delegate=yes; isolation does not depend on it"
	}
	forks := runtime.Finding{What: "warm interpreters", OK: true, Say: "programs of a language with warm: begin in one"}
	if !r.privileged {
		forks.Say = "programs of a language with warm: start their own: only root may enter the namespaces of a sandbox"
	}
	return append(findings, limits, forks)
}

func (r *Runtime) diagnoseIsolation(ctx context.Context) runtime.Finding {
	f := runtime.Finding{What: "isolation"}
	started, err := r.probe(ctx)
	if err == nil {
		if result := started.Wait(); result.Verdict == runtime.OK {
			f.OK = true
			f.Say = "user, pid, mount, network, ipc, uts and cgroup namespaces, no capabilities, no_new_privs, seccomp"
			return f
		}
		err = errors.New("the probe did not end as it should: " + started.result.Reason)
	}
	say, fix, ok := strings.Cut(err.Error(), "; ")
	f.Say, f.Fix = say, fix
	if !ok {
		f.Fix = trusted
	}
	return f
}

// probe builds a whole sandbox without a program.
func (r *Runtime) probe(ctx context.Context) (*run, error) {
	d, err := r.pack(runtime.Spec{Name: "diagnosis", Limits: runtime.DefaultLimits()}, nil)
	defer d.close()
	if err != nil {
		return nil, err
	}
	return r.assign(ctx, r.newBox(), d)
}
