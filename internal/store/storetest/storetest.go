// Package storetest tests that a store keeps the contract of the port. It uses a store only through the port, takes all times from its own
// clock, and so runs unchanged against every backend.
package storetest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Exercise runs the suite; open returns an empty store each time and closes it at the end of the test.
func Exercise(t *testing.T, open func(*testing.T) store.Store) {
	for _, part := range []struct {
		name string
		test func(*bench)
	}{
		{"RoundTrip", roundTrip}, {"Text", text}, {"Large", large}, {"Lock", lock}, {"Apply", apply}, {"StaleWrites", staleWrites}, {"Conditions", conditions},
		{"Rollback", rollback}, {"Nested", nested}, {"BadRow", badRow}, {"Refused", refused}, {"Clock", clock},
		{"Tickets", tickets}, {"Take", take}, {"TakeQueues", takeQueues}, {"TakeLarge", takeLarge}, {"Reroute", reroute}, {"Expected", expected},
		{"Keys", keys}, {"Lines", readWaitLists}, {"Waiting", readWaiting}, {"HeldBy", readHeld}, {"Due", due}, {"Idempotency", idempotency},
		{"History", history}, {"Inbox", inbox}, {"Retry", retry},
		{"Children", children}, {"ChildConflict", childConflict}, {"Marks", marks}, {"ChildPages", childPages},
		{"OpenChildren", openChildren}, {"LargeOutcomes", largeOutcomes}, {"WorkflowChanges", workflowChanges},
		{"WorkflowPayloads", workflowPayloads}, {"ExpectedWorkflows", expectedWorkflows}, {"Known", knownExecutions},
		{"Kept", keptOutcomes}, {"KeptViolations", keptViolations}, {"RacingKept", racingKept}, {"Reruns", reruns}, {"Retries", retries}, {"RerunViolations", rerunViolations}, {"Archived", archived},
		{"Sessions", sessions}, {"Leases", leases}, {"Ownership", ownership}, {"Definitions", definitions}, {"Registry", registry}, {"Removing", removing}, {"RemovingParts", removingParts}, {"RemovingLogs", removingLogs}, {"RemovingKeys", removingKeys},
		{"List", list}, {"Digits", digits}, {"Reach", reach}, {"Ranges", ranges}, {"FullList", fullList}, {"FullEvents", fullEvents}, {"Verdicts", verdicts}, {"Outputs", outputs}, {"EndData", endData}, {"Submitted", submitted}, {"Ends", ends}, {"RacingNumbers", racingNumbers}, {"Ahead", ahead}, {"Measures", measures}, {"Survey", survey},
		{"Logs", logs}, {"LogPages", logPages},
		{"Feeding", feeding}, {"FeedingWithin", feedingWithin}, {"FeedingPages", feedingPages}, {"RacingFeeds", racingFeeds},
		{"Uploads", uploads}, {"RacingUploads", racingUploads},
		{"Schedules", schedules}, {"Ticks", ticks}, {"RacingTicks", racingTicks}, {"ScheduleViolations", scheduleViolations},
		{"Signals", signals}, {"Meters", meters}, {"Shares", shares}, {"SignalPages", signalPages}, {"RacingSignals", racingSignals},
		{"Inquiries", inquiries}, {"InquiryPages", inquiryPages}, {"RacingInquiries", racingInquiries}, {"RacingAnswers", racingAnswers}, {"InquiryViolations", inquiryViolations},
		{"DroppedSignals", droppedSignals}, {"Asides", asides}, {"Waits", waits}, {"Uncorrelated", uncorrelatedSignals},
		{"RacingWaits", racingWaits}, {"WaitViolations", waitViolations},
		{"NewSignals", newSignals}, {"Pending", pending}, {"Enforcements", enforcements}, {"RetriedEnforcements", retriedEnforcements},
		{"RacingEnforcements", racingEnforcements}, {"Switches", switches}, {"RuleViolations", ruleViolations}, {"Windows", bufferWindows},
		{"WindowViolations", windowViolations}, {"ClosingParts", closingParts}, {"RacingClosings", racingClosings}, {"Pauses", pausing},
		{"RacingPauses", racingPauses}, {"PauseViolations", pauseViolations}, {"ActionPauseViolations", actionPauseViolations},
		{"RacingClaims", racingClaims}, {"RacingWrites", racingWrites}, {"Prefixes", prefixes}, {"Cancelled", cancelled},
		{"Violations", violations}, {"Model", model},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			b := &bench{tester: t, tb: t, s: open(t), now: epoch}
			part.test(b)
			if !strings.HasSuffix(part.name, "Violations") && !t.Failed() {
				b.clean()
			}
		})
	}
}

