package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
	"github.com/pawl-run/pawl/internal/handoff/redis"
	"github.com/pawl-run/pawl/internal/handoff/redis/redistest"
)

func open(t *testing.T, o redis.Options) *redis.Broker {
	t.Helper()
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	f, err := redis.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func TestTransport(t *testing.T) {
	t.Parallel()
	brokerrpctest.Exercise(t, func(t *testing.T) *brokerrpctest.Rig {
		url := redistest.URL(t)
		return &brokerrpctest.Rig{
			Transport: func(t *testing.T) brokerrpc.Transport {
				return open(t, redis.Options{URL: url, Installation: "one", Stale: time.Second})
			},
			Full:    func(t *testing.T) brokerrpc.Transport { return open(t, redis.Options{URL: url, MostBytes: 10 << 20}) },
			Flush:   func(t *testing.T) { redistest.Flush(t, url) },
			Replace: func(t *testing.T, replyQueues ...string) { redistest.Replace(t, url, replyQueues...) },
		}
	})
}

// Faults that make the broker unusable are reported at the start, with the remedy.
func TestOpen(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, "--requirepass", "sesame")
	for url, want := range map[string]string{
		"redis://127.0.0.1:1":                "connection refused",
		locked.URL():                         "refuses the user or password",
		"redis://:wrong@" + locked.Addr():    "refuses the user or password",
		"http://" + locked.Addr():            "not a URL such as redis://",
		locked.URL() + "?namespace=a b":      "use up to 64 letters",
		"redis://" + locked.Addr() + "/nine": "cannot be read",
	} {
		f, err := redis.Open(t.Context(), redis.Options{URL: url})
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "wrong@") {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
	url := "redis://:sesame@" + locked.Addr()
	open(t, redis.Options{URL: url, Installation: "one"})
	open(t, redis.Options{URL: url, Installation: "one"})
	open(t, redis.Options{URL: url})
	open(t, redis.Options{URL: url + "?namespace=other", Installation: "two"})
	if _, err := redis.Open(t.Context(), redis.Options{URL: url, Installation: "two"}); err == nil || !strings.Contains(err.Error(), "another installation") || !strings.Contains(err.Error(), "?namespace=") {
		t.Errorf("two installations: %v", err)
	}
}

// A Redis that is too old is refused, with the remedy.
func TestOldVersion(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`redis_version:([0-9.]+)`)
	old := brokerrpctest.Changed(t, redistest.Start(t).Addr(), func(piece []byte) {
		if at := version.FindSubmatchIndex(piece); at != nil {
			copy(piece[at[2]:at[3]], "6.2.99999")
		}
	})
	_, err := redis.Open(t.Context(), redis.Options{URL: "redis://" + old})
	if err == nil || !strings.Contains(err.Error(), "the broker is Redis 6.2.") || !strings.Contains(err.Error(), "version 7 or later is needed, or Valkey") {
		t.Errorf("%v", err)
	}
}

// A Redis that may evict its keys is refused, with the remedy. One that is reconfigured to evict later continues to work.
func TestEviction(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	_, err := redis.Open(t.Context(), redis.Options{URL: s.URL()})
	if err == nil || !strings.Contains(err.Error(), "maxmemory-policy is allkeys-lru") || !strings.Contains(err.Error(), "set maxmemory-policy noeviction") {
		t.Errorf("an evicting Redis: %v", err)
	}
	s.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	f := open(t, redis.Options{URL: s.URL(), Stale: time.Second})
	s.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	brokerrpctest.Row(t, &brokerrpctest.Rig{Transport: func(*testing.T) brokerrpc.Transport { return f }}, "Delivered", "ReplyQueue")
}

// Health warns of limits before they are reached.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := open(t, redis.Options{URL: s.URL()})
	expect := func(want string) {
		t.Helper()
		h, err := f.Health(t.Context())
		if err != nil || !strings.Contains(h.Concern, want) || (h.Concern == "") != (want == "") || (h.Remedy == "") != (want == "") || !strings.HasPrefix(h.Product, "Redis ") || h.Dead != 0 {
			t.Errorf("%+v, %v, want %q", h, err, want)
		}
	}
	expect("")
	s.Do("CONFIG", "SET", "maxmemory", "1mb") // it uses as much when it is empty
	expect("of its maxmemory of 1048576 bytes")
	s.Do("CONFIG", "SET", "maxmemory", "0")
	f = open(t, redis.Options{URL: s.URL()})
	s.Do("CONFIG", "SET", "maxclients", "2") // the two that are open: nothing can connect, and f needs no more
	expect("maxclients is 2")
}

