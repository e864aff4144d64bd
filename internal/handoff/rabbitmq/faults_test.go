package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq/rabbitmqtest"
)

// served serves a line until the test ends or stop is called.
func served(t *testing.T, f brokerrpc.Transport, line brokerrpc.Line, take func(context.Context, brokerrpc.Message) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() { f.Serve(ctx, line, 64, take) })
	stop = func() {
		cancel()
		over.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// within waits for a condition.
func within(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for began := time.Now(); !cond(); <-time.After(20 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("never came: %s", what)
		}
	}
}

// sent sends until the broker accepts it.
func sent(t *testing.T, f brokerrpc.Transport, line brokerrpc.Line, body string) {
	t.Helper()
	within(t, "the broker takes a message", func() bool { return f.Send(t.Context(), line, []byte(body), 0) == nil })
}

// tally counts messages by their bodies.
type tally struct {
	mu sync.Mutex
	of map[string]int
}

func (c *tally) take(_ context.Context, l brokerrpc.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[string(l.Body)]++
	return nil
}

func (c *tally) has(body string) func() bool {
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.of[body] > 0
	}
}

// The faults of a RabbitMQ, one after another, because a start takes seconds.
func TestFaultsOfTheBroker(t *testing.T) {
	t.Parallel()
	s := rabbitmqtest.Start(t)
	for name, fault := range map[string]func(*testing.T, *rabbitmqtest.Server, string){
		"AccessRules": accessRules, "ConnectionsClosed": connectionsClosed, "LetterRejoined": letterRejoined, "Alarm": alarm, "OwnerDeleted": ownerDeleted, "Stopped": stopped, "QueueStuck": queueStuck, "OtherLineStuck": otherLineStuck, "DeadDeleted": deadDeleted,
	} {
		t.Run(name, func(t *testing.T) { fault(t, s, s.URL()+"?namespace="+strings.ToLower(name)) })
	}
	t.Run("Restarted", func(t *testing.T) { restarted(t, s, s.URL()+"?namespace=restarted") })
}

