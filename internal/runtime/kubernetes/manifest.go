package kubernetes

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/registry"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// Labels and annotations of pods. The labels of a Spec are added under their own names.
const (
	labelOwner        = "run.pawl.owner"   // the worker that created it
	labelLife         = "run.pawl.life"    // the worker's process, one of several after restarts
	labelNetwork      = "run.pawl.network" // for network policies
	labelPrefix       = "run.pawl."
	annotationNonce   = "run.pawl.nonce"   // one per Start: recognizes a pod of this Start whose creation got no response
	annotationLasting = "run.pawl.lasting" // "true": the worker may take the pod up after a restart
	annotationExpires = "run.pawl.expires" // seconds since 1970; any worker may delete the pod after that
)

const (
	keeperName = "keeper"
	mainName   = "main"
)

const (
	// expireAfter is how long a pod may exist beyond its wall limit and the time to start: the limit for a cluster in which no
	// worker is left.
	expireAfter = 15 * time.Minute
	// lostAfter is the time from the moment when the cluster notices a dead node until its pods are given up.
	lostAfter = 10 * time.Second
	// initMemory is the memory allowance of process 1, which shares the program's cgroup.
	initMemory = 16 << 20
	// volumeSlack is by how much a volume may exceed the disk limit before the kubelet evicts the pod: process 1 checks more often.
	volumeSlack = 64 << 20
	keeperUser  = 65533
	// firstUser is the first user id of programs; each run has its own, so that the kernel counts a run's processes by user. The
	// ids are above the ranges that Linux distributions and container engines assign.
	firstUser = 1_400_000_000
	users     = 500_000_000
)

// plan determines the program to run, or the error why it cannot run.
func (n *run) plan(ctx context.Context) error {
	spec, c := &n.spec, n.spec.Container
	cannot := func(format string, args ...any) error {
		return fmt.Errorf("%w: the kubernetes runtime cannot "+format, append([]any{runtime.ErrSpec}, args...)...)
	}
	if len(spec.Mounts) > 0 {
		return cannot("mount %s of a worker's host: put it into the image", spec.Mounts[0].Path)
	}
	argv, asked := slices.Concat(c.Entrypoint, spec.Argv), c.User
	if c.Entrypoint == nil {
		image, err := n.runtime.registry.Look(ctx, c.Image)
		const give = "see the entrypoint of image %.200q: %w; give entrypoint, an empty list for none, and command"
		if errors.Is(err, registry.ErrAway) {
			return fmt.Errorf("%w: the kubernetes runtime cannot "+give, runtime.ErrUnavailable, c.Image, err)
		}
		if err != nil {
			return cannot(give, c.Image, err)
		}
		if argv = slices.Concat(image.Entrypoint, spec.Argv); len(spec.Argv) == 0 {
			argv = slices.Concat(image.Entrypoint, image.Cmd)
		}
		if _, _, err := userOf(image.User); asked == "" && err == nil { // neither root nor a name: only the image's files give a name's number
			asked = image.User
		}
	}
	if len(argv) == 0 || argv[0] == "" {
		return fmt.Errorf("%w: image %.200q has no command of its own; give one", runtime.ErrSpec, c.Image)
	}
	user, own, err := userOf(asked)
	if err != nil {
		return err
	}
	n.user = user
	if n.network, err = c.NetworkOf(n.runtime.options.Networks); err != nil {
		return err
	}
	if err := n.checkFiles(); err != nil {
		return err
	}
	l := spec.Limits
	n.command = wire.Command{Argv: argv, Env: spec.Env, Dir: c.WorkDir, Files: len(spec.Files) > 0, Stdin: spec.Stdin != nil,
		Network: n.network != "none", CountUser: own,
		Wall: l.EndWall(), CPU: l.EndCPU(), Pids: l.Pids, Output: l.Output, Disk: l.Disk, Stack: l.Stack}
	n.rename()
	return nil
}

// rename draws a new nonce and the pod name derived from it, for a pod that replaces one that may still be ending under the old name.
func (n *run) rename() {
	n.nonce = strings.ToLower(rand.Text())
	n.name = n.podName()
	n.uid = ""
	n.tell(func(s *wire.State) { *s = wire.State{} })
}

// userOf is the user and group of a run; own is true when no other run has them.
func userOf(asked string) (ids [2]int64, own bool, err error) {
	if asked == "" {
		var random [8]byte
		_, _ = rand.Read(random[:])
		id := firstUser + int64(binary.NativeEndian.Uint64(random[:])%users)
		return [2]int64{id, id}, true, nil
	}
	first, second, both := strings.Cut(asked, ":")
	if !both {
		second = first
	}
	for i, part := range []string{first, second} {
		id, err := strconv.ParseInt(part, 10, 32)
		if err != nil || id < 0 {
			return ids, false, fmt.Errorf("%w: the kubernetes runtime cannot look up user %.60q in an image: give its number, as in 1000 or 1000:1000", runtime.ErrSpec, asked)
		}
		ids[i] = id
	}
	if ids[0] == 0 {
		return ids, false, fmt.Errorf("%w: the kubernetes runtime runs nothing as root: give another user, or none for one of the run's own", runtime.ErrSpec)
	}
	return ids, false, nil
}

// podName is a readable name: the run's, in the characters that Kubernetes allows, made unique.
func (n *run) podName() string {
	spelt := strings.Trim(strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		}
		return '-'
	}, n.spec.Name), "-")
	return strings.TrimSuffix("pawl-"+spelt[:min(len(spelt), 40)], "-") + "-" + n.nonce[:10]
}

