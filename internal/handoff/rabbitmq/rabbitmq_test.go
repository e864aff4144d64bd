package rabbitmq_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq/rabbitmqtest"
	"github.com/pawl-run/pawl/internal/programtest"
)

func open(t *testing.T, o rabbitmq.Options) *rabbitmq.Broker {
	t.Helper()
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	f, err := rabbitmq.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// noted records the names of reply queues.
type noted struct {
	brokerrpc.Transport
	replyQueues *names
}

type names struct {
	mu  sync.Mutex
	all []string
}

func (n *noted) ReplyQueue(ctx context.Context) (brokerrpc.ReplyQueue, error) {
	b, err := n.Transport.ReplyQueue(ctx)
	if err == nil {
		n.replyQueues.mu.Lock()
		n.replyQueues.all = append(n.replyQueues.all, b.Name())
		n.replyQueues.mu.Unlock()
	}
	return b, err
}

func TestTransport(t *testing.T) {
	t.Parallel()
	brokerrpctest.Exercise(t, func(t *testing.T) *brokerrpctest.Rig {
		url, replyQueues := rabbitmqtest.URL(t), &names{}
		transport := func(o rabbitmq.Options) func(t *testing.T) brokerrpc.Transport {
			o.URL, o.Installation = url, "one"
			return func(t *testing.T) brokerrpc.Transport { return &noted{open(t, o), replyQueues} }
		}
		return &brokerrpctest.Rig{
			Transport: transport(rabbitmq.Options{}),
			Full:      transport(rabbitmq.Options{MostBytes: 10 << 20}),
			Flush: func(t *testing.T) {
				replyQueues.mu.Lock()
				defer replyQueues.mu.Unlock()
				rabbitmqtest.Flush(t, url, replyQueues.all...)
			},
			Tries: 16, Blind: true,
		}
	})
}

// Faults that make the broker unusable are reported at the start, with the remedy.
func TestOpen(t *testing.T) {
	t.Parallel()
	base := rabbitmqtest.URL(t)
	addr := strings.TrimPrefix(base[:strings.IndexByte(base, '?')], "amqp://")
	nowhere := "127.0.0.1:" + programtest.FreePort(t)
	version := regexp.MustCompile(`versionS\x00\x00\x00.([0-9.]+)`)
	old := brokerrpctest.Changed(t, addr, func(greeting []byte) {
		if at := version.FindSubmatchIndex(greeting); at != nil {
			copy(greeting[at[2]:at[3]], "3.9.99999")
		}
	})
	other := brokerrpctest.Changed(t, addr, func(greeting []byte) {
		if at := bytes.Index(greeting, []byte("RabbitMQ")); at >= 0 {
			copy(greeting[at:], "RapidMQ9")
		}
	})
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	for url, want := range map[string]string{
		"amqp://" + nowhere:                        "connection refused",
		"amqp://guest:wrong@" + addr:               "refuses the user or password",
		"amqp://" + addr + "/elsewhere":            "the vhost of the broker's URL",
		"amqps://" + addr:                          "tls: first record",
		"amqp://" + mute.Addr().String():           "i/o timeout",
		"http://" + addr:                           "not a URL such as amqp://",
		"amqp://" + addr + "?namespace=a b":        "use up to 64 letters",
		"amqp://" + addr + "?heartbeat=1":          "has another parameter",
		"amqp://guest:wrong@" + addr + ":one":      "not a URL such as amqp://",
		"amqps://" + addr + "?cacertfile=/nowhere": "/nowhere",
		"amqp://" + addr + "?addr=node:one":        "&addr=host:port",
	} {
		opening(t, rabbitmq.Options{URL: url}, want)
	}
	opening(t, rabbitmq.Options{URL: "amqp://" + old}, "version 3.10 or later is needed")
	opening(t, rabbitmq.Options{URL: "amqp://" + other}, "RabbitMQ is needed")

	open(t, rabbitmq.Options{URL: base})
	open(t, rabbitmq.Options{URL: "amqp://" + nowhere + base[strings.IndexByte(base, '?'):] + "&addr=" + addr}) // one node of two is enough
	opening(t, rabbitmq.Options{URL: "amqp://guest:wrong@" + nowhere + "?addr=" + addr}, "refuses the user or password")
	opening(t, rabbitmq.Options{URL: "amqp://guest:wrong@" + nowhere + "?addr=" + addr}, "connection refused")
	open(t, rabbitmq.Options{URL: base, Installation: "one"})
	open(t, rabbitmq.Options{URL: base, Installation: "one"})
	opening(t, rabbitmq.Options{URL: base, Installation: "two"}, "another installation")
	opening(t, rabbitmq.Options{URL: base, Installation: "two"}, "?namespace=")
	opening(t, rabbitmq.Options{URL: base, Installation: "one", MostBytes: 1 << 20}, ".tell is there with other arguments")
}

// opening expects an error of Open.
func opening(t *testing.T, o rabbitmq.Options, want string) {
	t.Helper()
	f, err := rabbitmq.Open(t.Context(), o)
	if err == nil {
		f.Close()
	}
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "wrong@") {
		t.Errorf("%s: %v, want %q", o.URL, err, want)
	}
}

// A worker makes no lines: it waits for a server that does.
func TestWorkerBeforeServers(t *testing.T) {
	t.Parallel()
	url := rabbitmqtest.URL(t)
	worker := open(t, rabbitmq.Options{URL: url})
	err := worker.Send(t.Context(), brokerrpc.Tells, []byte("early"), 0)
	if !errors.Is(err, brokerrpc.ErrUnavailable) || !strings.Contains(err.Error(), "servers make it") {
		t.Errorf("sent without a line: %v", err)
	}
	if h, err := worker.Health(t.Context()); err != nil || h.Concern == "" || !strings.HasPrefix(h.Product, "RabbitMQ ") {
		t.Errorf("%+v, %v", h, err)
	}
	if dead, err := worker.Dead(t.Context(), brokerrpc.ListDead); err != nil || len(dead) > 0 {
		t.Errorf("%+v, %v", dead, err)
	}
	server := open(t, rabbitmq.Options{URL: url, Installation: "one"})
	if err := worker.Send(t.Context(), brokerrpc.Tells, []byte("now"), 0); err != nil {
		t.Error(err)
	}
	if lines, err := server.Backlog(t.Context()); err != nil || lines[brokerrpc.Tells].Unread != 1 {
		t.Errorf("%+v, %v", lines, err)
	}
	if h, err := server.Health(t.Context()); err != nil || h.Concern != "" {
		t.Errorf("%+v, %v", h, err)
	}
}
