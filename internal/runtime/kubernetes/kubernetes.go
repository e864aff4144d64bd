// Package kubernetes runs programs in pods of a Kubernetes cluster: one bare pod for each run, which is created for it and
// deleted with it. The pod starts nothing by itself. A helper in it, package pod, waits for an order that comes over an exec,
// and nobody but the worker that created the pod gives one; so a pod without a worker runs nothing. Output comes the same
// way, byte by byte and with offsets, and not from the kubelet's log.
//
// Only cmd/pawl-kubernetes links this package: the cluster's client is larger than all the rest.
package kubernetes

import (
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

// Name is what users call this backend.
const Name = "kubernetes"

// Options configure New.
type Options struct {
	// Kubeconfig is the file that names the cluster, or several by the separator of PATH; empty: the cluster that this process
	// runs in, or else KUBECONFIG and then ~/.kube/config.
	Kubeconfig string
	// Namespace is where the pods are; empty: the one of the kubeconfig's context, or of the pod that this process runs in.
	Namespace string
	// HelperImage has the helper (cmd/pawl-pod) as /pawl-pod. Required.
	HelperImage string
	// Image is what a Spec without a Container runs in; empty: such a Spec is refused.
	Image string
	// Networks are what a Container may ask for by name; without any, no run has a network.
	Networks []string
	// Pull is the policy of a Container that names none; empty: runtime.PullMissing.
	Pull runtime.Pull
	// RuntimeClass is what nodes run the pods with; empty: their default.
	RuntimeClass string
	// Template is a file with what the operator says of all pods; empty: nothing.
	Template string
	// Logins is a file as Docker's config.json, with which registries are asked for the entrypoints of images; empty: they are asked
	// without.
	Logins string
	// OrphanAfter is how long a run goes on without its worker; 0: 2 minutes.
	OrphanAfter time.Duration
	// Worker names what this process is one life of, by a name that its next life has as well, and no other process anywhere that uses
	// the namespace: lasting runs are left to that. Empty: no run lasts.
	Worker string
	// Defaults fill the limits that a Spec leaves at zero; its own zeroes come from runtime.DefaultLimits.
	Defaults runtime.Limits
}

// Runtime starts pods. It is safe for concurrent use.
type Runtime struct {
	options    Options
	config     *rest.Config
	pods       *client
	pullWithin time.Duration // as the constant, but in tests
	settled    time.Duration // as the constant, but in tests
	owner      string        // of this runtime's pods, in each of the worker's lives
	life       string        // this one
	template   *Template
	registry   *registry.Client
	watcher    *watcher
	pace       pace

	mu    sync.Mutex
	heirs heirs
	runs  runs.Set[*run]
	stop  context.CancelFunc // of what goes on until Close
	tidy  sync.WaitGroup
}

// defaultOrphanAfter is how long a run goes on without its worker unless the options say otherwise.
const defaultOrphanAfter = 2 * time.Minute

// New returns a runtime on a cluster, which need not answer yet.
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
	if o.Pull == "" {
		o.Pull = runtime.PullMissing
	}
	if o.OrphanAfter == 0 {
		o.OrphanAfter = defaultOrphanAfter
	}
	open, stop := context.WithCancel(context.Background())
	r := &Runtime{options: o, config: config, pods: pods, template: template, registry: images, life: strings.ToLower(rand.Text()[:16]), stop: stop}
	r.owner, r.pullWithin, r.settled = r.life, pullWithin, settled
	if o.Worker != "" { // a label takes no path
		r.owner = fmt.Sprintf("%x", sha256.Sum256([]byte(o.Worker)))[:32]
	}
	r.watcher = newWatcher(r)
	r.tidy.Go(func() { r.watcher.follow(open) })
	r.tidy.Go(func() { r.sweepAgain(open) })
	return r, nil
}

// Name returns "kubernetes".
func (r *Runtime) Name() string { return Name }

// Isolation returns runtime.Contained.
func (r *Runtime) Isolation() runtime.Isolation { return runtime.Contained }

// Imaged says that programs come from images.
func (r *Runtime) Imaged() {}

// Close kills every run, waits for it, and until the last pods have been deleted.
func (r *Runtime) Close() error {
	if !r.runs.Close() {
		return nil
	}
	r.runs.Wait()
	r.stop()
	r.tidy.Wait()
	return nil
}

// Start creates a pod and has it begin.
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