// While Redis has no memory left nothing is sent, but messages are taken out; afterwards sending continues.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := open(t, redis.Options{URL: s.URL(), Stale: time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for i := range 100 {
		if err := f.Send(ctx, brokerrpc.Tells, fmt.Append(nil, i), 0); err != nil {
			t.Fatal(err)
		}
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	s.Do("XGROUP", "CREATE", "pawl:{default}:tell", "servers", "0") // a group is made while there is memory
	s.Do("CONFIG", "SET", "maxmemory", "1mb")
	if err := f.Send(ctx, brokerrpc.Tells, []byte("no room"), 0); !errors.Is(err, brokerrpc.ErrUnavailable) {
		t.Errorf("sent without memory: %v", err)
	}
	var over sync.WaitGroup
	over.Go(func() {
		f.Serve(serving, brokerrpc.Tells, 10, func(context.Context, brokerrpc.Message) error { return nil })
	})
	defer over.Wait()
	defer stop()
	for {
		lines, err := f.Backlog(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if lines[brokerrpc.Tells].Messages == 0 {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%+v", lines)
		}
	}
	s.Do("CONFIG", "SET", "maxmemory", "0")
	if err := f.Send(ctx, brokerrpc.Tells, []byte("room"), 0); err != nil {
		t.Errorf("with memory again: %v", err)
	}
}

// The access rules of docs/brokers.md are enough, and errors name a missing right.
func TestAccessRules(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Rights()
	f := open(t, redis.Options{URL: s.As("servers"), Installation: "one", Stale: time.Second})
	rig := &brokerrpctest.Rig{Transport: func(*testing.T) brokerrpc.Transport { return f }}
	brokerrpctest.Row(t, rig, "Delivered", "Repeated", "DeadLettered", "ReplyQueue", "NoReplyQueue", "Rehearsed", "Backlog")
	const lacks = "docs/brokers.md lists what it needs"
	if _, err := redis.Open(t.Context(), redis.Options{URL: strings.ReplaceAll(s.As("servers"), "prod", "other"), Installation: "one"}); err == nil || !strings.Contains(err.Error(), lacks) {
		t.Errorf("another namespace: %v", err)
	}
	if _, err := redis.Open(t.Context(), redis.Options{URL: s.As("plant"), Installation: "one"}); err == nil || !strings.Contains(err.Error(), lacks) {
		t.Errorf("a server with a worker's user: %v", err)
	}
	s.Do("ACL", "SETUSER", "servers", "-xread")
	if err := brokerrpc.Rehearse(t.Context(), f); err == nil || !strings.Contains(err.Error(), lacks) {
		t.Errorf("rehearsed by one who may not read reply queues: %v", err)
	}
}

