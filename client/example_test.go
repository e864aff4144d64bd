package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

type order struct {
	Amount int `json:"amount"`
}

type receipt struct {
	Number string `json:"number"`
}

// Run submits a registered action or workflow with a Go value and returns its output as one.
func ExampleRun() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.New("http://127.0.0.1:7411", client.WithToken(os.Getenv("PAWL_TOKEN")))
	if err != nil {
		log.Fatal(err)
	}
	paid, err := client.Run[order, receipt](ctx, c, api.Submission{Action: "charge", Labels: map[string]string{"shop": "north"}}, order{Amount: 1200})
	var failed *api.Error
	if errors.As(err, &failed) {
		log.Fatalf("it was run, and failed as %s: %s", failed.Code, failed.Message)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(paid.Number)
}

// An untrusted program runs in a sandbox. It is an execution like any other, and its result says how it ended.
func ExampleClient_Evaluate() {
	ctx := context.Background()
	c, err := client.New("http://127.0.0.1:7411")
	if err != nil {
		log.Fatal(err)
	}
	x, err := c.Evaluate(ctx, api.Evaluation{Code: api.Code{Language: "python", Source: "print(6 * 7)", Limits: api.CodeLimits{Wall: api.Duration(2 * time.Second)}}})
	if err != nil {
		log.Fatal(err)
	}
	if x, err = c.Wait(ctx, x.ID); err != nil {
		log.Fatal(err)
	}
	result, err := client.Output[api.CodeResult](x)
	if err != nil {
		log.Fatal(err) // its code is the verdict, such as timeout or oom
	}
	fmt.Print(result.Stdout)
}

// Thousands of executions are submitted at once, each with its own result, and their outcomes arrive as they end.
func ExampleClient_SubmitBatch() {
	ctx := context.Background()
	c, err := client.New("http://127.0.0.1:7411")
	if err != nil {
		log.Fatal(err)
	}
	var all []api.Submission
	for i := range 1000 {
		all = append(all, api.Submission{Action: "grade", Input: fmt.Appendf(nil, `{"student": %d}`, i), Labels: map[string]string{"run": "17"}})
	}
	accepted, err := c.SubmitBatch(ctx, all)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(accepted.Accepted, "accepted,", accepted.Refused, "refused")
	for end, err := range c.FollowOutcomes(ctx, client.OutcomeQuery{Name: "run", Value: "17"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(end.ID, end.Status)
	}
}

// The logs of an execution can be read while it runs.
func ExampleClient_FollowLogs() {
	ctx := context.Background()
	c, err := client.New("http://127.0.0.1:7411")
	if err != nil {
		log.Fatal(err)
	}
	for chunk, err := range c.FollowLogs(ctx, "ex_00000000000000000000000000", client.LogQuery{Stream: "stdout"}) {
		if err != nil {
			log.Fatal(err)
		}
		os.Stdout.Write(chunk.Bytes())
	}
}

// A document registers workflows, actions, schedules and rules. An unchanged definition keeps its version.
func ExampleClient_Define() {
	c, err := client.New("http://127.0.0.1:7411")
	if err != nil {
		log.Fatal(err)
	}
	defined, err := c.Define(context.Background(), []byte("name: double\ntasks:\n  a: {action: noop}\n"), "double.yaml")
	var refused *api.Problem
	if errors.As(err, &refused) {
		for _, wrong := range refused.Errors {
			fmt.Println(wrong.String()) // place, value and fix
		}
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range defined.Definitions {
		fmt.Printf("%s@%d\n", d.Name, d.Version)
	}
}
