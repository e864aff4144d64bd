package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-run/pawl/internal/runtime"
	helper "github.com/pawl-run/pawl/internal/runtime/kubernetes/pod"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// cluster is an API server and a node played by the test: the keeper of each pod is the real one, its process 1 is played, and its
// program is a process of this host.
type cluster struct {
	t      *testing.T
	url    string
	mu     sync.Mutex
	change *sync.Cond
	pods   map[string]*played
	events []string // of all watches, in order
	kept   []labels.Set
	frozen bool           // the node answers nothing
	execs  int            // requests for an exec, answered or not
	asked  map[string]int // all requests, by method and resource

	deaf    bool // the node refuses execs, while the API server answers all other requests
	refused int  // execs
	streams map[*websocket.Conn]bool
	says    *wire.Frame              // the only frame of keepers; nil: the keeper's own
	fails   func(*http.Request) bool // true: the API server answers 503; nil: never
	fetch   func(*played) bool       // called before files are sent; false: process 1 ends instead. nil: they are sent
	began   func(*played)            // called when a program executes, before the keeper knows; may be nil
}

// absent is an image that the node cannot pull.
const absent = "absent:1"

type played struct {
	pod    *v1.Pod
	places helper.Places
	ends   chan os.Signal
	gone   chan struct{} // closed when the node has ended the pod
	lost   chan struct{} // closed to kill process 1
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, pods: map[string]*played{}, streams: map[*websocket.Conn]bool{}, asked: map[string]int{}}
	c.change = sync.NewCond(&c.mu)
	server := httptest.NewServer(c)
	t.Cleanup(func() { c.freeze(false); server.CloseClientConnections(); server.Close() })
	c.url = server.URL
	return c
}

func (c *cluster) freeze(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = is
	c.change.Broadcast()
}

// deafen makes the node refuse execs and end existing ones, or accept them again.
func (c *cluster) deafen(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf, c.refused = is, 0
	c.cut()
}

// cut ends all streams; the caller holds the lock.
func (c *cluster) cut() {
	for ws := range c.streams {
		_ = ws.Close()
	}
}

// terminated makes the node report the end of a pod's process 1, with the pod's phase.
func (c *cluster) terminated(p *played, phase v1.PodPhase, how v1.ContainerStateTerminated) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.pod = p.pod.DeepCopy()
	p.pod.Status.Phase, p.pod.Status.ContainerStatuses[0].State = phase, v1.ContainerState{Terminated: &how}
	c.tell("MODIFIED", p.pod)
}

// of is the pod of a run.
func (c *cluster) of(started runtime.Run) *played {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pods[started.(*run).name]
}

// thaw waits until the node answers.
func (c *cluster) thaw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.frozen {
		c.change.Wait()
	}
}

