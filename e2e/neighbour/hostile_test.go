package neighbour

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// hostile submits the most expensive requests that the API accepts, and some that it refuses.
type hostile struct {
	t      *testing.T
	base   string
	http   *http.Client
	client *client.Client
	graph  []byte // a definition at the limits of a document
	acts   []act

	mu   sync.Mutex
	done map[string]int
}

func newHostile(t *testing.T, address string) *hostile {
	h := &hostile{
		t: t, base: "http://" + address + "/api/v1", http: &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Minute},
		client: connect(t, address), graph: graph(), done: map[string]int{},
	}
	for _, a := range acts {
		if *only == "" || a.name == *only {
			h.acts = append(h.acts, a)
		}
	}
	if len(h.acts) == 0 {
		t.Fatalf("-neighbour.act %q: there is no such act", *only)
	}
	for _, doc := range [][]byte{[]byte(definitions), h.graph, documents()} {
		if _, err := h.client.Define(t.Context(), doc, "hostile.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// act is one action of a hostile client. It returns the executions that it started.
type act struct {
	name string
	do   func(h *hostile, ctx context.Context, r *rand.Rand) []string
}

// run does one act after the other. It waits briefly for what an act started, submits it again or cancels it at once.
func (h *hostile) run(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		a := h.acts[r.IntN(len(h.acts))]
		ids := a.do(h, ctx, r)
		h.mu.Lock()
		h.done[a.name]++
		h.mu.Unlock()
		select {
		case <-time.After(time.Duration(r.IntN(1500)) * time.Millisecond):
		case <-ctx.Done():
		}
		for i, id := range ids {
			if r.IntN(4) > 0 || i == 0 {
				h.cancel(ctx, id)
			}
		}
	}
}

func (h *hostile) cancel(ctx context.Context, id string) {
	h.send(ctx, http.MethodPost, "/executions/"+id+"/cancel", "application/json", strings.NewReader(`{"reason":"`+strings.Repeat("r", 4096)+`"}`), nil)
}

// withdraw cancels the remaining hostile work and waits until all of it has ended.
func (h *hostile) withdraw(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), quietWithin)
	defer stop()
	began := time.Now()
	// This includes work that was accepted without an answer before the end: a workflow of 100,000 children would run for minutes.
	for f := (client.Filter{TopLevel: true, Status: []api.Status{api.Requested, api.Scheduled, api.Provisioning, api.Running}}); ; {
		page, err := h.client.CancelMany(ctx, f, api.BulkRequest{Reason: strings.Repeat("r", 4096)})
		if err != nil {
			t.Fatalf("withdraw the hostile work: %v", err)
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			break
		}
	}
	for {
		open := 0
		st, err := h.client.Stats(ctx)
		if err == nil {
			for status, n := range st.Executions {
				if !status.Terminal() {
					open += n
				}
			}
			if open == 0 {
				t.Logf("the hostile work had ended %s after it was withdrawn", time.Since(began).Round(time.Millisecond))
				return
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			t.Errorf("%s after its end %d executions of the hostile work are open: %v", quietWithin, open, err)
			for x, err := range h.client.All(t.Context(), client.Filter{Status: []api.Status{api.Requested, api.Scheduled, api.Provisioning, api.Running}, Limit: 10}) {
				if err != nil || open == 0 {
					return
				}
				open = max(0, min(open, 10)-1)
				w, _ := h.client.Why(t.Context(), x.ID)
				t.Logf("%s %s %s: %+v", x.ID, x.Action, x.Status, w)
			}
			return
		}
	}
}

// send makes a call and returns its status. A status of 500, or a call without an answer, fails the test: no request of a client may break
// the server.
func (h *hostile) send(ctx context.Context, method, path, kind string, body io.Reader, out any, header ...string) int {
	req, err := http.NewRequestWithContext(ctx, method, h.base+path, body)
	if err != nil {
		h.t.Error(err)
		return 0
	}
	req.Header.Set("Content-Type", kind)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := h.http.Do(req)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, errHangUp) {
			h.t.Errorf("%s %s: %v", method, path, err)
		}
		return 0
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil && ctx.Err() == nil {
		h.t.Errorf("%s %s: read the answer: %v", method, path, err)
	}
	if res.StatusCode == http.StatusInternalServerError {
		h.t.Errorf("%s %s: %.500s", method, path, answer)
	}
	if out != nil && res.StatusCode < 300 && json.Unmarshal(answer, out) != nil && ctx.Err() == nil {
		h.t.Errorf("%s %s: the answer is %.200q", method, path, answer)
	}
	return res.StatusCode
}

// submit submits one execution. It returns "" when it is refused.
func (h *hostile) submit(ctx context.Context, s map[string]any, header ...string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return h.submitRaw(ctx, b, header...)
}

func (h *hostile) submitRaw(ctx context.Context, body []byte, header ...string) string {
	var x struct {
		ID string `json:"id"`
	}
	h.send(ctx, http.MethodPost, "/executions", "application/json", bytes.NewReader(body), &x, header...)
	return x.ID
}

// batch submits many at once and returns those that were accepted.
func (h *hostile) batch(ctx context.Context, all []map[string]any, header ...string) []string {
	b, err := json.Marshal(map[string]any{"executions": all})
	if err != nil {
		panic(err)
	}
	var out struct {
		Results []struct {
			ID string `json:"id"`
		} `json:"results"`
	}
	h.send(ctx, http.MethodPost, "/executions:batch", "application/json", bytes.NewReader(b), &out, header...)
	var ids []string
	for _, r := range out.Results {
		if r.ID != "" {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

var errHangUp = errors.New("the client hangs up")

// broken is a body whose sender disconnects in the middle.
type broken struct{ left int }

func (b *broken) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errHangUp
	}
	n := min(len(p), b.left)
	for i := range n {
		p[i] = ' '
	}
	b.left -= n
	return n, nil
}

// graph returns a workflow of 1,000 tasks, each of which needs the 150 before it.
func graph() []byte {
	const tasks, needs = 1000, 150
	var b strings.Builder
	b.WriteString("name: graph\ntasks:\n")
	for i := range tasks {
		fmt.Fprintf(&b, "  t%d: {action: noop, with: {n: %d}, needs: [", i, i)
		for j := max(0, i-needs); j < i; j++ {
			fmt.Fprintf(&b, "t%d,", j)
		}
		b.WriteString("]}\n")
	}
	return []byte(b.String())
}
