package handofftest_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// crooked is a server's connection to the broker with a bug.
type crooked struct {
	brokerrpc.Transport
	serve func(ctx context.Context, line brokerrpc.Line, most int, take func(context.Context, brokerrpc.Message) error)
}

func (o *crooked) Serve(ctx context.Context, line brokerrpc.Line, most int, take func(context.Context, brokerrpc.Message) error) {
	if o.serve != nil {
		o.serve(ctx, line, most, take)
		return
	}
	o.Transport.Serve(ctx, line, most, take)
}

// bent is a hand-off with a bug: the worker's, or the engine as servers see it.
type bent struct {
	handoff.Handoff
	strays  <-chan handoff.Stray
	missed  func(ctx context.Context, session flow.ID, have []flow.AttemptID) ([]handoff.Assignment, error)
	report  func(ctx context.Context, session flow.ID, reports []flow.Report) ([]flow.Receipt, error)
	decline func(ctx context.Context, session flow.ID, attempts []flow.AttemptID) error
	renew   func(ctx context.Context, session flow.ID) (handoff.Renewal, error)
}

func (b *bent) Calls() int                   { return handoff.Calls(b.Handoff) }
func (b *bent) Strays() <-chan handoff.Stray { return b.strays }

func (b *bent) Missed(ctx context.Context, session flow.ID, have []flow.AttemptID) ([]handoff.Assignment, error) {
	if b.missed != nil {
		return b.missed(ctx, session, have)
	}
	return b.Handoff.Missed(ctx, session, have)
}

func (b *bent) Report(ctx context.Context, session flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
	if b.report != nil {
		return b.report(ctx, session, reports)
	}
	return b.Handoff.Report(ctx, session, reports)
}

func (b *bent) Decline(ctx context.Context, session flow.ID, attempts []flow.AttemptID) error {
	if b.decline != nil {
		return b.decline(ctx, session, attempts)
	}
	return b.Handoff.Decline(ctx, session, attempts)
}

func (b *bent) Renew(ctx context.Context, session flow.ID) (handoff.Renewal, error) {
	if b.renew != nil {
		return b.renew(ctx, session)
	}
	return b.Handoff.Renew(ctx, session)
}

// bend makes a hand-off with a bug. It still passes on strays, if h has them.
func bend(h handoff.Handoff, bug func(*bent)) handoff.Handoff {
	b := &bent{Handoff: h}
	if s, ok := h.(handoff.Straying); ok {
		b.strays = s.Strays()
	}
	bug(b)
	return b
}

// receipts report everything as recorded.
func receipts(reports []flow.Report) []flow.Receipt {
	all := make([]flow.Receipt, len(reports))
	for i, r := range reports {
		all[i] = flow.Receipt{Execution: r.Execution, Attempt: r.Attempt, Verdict: flow.Applied, Next: r.Events[len(r.Events)-1].Seq + 1}
	}
	return all
}

var bugs = []planted{
	{name: "the broker's confirmation is taken for a receipt", link: func(w *world, h handoff.Handoff) handoff.Handoff {
		return bend(h, func(b *bent) {
			b.report = func(_ context.Context, session flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
				sending, cancel := context.WithTimeout(w.ctx, time.Second)
				go func() {
					defer cancel()
					_, _ = h.Report(sending, session, reports) // whatever comes of it
				}()
				return receipts(reports), nil
			}
		})
	}},
	{name: "an answer comes before the commit", face: func(w *world, h handoff.Handoff) handoff.Handoff {
		return bend(h, func(b *bent) {
			b.report = func(ctx context.Context, session flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
				go func() {
					select {
					case <-time.After(2 * time.Second):
						_, _ = h.Report(ctx, session, reports) // its server may have ended
					case <-ctx.Done():
					}
				}()
				return receipts(reports), nil
			}
		})
	}},
	{name: "what was missed is not asked for", link: func(_ *world, h handoff.Handoff) handoff.Handoff {
		return bend(h, func(b *bent) {
			b.missed = func(context.Context, flow.ID, []flow.AttemptID) ([]handoff.Assignment, error) { return nil, nil }
		})
	}},
	{name: "what is given back counts", face: func(_ *world, h handoff.Handoff) handoff.Handoff {
		return bend(h, func(b *bent) {
			b.decline = func(context.Context, flow.ID, []flow.AttemptID) error { return nil } // it is recovered as lost
		})
	}},
	{name: "renewals are answered after 25 seconds", face: func(_ *world, h handoff.Handoff) handoff.Handoff {
		return bend(h, func(b *bent) {
			b.renew = func(ctx context.Context, session flow.ID) (handoff.Renewal, error) {
				select {
				case <-time.After(25 * time.Second):
				case <-ctx.Done():
				}
				return h.Renew(ctx, session)
			}
		})
	}},
	{name: "messages are buried that could be read", transport: func(w *world, o brokerrpc.Transport) brokerrpc.Transport {
		return &crooked{Transport: o, serve: func(ctx context.Context, line brokerrpc.Line, most int, take func(context.Context,
			brokerrpc.Message) error) {
			if line == brokerrpc.Asks {
				o.Serve(ctx, line, most, take)
				return
			}
			o.Serve(ctx, line, most, func(_ context.Context, l brokerrpc.Message) error {
				if w.roll() < 0.5 {
					return &brokerrpc.Unreadable{Reason: "it has come before"}
				}
				return take(ctx, l)
			})
		}}
	}},
}

// TestPlantedBugsBehindABroker checks TestSeeds: some seeds must find each of these bugs.
func TestPlantedBugsBehindABroker(t *testing.T) {
	const within = 60
	for i := range bugs {
		b := &bugs[i]
		t.Run(b.name, func(t *testing.T) {
			for seed := uint64(1); seed <= within; seed++ {
				if wrong := simulate(t, seed, b); wrong != "" {
					t.Logf("seed %d: %s", seed, wrong)
					return
				}
			}
			t.Errorf("not seen in %d seeds", within)
		})
	}
}
