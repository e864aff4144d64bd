// Package kubernetes runs programs in pods of a Kubernetes cluster: each run gets one bare pod, which is deleted at its end.
// A pod starts no program by itself. A helper in the pod (package pod) waits for an order over an exec, and only the worker
// that created the pod sends one; so a pod without a worker runs nothing. Output comes over the same stream, byte by byte and
// with offsets, and not from the kubelet's log.
//
// Only cmd/pawl-kubernetes links this package: the client library is larger than all the rest.
package kubernetes

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/registry"
	"github.com/pawl-run/pawl/internal/runtime/runs"
)

const Name = "kubernetes"

type Options struct {
	// Kubeconfig names one kubeconfig file, or several separated as in PATH; empty: the cluster that this process runs in,
	// else KUBECONFIG, else ~/.kube/config.
	Kubeconfig string
	// Namespace is where the pods are created; empty: that of the kubeconfig's context, or of the pod that this process runs in.
	Namespace string
	// HelperImage is an image that contains the helper (cmd/pawl-pod) as /pawl-pod. Required.
	HelperImage string
	// Image is the image of a Spec without a Container; empty: such a Spec is refused.
	Image string
	// Networks are the names that a Container may ask for; without any, no run has a network.
	Networks []string
	// Pull is the policy of a Container without one; empty: runtime.PullMissing.
	Pull runtime.Pull
	// RuntimeClass is the runtime class of the pods; empty: the node's default.
	RuntimeClass string
	// Template is a file with the operator's settings for all pods; empty: none.
	Template string
	// Logins is a file in the format of Docker's config.json, for asking registries for the entrypoints of images; empty: no logins.
	Logins string
	// OrphanAfter is how long a run continues without its worker; 0: 2 minutes.
	OrphanAfter time.Duration
	// Worker is a name that this worker keeps across restarts and shares with no other process that uses the namespace: after a
	// restart the worker takes up its lasting runs by it. Empty: no run lasts.
	Worker string
	// Defaults fill the limits that a Spec leaves at zero; its own zeroes come from runtime.DefaultLimits.
	Defaults runtime.Limits
}

// Runtime starts pods. It is safe for concurrent use.
type Runtime struct {
	options    Options
	config     *rest.Config
	pods       *client
	pullWithin time.Duration // the constant; shorter in tests
	settled    time.Duration // the constant; shorter in tests
	owner      string        // label of this runtime's pods; the same after a restart of the worker
	life       string        // this one
	template   *Template
	registry   *registry.Client
	watcher    *watcher
	pace       pace

	mu    sync.Mutex
	heirs heirs
	runs  runs.Set[*run]
	stop  context.CancelFunc // ends the background work, at Close
	tidy  sync.WaitGroup
}

const defaultOrphanAfter = 2 * time.Minute

// New returns a runtime for a cluster, which need not be reachable yet.
func New(o Options) (*Runtime, error) {
	if o.HelperImage == "" {
		return nil, fmt.Errorf("%w: kubernetes: no helper image: name one that your nodes can pull with --kubernetes-helper-image; docs/kubernetes.md says how it is built", runtime.ErrUnavailable)
	}
	config, namespace, err := connect(o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if o.Namespace != "" {
		namespace = o.Namespace
	}
	template, err := readTemplate(o.Template)
	if err != nil {
		return nil, err
	}
	images, err := registry.New(o.Logins, goruntime.GOARCH)
	if err != nil {
		return nil, fmt.Errorf("%w: kubernetes: %w", runtime.ErrUnavailable, err)
	}
	pods, err := newClient(config, namespace)
	if err != nil {
		return nil, fmt.Errorf("%w: kubernetes: %w", runtime.ErrUnavailable, err)
	}
	o.Namespace = namespace
	o.Defaults = o.Defaults.Or(runtime.DefaultLimits())
	o.Pull = cmp.Or(o.Pull, runtime.PullMissing)
	o.OrphanAfter = cmp.Or(o.OrphanAfter, defaultOrphanAfter)
	open, stop := context.WithCancel(context.Background())
	r := &Runtime{options: o, config: config, pods: pods, template: template, registry: images, life: strings.ToLower(rand.Text()[:16]), stop: stop}
	r.owner, r.pullWithin, r.settled = r.life, pullWithin, settled
	if o.Worker != "" { // a label value cannot be a path
		r.owner = fmt.Sprintf("%x", sha256.Sum256([]byte(o.Worker)))[:32]
	}
	r.watcher = newWatcher(r)
	r.tidy.Go(func() { r.watcher.follow(open) })
	r.tidy.Go(func() { r.sweepAgain(open) })
	return r, nil
}

func (r *Runtime) Name() string { return Name }

func (r *Runtime) Isolation() runtime.Isolation { return runtime.Contained }

// Imaged marks a backend whose programs come from images.
func (r *Runtime) Imaged() {}

// Close kills every run and waits for them and for the deletion of the last pods.
func (r *Runtime) Close() error {
	if !r.runs.Close() {
		return nil
	}
	r.runs.Wait()
	r.stop()
	r.tidy.Wait()
	return nil
}

func (r *Runtime) Start(ctx context.Context, spec runtime.Spec) (runtime.Run, error) {
	if err := spec.CheckContainer(r.options.Image); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	spec.Limits = spec.Limits.Or(r.options.Defaults)
	n := newRun(r, spec)
	if err := n.plan(ctx); err != nil {
		return nil, err
	}
	return r.begin(n, func() error { return n.start(ctx) })
}

func (r *Runtime) begin(n *run, begin func() error) (runtime.Run, error) {
	if err := r.runs.Add(n); err != nil {
		return nil, fmt.Errorf("start %s: %w", n.spec.Name, err)
	}
	if err := begin(); err != nil {
		r.runs.Remove(n)
		return nil, err
	}
	return n, nil
}
