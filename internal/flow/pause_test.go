package flow

import (
	"testing"
	"time"
)

// again is how long after its failure an execution is tried again; 0 when it is over.
func again(t *testing.T, r Request, e Error) time.Duration {
	t.Helper()
	d := held(t, r)
	failed := Event{Seq: 5, Attempt: 1, Type: EvFailed, Outcome: &Outcome{Error: &e}}
	rc := d.Report(session, Report{Execution: d.ID, Attempt: 1, Events: []Event{event(d, 4, EvRunning), failed}}, nil, nil, t0, 0)
	if rc.Verdict != Applied {
		t.Fatalf("%+v", rc)
	}
	if d.Stage.Terminal() {
		return 0
	}
	return d.WakeAt.Sub(t0)
}

// A pause that the other side of a call asks for is kept, within a day; the policy's own is not shortened by it.
func TestAskedPause(t *testing.T) {
	r := Request{Retry: Retry{MaxAttempts: 2, Delay: time.Minute}}
	for details, want := range map[string]time.Duration{
		`{"retry_in":90}`: 90 * time.Second, `{"retry_in":0.5}`: time.Minute, `{"retry_in":-5}`: time.Minute, `{"retry_in":1e300}`: MostAskedPause,
		`{"retry_in":"90"}`: time.Minute, `[]`: time.Minute, ``: time.Minute,
	} {
		if got := again(t, r, Error{Code: "http_503", Details: []byte(details)}); got != want {
			t.Errorf("%s: tried again after %s, want %s", details, got, want)
		}
	}
	if got := again(t, Request{}, Error{Code: "http_503", Details: []byte(`{"retry_in":90}`)}); got != 0 {
		t.Errorf("without a policy it is tried again after %s", got)
	}
}

// A webhook is tried for about two days, and never again once its receiver is gone.
func TestDeliveries(t *testing.T) {
	r := Request{Kind: KindWebhook, Retry: KindWebhook.Retry()}
	if got := again(t, r, Error{Code: "http_500"}); got != 5*time.Minute {
		t.Errorf("tried again after %s", got)
	}
	if got := again(t, r, Error{Code: CodeGone}); got != 0 {
		t.Errorf("tried again after %s though its receiver is gone", got)
	}
	for random, least := range map[float64]time.Duration{0: 40 * time.Hour, 0.999: 30 * time.Hour} {
		whole := time.Duration(0)
		for i := 1; i < r.Retry.MaxAttempts; i++ {
			whole += r.Retry.Pause(i, random)
		}
		if r.Retry.MaxAttempts != 10 || whole < least || whole > 50*time.Hour {
			t.Errorf("%d attempts over %s", r.Retry.MaxAttempts, whole)
		}
	}
}

// A workflow that its timeout has ordered to end, and that waits for its tasks to be over, keeps that deadline when it is paused: by its
// history the end that follows comes when it may.
func TestPauseOfWhatIsOrderedToEnd(t *testing.T) {
	d := Submit(ID{1}, Request{Kind: KindWorkflow, CreatedAt: t0, Settings: Settings{Timeout: time.Minute}})
	if err := d.Schedule(1, t0); err != nil {
		t.Fatal(err)
	}
	if err := d.Cancel(TimedOut, CodeTimeout, "late", t0.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := d.Pause(Pause{By: "ann", Stops: true}, t0.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if p, err := PauseOf(&d.Events[len(d.Events)-1]); err != nil || p.Stops || d.StandsStill() || !d.EngineDeadline().Equal(t0.Add(time.Minute)) {
		t.Errorf("%+v, %v: its deadline is %s", p, err, d.EngineDeadline())
	}
}
