package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

const askingWorkflow = `
kind: trigger
name: paid
waits: true
---
name: asking
input: {type: object}
tasks:
  approve: {action: ask, with: {title: "${{ input.order }}", form: {type: object, required: [ok], properties: {ok: {type: boolean}}}, accept: answer.ok}}
  first: {action: wait, with: {signal: paid, subject: "${{ input.order }}", since: 1h}}
  second: {needs: [first], action: wait, with: {signal: paid, subject: "${{ input.order }}", since: 1h}}
outputs: {by: "${{ tasks.approve.output.by }}", paid: "${{ [tasks.first.output.data.n, tasks.second.output.data.n] }}"}
`

// The process is killed again and again while people answer and signals come, before the waits for them and after. No acknowledged answer
// or signal is lost or handled twice: every workflow ends with its answer and with both signals, in their order.
func TestAnswersAndSignalsThroughKills(t *testing.T) {
	const cycles = 6
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, cycles)
	random := rand.New(rand.NewPCG(seed, 0))
	state := filepath.Join(t.TempDir(), "state")
	s := serve(t, state, "--slots", "1", "--runtime", "process")
	if _, err := s.client.Define(t.Context(), []byte(askingWorkflow), "asking.yaml"); err != nil {
		t.Fatal(err)
	}
	const perCycle = 12
	order := func(cycle, n int) string { return fmt.Sprintf("o-%d-%d", cycle, n) }
	// Each step may be repeated: a submission and a signal have keys, and an answer is recognized by its author.
	submit := func(ctx context.Context, c *client.Client, name string) (string, error) {
		x, err := c.Submit(ctx, api.Submission{Action: "asking", IdempotencyKey: name, Input: json.RawMessage(fmt.Sprintf(`{"order":%q}`, name))})
		if err != nil {
			return "", err
		}
		return x.ID, nil
	}
	pay := func(ctx context.Context, c *client.Client, name string) error {
		for n := range 2 {
			if _, err := c.Emit(ctx, api.Emission{Trigger: "paid", Subject: name, Key: fmt.Sprintf("%s/%d", name, n), Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}); err != nil {
				return err
			}
		}
		return nil
	}
	answer := func(ctx context.Context, c *client.Client) error {
		for i, err := range c.AllInquiries(ctx, client.InquiryFilter{}) {
			if err != nil {
				return err
			}
			if _, err := c.Answer(ctx, i.ID, api.Reply{By: "ada", Answer: json.RawMessage(`{"ok":true}`)}); err != nil {
				return err
			}
		}
		return nil
	}
	for cycle := range cycles {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{}, 2)
		c := s.client
		go func() {
			defer func() { over <- struct{}{} }()
			for n := range perCycle {
				if n%2 == 0 && pay(ctx, c, order(cycle, n)) != nil {
					return
				}
				if _, err := submit(ctx, c, order(cycle, n)); err != nil || n%2 == 1 && pay(ctx, c, order(cycle, n)) != nil {
					return
				}
			}
		}()
		go func() {
			defer func() { over <- struct{}{} }()
			for answer(ctx, c) == nil && ctx.Err() == nil {
			}
		}()
		<-time.After(time.Duration(20+random.IntN(200)) * time.Millisecond)
		s.Kill()
		cancel()
		<-over
		<-over
		s = serve(t, state, "--slots", "1", "--runtime", "process")
	}
	var all []string
	for cycle := range cycles {
		for n := range perCycle {
			name := order(cycle, n)
			if err := pay(t.Context(), s.client, name); err != nil {
				t.Fatal(err)
			}
			id, err := submit(t.Context(), s.client, name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, id)
		}
	}
	if err := answer(t.Context(), s.client); err != nil {
		t.Fatal(err)
	}
	for _, id := range all {
		if x := s.wait(t, id); x.Status != api.Completed || string(x.Output) != `{"by":"ada","paid":[0,1]}` {
			t.Errorf("%s: %s %v %s", id, x.Status, x.Error, x.Output)
		}
		s.history(t, id)
	}
	if err := s.stop(); err != nil {
		t.Errorf("server: %v", err)
	}
	checkRows(t, filepath.Join(state, "pawl.db"))
}