var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

func (n *run) labels() map[string]string {
	all := make(map[string]string)
	for k, v := range n.spec.Labels {
		if labelValue.MatchString(k) && labelValue.MatchString(v) {
			all[labelPrefix+k] = v
		}
	}
	maps.Copy(all, map[string]string{labelOwner: n.runtime.owner, labelLife: n.runtime.life, labelNetwork: n.network})
	return all
}

func (n *run) manifest() *v1.Pod {
	o, c, l := n.runtime.options, n.spec.Container, n.spec.Limits
	pull := map[runtime.Pull]v1.PullPolicy{runtime.PullMissing: v1.PullIfNotPresent, runtime.PullAlways: v1.PullAlways, runtime.PullNever: v1.PullNever}
	policy := cmp.Or(c.Pull, o.Pull)
	confined := func(user, group int64) *v1.SecurityContext {
		return &v1.SecurityContext{
			RunAsUser: &user, RunAsGroup: &group, RunAsNonRoot: new(true), ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
			Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}}, SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
		}
	}
	volume := func(name string, size int64) v1.Volume {
		return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(size, resource.BinarySI)}}}
	}
	mount := func(name, at string, readOnly bool) v1.VolumeMount {
		return v1.VolumeMount{Name: name, MountPath: at, ReadOnly: readOnly}
	}
	main := v1.ResourceList{v1.ResourceMemory: *resource.NewQuantity(l.Memory+initMemory, resource.BinarySI)}
	if l.CPUs > 0 {
		main[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(l.CPUs*1000), resource.DecimalSI)
	}
	keeper := v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: n.labels(), Annotations: map[string]string{
			annotationNonce:   n.nonce,
			annotationLasting: strconv.FormatBool(n.lasting()),
			annotationExpires: strconv.FormatInt(time.Now().Add(startWithin+l.EndWall()+expireAfter).Unix(), 10),
			"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
			"karpenter.sh/do-not-disrupt":                    "true",
		}},
		// The kubelet starts containers in order, each after the PostStart hook of the one before: so the helper is installed
		// when the program's container starts. With a sidecar among the init containers the kubelet would have to sync the
		// pod once more, which it does once a second.
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyNever, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
			TerminationGracePeriodSeconds: new(int64(30)), ActiveDeadlineSeconds: new(int64((startWithin + l.EndWall() + expireAfter).Seconds())),
			NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
			Tolerations:  []v1.Toleration{lostNode(v1.TaintNodeUnreachable), lostNode(v1.TaintNodeNotReady)},
			SecurityContext: &v1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []v1.Container{{
				Name: keeperName, Image: o.HelperImage, Command: []string{wire.Image, "keep", o.OrphanAfter.String()},
				ImagePullPolicy: v1.PullIfNotPresent, SecurityContext: confined(keeperUser, keeperUser),
				// Go's runtime allocates memory per processor of the node, 2 MB for 64. Two processors are enough to serve a pipe and a
				// socket at once.
				Env:          []v1.EnvVar{{Name: "GOMAXPROCS", Value: "2"}},
				Lifecycle:    &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{wire.Image, "installed"}}}},
				Resources:    v1.ResourceRequirements{Limits: keeper, Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("16Mi"), v1.ResourceCPU: resource.MustParse("10m")}},
				VolumeMounts: []v1.VolumeMount{mount("pawl", wire.Shared, false), mount("keep", wire.Keep, false)},
			}, {
				Name: mainName, Image: c.Image, Command: []string{wire.Program, "init"}, ImagePullPolicy: pull[policy], SecurityContext: confined(n.user[0], n.user[1]),
				Resources:    v1.ResourceRequirements{Limits: main},
				VolumeMounts: []v1.VolumeMount{mount("pawl", wire.Shared, true), mount("work", wire.WorkRoot, false), mount("tmp", wire.Temp, false)},
			}},
			Volumes: []v1.Volume{volume("pawl", 32<<20), volume("keep", l.Output+volumeSlack), volume("work", l.Disk+volumeSlack), volume("tmp", 2*l.Disk+volumeSlack)},
		},
	}
	if n.network == "none" {
		pod.Spec.DNSPolicy, pod.Spec.DNSConfig = v1.DNSNone, &v1.PodDNSConfig{Nameservers: []string{"127.0.0.1"}}
	}
	if o.RuntimeClass != "" {
		pod.Spec.RuntimeClassName = &o.RuntimeClass
	}
	n.runtime.template.apply(pod)
	return pod
}

// lostNode tolerates an unresponsive node for lostAfter: the default of Kubernetes is 5 minutes.
func lostNode(taint string) v1.Toleration {
	return v1.Toleration{
		Key: taint, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: new(int64(lostAfter.Seconds())),
	}
}

// checkFiles finds what no order could carry.
func (n *run) checkFiles() error {
	left := n.spec.Limits.Disk
	for _, f := range n.spec.Files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if slices.ContainsFunc(n.spec.Files, func(other runtime.File) bool { return other.Path == dir }) {
				return fmt.Errorf("%w: input file %q lies beneath another file", runtime.ErrSpec, f.Path)
			}
		}
		content, size, _, err := f.Open()
		if err != nil {
			return err
		}
		_ = content.Close()
		if left -= size; left < 0 {
			return fmt.Errorf("%w: input files are larger than the disk limit of %d bytes; raise the limit", runtime.ErrSpec, n.spec.Limits.Disk)
		}
	}
	return nil
}
