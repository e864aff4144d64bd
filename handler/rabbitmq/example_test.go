package rabbitmq_test

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/pawl-run/pawl/handler"
	"github.com/pawl-run/pawl/handler/rabbitmq"
)

// A program at a site from which only the broker can be reached.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := handler.Serve(ctx, handler.Options{Broker: rabbitmq.Broker("amqps://plant:secret@rabbitmq.example.com/pawl?namespace=prod"), Slots: 4}, handler.Map{
		"measure": func(_ context.Context, t *handler.Task) (any, error) {
			t.Logf("measuring (attempt %d)", t.Attempt)
			return map[string]int{"celsius": 21}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
	}
}