// The access rules of docs/brokers.md are enough, and errors name a missing right.
func accessRules(t *testing.T, s *rabbitmqtest.Server, _ string) {
	text, err := os.ReadFile("../../../docs/brokers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rules, _ := strings.Cut(string(text), "# rights in RabbitMQ\n")
	rules, _, ok := strings.Cut(rules, "```")
	if !ok {
		t.Fatal("docs/brokers.md has no access rules")
	}
	for line := range strings.Lines(rules) {
		words := strings.Fields(strings.ReplaceAll(line, "'", ""))
		if len(words) < 2 || words[0] != "rabbitmqctl" {
			t.Fatalf("access rules: %q", line)
		}
		s.Ctl(words[1:]...)
	}
	url := func(user, namespace string) string {
		return "amqp://" + user + ":sesame@" + s.Addr() + "/pawl?namespace=" + namespace
	}
	server := open(t, rabbitmq.Options{URL: url("servers", "prod"), Installation: "one"})
	rig := &brokerrpctest.Rig{Transport: func(*testing.T) brokerrpc.Transport { return server }, Tries: 16, Blind: true}
	brokerrpctest.Row(t, rig, "Delivered", "Repeated", "DeadLettered", "ReplyQueue", "NoReplyQueue", "Backlog")
	opening(t, rabbitmq.Options{URL: url("servers", "other"), Installation: "one"}, "docs/brokers.md lists what it needs")

	worker := open(t, rabbitmq.Options{URL: url("plant", "prod")})
	c := &tally{of: map[string]int{}}
	served(t, server, brokerrpc.Tells, c.take)
	sent(t, worker, brokerrpc.Tells, "report")
	within(t, "the report", c.has("report"))
	b, err := worker.ReplyQueue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := server.Put(t.Context(), b.Name(), []byte("answer")); err != nil {
		t.Fatal(err)
	}
	if m, err := b.Next(t.Context()); err != nil || string(m) != "answer" {
		t.Errorf("%q, %v", m, err)
	}
	if _, err := worker.Dead(t.Context(), brokerrpc.ListDead); err == nil || !strings.Contains(err.Error(),
		"docs/brokers.md lists what it needs") {
		t.Errorf("a worker reads dead letters: %v", err)
	}
	opening(t, rabbitmq.Options{URL: url("plant", "prod"), Installation: "one"}, "docs/brokers.md lists what it needs")
}

// Closed connections are opened again, and lines and reply queues are read on.
func connectionsClosed(t *testing.T, s *rabbitmqtest.Server, url string) {
	server, worker := open(t, rabbitmq.Options{URL: url, Installation: "one"}), open(t, rabbitmq.Options{URL: url})
	c := &tally{of: map[string]int{}}
	served(t, server, brokerrpc.Tells, c.take)
	b, err := worker.ReplyQueue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sent(t, worker, brokerrpc.Tells, "before")
	within(t, "the message before", c.has("before"))
	s.Ctl("close_all_connections", "test")
	sent(t, worker, brokerrpc.Tells, "after")
	within(t, "the message after", c.has("after"))
	within(t, "the reply queue is there still", func() bool { return server.Put(t.Context(), b.Name(), []byte("hello")) == nil })
	within(t, "its message, or another reply queue", func() bool {
		m, err := b.Next(t.Context())
		return string(m) == "hello" || errors.Is(err, brokerrpc.ErrNoReplyQueue)
	})
	b.Close()
}

// A message in hand when the connection is lost is not begun a second time, and is settled.
func letterRejoined(t *testing.T, s *rabbitmqtest.Server, url string) {
	server := open(t, rabbitmq.Options{URL: url, Installation: "one"})
	entered, goOn := make(chan struct{}), make(chan struct{})
	c := &tally{of: map[string]int{}}
	served(t, server, brokerrpc.Tells, func(ctx context.Context, l brokerrpc.Message) error {
		if string(l.Body) == "long" {
			close(entered) // twice is a panic
			<-goOn
		}
		return c.take(ctx, l)
	})
	sent(t, server, brokerrpc.Tells, "long")
	<-entered
	for i := range 3 {
		s.Ctl("close_all_connections", "test")
		sent(t, server, brokerrpc.Tells, fmt.Sprint(i))
		within(t, "the line is read again", c.has(fmt.Sprint(i)))
	}
	close(goOn)
	within(t, "nothing is left", func() bool {
		lines, err := server.Backlog(t.Context())
		return err == nil && lines[brokerrpc.Tells] == brokerrpc.Depth{}
	})
	within(t, "the broker has nothing in hand", func() bool { // its counts are a moment old
		return strings.Contains(s.Ctl("list_queues", "--no-table-headers", "name", "messages"), "pawl.letterrejoined.tell\t0")
	})
}

// While the broker is short of memory nothing is sent, but messages are taken out; afterwards sending continues.
func alarm(t *testing.T, s *rabbitmqtest.Server, url string) {
	server, worker := open(t, rabbitmq.Options{URL: url, Installation: "one"}), open(t, rabbitmq.Options{URL: url})
	for i := range 20 {
		sent(t, worker, brokerrpc.Tells, fmt.Sprint(i))
	}
	s.Ctl("set_vm_memory_high_watermark", "absolute", "1MB")
	within(t, "the broker takes nothing in", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := worker.Send(ctx, brokerrpc.Tells, []byte("no room"), 0)
		return err != nil && strings.Contains(err.Error(), "short of memory")
	})
	c := &tally{of: map[string]int{}}
	served(t, server, brokerrpc.Tells, c.take)
	within(t, "what was there", func() bool {
		for i := range 20 {
			if !c.has(fmt.Sprint(i))() {
				return false
			}
		}
		return true
	})
	s.Ctl("set_vm_memory_high_watermark", "absolute", "1GB")
	sent(t, worker, brokerrpc.Tells, "room")
	within(t, "the message after", c.has("room"))
}

