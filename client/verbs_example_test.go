package client_test

import (
	"fmt"
	"log"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/exampletest"
	"github.com/pawl-run/pawl/pawltest"
)

// An execution is submitted, and waited for.
func ExampleClient_Submit() {
	t, stop := exampletest.New()
	defer stop()
	c := pawltest.Start(t).Client // in a program: client.New("http://127.0.0.1:7411")

	x, err := c.Submit(t.Context(), api.Submission{Action: "noop", IdempotencyKey: "order-17"})
	if err != nil {
		log.Fatal(err)
	}
	again, err := c.Submit(t.Context(), api.Submission{Action: "noop", IdempotencyKey: "order-17"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(again.ID == x.ID)
	if x, err = c.Wait(t.Context(), x.ID); err != nil {
		log.Fatal(err)
	}
	fmt.Println(x.Status)
	// Output:
	// true
	// completed
}

// All lists executions, page by page.
func ExampleClient_All() {
	t, stop := exampletest.New()
	defer stop()
	p := pawltest.Start(t)
	c := p.Client // in a program: client.New("http://127.0.0.1:7411")

	for range 3 {
		if _, err := c.Submit(t.Context(), api.Submission{Action: "noop", Labels: map[string]string{"run": "17"}}); err != nil {
			log.Fatal(err)
		}
	}
	p.Idle()
	for x, err := range c.All(t.Context(), client.Filter{Labels: map[string]string{"run": "17"}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(x.Action, x.Status)
	}
	// Output:
	// noop completed
	// noop completed
	// noop completed
}

// The history of an execution is followed to its end.
func ExampleClient_FollowEvents() {
	t, stop := exampletest.New()
	defer stop()
	c := pawltest.Start(t).Client // in a program: client.New("http://127.0.0.1:7411")

	x, err := c.Submit(t.Context(), api.Submission{Action: "noop"})
	if err != nil {
		log.Fatal(err)
	}
	last := ""
	for e, err := range c.FollowEvents(t.Context(), x.ID, 0) {
		if err != nil {
			log.Fatal(err)
		}
		last = string(e.Type)
	}
	fmt.Println(last)
	// Output: completed
}

// Validate registers nothing; each error has its place and its fix.
func ExampleClient_Validate() {
	t, stop := exampletest.New()
	defer stop()
	c := pawltest.Start(t).Client // in a program: client.New("http://127.0.0.1:7411")

	v, err := c.Validate(t.Context(), []byte("name: double\ntasks:\n  a: {actoin: noop}\n"), "double.yaml")
	if err != nil {
		log.Fatal(err)
	}
	for _, wrong := range v.Problems {
		fmt.Println(wrong.String())
	}
	// Output:
	// double.yaml:3:6: tasks.a: the task has no action (add action: code, container, http, llm, …; or the name of a registered action)
	// double.yaml:3:7: tasks.a: unknown field "actoin" (did you mean "action"?)
}

// Cancel asks an execution to end; one that has not started ends at once.
func ExampleClient_Cancel() {
	t, stop := exampletest.New()
	defer stop()
	c := pawltest.Start(t).Client // in a program: client.New("http://127.0.0.1:7411")

	x, err := c.Submit(t.Context(), api.Submission{Action: "noop", NotBefore: time.Now().Add(time.Hour)})
	if err != nil {
		log.Fatal(err)
	}
	if x, err = c.Cancel(t.Context(), x.ID, "not needed", 0); err != nil {
		log.Fatal(err)
	}
	fmt.Println(x.Status)
	// Output: cancelled
}

// A signal starts what the rules say, here nothing.
func ExampleClient_Emit() {
	t, stop := exampletest.New()
	defer stop()
	p := pawltest.Start(t)
	c := p.Client // in a program: client.New("http://127.0.0.1:7411")

	p.Define("kind: trigger\nname: alert.fired\n---\nkind: rule\nname: clean\non: [alert.fired]\nrun: {action: noop}\n")
	if _, err := c.Emit(t.Context(), api.Emission{Trigger: "alert.fired", Data: []byte(`{"host": "db1"}`), Key: "alert-17"}); err != nil {
		log.Fatal(err)
	}
	for s, err := range c.AllSignals(t.Context(), client.SignalFilter{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(s.Trigger)
	}
	// Output: alert.fired
}
