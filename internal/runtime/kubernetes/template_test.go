package kubernetes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

func writeTemplate(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A template's settings are in the pod together with Pawl's, and do not change any of Pawl's.
func TestTemplate(t *testing.T) {
	t.Parallel()
	r := onServer(t, &server{})
	var err error
	r.template, err = readTemplate(writeTemplate(t, `
metadata: {labels: {team: eval}, annotations: {a: b}}
spec:
  nodeSelector: {gpu: a100, kubernetes.io/os: windows}
  tolerations: [{key: gpu, operator: Exists}]
  imagePullSecrets: [{name: registry}]
  priorityClassName: batch
  containers:
    - name: main
      resources: {limits: {nvidia.com/gpu: 1}, requests: {cpu: 500m}}
`))
	if err != nil {
		t.Fatal(err)
	}
	n := planned(t, r)
	m := n.manifest()
	main := containerOf(m, mainName).Resources
	gpus, memory := main.Limits["nvidia.com/gpu"], main.Limits["memory"]
	if m.Labels["team"] != "eval" || m.Annotations["a"] != "b" || m.Annotations[annotationNonce] != n.nonce || m.Spec.NodeSelector["gpu"] != "a100" || m.Spec.NodeSelector["kubernetes.io/os"] != "linux" ||
		len(m.Spec.Tolerations) != 3 || m.Spec.ImagePullSecrets[0].Name != "registry" || m.Spec.PriorityClassName != "batch" || gpus.Value() != 1 || memory.Value() != n.spec.Limits.Memory+initMemory || main.Requests.Cpu().MilliValue() != 500 {
		t.Errorf("%+v", m)
	}
}

// The template in docs/kubernetes.md is valid.
func TestTemplateOfTheDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## A template for all pods")
	_, block, _ := strings.Cut(section, "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	if read, err := readTemplate(writeTemplate(t, block)); err != nil || read.Spec.NodeSelector["accelerator"] != "a100" || len(read.Spec.Containers) != 1 {
		t.Errorf("%v\n%s", err, block)
	}
}

func TestTemplatesThatAreWrong(t *testing.T) {
	t.Parallel()
	for text, say := range map[string]string{
		"spec: {hostNetwork: true}": "hostNetwork",
		"spec: {containers: [{name: main, securityContext: {privileged: true}}]}": "securityContext",
		"spec: {containers: [{name: main, resources: {limits: {memory: 1Gi}}}]}":  "without limits of memory",
		"spec: {containers: [{name: other}]}":                                     "one container, main",
		"metadata: {labels: {run.pawl.owner: me}}":                                "Pawl's own names",
		"spec: {nodeSelector: [a]}":                                               "nodeSelector",
	} {
		if _, err := readTemplate(writeTemplate(t, text)); !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want %q", text, err, say)
		}
	}
	if _, err := readTemplate("/no/such/file"); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}
