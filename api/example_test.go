package api_test

import (
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/pawl-run/pawl/api"
)

// The types of package api are the JSON of the API. Durations are strings, for example 30s.
func ExampleSubmission() {
	b, err := json.Marshal(api.Submission{
		Action: "resize", Input: json.RawMessage(`{"width": 640}`), Timeout: api.Duration(30 * time.Second), Labels: map[string]string{"team": "docs"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(b))
	// Output: {"action":"resize","input":{"width":640},"labels":{"team":"docs"},"timeout":"30s"}
}

func ExampleParseSize() {
	for _, text := range []string{"64MB", "1.5GiB", "many", "1_0"} {
		size, err := api.ParseSize(text)
		fmt.Println(int64(size), err)
	}
	// Output:
	// 64000000 <nil>
	// 1610612736 <nil>
	// 0 "many" is not a size: write "64MB", "64MiB" or a number of bytes
	// 0 "1_0" is not a size: write "64MB", "64MiB" or a number of bytes
}

// An execution with a terminal status does not change any more.
func ExampleStatus_Terminal() {
	for _, s := range []api.Status{api.Running, api.Completed} {
		fmt.Println(s, s.Terminal())
	}
	// Output:
	// running false
	// completed true
}

// A refused request is a Problem; each of its errors has the place, the value and what to do.
func ExampleProblem() {
	p := api.Problem{Status: 422, Title: "the workflow is not valid", Errors: []api.FieldError{{File: "a.yaml", Line: 3, Column: 7, Message: `there is no action "noob"`, Fix: "did you mean noop?"}}}
	for _, e := range p.Errors {
		fmt.Println(e.String())
	}
	// Output: a.yaml:3:7: there is no action "noob" (did you mean noop?)
}
