package pawltest_test

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/handler"
	"github.com/pawl-run/pawl/internal/exampletest"
	"github.com/pawl-run/pawl/pawltest"
)

// A handler is served and run as a server would run it.
func Example() {
	t, stop := exampletest.New() // in a test, t is its *testing.T
	defer stop()

	p := pawltest.Start(t)
	p.Serve(handler.Map{"resize": handler.Func(func(_ context.Context, _ *handler.Task, in picture) (resized, error) {
		return resized{Pixels: in.Width * in.Width}, nil
	})})
	p.Define("kind: action\nname: resize\nhandler: resize")

	out, err := client.Run[picture, resized](t.Context(), p.Client, api.Submission{Action: "resize"}, picture{Width: 20})
	fmt.Println(out.Pixels, err)
	// Output: 400 <nil>
}

// Idle waits for everything that was submitted, however many executions a workflow has started.
func ExamplePawl_Idle() {
	t, stop := exampletest.New() // in a test, t is its *testing.T
	defer stop()

	p := pawltest.Start(t)
	p.Define("name: twice\ntasks:\n  a: {action: noop}\n  b: {needs: a, action: noop}\n")
	x, err := p.Submit(t.Context(), api.Submission{Action: "twice"})
	if err != nil {
		t.Fatal(err)
	}
	p.Idle()
	x, err = p.Get(t.Context(), x.ID)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(x.Status)
	// Output: completed
}

// A Pawl also has an address, for programs that make their own client.
func ExampleStart() {
	t, stop := exampletest.New() // in a test, t is its *testing.T
	defer stop()

	p := pawltest.Start(t)
	c, err := client.New(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(c.Ready(t.Context()))
	// Output: <nil>
}
