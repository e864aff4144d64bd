package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/pawl-run/pawl/internal/runtime"
)

// callWithin bounds one request that should be answered at once.
const callWithin = 20 * time.Second

// serviceAccount is where a pod finds the namespace that it is in.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// The client's library logs to stderr what it returns as well, and each stream that ends.
var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// connect finds the cluster.
func connect(kubeconfig string) (*rest.Config, string, error) {
	quiet()
	const fix = "name a kubeconfig with --kubernetes-config or KUBECONFIG, or run pawl-kubernetes in a pod with a service account"
	var config *rest.Config
	namespace := ""
	inCluster, err := rest.InClusterConfig()
	if kubeconfig == "" && os.Getenv("KUBECONFIG") == "" && err == nil {
		config = inCluster
		text, err := os.ReadFile(serviceAccount)
		if err != nil {
			return nil, "", fmt.Errorf("%w: kubernetes: read the namespace of this pod: %w", runtime.ErrUnavailable, err)
		}
		namespace = strings.TrimSpace(string(text))
	} else {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = kubeconfig
		loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
		if config, err = loader.ClientConfig(); err != nil {
			return nil, "", fmt.Errorf("%w: kubernetes: no cluster: %w; %s", runtime.ErrUnavailable, err, fix)
		}
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, "", fmt.Errorf("%w: kubernetes: %w", runtime.ErrUnavailable, err)
		}
	}
	config.QPS = -1 // a worker makes some requests for each run; the server has limits of its own, and says so
	config.UserAgent = "pawl"
	return config, namespace, nil
}

// refused puts the cluster's words into the port's terms: a Spec at fault where the API server calls the pod invalid, else a
// host that cannot.
func (r *Runtime) refused(doing string, err error) error {
	where := "in namespace " + r.options.Namespace
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("kubernetes: %s: %w", doing, err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("%w: kubernetes: %s: %w", runtime.ErrSpec, doing, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: kubernetes: %s: %w; the kubeconfig's credentials, or the pod's service account, are not valid", runtime.ErrUnavailable, doing, err)
	case quotaIsFull(err):
		return fmt.Errorf("%w: kubernetes: %s: %w; raise the quota %s, or give the worker fewer --slots", runtime.ErrUnavailable, doing, err, where)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "violates PodSecurity"):
		return fmt.Errorf("%w: kubernetes: %s: %w; Pawl's pods meet the level \"restricted\": allow that %s", runtime.ErrUnavailable, doing, err, where)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: kubernetes: %s: %w; give the worker the role of docs/kubernetes.md %s", runtime.ErrUnavailable, doing, err, where)
	case apierrors.IsNotFound(err) && strings.Contains(err.Error(), "namespaces"):
		return fmt.Errorf("%w: kubernetes: %s: %w; create it, or name another with --kubernetes-namespace", runtime.ErrUnavailable, doing, err)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fmt.Errorf("%w: kubernetes: %s: %w; is the cluster that the kubeconfig names running?", runtime.ErrUnavailable, doing, err)
	}
	return fmt.Errorf("%w: kubernetes: %s: %w", runtime.ErrUnavailable, doing, err)
}

// quotaIsFull reports whether a pod was refused for now: for those that there are.
func quotaIsFull(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// lasting reports whether a request that failed so may succeed when it is made again.
func lasting(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false // the connection, not the server
	}
	// A conflict is that of the quota's own count, which another creation has changed meanwhile.
	return !apierrors.IsConflict(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsInternalError(err) && !apierrors.IsServerTimeout(err) &&
		!apierrors.IsTimeout(err) && !apierrors.IsServiceUnavailable(err)
}

// insist makes a request again, as long as ctx lasts, where it has failed in a way that passes.
func insist(ctx context.Context, request func(context.Context) error) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		call, cancel := context.WithTimeout(ctx, callWithin)
		err := request(call)
		cancel()
		if err == nil || lasting(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