// epoch is the start of the suite's clock. It is in the past, so no backend's own clock matters.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// tester has the methods of a test that the suite needs, of package testing or of a property test.
type tester interface {
	Helper()
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
	Context() context.Context
}

// bench is one test's store with helpers for the test.
type bench struct {
	tester
	tb   *testing.T
	s    store.Store
	now  time.Time
	made uint64
}

// id returns a new id; ids grow.
func (b *bench) id() flow.ID {
	b.made++
	var id flow.ID
	binary.BigEndian.PutUint64(id[:], 0x01934c5a7b107000)
	binary.BigEndian.PutUint64(id[8:], b.made)
	return id
}

// later advances the test's clock.
func (b *bench) later(d time.Duration) time.Time {
	b.now = b.now.Add(d)
	return b.now
}

func (b *bench) ctx() context.Context { return b.tester.Context() }

// update runs a transaction that must succeed.
func (b *bench) update(decide func(context.Context, store.Tx) error) {
	b.Helper()
	if err := b.s.Update(b.ctx(), decide); err != nil {
		b.Fatalf("update: %v", err)
	}
}

// apply commits a decision that must succeed.
func (b *bench) apply(drafts ...*flow.Draft) {
	b.Helper()
	b.delta(store.Delta{Drafts: drafts})
}

func (b *bench) delta(d store.Delta) {
	b.Helper()
	b.update(func(ctx context.Context, t store.Tx) error { return t.Apply(ctx, d) })
}

// try commits a decision and returns the store's error.
func (b *bench) try(d store.Delta) error {
	return b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error { return t.Apply(ctx, d) })
}

// inTx returns the result of a read in a transaction.
func inTx[T any](b *bench, read func(context.Context, store.Tx) (T, error)) T {
	b.Helper()
	var v T
	b.update(func(ctx context.Context, t store.Tx) (err error) {
		v, err = read(ctx, t)
		return err
	})
	return v
}

// request returns a small request; change sets what the test needs.
func (b *bench) request(change ...func(*flow.Request)) flow.Request {
	r := flow.Request{Action: "noop", Kind: flow.KindNoop, Queue: "default", CreatedAt: b.now}
	for _, c := range change {
		c(&r)
	}
	return r
}

func (b *bench) submit(change ...func(*flow.Request)) *flow.Draft {
	return flow.Submit(b.id(), b.request(change...))
}

// ready commits an execution that can be claimed, with the given ticket.
func (b *bench) ready(ticket int64, change ...func(*flow.Request)) flow.ID {
	b.Helper()
	d := b.submit(change...)
	must(b, d.Schedule(ticket, b.now))
	b.apply(d)
	return d.ID
}

// claimed commits an execution that the session has claimed.
func (b *bench) claimed(session flow.ID, change ...func(*flow.Request)) flow.ID {
	b.Helper()
	d := b.submit(change...)
	must(b, d.Schedule(int64(b.made), b.now))
	must(b, d.Claim(session, "worker", b.now))
	b.apply(d)
	return d.ID
}

// load returns a draft of a stored execution.
func (b *bench) load(id flow.ID) *flow.Draft {
	b.Helper()
	all := inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) {
		return t.Lock(ctx, []flow.ID{id}, store.WithPayload)
	})
	if len(all) != 1 {
		b.Fatalf("lock %s returned %d executions", id, len(all))
	}
	return flow.Load(all[0])
}