// A worker's user puts messages into lines and reads its reply queue, and can do nothing else with either.
func TestAccessRulesOfWorkers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Rights()
	server, w := open(t, redis.Options{URL: s.As("servers"), Installation: "one"}), open(t, redis.Options{URL: s.As("plant")})
	if err := brokerrpc.Rehearse(t.Context(), w); err != nil {
		t.Error(err)
	}
	b, err := w.ReplyQueue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, line := range brokerrpc.Lines() {
		if err := w.Send(t.Context(), line, []byte("message"), 0); err != nil {
			t.Errorf("send to %s: %v", line, err)
		}
	}
	if err := server.Put(t.Context(), b.Name(), []byte("answer")); err != nil {
		t.Fatal(err)
	}
	if m, err := b.Next(t.Context()); err != nil || string(m) != "answer" {
		t.Errorf("%q, %v", m, err)
	}
	for _, words := range []string{
		"XREAD STREAMS pawl:{prod}:tell 0", "XRANGE pawl:{prod}:log - +", "XTRIM pawl:{prod}:tell MAXLEN 0", "DEL pawl:{prod}:tell", "XREADGROUP GROUP servers me STREAMS pawl:{prod}:ask >",
		"XDEL pawl:{prod}:tell 1-1", "XRANGE pawl:{prod}:dead - +", "HGET pawl:{prod}:meta installation", "KEYS *", "SCAN 0", "FLUSHALL", "CONFIG GET maxmemory", "PUBLISH pawl x",
		"EVAL return(redis.call('XREAD','STREAMS',KEYS[1],'0')) 1 pawl:{prod}:tell", "EVAL return(redis.call('DEL',KEYS[1])) 1 pawl:{prod}:log", "XADD pawl:{other}:tell * l x",
	} {
		if err := s.TryAs("plant", strings.Fields(words)...); err == nil || !strings.Contains(err.Error(), "NOPERM") && !strings.Contains(err.Error(), "The user executing the script can't") {
			t.Errorf("%s: %v", words, err)
		}
	}
}

// A line that an operator deletes can still be used: its old count of bytes is ignored.
func TestLineDeleted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := open(t, redis.Options{URL: s.URL(), MostBytes: 1000})
	message := []byte(strings.Repeat("x", 600))
	if err := f.Send(t.Context(), brokerrpc.Tells, message, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Send(t.Context(), brokerrpc.Tells, message, 0); !errors.Is(err, brokerrpc.ErrBusy) {
		t.Fatalf("a line with too many bytes: %v", err)
	}
	s.Do("DEL", "pawl:{default}:tell")
	if err := f.Send(t.Context(), brokerrpc.Tells, message, 0); err != nil {
		t.Errorf("a line that was deleted: %v", err)
	}
	if lines, err := f.Backlog(t.Context()); err != nil || lines[brokerrpc.Tells].Bytes != 600 {
		t.Errorf("%+v, %v", lines, err)
	}
}

// A key of another type is reported once, by its name, and does not keep a server from starting.
func TestKeysOfAnotherType(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("RPUSH", "pawl:{default}:meta", "x")
	s.Do("SET", "pawl:{default}:tell", "x")
	var said strings.Builder
	for range 2 {
		f, err := redis.Open(t.Context(), redis.Options{URL: s.URL(), Installation: "one", Log: slog.New(slog.NewTextHandler(&said, nil))})
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	for _, key := range []string{"meta", "tell"} {
		if strings.Count(said.String(), "key=pawl:{default}:"+key+"\n") != 1 {
			t.Errorf("%s: %s", key, &said)
		}
	}
	if n := strings.Count(said.String(), "\n"); n != 2 {
		t.Errorf("%d lines: %s", n, &said)
	}
}

// Dead letters are bounded in bytes: the oldest are deleted. All of them are listed, page after page.
func TestDeadLettersAreBounded(t *testing.T) {
	t.Parallel()
	f := open(t, redis.Options{URL: redistest.URL(t)})
	ctx, stop := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() {
		f.Serve(ctx, brokerrpc.Tells, 10, func(context.Context, brokerrpc.Message) error { return &brokerrpc.Unreadable{Reason: "x"} })
	})
	defer over.Wait()
	defer stop()
	const messages, each = 160, brokerrpc.MaxMessage
	message := make([]byte, each)
	for range messages {
		if err := f.Send(t.Context(), brokerrpc.Tells, message, 0); err != nil {
			t.Fatal(err)
		}
	}
	for began := time.Now(); ; <-time.After(20 * time.Millisecond) {
		lines, err := f.Backlog(t.Context())
		if err == nil && lines[brokerrpc.Tells].Messages == 0 {
			break
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("%+v, %v", lines, err)
		}
	}
	dead, err := f.Dead(t.Context(), brokerrpc.DropDead)
	if err != nil || len(dead) != 64<<20/each {
		t.Errorf("%d dead letters, %v", len(dead), err)
	}
	if left, err := f.Dead(t.Context(), brokerrpc.ListDead); err != nil || len(left) > 0 {
		t.Errorf("%d dead letters are left, %v", len(left), err)
	}
}
