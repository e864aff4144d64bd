package docker

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/pawl-run/pawl/internal/runtime"
)

// Labels of containers. The labels of a Spec are added under their own names.
const (
	labelOwner   = "run.pawl.owner"   // the process that created it and removes it
	labelExpires = "run.pawl.expires" // seconds since 1970; any worker may remove the container after that
	labelWorker  = "run.pawl.worker"  // of a lasting run: the worker that may take it up after a restart
	labelPrefix  = "run.pawl."
)

// create makes the container of a run and puts its files in.
func (n *run) create(ctx context.Context) error {
	r, spec, c := n.runtime, &n.spec, n.spec.Container
	img, err := r.image(ctx, c)
	if err != nil {
		return err
	}
	start := c.WorkDir
	if start == "" {
		if start = path.Clean("/" + img.workDir); start == "/" || len(spec.Files) > 0 {
			start = runtime.ContainerFiles
		}
	}
	mounts, err := n.mounts()
	if err != nil {
		return err
	}
	network, err := c.NetworkOf(r.options.Networks)
	if err != nil {
		return err
	}
	if len(spec.Argv) == 0 && len(c.Entrypoint) == 0 && len(img.argv) == 0 {
		return fmt.Errorf("%w: image %q has no command of its own; give one", runtime.ErrSpec, c.Image)
	}
	filter, err := profile()
	if err != nil {
		return fmt.Errorf("docker: write the seccomp profile: %w", err)
	}
	security := []string{"no-new-privileges"}
	if filter != "" && n.facts.seccomp {
		security = append(security, "seccomp="+filter)
	}
	user := userOf(c, img)
	l, yes := spec.Limits, true
	pids, shm := int64(l.Pids), min(l.Disk, 64<<20)
	config := &container.Config{
		Image: img.id, Entrypoint: c.Entrypoint, Cmd: spec.Argv, Env: spec.Env, User: user, WorkingDir: start,
		AttachStdin: spec.Stdin != nil, OpenStdin: spec.Stdin != nil, StdinOnce: spec.Stdin != nil,
		AttachStdout: true, AttachStderr: true, Labels: n.labels(),
	}
	host := &container.HostConfig{
		NetworkMode: container.NetworkMode(network), ReadonlyRootfs: true, CapDrop: []string{"ALL"},
		SecurityOpt: security, MaskedPaths: masked, LogConfig: n.logs(),
		IpcMode: container.IPCModePrivate, CgroupnsMode: container.CgroupnsModePrivate, Init: &yes, Runtime: r.options.OCIRuntime,
		Tmpfs:   map[string]string{"/tmp": fmt.Sprintf("rw,exec,nosuid,nodev,mode=1777,size=%d,nr_inodes=%d", l.Disk, max(l.Disk>>12, 16))},
		ShmSize: shm, Mounts: mounts,
		Resources: container.Resources{
			Memory: l.Memory, MemorySwap: l.Memory, PidsLimit: &pids, NanoCPUs: int64(l.CPUs * 1e9), Ulimits: []*container.Ulimit{{Name: "core", Soft: 1, Hard: 1}}, // 1 stops a handler that core_pattern pipes to, too
		},
	}
	if l.Stack > 0 {
		host.Ulimits = append(host.Ulimits, &container.Ulimit{Name: "stack", Soft: l.Stack, Hard: l.Stack})
	}
	if network == "none" {
		host.DNS = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})} // without it the host's resolvers are listed inside
	}
	if !strings.HasPrefix(r.engine.DaemonHost(), "unix:") { // the volume cannot be watched
		host.Ulimits = append(host.Ulimits, &container.Ulimit{Name: "fsize", Soft: l.Disk + fileSlack, Hard: l.Disk + fileSlack})
	}
	// A cancelled request can leave a container with an unknown id. Once the image is present, creation takes about 0.1 s.
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	made, err := r.engine.ContainerCreate(creating, client.ContainerCreateOptions{Config: config, HostConfig: host, Name: n.name()})
	if err != nil {
		return r.refused("create a container", err)
	}
	n.id = made.ID
	return n.putFiles(ctx, user)
}

// name is a readable name: the run's, made unique, in the characters that the engine allows.
func (n *run) name() string {
	spelt := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-' {
			return c
		}
		return '-'
	}, n.spec.Name)
	return "pawl-" + spelt + "-" + strings.ToLower(rand.Text()[:10])
}

// createTimeout bounds the creation of a container from an image that the engine has.
const createTimeout = time.Minute

// expireAfter is how long a container may exist beyond its wall limit, for its files to be collected and for its removal.
const expireAfter = 10 * time.Minute

func (n *run) labels() map[string]string {
	all := make(map[string]string)
	for k, v := range n.spec.Labels {
		all[labelPrefix+k] = v
	}
	maps.Copy(all, map[string]string{
		labelOwner:   n.runtime.owner,
		labelExpires: strconv.FormatInt(time.Now().Add(n.spec.Limits.Wall+expireAfter).Unix(), 10),
	})
	if n.lasting() {
		all[labelWorker] = n.runtime.options.Worker
	}
	return all
}

// volumeDir is the mount point of the volume that holds the working directory: the engine fills a volume, but the
// owner of its top directory cannot be changed.
var volumeDir = path.Dir(runtime.ContainerFiles)

// masked are files of /proc and /sys that reveal the host, beyond those that the engine hides by itself.
var masked = []string{"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore", "/proc/key-users",
	"/proc/keys", "/proc/kmsg", "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/modules", "/proc/pressure",
	"/proc/sched_debug", "/proc/scsi", "/proc/slabinfo", "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo",
	"/sys/devices/virtual/powercap", "/sys/firmware", "/sys/kernel"}

// reserved are paths of a container that a mount must not cover.
var reserved = []string{"/proc", "/dev", "/sys", "/tmp", volumeDir}

// fileSlack is by how much one file may exceed the disk limit before its writer gets a signal: a full /tmp returns an
// error, which programs can handle.
const fileSlack = 1 << 20

// mounts are the volume of the working directory, which lives as long as the container, and the Spec's mounts from the engine's host.
func (n *run) mounts() ([]mount.Mount, error) {
	all := []mount.Mount{{Type: mount.TypeVolume, Target: volumeDir}}
	for _, m := range n.spec.Mounts {
		for _, dir := range reserved {
			if m.Path == dir || strings.HasPrefix(dir, m.Path+"/") {
				return nil, fmt.Errorf("%w: mount %q would cover %s of the container", runtime.ErrSpec, m.Path, dir)
			}
		}
		all = append(all, mount.Mount{Type: mount.TypeBind, Source: m.Path, Target: m.Path, ReadOnly: true,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate}})
	}
	return all, nil
}
