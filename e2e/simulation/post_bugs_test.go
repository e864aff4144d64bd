package simulation

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// postBug describes a bug in the path through a broker.
type postBug struct {
	mail      func(*world, handoff.Handoff) handoff.Handoff // as a worker has it
	take      func(brokerrpc.Line, func(context.Context, brokerrpc.Message) error) func(context.Context, brokerrpc.Message) error
	trim      bool // lines are trimmed by their length
	forgetful bool // messages are deleted with the server that holds them
	sameBox   bool // a process gives all its reply queues the same name
	oldCursor bool // a process that lost a reply queue reads the next one from the old position
	ageless   bool // the age of a message is ignored
	unchecked bool // servers accept every message as the worker's
	hasty     bool // recovery does not wait for messages in the broker
	slots     int  // slots that a worker has too many
}

// behind makes seeds run with a broker.
func behind(p *plan) { p.Solo, p.Remote, p.Broker = false, false, true }

// busily makes them run longer, with more clients and more faults of processes.
func busily(p *plan) {
	behind(p)
	p.Horizon, p.Ops, p.Disaster, p.Crash = 3*time.Minute, 3*p.Ops, 0.01, 0.02
}

// postBugs are planted bugs of the path through a broker.
var postBugs = []bug{
	{name: "message is settled before its commit", invariant: []int{57}, tune: busily, post: postBug{take: settleEarly}},
	{name: "report through a broker is answered early", invariant: []int{31}, tune: behind, server: carried(carrier{report: reportEarly})},
	{name: "broker's confirmation is taken for a receipt", invariant: []int{31}, tune: behind, post: postBug{mail: carried(carrier{report: reportEarly})}},
	{name: "messages go back to the line in an outage", invariant: []int{57}, tune: busily, post: postBug{take: nack}},
	{name: "line is trimmed by its length", invariant: []int{57}, tune: busily, post: postBug{trim: true}},
	{name: "messages are deleted with their server", invariant: []int{57}, tune: busily, post: postBug{forgetful: true}},
	{name: "reply queue is used again", invariant: []int{57}, tune: behind, post: postBug{sameBox: true}},
	{name: "old cursor is used on a new reply queue", invariant: []int{23, 34}, tune: busily, post: postBug{oldCursor: true}},
	{name: "work from a broker is handed over twice", invariant: []int{3, 8}, tune: func(p *plan) {
		behind(p)
		p.Horizon, p.Ops, p.Disaster, p.Lose = 3*time.Minute, 3*p.Ops, 0, 0
	}, post: postBug{mail: carried(carrier{take: takeAgain})}},
	{name: "stale call for work is obeyed", invariant: []int{57}, tune: busily, post: postBug{ageless: true}},
	{name: "worker runs more than it has slots for", invariant: []int{55}, tune: behind, post: postBug{slots: 1}},
	{name: "attempt that is given back counts", invariant: []int{31}, tune: busily, server: deaf},
	{name: "recovery does not wait for the broker", invariant: []int{56}, tune: func(p *plan) {
		busily(p)
		p.Engines, p.Crash, p.Disaster = 1, 0.05, 0.002
	}, post: postBug{hasty: true}},
	{name: "signature of a report is not checked", invariant: []int{5, 8, 9}, tune: func(p *plan) {
		behind(p)
		p.Forge = 0.5
	}, post: postBug{unchecked: true}},
}

// settleEarly lets a server remove a message from its line before it has processed it.
func settleEarly(line brokerrpc.Line, take func(context.Context, brokerrpc.Message) error) func(context.Context, brokerrpc.Message) error {
	if line == brokerrpc.Asks {
		return take
	}
	return func(ctx context.Context, l brokerrpc.Message) error {
		go func() { _ = take(ctx, l) }() // its result is ignored
		return nil
	}
}

// nack lets a server put messages back when the database does not accept them within two seconds.
func nack(line brokerrpc.Line, take func(context.Context, brokerrpc.Message) error) func(context.Context, brokerrpc.Message) error {
	if line == brokerrpc.Asks {
		return take
	}
	return func(ctx context.Context, l brokerrpc.Message) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return take(ctx, l)
	}
}

// deaf confirms that workers gave work back, and does nothing.
func deaf(_ *world, h handoff.Handoff) handoff.Handoff { return undeclining{h} }

type undeclining struct{ handoff.Handoff }

func (undeclining) Decline(context.Context, flow.ID, []flow.AttemptID) error { return nil }
