package handler_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/handler"
	"github.com/pawl-run/pawl/internal/exampletest"
	"github.com/pawl-run/pawl/pawltest"
)

// A function of two types is a handler: the input is decoded, the result encoded.
func ExampleFunc() {
	t, stop := exampletest.New() // in a test, t is its *testing.T
	defer stop()
	p := pawltest.Start(t)
	p.Serve(handler.Map{"resize": handler.Func(func(_ context.Context, _ *handler.Task, in picture) (resized, error) {
		return resized{Pixels: in.Width * in.Width * 9 / 16}, nil
	})})
	p.Define("kind: action\nname: resize\nhandler: resize")

	out, err := client.Run[picture, resized](t.Context(), p.Client, api.Submission{Action: "resize"}, picture{Width: 640})
	fmt.Println(out.Pixels, err)
	// Output: 230400 <nil>
}

// A failure has a code, by which retry policies decide and callers distinguish failures.
func ExampleFail() {
	t, stop := exampletest.New() // in a test, t is its *testing.T
	defer stop()
	p := pawltest.Start(t)
	p.Serve(handler.Map{"resize": handler.Func(func(_ context.Context, _ *handler.Task, in picture) (resized, error) {
		return resized{}, handler.Fail("bad_width", "width is %d: give at least 1", in.Width)
	})})
	p.Define("kind: action\nname: resize\nhandler: resize")

	_, err := client.Run[picture, resized](t.Context(), p.Client, api.Submission{Action: "resize"}, picture{Width: -1})
	var failed *api.Error
	if errors.As(err, &failed) {
		fmt.Println(failed.Code, "-", failed.Message)
	}
	// Output: bad_width - width is -1: give at least 1
}
