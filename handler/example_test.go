package handler_test

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/pawl-run/pawl/handler"
)

type picture struct {
	URL   string `json:"url"`
	Width int    `json:"width"`
}

type resized struct {
	Pixels int `json:"pixels"`
}

// A program that serves two handlers until it is told to stop.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := handler.Serve(ctx, handler.Options{Server: "http://127.0.0.1:7411", Queues: []string{"images"}, Slots: 4}, handler.Map{
		"resize": handler.Func(func(ctx context.Context, t *handler.Task, in picture) (resized, error) {
			if in.Width <= 0 {
				return resized{}, handler.Fail("bad_width", "width is %d: give at least 1", in.Width)
			}
			t.Logf("resizing %s (attempt %d)", in.URL, t.Attempt)
			return resized{Pixels: in.Width * in.Width * 9 / 16}, ctx.Err()
		}),
		"ping": func(context.Context, *handler.Task) (any, error) { return "pong", nil },
	})
	if err != nil {
		fmt.Println(err)
	}
}
