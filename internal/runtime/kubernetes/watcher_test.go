//go:build unix

package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A watch that breaks off, or that the server calls too old, continues from a new listing: a pod that disappeared meanwhile is gone.
func TestWatchAgain(t *testing.T) {
	t.Parallel()
	object := func(version, phase string) string {
		return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","uid":"u1","resourceVersion":%q},"status":{"phase":%q}}`, version, phase)
	}
	s := &server{lists: []string{object("1", "Pending"), object("9", "Running"), ""},
		watches: []string{`{"type":"MODIFIED","object":` + object("2", "Pending") + `}` + "\n" + `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired"}}` + "\n", ""}}
	r := onServer(t, s)
	r.watcher.add("p")
	var seen []string
	for deadline := time.After(20 * time.Second); ; {
		pod, gone, changed := r.watcher.look("p")
		if pod != nil {
			seen = append(seen, string(pod.Status.Phase))
		}
		if gone {
			break
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("the pod is not gone: %v", seen)
		}
	}
	if said := strings.Join(seen, " "); !strings.Contains(said, "Running") {
		t.Errorf("seen: %s", said)
	}
}

// A listing that is never answered does not stop the watcher for ever.
func TestListAgain(t *testing.T) {
	t.Parallel()
	var lists atomic.Int32
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" || lists.Add(1) == 1 {
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"p","uid":"u1"}}]}`)
	}))
	defer listening.Close()
	quiet() // as connect does before it uses the library
	pods, err := newClient(&rest.Config{Host: listening.URL}, "runs")
	if err != nil {
		t.Fatal(err)
	}
	w := newWatcher(&Runtime{pods: pods, owner: "o"})
	w.within = 50 * time.Millisecond
	w.add("p")
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { w.follow(ctx) })
	eventually(t, "the pod is seen", func() bool { pod, _, _ := w.look("p"); return pod != nil })
	cancel()
	following.Wait()
}

// A worker that may not list pods reports that, and does not only wait.
func TestUntold(t *testing.T) {
	t.Parallel()
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.Method {
		case http.MethodPost:
			pod, _ := io.ReadAll(r.Body)
			_, _ = w.Write(pod)
		case http.MethodGet:
			says(403, metav1.StatusReasonForbidden, "pods is forbidden")(w, r)
		default:
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		}
	}))
	defer listening.Close()
	r := atURL(t, listening.URL)
	n := planned(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var said notes
	n.spec.Note = func(waiting string) { said.note(waiting); cancel() }
	_, err := r.begin(n, func() error { return n.start(ctx) })
	if _, ok := said.with("list pods: pods is forbidden"); !ok || err == nil {
		t.Errorf("%v, told %q", err, said.String())
	}
}
