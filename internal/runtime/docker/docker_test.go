//go:build unix

package docker

import (
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/docker/dockertest"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

const testImage = "pawl-test/tools:2"

// open makes a runtime on the test engine.
func openRuntime(t testing.TB, o Options) *Runtime {
	t.Helper()
	o.Host = dockertest.Engine(t)
	dockertest.Image(t, o.Host, testImage)
	if o.Returns == nil { // parallel tests, also of other packages, have their own workers
		o.Returns = func(string) bool { return true }
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r.(*Runtime)
}

func factory(t testing.TB) runtime.Runtime { return openRuntime(t, Options{Image: testImage}) }

// What the engine's own init does.
const (
	codes = "the engine's init tells of a signal by an exit code of 128 and its number, and of a program that cannot be executed by 126 and 127"
	disk  = "the working directory is a volume, whose size is watched: the run is ended instead of a write that fails"
	init1 = "process 1 is the engine's init, which runs as the program's user, so what the program may look at in itself it may there"
	sysfs = "the engine mounts /sys and a /dev of its own, read-only or empty, because programs look for their limits there"
)

// differs lists how containers of the Docker engine differ.
var differs = runtimetest.Differs{
	"Behaviour/exit codes":                    codes,
	"Behaviour/refusals/absent program":       codes,
	"Behaviour/refusals/not executable":       codes,
	"06":                                      disk,
	"08":                                      codes,
	"10":                                      codes,
	"15":                                      disk,
	"23/open /sys":                            sysfs,
	"23/open /.dockerenv":                     sysfs,
	"23/see /dev/tty":                         sysfs,
	"23/open /dev/ptmx":                       sysfs,
	"24":                                      "the engine adds HOSTNAME and HOME",
	"26/read /proc/1/environ":                 init1,
	"26/read /proc/1/fd":                      init1,
	"26/read /proc/1/fdinfo":                  init1,
	"26/read /proc/1/root/etc":                init1,
	"26/read /proc/1/cwd/":                    init1,
	"26/read /proc/1/exe":                     init1,
	"26/read /proc/1/maps":                    init1,
	"26/read /proc/1/smaps":                   init1,
	"26/read /proc/1/auxv":                    init1,
	"26/read /proc/1/syscall":                 init1,
	"26/read /proc/1/map_files":               init1,
	"26/read /proc/1/personality":             init1,
	"26/read /proc/1/io":                      init1,
	"26/read /proc/1/task/1/environ":          init1,
	"26/write /proc/1/oom_score_adj":          init1,
	"26/write /proc/1/coredump_filter":        init1,
	"26/follow /proc/1/exe":                   init1,
	"26/follow /proc/1/cwd":                   init1,
	"26/follow /proc/1/root":                  init1,
	"26/follow /proc/1/ns/mnt":                init1,
	"28/write /proc/1/oom_score_adj":          init1,
	"30/open /etc/resolv.conf of the host":    "the engine puts a file of its own there",
	"31/open a NETLINK socket":                "the engine's profile allows what looks at a container's own network, which has nothing in it",
	"31/open a NETLINK netfilter socket":      "the engine's profile allows what looks at a container's own network, which has nothing in it",
	"37":                                      init1 + "; who kills it ends the container",
	"39/open a device in a mounted directory": "the engine's mounts are not nodev; what devices may be opened is up to its device cgroup",
	"42/make call -1":                         "the engine's filter lets through what is not a call at all",
	"43/raise limit 4 of process 1":           init1,
	"43/raise limit 6 of process 1":           init1,
	"43/raise limit 7 of process 1":           init1,
	"43/raise limit 8 of process 1":           init1,
	"43/raise limit 11 of process 1":          init1,
	"43/raise limit 12 of process 1":          init1,
	"43/raise limit 13 of process 1":          init1,
	"43/raise limit 14 of process 1":          init1,
}

func TestConformance(t *testing.T) {
	host := dockertest.Engine(t)
	runtimetest.Exercise(t, factory, runtimetest.Races(40), runtimetest.Differing(differs), runtimetest.Left(func(t testing.TB) []string {
		return dockertest.Containers(t, host, labelOwner+"="+self())
	}))
}
