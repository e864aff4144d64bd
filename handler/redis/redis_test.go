package redis_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/handler"
	"github.com/pawl-run/pawl/handler/internal/brokertest"
	"github.com/pawl-run/pawl/handler/redis"
	broker "github.com/pawl-run/pawl/internal/handoff/redis"
	"github.com/pawl-run/pawl/internal/handoff/redis/redistest"
)

func suite(t *testing.T) brokertest.Suite {
	return brokertest.Suite{URL: redistest.URL(t), Broker: redis.Broker, Open: func(url string) (brokertest.Transport, error) {
		return broker.Open(t.Context(), broker.Options{URL: url, Installation: "a test"})
	}}
}

func TestServeThroughRedis(t *testing.T) {
	t.Parallel()
	suite(t).Serve(t)
}

func TestOtherToken(t *testing.T) {
	t.Parallel()
	suite(t).OtherToken(t)
}

// Errors in the options are reported before anything is served.
func TestBadBrokers(t *testing.T) {
	m := handler.Map{"x": func(context.Context, *handler.Task) (any, error) { return nil, nil }}
	t.Setenv("PAWL_BROKER", "")
	for name, tc := range map[string]struct {
		o    handler.Options
		want string
	}{
		"none":                {handler.Options{Broker: redis.Broker("")}, "PAWL_BROKER"},
		"not a URL":           {handler.Options{Broker: redis.Broker("localhost:6379")}, "redis://127.0.0.1:6379"},
		"nobody there":        {handler.Options{Broker: redis.Broker("redis://127.0.0.1:1")}, "127.0.0.1:1"},
		"a server and broker": {handler.Options{Server: "http://127.0.0.1:1", Broker: redis.Broker("redis://127.0.0.1:1")}, "a server and a broker"},
	} {
		if err := handler.Serve(t.Context(), tc.o, m); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