// If another installation gets the namespace while the queues of the servers are deleted, the servers report that and serve nothing.
func ownerDeleted(t *testing.T, s *rabbitmqtest.Server, url string) {
	var said lines
	f, err := rabbitmq.Open(t.Context(), rabbitmq.Options{URL: url, Installation: "one", Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &tally{of: map[string]int{}}
	defer served(t, f, brokerrpc.Tells, c.take)()
	s.Delete("pawl.ownerdeleted.owner")
	second := open(t, rabbitmq.Options{URL: url, Installation: "two"})
	s.Delete("pawl.ownerdeleted.tell")
	within(t, "the first server says so", func() bool { return strings.Contains(said.String(), "another installation") })
	served(t, second, brokerrpc.Tells, c.take)
	sent(t, second, brokerrpc.Tells, "theirs")
	within(t, "the message of the second", c.has("theirs"))
}

type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A broker that stops answering is given up in time, and found again.
func stopped(t *testing.T, s *rabbitmqtest.Server, url string) {
	server, worker := open(t, rabbitmq.Options{URL: url, Installation: "one"}), open(t, rabbitmq.Options{URL: url})
	c := &tally{of: map[string]int{}}
	served(t, server, brokerrpc.Tells, c.take)
	sent(t, worker, brokerrpc.Tells, "before")
	s.Signal(syscall.SIGSTOP)
	// Its threads stop a moment after the signal: a message may still be confirmed.
	within(t, "a message that is not confirmed", func() bool {
		began := time.Now()
		err := worker.Send(t.Context(), brokerrpc.Tells, []byte("meanwhile"), 0)
		if err != nil && !errors.Is(err, brokerrpc.ErrUnavailable) || time.Since(began) > 20*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		return err != nil
	})
	s.Signal(syscall.SIGCONT)
	sent(t, worker, brokerrpc.Tells, "after")
	within(t, "the message after", c.has("after"))
}

// A queue that neither accepts nor delivers, like one without a leader after the broker was killed, is made again.
func queueStuck(t *testing.T, s *rabbitmqtest.Server, url string) {
	server, worker := open(t, rabbitmq.Options{URL: url, Installation: "one"}), open(t, rabbitmq.Options{URL: url})
	s.Ctl("eval", "sys:suspend('%2F_pawl.queuestuck.tell').")
	c := &tally{of: map[string]int{}}
	served(t, server, brokerrpc.Tells, c.take)
	sent(t, worker, brokerrpc.Tells, "after")
	within(t, "the message after", c.has("after"))
}

// While the queue of logs confirms nothing, calls are confirmed at once.
func otherLineStuck(t *testing.T, s *rabbitmqtest.Server, url string) {
	open(t, rabbitmq.Options{URL: url, Installation: "one"})
	worker := open(t, rabbitmq.Options{URL: url})
	sent(t, worker, brokerrpc.Asks, "before")
	s.Ctl("eval", "sys:suspend('%2F_pawl.otherlinestuck.log').")
	ctx, giveUp := context.WithTimeout(t.Context(), time.Second)
	defer giveUp()
	if err := worker.Send(ctx, brokerrpc.Logs, []byte("stuck"), 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a message to a line that does not answer: %v", err)
	}
	began := time.Now()
	if err := worker.Send(t.Context(), brokerrpc.Asks, []byte("renewal"), 0); err != nil {
		t.Errorf("a call beside a line that does not answer, after %s: %v", time.Since(began), err)
	}
	s.Ctl("eval", "sys:resume('%2F_pawl.otherlinestuck.log').")
	sent(t, worker, brokerrpc.Logs, "after")
}

// Messages are dead-lettered even if the queue of dead letters was deleted.
func deadDeleted(t *testing.T, s *rabbitmqtest.Server, url string) {
	server := open(t, rabbitmq.Options{URL: url, Installation: "one"})
	served(t, server, brokerrpc.Tells, func(context.Context, brokerrpc.Message) error {
		return &brokerrpc.Unreadable{Reason: "it is not a message"}
	})
	s.Delete("pawl.deaddeleted.dead")
	sent(t, server, brokerrpc.Tells, "bad")
	within(t, "the dead letter", func() bool {
		dead, err := server.Dead(t.Context(), brokerrpc.ListDead)
		return err == nil && len(dead) == 1 && dead[0].Reason == "it is not a message"
	})
}

// Messages that the broker has confirmed survive its death, and so do most reply queues, without their messages. On a machine with 10 times
// the work of its processors, RabbitMQ 3.10 lost 7 of 180 reply queues that it had made just before it was killed: then both sides learn
// that, and the worker makes another.
func restarted(t *testing.T, s *rabbitmqtest.Server, url string) {
	server, worker := open(t, rabbitmq.Options{URL: url, Installation: "one"}), open(t, rabbitmq.Options{URL: url})
	sent(t, worker, brokerrpc.Tells, "before")
	b, err := worker.ReplyQueue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := worker.Send(t.Context(), brokerrpc.Tells, []byte("meanwhile"), 0); !errors.Is(err, brokerrpc.ErrUnavailable) {
		t.Errorf("sent to no broker: %v", err)
	}
	if _, err := server.Backlog(t.Context()); !errors.Is(err, brokerrpc.ErrUnavailable) {
		t.Errorf("looked at no broker: %v", err)
	}
	s.Again()
	c := &tally{of: map[string]int{}}
	served(t, server, brokerrpc.Tells, c.take)
	within(t, "the message before", c.has("before"))
	brokerrpctest.Await(t, time.Minute, func() error {
		err := server.Put(t.Context(), b.Name(), []byte("hello"))
		if errors.Is(err, brokerrpc.ErrNoReplyQueue) {
			within(t, "its reader is told that the reply queue is gone", func() bool {
				ctx, giveUp := context.WithTimeout(t.Context(), time.Second)
				defer giveUp()
				_, told := b.Next(ctx)
				return errors.Is(told, brokerrpc.ErrNoReplyQueue)
			})
			var again error
			if b, again = worker.ReplyQueue(t.Context()); again != nil {
				t.Fatal(again)
			}
		}
		return err
	})
	within(t, "its message", func() bool {
		m, err := b.Next(t.Context())
		return err == nil && string(m) == "hello"
	})
	b.Close()
}