// report reports events as the owner, and commits them.
func (b *bench) report(id flow.ID, types ...flow.EventType) {
	b.Helper()
	d := b.load(id)
	r := flow.Report{Execution: id, Attempt: d.Attempt}
	for i, typ := range types {
		r.Events = append(r.Events, flow.Event{Seq: d.NextSeq + int64(i), Attempt: d.Attempt, Type: typ, At: b.now})
	}
	if rc := d.Report(d.Owner, r, nil, nil, b.now, 0); rc.Verdict != flow.Applied {
		b.Fatalf("report %v of %s: %+v", types, id, rc)
	}
	b.apply(d)
}

// finished commits a completed execution.
func (b *bench) finished(change ...func(*flow.Request)) flow.ID {
	b.Helper()
	id := b.claimed(flow.ID{9}, change...)
	b.report(id, flow.EvRunning, flow.EvCompleted)
	return id
}

func (b *bench) get(id flow.ID) *flow.Execution {
	b.Helper()
	x, err := b.s.Get(b.ctx(), id)
	if err != nil {
		b.Fatalf("get: %v", err)
	}
	return x
}

// clean checks that Check finds no violations.
func (b *bench) clean() {
	b.Helper()
	found, err := b.s.Check(b.ctx())
	if err != nil {
		b.Fatalf("check: %v", err)
	}
	for _, v := range found {
		b.Errorf("invariant %d broken by %s: %s", v.Invariant, v.Execution, v.Say)
	}
}

// broken checks that Check finds an invariant violated by one of these executions, or by any row if none is given.
func (b *bench) broken(invariant int, what string, of ...flow.ID) {
	b.Helper()
	found, err := b.s.Check(b.ctx())
	must(b, err)
	if !slices.ContainsFunc(found, func(v store.Violation) bool {
		return v.Invariant == invariant && v.Say != "" && (len(of) == 0 || slices.Contains(of, v.Execution))
	}) {
		b.Errorf("%s: Check found %v, want invariant %d broken", what, found, invariant)
	}
}

func must(b *bench, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func wantErr(b *bench, what string, err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("%s: %v, want %v", what, err, want)
	}
}

// same compares executions by their visible fields.
var same = []cmp.Option{cmpopts.EquateEmpty(), cmp.Transformer("utc", func(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Format(time.RFC3339Nano)
})}

func equal(b *bench, what string, got, want any) {
	b.Helper()
	if reflect.DeepEqual(got, want) {
		return // the usual case, and much faster
	}
	if d := cmp.Diff(want, got, same...); d != "" {
		b.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// ids returns the ids of executions, in the given order.
func ids(all []*flow.Execution) []flow.ID {
	out := make([]flow.ID, len(all))
	for i, x := range all {
		out[i] = x.ID
	}
	return out
}

// asSet sorts ids for a comparison that ignores their order.
func asSet(all []flow.ID) []flow.ID {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b flow.ID) int { return slices.Compare(a[:], b[:]) })
	return all
}

func raw(format string, args ...any) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(format, args...))
}

func named(name string) func(*flow.Request)     { return func(r *flow.Request) { r.Action = name } }
func onQueue(name string) func(*flow.Request)   { return func(r *flow.Request) { r.Queue = name } }
func priority(p int) func(*flow.Request)        { return func(r *flow.Request) { r.Priority = p } }
func asWorkflow(r *flow.Request)                { r.Action, r.Kind = "wf", flow.KindWorkflow }
func attempts(n int) func(*flow.Request)        { return func(r *flow.Request) { r.Retry.MaxAttempts = n } }
func createdAt(t time.Time) func(*flow.Request) { return func(r *flow.Request) { r.CreatedAt = t } }

func withKey(key string, limit int) func(*flow.Request) {
	return func(r *flow.Request) { r.Key, r.KeyLimit = key, limit }
}

func under(parent flow.ID, task string, index int) func(*flow.Request) {
	return func(r *flow.Request) {
		r.Parent, r.ParentAttempt, r.Task, r.Index, r.Depth = parent, 1, task, index, 1
	}
}
