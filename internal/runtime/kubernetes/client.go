package kubernetes

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// client makes the requests about pods of one namespace. The library's typed client would link and compile the types of
// all API groups; a run needs one group.
type client struct {
	rest      rest.Interface
	namespace string
}

// scheme knows the types of the core group; parameters encodes its options into a URL.
var (
	scheme     = apiruntime.NewScheme()
	parameters = apiruntime.NewParameterCodec(scheme)
)

func init() {
	metav1.AddToGroupVersion(scheme, v1.SchemeGroupVersion)
	if err := v1.AddToScheme(scheme); err != nil {
		panic(err) // the library's types contradict each other
	}
}

func newClient(config *rest.Config, namespace string) (*client, error) {
	core := rest.CopyConfig(config)
	core.APIPath, core.GroupVersion = "/api", &v1.SchemeGroupVersion
	core.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c, err := rest.RESTClientFor(core)
	if err != nil {
		return nil, err
	}
	return &client{c, namespace}, nil
}

func (c *client) create(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	made := new(v1.Pod)
	return made, c.rest.Post().Namespace(c.namespace).Resource("pods").Body(pod).Do(ctx).Into(made)
}

func (c *client) get(ctx context.Context, name string) (*v1.Pod, error) {
	found := new(v1.Pod)
	return found, c.rest.Get().Namespace(c.namespace).Resource("pods").Name(name).Do(ctx).Into(found)
}

func (c *client) list(ctx context.Context, options metav1.ListOptions) (*v1.PodList, error) {
	found := new(v1.PodList)
	return found, c.rest.Get().Namespace(c.namespace).Resource("pods").VersionedParams(&options, parameters).Do(ctx).Into(found)
}

func (c *client) events(ctx context.Context, options metav1.ListOptions) (*v1.EventList, error) {
	found := new(v1.EventList)
	return found, c.rest.Get().Namespace(c.namespace).Resource("events").VersionedParams(&options, parameters).Do(ctx).Into(found)
}

func (c *client) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return c.rest.Get().Namespace(c.namespace).Resource("pods").VersionedParams(&options, parameters).Watch(ctx)
}

func (c *client) delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return c.rest.Delete().Namespace(c.namespace).Resource("pods").Name(name).Body(&options).Do(ctx).Error()
}
