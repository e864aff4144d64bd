package server

import (
	"context"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/sqlite"
	"github.com/pawl-run/pawl/internal/store/verification"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for range 5 {
		x, err := h.client.Submit(t.Context(), api.Submission{Action: "noop"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.client.Wait(t.Context(), x.ID); err != nil {
			t.Fatal(err)
		}
	}
	v, err := h.client.Verify(t.Context())
	if err != nil || len(v.Broken) != 0 || v.Seconds <= 0 {
		t.Errorf("%+v, %v", v, err)
	}
	// A page of another site must not start a verification, although it changes nothing.
	h.problem(t, 403, api.ProblemForbidden, "GET", "/api/v1/verify", "", "Sec-Fetch-Site", "cross-site")
	h.verifies.Lock()
	h.problem(t, 429, api.ProblemOverloaded, "GET", "/api/v1/verify", "")
	h.verifies.Unlock()
}

// damaged is a store with an error in it.
type damaged struct{ *sqlite.Store }

func (d damaged) Check(context.Context) ([]store.Violation, error) {
	return []store.Violation{{Invariant: 12, Execution: flow.ID{7}, Say: "too many"}, {Invariant: 33, Say: "an index"}}, nil
}

func TestVerifySaysWhatIsBroken(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), sqlite.InMemory, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	e, err := engine.New(engine.Options{Store: damaged{st}, Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	v, err := client.NewInProcess(s.Handler()).Verify(t.Context())
	if err != nil || len(v.Broken) != 2 {
		t.Fatalf("%+v, %v", v, err)
	}
	states := map[int]string{}
	for _, p := range v.Promises {
		states[p.Invariant] = p.State
	}
	if states[12] != verification.Broken || states[33] != verification.Broken || states[13] != verification.Kept || states[40] != verification.Kept || states[61] != "" {
		t.Errorf("%+v", v.Promises)
	}
	if v.Broken[0] != (api.Violation{Invariant: 12, Execution: flow.ID{7}.String(), Message: "too many"}) || v.Broken[1].Execution != "" {
		t.Errorf("%+v", v.Broken)
	}
}
