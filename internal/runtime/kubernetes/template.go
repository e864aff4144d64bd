package kubernetes

import (
	"fmt"
	"maps"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pawl-run/pawl/internal/runtime"
)

// Template holds the operator's settings for all pods: the fields of a pod that decide where it runs and what the node gives it. All
// other fields are Pawl's, because its guarantees depend on them.
type Template struct {
	Metadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		NodeSelector              map[string]string             `json:"nodeSelector"`
		Tolerations               []v1.Toleration               `json:"tolerations"`
		Affinity                  *v1.Affinity                  `json:"affinity"`
		TopologySpreadConstraints []v1.TopologySpreadConstraint `json:"topologySpreadConstraints"`
		PriorityClassName         string                        `json:"priorityClassName"`
		SchedulerName             string                        `json:"schedulerName"`
		ServiceAccountName        string                        `json:"serviceAccountName"`
		ImagePullSecrets          []v1.LocalObjectReference     `json:"imagePullSecrets"`
		HostUsers                 *bool                         `json:"hostUsers"`
		Containers                []struct {
			Name      string                  `json:"name"`
			Resources v1.ResourceRequirements `json:"resources"`
		} `json:"containers"`
	} `json:"spec"`
}

// readTemplate reads a template from a file; without a name it returns an empty template.
func readTemplate(file string) (*Template, error) {
	t := new(Template)
	if file == "" {
		return t, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: kubernetes: read the pod template: %w", runtime.ErrUnavailable, err)
	}
	if err := yaml.UnmarshalStrict(text, t); err != nil {
		return nil, fmt.Errorf("%w: kubernetes: pod template %s: %w; a template has metadata (labels, annotations) and spec (nodeSelector, tolerations, affinity, "+
			"topologySpreadConstraints, priorityClassName, schedulerName, serviceAccountName, imagePullSecrets, hostUsers, and the resources of a container called main), and the rest is Pawl's own",
			runtime.ErrUnavailable, file, err)
	}
	for _, all := range []map[string]string{t.Metadata.Labels, t.Metadata.Annotations} {
		for k := range all {
			if strings.HasPrefix(k, labelPrefix) {
				return nil, fmt.Errorf("%w: kubernetes: pod template %s: %s is one of Pawl's own names", runtime.ErrUnavailable, file, k)
			}
		}
	}
	for _, c := range t.Spec.Containers {
		_, memory := c.Resources.Limits[v1.ResourceMemory]
		_, cpu := c.Resources.Limits[v1.ResourceCPU]
		if c.Name != mainName || memory || cpu {
			return nil, fmt.Errorf("%w: kubernetes: pod template %s: a template has one container, %s, without limits of memory and cpu, which a task's limits give", runtime.ErrUnavailable, file, mainName)
		}
	}
	return t, nil
}

func (t *Template) apply(pod *v1.Pod) {
	add := func(to *map[string]string, all map[string]string) {
		if *to == nil {
			*to = map[string]string{}
		}
		for k, v := range all {
			if _, mine := (*to)[k]; !mine {
				(*to)[k] = v
			}
		}
	}
	add(&pod.Labels, t.Metadata.Labels)
	add(&pod.Spec.NodeSelector, t.Spec.NodeSelector)
	maps.Copy(pod.Annotations, t.Metadata.Annotations)
	s := &pod.Spec
	s.Tolerations = append(s.Tolerations, t.Spec.Tolerations...)
	s.Affinity, s.TopologySpreadConstraints = t.Spec.Affinity, t.Spec.TopologySpreadConstraints
	s.PriorityClassName, s.SchedulerName, s.ServiceAccountName = t.Spec.PriorityClassName, t.Spec.SchedulerName, t.Spec.ServiceAccountName
	s.ImagePullSecrets, s.HostUsers = t.Spec.ImagePullSecrets, t.Spec.HostUsers
	for _, c := range t.Spec.Containers {
		main := &containerOf(pod, mainName).Resources
		maps.Copy(main.Limits, c.Resources.Limits)
		if main.Requests == nil {
			main.Requests = v1.ResourceList{}
		}
		maps.Copy(main.Requests, c.Resources.Requests)
	}
}
