package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/drain"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// server is an API server played by the test: it answers each request about pods, except lists and watches, with the next of its answers,
// and repeats the last one.
type server struct {
	mu      sync.Mutex
	asked   []string
	answers []http.HandlerFunc
	lists   []string // of pods, used in the same way
	watches []string // the events of each watch; watches after the last one stay open
}

func next[T any](all *[]T) (one T) {
	if len(*all) > 0 {
		one = (*all)[0]
	}
	if len(*all) > 1 {
		*all = (*all)[1:]
	}
	return one
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	switch {
	case query.Get("watch") != "":
		events, more := "", len(s.watches) > 0
		if more {
			events, s.watches = s.watches[0], s.watches[1:]
		}
		s.mu.Unlock()
		fmt.Fprint(w, events)
		w.(http.Flusher).Flush()
		if !more {
			<-r.Context().Done()
		}
		return
	case r.Method == "GET" && strings.HasSuffix(r.URL.Path, "/pods"):
		items := ""
		if !strings.Contains(query.Get("labelSelector")+query.Get("fieldSelector"), "!=") { // otherwise it is from a sweep
			items = next(&s.lists)
		}
		s.mu.Unlock()
		fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[%s]}`, items)
		return
	}
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	answer := next(&s.answers)
	s.mu.Unlock()
	answer(w, r)
}

// says is an API server's answer with a status.
func says(code int, reason metav1.StatusReason, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason, Message: message})
	}
}

func pod(nonce string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(v1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u1", Annotations: map[string]string{annotationNonce: nonce}}})
	}
}

// cut closes the connection without an answer.
func cut(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func onServer(t *testing.T, s *server) *Runtime {
	t.Helper()
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	return atURL(t, listening.URL)
}

func atURL(t *testing.T, url string) *Runtime {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u, namespace: runs}}], users: [{name: u, user: {}}], clusters: [{name: c, cluster: {server: %q}}]}`, url)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := New(Options{Kubeconfig: path, HelperImage: "helper"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func planned(t *testing.T, r *Runtime) *run {
	t.Helper()
	n := newRun(r, runtime.Spec{Name: "ex_1/2", Argv: []string{"true"}, Container: &runtime.Container{Image: "i", Entrypoint: []string{}}, Limits: runtime.DefaultLimits()})
	if err := n.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCreate(t *testing.T) {
	t.Parallel()
	type answers = []http.HandlerFunc
	for name, c := range map[string]struct {
		answers func(nonce string) answers
		is      error // nil: it succeeds
		say     string
		asked   int
	}{
		"made": {func(nonce string) answers { return answers{pod(nonce)} }, nil, "", 1},
		"quota": {func(nonce string) answers {
			return answers{says(403, metav1.StatusReasonForbidden, "exceeded quota: pods"), says(403, metav1.StatusReasonForbidden, "exceeded quota: pods"), pod(nonce)}
		}, nil, "raise the quota in namespace runs", 3},
		"pod security": {func(_ string) answers {
			return answers{says(403, metav1.StatusReasonForbidden, `violates PodSecurity "x"`)}
		}, runtime.ErrUnavailable, "restricted", 1},
		"no rights":      {func(_ string) answers { return answers{says(403, metav1.StatusReasonForbidden, "pods is forbidden")} }, runtime.ErrUnavailable, "docs/kubernetes.md", 1},
		"no credentials": {func(_ string) answers { return answers{says(401, metav1.StatusReasonUnauthorized, "Unauthorized")} }, runtime.ErrUnavailable, "credentials", 1},
		"no namespace": {func(_ string) answers {
			return answers{says(404, metav1.StatusReasonNotFound, `namespaces "runs" not found`)}
		}, runtime.ErrUnavailable, "--kubernetes-namespace", 1},
		"invalid": {func(_ string) answers { return answers{says(422, metav1.StatusReasonInvalid, "spec.x: Invalid value")} }, runtime.ErrSpec, "Invalid value", 1},
		"busy": {func(nonce string) answers {
			return answers{says(500, metav1.StatusReasonInternalError, "etcd"), says(503, metav1.StatusReasonServiceUnavailable, "soon"), pod(nonce)}
		}, nil, "", 3},
		"the quota's count has changed": {func(nonce string) answers {
			return answers{says(409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on resourcequotas "q": the object has been modified`), pod(nonce)}
		}, nil, "", 2},
		"the answer was lost": {func(nonce string) answers {
			return answers{cut, says(409, metav1.StatusReasonAlreadyExists, "exists"), pod(nonce)}
		}, nil, "", 3},
		"another has the name": {func(_ string) answers {
			return answers{says(409, metav1.StatusReasonAlreadyExists, "exists"), pod("another")}
		}, runtime.ErrUnavailable, "another's", 2},
		"the server stays away":       {func(_ string) answers { return answers{cut} }, runtime.ErrUnavailable, "is the cluster that the kubeconfig names running?", 5},
		"and the server that is busy": {func(_ string) answers { return answers{says(500, metav1.StatusReasonInternalError, "etcd is gone")} }, runtime.ErrUnavailable, "etcd is gone", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{}
			n := planned(t, onServer(t, s))
			s.answers = c.answers(n.nonce)
			var notes []string
			n.spec.Note = func(waiting string) { notes = append(notes, waiting) }
			err := n.create(t.Context())
			if c.is == nil && c.say != "" && (len(notes) != 1 || !strings.Contains(notes[0], c.say)) {
				t.Errorf("noted %q", notes)
			}
			if c.is == nil && err != nil || c.is != nil && (!errors.Is(err, c.is) || !strings.Contains(err.Error(), c.say)) {
				t.Errorf("%v, want %v with %q", err, c.is, c.say)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.asked) != c.asked {
				t.Errorf("asked %v", s.asked)
			}
		})
	}
}

// A cancelled creation may still be carried out after the DELETE that removes the pod: the pod then stays until its keeper has missed a
// worker for OrphanAfter. So a start that is cancelled while the API server creates the pod waits for the answer.
func TestCreateIsAnswered(t *testing.T) {
	t.Parallel()
	s := &server{}
	n := planned(t, onServer(t, s))
	ctx, giveUp := context.WithCancel(t.Context())
	made := pod(n.nonce)
	s.answers = []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
		giveUp()
		made(w, r)
	}}
	if err := n.create(ctx); err != nil || n.uid != "u1" {
		t.Errorf("create: %v, the pod has uid %q", err, n.uid)
	}
}

// A stream that the API server does not answer can be ended.
func TestStreamThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	asked := make(chan bool, 1)
	listening := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/exec") {
			asked <- true
		}
		<-r.Context().Done()
	}))
	defer listening.Close()
	defer listening.CloseClientConnections()
	r := atURL(t, listening.URL)
	l, err := r.dial("p", wire.Greeting{}, silence, func(wire.Frame) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	l.cancel()
	select {
	case <-l.over:
	case <-time.After(20 * time.Second):
		t.Error("the stream does not end")
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	r := onServer(t, &server{})
	r.options.Networks = []string{"backend"}
	images := httptest.NewServer(http.NotFoundHandler())
	defer images.Close()
	of := func(registry string) func(*runtime.Spec) {
		return func(s *runtime.Spec) { s.Container.Entrypoint, s.Container.Image = nil, registry+"/i" }
	}
	if err := newRun(r, runtime.Spec{Container: &runtime.Container{Image: "127.0.0.1:1/i"}, Limits: runtime.DefaultLimits()}).plan(t.Context()); !errors.Is(err, runtime.ErrUnavailable) ||
		errors.Is(err, runtime.ErrSpec) || !strings.Contains(err.Error(), "give entrypoint") {
		t.Errorf("a registry that is away: %v", err) // the request is not at fault: it may succeed later
	}
	for name, c := range map[string]struct {
		change func(*runtime.Spec)
		say    string
	}{
		"no image":     {of(strings.TrimPrefix(images.URL, "http://")), "answers 404"},
		"no name":      {of("a b:"), "give entrypoint"},
		"no command":   {func(s *runtime.Spec) { s.Argv = nil }, "no command of its own"},
		"root":         {func(s *runtime.Spec) { s.Container.User = "0:0" }, "nothing as root"},
		"user by name": {func(s *runtime.Spec) { s.Container.User = "app" }, "give its number"},
		"network":      {func(s *runtime.Spec) { s.Container.Network = "host" }, `network "host"; this worker offers backend`},
		"mount":        {func(s *runtime.Spec) { s.Mounts = []runtime.Mount{{Path: "/opt"}} }, "mount /opt"},
	} {
		n := newRun(r, runtime.Spec{Argv: []string{"true"}, Container: &runtime.Container{Image: "i", Entrypoint: []string{}}, Limits: runtime.DefaultLimits()})
		c.change(&n.spec)
		if err := n.plan(t.Context()); !errors.Is(err, runtime.ErrSpec) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
	n := planned(t, r)
	if m := n.manifest(); !strings.HasPrefix(m.Name, "pawl-ex-1-2-") || m.Spec.RestartPolicy != v1.RestartPolicyNever || *m.Spec.AutomountServiceAccountToken {
		t.Errorf("%+v", m)
	}
}

// The image's user counts if its registry is queried, the task names none, and it is a number other than root's.
func TestUserOfTheImage(t *testing.T) {
	t.Parallel()
	r := onServer(t, &server{})
	for user, c := range map[string]struct {
		asked, entrypoint string
		want              [2]int64 // zero: an id of the run's own
	}{
		"1000": {want: [2]int64{1000, 1000}}, "1000:50": {want: [2]int64{1000, 50}}, "0": {}, "": {}, "node": {}, "1001:users": {},
		"1002": {asked: "7", want: [2]int64{7, 7}},
		"1003": {entrypoint: "true"},
	} {
		config := fmt.Sprintf(`{"config":{"Entrypoint":["/app"],"User":%q}}`, user)
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(config)))
		images := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, digest) {
				_, _ = io.WriteString(w, config)
				return
			}
			fmt.Fprintf(w, `{"config":{"digest":%q}}`, digest)
		}))
		defer images.Close()
		n := newRun(r, runtime.Spec{Name: "ex_1", Container: &runtime.Container{Image: strings.TrimPrefix(images.URL, "http://") + "/app:1", User: c.asked}, Limits: runtime.DefaultLimits()})
		if c.entrypoint != "" {
			n.spec.Container.Entrypoint = []string{c.entrypoint}
		}
		if err := n.plan(t.Context()); err != nil {
			t.Fatal(err)
		}
		own := n.user[0] >= firstUser && n.command.CountUser
		if c.want[0] != 0 && (n.user != c.want || n.command.CountUser) || c.want[0] == 0 && !own {
			t.Errorf("image's user %q, task's %q: %v, want %v", user, c.asked, n.user, c.want)
		}
	}
}

func TestHopelessPods(t *testing.T) {
	t.Parallel()
	waiting := func(reason string) *v1.Pod {
		return &v1.Pod{Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: mainName, Image: "i", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: "words"}}}}}}
	}
	for reason, want := range map[string]error{"ContainerCreating": nil, "PodInitializing": nil, "ErrImagePull": nil, "ImagePullBackOff": nil, "CreateContainerError": nil,
		"InvalidImageName": runtime.ErrSpec, "ErrImageNeverPull": runtime.ErrSpec, "CreateContainerConfigError": runtime.ErrSpec} {
		if err := hopeless(waiting(reason)); !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "words") {
			t.Errorf("%s: %v", reason, err)
		}
	}
	evicted := &v1.Pod{Status: v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted", Message: "the node was low on memory"}}
	keeperless := &v1.Pod{Spec: v1.PodSpec{NodeName: "n1"}, Status: v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: []v1.ContainerStatus{
		{Name: keeperName, Image: "h", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such thing"}}},
		{Name: mainName, Image: "i", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "StartError", Message: `exec: "` + wire.Program + `": stat ` + wire.Program + `: no such file or directory: unknown`}}}}}}
	if err := hopeless(keeperless); !errors.Is(err, runtime.ErrUnavailable) || !errors.Is(err, errKeeperless) || !strings.Contains(err.Error(), "node n1 cannot pull image h: no such thing") {
		t.Errorf("%v", err)
	}
	keeperless.Status.ContainerStatuses[1].State.Terminated.Message = `chdir to cwd ("/x") failed`
	if err := hopeless(keeperless); !errors.Is(err, runtime.ErrSpec) {
		t.Errorf("%v", err)
	}
	var taken *runtime.TakenError
	for name, status := range map[string]v1.PodStatus{
		"the keeper has waited in vain": {Phase: v1.PodSucceeded},
		"process 1 has ended": {Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{Name: mainName, State: v1.ContainerState{
			Terminated: &v1.ContainerStateTerminated{ExitCode: 120, Reason: "Error"}}}}},
	} {
		if err := hopeless(&v1.Pod{Status: status}); !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(err.Error(), "ended before its program began") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := hopeless(evicted); !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(err.Error(), "low on memory") || !errors.As(err, &taken) || taken.Cause != runtime.Evicted {
		t.Errorf("%v", err)
	}
}

// The reasons for which a pod waits are reported in the cluster's words, and only those that apply.
func TestWaitsFor(t *testing.T) {
	t.Parallel()
	unscheduled := &v1.Pod{Status: v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient memory."}}}}
	waiting := func(reason, message string) *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{NodeName: "n1"}, Status: v1.PodStatus{InitContainerStatuses: []v1.ContainerStatus{{Name: keeperName, Image: "i", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}}}}}}
	}
	for name, c := range map[string]struct {
		pod  *v1.Pod
		want string
	}{
		"nothing known":   {nil, ""},
		"no node":         {unscheduled, "Unschedulable: 0/3 nodes are available: 3 Insufficient memory.; lower limits.memory or limits.cpus"},
		"no image":        {waiting("ErrImagePull", "not found"), "node n1 cannot pull image i: not found; check the image's name"},
		"no image, later": {waiting("ImagePullBackOff", "not found"), "node n1 cannot pull image i: not found; check the image's name"},
		"no container":    {waiting("CreateContainerError", "context deadline exceeded"), "container keeper on node n1: CreateContainerError: context deadline exceeded"},
		"on its way":      {waiting("PodInitializing", ""), ""},
	} {
		if got := waitsFor(c.pod); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestCauses(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	condition := func(reason string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}, Status: v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: reason}}}}
	}
	for name, c := range map[string]struct {
		pod  *v1.Pod
		want runtime.Cause
	}{
		"gone":        {nil, runtime.Deleted},
		"runs":        {&v1.Pod{}, ""},
		"deleted":     {&v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}, runtime.Deleted},
		"preempted":   {condition("PreemptionByScheduler"), runtime.Preempted},
		"node lost":   {condition("DeletionByTaintManager"), runtime.NodeLost},
		"node gone":   {condition("DeletionByPodGC"), runtime.NodeLost},
		"drained":     {condition("EvictionByEvictionAPI"), runtime.Evicted},
		"short":       {condition("TerminationByKubelet"), runtime.Evicted},
		"out of disk": {&v1.Pod{Status: v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted"}}, runtime.Evicted},
		"shut down":   {&v1.Pod{Status: v1.PodStatus{Phase: v1.PodFailed, Reason: "Terminated", Message: "Pod was terminated in response to imminent node shutdown."}}, runtime.NodeShutdown},
	} {
		if got := causeOf(c.pod); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// When the kernel kills a whole container for its memory, process 1 dies, too: the cluster reports the reason.
func TestLostPods(t *testing.T) {
	t.Parallel()
	r := onServer(t, &server{watches: []string{}})
	for reason, want := range map[string]error{"OOMKilled": errOOM, "Error": errInfra} {
		n := planned(t, r)
		r.watcher.add(n.name)
		r.watcher.note(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: n.name}, Status: v1.PodStatus{Phase: v1.PodRunning,
			ContainerStatuses: []v1.ContainerStatus{{Name: mainName, State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: reason, ExitCode: 137}}}}}}, false)
		if err := n.lost(); !errors.Is(err, want) {
			t.Errorf("%s: %v", reason, err)
		}
		r.watcher.drop(n.name)
	}
}

// If a container was killed for memory while its node was short of it, the program is not at fault.
func TestOOMOnFullNode(t *testing.T) {
	t.Parallel()
	r := onServer(t, &server{watches: []string{}})
	for what, status := range map[string]v1.PodStatus{
		"evicted": {Phase: v1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."},
		"disrupted": {Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonTerminationByKubelet,
			Message: "The node was low on resource: memory."}}},
	} {
		n := planned(t, r)
		r.watcher.add(n.name)
		status.ContainerStatuses = []v1.ContainerStatus{{Name: mainName, State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}}}}
		r.watcher.note(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: n.name}, Status: status}, false)
		if err := n.lost(); errors.Is(err, errOOM) || !errors.Is(err, errInfra) || n.result.Cause != runtime.Evicted {
			t.Errorf("%s: %v, %q", what, err, n.result.Cause)
		}
		r.watcher.drop(n.name)
	}
	n := planned(t, r)
	n.budget = drain.NewBudget(1, func() {})
	n.judge(&wire.Report{Signal: "SIGKILL", OOMKills: 1, HostFull: true})
	if n.result.Verdict != runtime.InfraError || !strings.Contains(n.result.Reason, "the memory of the machine") {
		t.Errorf("%+v", n.result)
	}
}

func TestOrphaned(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	ended := func(ago time.Duration) v1.PodStatus {
		return v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: mainName, State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{FinishedAt: metav1.NewTime(now.Add(-ago))}}}}}
	}
	for name, c := range map[string]struct {
		expires string
		status  v1.PodStatus
		want    bool
	}{
		"runs":                  {"1000100", v1.PodStatus{Phase: v1.PodRunning}, false},
		"has outlived its time": {"999999", v1.PodStatus{Phase: v1.PodRunning}, true},
		"has just ended":        {"1000100", ended(time.Second), false},
		"ended long ago":        {"1000100", ended(time.Hour), true},
		"says nothing readable": {"soon", v1.PodStatus{Phase: v1.PodRunning}, false},
	} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationExpires: c.expires}}, Status: c.status}
		if got := orphaned(p, now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A keeper's frames are checked: a gap in the output, an end before all of it, a helper of another release.
func TestKeeperThatIsWrong(t *testing.T) {
	t.Parallel()
	r := onServer(t, &server{})
	for name, c := range map[string]struct {
		frame wire.Frame
		say   string
	}{
		"a gap":           {wire.Frame{Kind: wire.Out, Offset: 5, Data: []byte("x")}, "output at offset 5"},
		"an early end":    {state(wire.State{Version: wire.Version, Phase: wire.Exited, Out: 9}), "9 and 0 bytes"},
		"another version": {state(wire.State{Version: 99}), "use the helper image of this release"},
		"nonsense":        {wire.Frame{Kind: '?'}, "unknown frame"},
	} {
		n := planned(t, r)
		if err := n.take(c.frame); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
	n := planned(t, r)
	for _, epoch := range []string{"a", "b"} {
		if err := n.take(state(wire.State{Version: wire.Version, Epoch: epoch, Phase: wire.Ready})); err != nil {
			t.Error(err)
		}
	}
	if s, _ := n.now(); s.Phase != wire.Broken {
		t.Errorf("a keeper that was started again: %+v", s)
	}
}

func state(s wire.State) wire.Frame {
	return wire.Pack(wire.Status, 0, &s)
}

// A pod's files are checked as if the program had sent them.
func TestFilesThatAreWrong(t *testing.T) {
	t.Parallel()
	header := func(path string, size int64) wire.Frame {
		return wire.Pack(wire.File, 0, &wire.FileHeader{Path: path, Mode: 0o4777, Size: size})
	}
	data := wire.Frame{Kind: wire.Data, Data: []byte("12345")}
	end := wire.Pack(wire.Fetched, 0, &wire.Refusals{})
	for name, frames := range map[string][]wire.Frame{
		"outside": {header("../x", 1)}, "absolute": {header("/x", 1)}, "not clean": {header("a//b", 1)}, "too large": {header("x", 101)},
		"too long": {header("x", 4), data}, "too short": {header("x", 6), data, end}, "no file": {data}, "negative": {header("x", -1)},
	} {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		c := &fetch{root: root, into: root.Name(), left: 100}
		for _, f := range frames {
			c.take(f)
		}
		if c.err == nil || !c.done {
			t.Errorf("%s: %+v", name, c)
		}
		_ = root.Close()
	}
}

// Only events report a volume that cannot be mounted.
func TestWarning(t *testing.T) {
	t.Parallel()
	event := func(reason string, second int) string {
		return fmt.Sprintf(`{"kind":"Event","apiVersion":"v1","metadata":{"name":%q},"reason":%q,"message":" words of it ","lastTimestamp":"2026-01-01T00:00:%02dZ"}`, reason, reason, second)
	}
	s := &server{answers: []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Query().Get("fieldSelector"), "type=Warning") {
			t.Errorf("asked %s", r.URL)
		}
		fmt.Fprintf(w, `{"kind":"EventList","apiVersion":"v1","items":[%s,%s]}`, event("FailedMount", 9), event("FailedScheduling", 1))
	}, says(403, metav1.StatusReasonForbidden, "events is forbidden")}}
	n := planned(t, onServer(t, s))
	for _, want := range []string{"FailedMount: words of it", "the cluster does not tell its events: "} {
		if got := n.warning(t.Context()); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