// runtime returns a runtime on the cluster, at its address or another that leads to it.
func (c *cluster) runtime(url string, o Options) *Runtime {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u, namespace: runs}}], users: [{name: u, user: {}}], clusters: [{name: c, cluster: {server: %q}}]}`, url)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	o.Kubeconfig, o.HelperImage = path, "helper"
	r, err := New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// tell sends a change of a pod to the watches; the caller holds the lock.
func (c *cluster) tell(kind string, p *v1.Pod) {
	p.ResourceVersion = strconv.Itoa(len(c.events) + 1)
	object, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	c.events = append(c.events, fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object))
	c.kept = append(c.kept, labels.Set(p.Labels))
	c.change.Broadcast()
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	const pods = "/api/v1/namespaces/runs/pods"
	name, sub, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, pods), "/"), "/")
	query := r.URL.Query()
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	chosen, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		panic(err)
	}
	kind := sub
	if query.Get("watch") != "" {
		kind = "watch"
	}
	c.mu.Lock()
	c.asked[strings.TrimSpace(r.Method+" "+kind)]++
	fails := c.fails
	c.mu.Unlock()
	switch {
	case fails != nil && fails(r):
		says(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "etcd is being started")(w, r)
		return
	case query.Get("watch") != "":
		from, _ := strconv.Atoi(query.Get("resourceVersion"))
		c.watch(w, r, selector, from)
		return
	case sub == "exec":
		c.exec(w, r, name)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pods[name]
	switch {
	case r.Method == http.MethodPost:
		made := new(v1.Pod)
		if err := json.NewDecoder(r.Body).Decode(made); err != nil {
			panic(err)
		}
		c.start(made)
		_ = json.NewEncoder(w).Encode(made)
	case name == "":
		list := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(len(c.events))}}
		for _, p := range c.pods {
			if selector.Matches(labels.Set(p.pod.Labels)) && chosen.Matches(fields.Set{"status.phase": string(p.pod.Status.Phase)}) {
				list.Items = append(list.Items, *p.pod)
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	case p == nil:
		says(http.StatusNotFound, metav1.StatusReasonNotFound, "pods not found")(w, r)
	case r.Method == http.MethodDelete:
		if p.pod.DeletionTimestamp == nil {
			c.condemn(p, "")
		}
		_ = json.NewEncoder(w).Encode(p.pod)
	default:
		_ = json.NewEncoder(w).Encode(p.pod)
	}
}

// condemn makes a pod end, with the cluster's reason if there is one; the caller holds the lock.
func (c *cluster) condemn(p *played, reason string) {
	p.pod = p.pod.DeepCopy()
	at := metav1.NewTime(time.Now().Add(time.Second))
	p.pod.DeletionTimestamp = &at
	if reason != "" {
		p.pod.Status.Conditions = append(p.pod.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: reason})
	}
	c.tell("MODIFIED", p.pod)
	go func() {
		c.thaw()
		close(p.gone)
		p.ends <- syscall.SIGTERM
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pods, p.pod.Name)
		c.tell("DELETED", p.pod)
	}()
}

func (c *cluster) watch(w http.ResponseWriter, r *http.Request, selector labels.Selector, from int) {
	w.(http.Flusher).Flush()
	defer func() { recover() }() //nolint:errcheck // a connection that was closed meanwhile
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-r.Context().Done():
		case <-stop:
		}
		c.mu.Lock()
		c.change.Broadcast()
		c.mu.Unlock()
	}()
	for ; ; from++ {
		c.mu.Lock()
		for from >= len(c.events) && r.Context().Err() == nil {
			c.change.Wait()
		}
		if r.Context().Err() != nil {
			c.mu.Unlock()
			return
		}
		event, of := c.events[from], c.kept[from]
		c.mu.Unlock()
		if selector.Matches(of) {
			if _, err := io.WriteString(w, event); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
}

// start starts a pod; the caller holds the lock.
func (c *cluster) start(made *v1.Pod) {
	p := &played{pod: made, places: helper.Places{Shared: c.t.TempDir(), Keep: c.t.TempDir()}, ends: make(chan os.Signal, 1), gone: make(chan struct{}), lost: make(chan struct{})}
	made.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	made.UID, made.CreationTimestamp, made.Spec.NodeName, made.Status.Phase = types.UID("uid-"+made.Name), metav1.Now(), "n1", v1.PodRunning
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}}
	made.Status.ContainerStatuses = []v1.ContainerStatus{{Name: mainName, State: running}}
	made.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: keeperName, State: running}}
	orphan, err := time.ParseDuration(containerOf(made, keeperName).Command[2])
	if err != nil {
		panic(err)
	}
	c.pods[made.Name] = p
	c.tell("ADDED", made)
	go func() { _ = helper.Keep(p.places, orphan, p.ends) }()
	if containerOf(made, mainName).Image == absent {
		made.Status.Phase, made.Status.ContainerStatuses[0].State = v1.PodPending, v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}
		made.Status.ContainerStatuses[0].Image = absent
		c.tell("MODIFIED", made)
		return
	}
	go c.first(p)
}

// first plays process 1.
func (c *cluster) first(p *played) {
	var conn *net.UnixConn
	for ; conn == nil; time.Sleep(time.Millisecond) { // like a container of the pod, process 1 starts when the keeper is there
		conn, _ = net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(p.places.Shared, path.Base(wire.Socket)), Net: "unix"})
	}
	defer conn.Close()
	var mine, theirs [3]*os.File
	var fds []int
	for i := range mine {
		r, w, err := os.Pipe()
		if err != nil {
			panic(err)
		}
		if mine[i], theirs[i] = w, r; i == 0 {
			mine[i], theirs[i] = r, w
		}
		fds = append(fds, int(theirs[i].Fd()))
	}
	if _, _, err := conn.WriteMsgUnix([]byte{1}, unix.UnixRights(fds...), nil); err != nil {
		return
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	var command wire.Command
	var program *exec.Cmd
	end := func(signal syscall.Signal) {
		if program != nil {
			_ = syscall.Kill(-program.Process.Pid, signal)
		}
	}
	defer end(syscall.SIGKILL)
	defer func() {
		for _, f := range mine {
			_ = f.Close()
		}
	}()
	go func() {
		select {
		case <-p.gone:
		case <-p.lost:
		}
		_ = conn.Close()
	}()
	for {
		f, err := wire.Read(conn)
		if err != nil {
			return
		}
		switch f.Kind {
		case wire.Order:
			if err := f.Decode(&command); err != nil {
				panic(err)
			}
		case wire.Go:
			program = exec.Command(command.Argv[0], command.Argv[1:]...)
			program.Stdin, program.Stdout, program.Stderr, program.SysProcAttr = mine[0], mine[1], mine[2], &syscall.SysProcAttr{Setpgid: true}
			if err := program.Start(); err != nil {
				panic(err)
			}
			if c.began != nil {
				c.began(p)
			}
			_ = wire.Write(conn, wire.Frame{Kind: wire.Began})
			go func() {
				err := program.Wait()
				report := &wire.Report{Wall: time.Second, Code: program.ProcessState.ExitCode(), Enforcement: "none"}
				if e := (*exec.ExitError)(nil); errors.As(err, &e) && !e.Exited() {
					report.Code, report.Signal = 0, "SIGKILL"
				}
				for _, f := range mine {
					_ = f.Close()
				}
				_ = wire.WriteMessage(conn, wire.Ended, report)
			}()
		case wire.Kill:
			if f.Offset > 0 { // the worker itself sends the kill after the grace period
				end(syscall.SIGTERM)
			} else {
				end(syscall.SIGKILL)
			}
		case wire.Fetch:
			if c.fetch != nil && !c.fetch(p) {
				return
			}
			_ = wire.Write(conn, wire.Pack(wire.Fetched, f.Offset, &wire.Refusals{}))
		}
	}
}

// exec connects a WebSocket to a keeper, as a kubelet does through the helper.
func (c *cluster) exec(w http.ResponseWriter, r *http.Request, name string) {
	c.mu.Lock()
	c.execs++
	c.mu.Unlock()
	c.thaw()
	c.mu.Lock()
	p, deaf := c.pods[name], c.deaf
	if deaf {
		c.refused++
	}
	c.mu.Unlock()
	if deaf {
		says(http.StatusInternalServerError, metav1.StatusReasonInternalError, "error dialing backend")(w, r)
		return
	}
	if p == nil {
		says(http.StatusNotFound, metav1.StatusReasonNotFound, "pods not found")(w, r)
		return
	}
	keeper, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(p.places.Keep, path.Base(wire.Attach)), Net: "unix"})
	if err != nil {
		says(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())(w, r)
		return
	}
	defer keeper.Close()
	w.Header().Del("Content-Type")
	ws, err := (&websocket.Upgrader{Subprotocols: websocket.Subprotocols(r)[:1], CheckOrigin: func(*http.Request) bool { return true }}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer ws.Close()
	c.mu.Lock()
	c.streams[ws] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.streams, ws)
		c.mu.Unlock()
	}()
	if c.says != nil {
		_ = ws.WriteMessage(websocket.BinaryMessage, wire.Append([]byte{1}, *c.says))
	}
	go func() {
		defer keeper.Close()
		for {
			_, message, err := ws.ReadMessage()
			if err != nil || len(message) == 0 {
				return
			}
			c.thaw()
			if message[0] == 0 {
				if _, err := keeper.Write(message[1:]); err != nil {
					return
				}
			}
		}
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := keeper.Read(buffer)
		c.thaw()
		if n > 0 && c.says == nil && ws.WriteMessage(websocket.BinaryMessage, append([]byte{1}, buffer[:n]...)) != nil {
			return
		}
		if err != nil {
			_ = ws.WriteMessage(websocket.BinaryMessage, append([]byte{3}, `{"kind":"Status","apiVersion":"v1","status":"Success"}`...))
			return
		}
	}
}
