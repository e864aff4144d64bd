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

// serviceAccount is the file in which a pod finds its own namespace.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// quiet silences the client library, which logs to stderr every error that it also returns and the end of each stream.
var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

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
	config.QPS = -1 // no client-side limit: a worker makes a few requests per run, and the server enforces its own limits
	config.UserAgent = "pawl"
	return config, namespace, nil
}

// refused maps the cluster's error to the port's: ErrSpec where the API server calls the pod invalid, else ErrUnavailable.
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

// quotaIsFull reports whether a pod was refused because the existing pods fill the quota.
func quotaIsFull(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// lasting reports whether a failed request would fail again if it were repeated.
func lasting(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false // the connection, not the server
	}
	// A conflict is one on the quota's usage count, which another creation changed meanwhile.
	return !apierrors.IsConflict(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsInternalError(err) && !apierrors.IsServerTimeout(err) &&
		!apierrors.IsTimeout(err) && !apierrors.IsServiceUnavailable(err)
}

// insist repeats a request that failed with a passing error, as long as ctx lasts.
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
