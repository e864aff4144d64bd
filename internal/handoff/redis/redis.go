// Package redis is a broker's transport on a Redis server, version 7 or later, with streams. Nothing in Redis is needed for recovery: if it
// is emptied, work pauses and then continues.
//
// A namespace NS has these keys:
//
//	pawl:{NS}:ask, :tell, :log   streams: the lines, read by the group "servers"
//	pawl:{NS}:bytes              hash: how many bytes of messages each line holds
//	pawl:{NS}:to:NAME             stream: a reply queue, read only by its owner, deleted by Redis a while after the owner has died
//	pawl:{NS}:dead               stream: dead letters
//	pawl:{NS}:meta               hash: the installation that owns the namespace
package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

type Options struct {
	// URL is redis://[user:password@]host:port[/db], or rediss:// for TLS. ?namespace=NAME separates several installations
	// on one Redis. &master_set=NAME makes the URL that of a sentinel, and &addr=HOST:PORT, which may be repeated, names
	// more sentinels, or more nodes of a cluster.
	URL string
	Log *slog.Logger
	// Installation names the database behind the servers that share a namespace; empty for workers, which do not check it.
	Installation string
	// MostBytes bounds the bytes of messages in a line; 0: 256 MB.
	MostBytes int64
	// Stale is the time after which a message whose server is silent is delivered to another one; 0: 15 s. A server that
	// is handling a message renews its claim three times in that time.
	Stale time.Duration
}

// Broker is a brokerrpc.Broker on a Redis server.
type Broker struct {
	o         Options
	client    rueidis.Client
	namespace string
	prefix    string
	name      string // of this process, which is a consumer of the group
	log       *slog.Logger

	ahead atomic.Int64 // difference of Redis's clock to this process's, in nanoseconds
	timed atomic.Bool  // ahead is known

	mu   sync.Mutex
	hand map[brokerrpc.Line]map[string]bool // ids of messages that takes are handling
}

const (
	group      = "servers"
	mostBytes  = 256 << 20
	mostAsks   = 100_000
	mostDead   = 64 << 20 // bytes of dead letters
	staleAfter = 15 * time.Second
	// oldAsk is the age in seconds at which asks are removed. Servers ignore those older than 20 s.
	oldAsk = 30
	// blockFor is how long Redis holds a read of a line before it answers that there is nothing. replyQueueBlock is the same for a reply queue
	// and is longer, because there are as many reply queues as workers; a deleted reply queue is noticed after that time.
	blockFor        = time.Second
	replyQueueBlock = 4 * time.Second
	// connBuffer is how many bytes a connection buffers in each direction. Two connections of a worker are mostly idle.
	connBuffer = 64 << 10
	// replyQueueLife is how long a reply queue exists after its owner has last touched it: two leases.
	replyQueueLife = time.Minute
	// replyQueueTouch is how often an owner touches its reply queue.
	replyQueueTouch = 2 * time.Second
)

func parseURL(text string) (rueidis.ClientOption, string, error) {
	u, namespace, err := brokerrpc.ParseURL(text, "redis://127.0.0.1:6379 or rediss://user:password@redis.example.com:6379", "redis", "rediss")
	if err != nil {
		return rueidis.ClientOption{}, "", err
	}
	o, err := rueidis.ParseURL(u.String())
	if err != nil {
		return o, "", errors.New("the URL of Redis has a parameter or a database that cannot be read: write redis://user:password@host:port/0?namespace=NAME")
	}
	return o, namespace, nil
}

// Open connects. Its error describes the fault of the server at the URL: it does not answer, refuses the password, is too old, or another
// installation has the namespace. The caller must close the transport.
func Open(ctx context.Context, o Options) (*Broker, error) {
	co, namespace, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.MostBytes = cmp.Or(o.MostBytes, mostBytes)
	o.Stale = cmp.Or(o.Stale, staleAfter)
	co.DisableCache, co.DisableRetry = true, true
	co.Dialer = net.Dialer{Timeout: 5 * time.Second, KeepAlive: 10 * time.Second}
	co.ConnWriteTimeout = 10 * time.Second
	co.Sentinel.Dialer, co.Sentinel.TLSConfig = co.Dialer, co.TLSConfig
	co.ClientName = "pawl"
	co.BlockingPoolSize = 64
	// One connection carries all commands that do not block. The library's default is up to four, opened when a command
	// first needs them. When Redis was at its maxclients, Health then failed with EOF instead of saying so.
	co.PipelineMultiplex = -1
	co.ReadBufferEachConn, co.WriteBufferEachConn = connBuffer, connBuffer
	client, err := rueidis.NewClient(co)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", brokerrpc.ErrUnavailable, strings.Join(co.InitAddress, ","), explained(err))
	}
	name := make([]byte, 8)
	rand.Read(name) // never fails on the systems that Go supports
	f := &Broker{o: o, client: client, namespace: namespace, prefix: "pawl:{" + namespace + "}:", name: hex.EncodeToString(name), log: o.Log,
		hand: map[brokerrpc.Line]map[string]bool{brokerrpc.Asks: {}, brokerrpc.Tells: {}, brokerrpc.Logs: {}}}
	if err := f.check(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return f, nil
}

// explained adds advice to an error of Redis.
func explained(err error) error {
	return brokerrpc.Explained(err, []string{"WRONGPASS", "NOAUTH", "AUTH called without"}, []string{"NOPERM"})
}

// Close ends the connections. Reply queues must be closed before, by their owners.
func (f *Broker) Close() { f.client.Close() }

func (f *Broker) key(name string) string { return f.prefix + name }

func (f *Broker) line(l brokerrpc.Line) string { return f.key(string(l)) }

func (f *Broker) do(ctx context.Context, words ...string) rueidis.RedisResult {
	b := f.client.B().Arbitrary(words[0])
	if len(words) > 1 {
		b = b.Keys(words[1])
		b = b.Args(words[2:]...)
	}
	return f.client.Do(ctx, b.Build())
}

// failed turns an error of Redis, or of the connection to it, into ErrUnavailable.
func failed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %s: %w", brokerrpc.ErrUnavailable, what, explained(err))
}

// Send implements brokerrpc.Transport. Servers see the age of messages; asks are deleted at an age at which none is valid.
func (f *Broker) Send(ctx context.Context, line brokerrpc.Line, body []byte, _ time.Duration) error {
	most := int64(1 << 40)
	if line == brokerrpc.Asks {
		most = mostAsks
	}
	sent, err := sendScript.Exec(ctx, f.client, []string{f.line(line), f.key("bytes")},
		[]string{string(line), rueidis.BinaryString(body), strconv.FormatInt(f.o.MostBytes, 10), strconv.FormatInt(most, 10)}).AsInt64()
	if err != nil {
		return failed(ctx, "send a message", err)
	}
	if sent == 0 {
		return fmt.Errorf("%w: %w: %s", brokerrpc.ErrUnavailable, brokerrpc.ErrBusy, line)
	}
	return nil
}

func (f *Broker) Put(ctx context.Context, replyQueue string, message []byte) error {
	key := f.key("to:" + replyQueue)
	err := f.client.Do(ctx, f.client.B().Arbitrary("XADD").Keys(key).Args("NOMKSTREAM", "MAXLEN", "~", "10000", "*", "m", rueidis.BinaryString(message)).Build()).Error()
	if rueidis.IsRedisNil(err) || wrongType(err) {
		return brokerrpc.ErrNoReplyQueue
	}
	if err != nil {
		return failed(ctx, "put a message into a reply queue", err)
	}
	return nil
}

// age is how long ago Redis made an id.
func (f *Broker) age(id string) time.Duration {
	ms, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || !f.timed.Load() {
		return 0
	}
	return max(1, time.Now().Add(time.Duration(f.ahead.Load())).Sub(time.UnixMilli(n))) // 0: unknown
}

// readClock compares Redis's clock with this process's.
func (f *Broker) readClock(ctx context.Context) error {
	from := time.Now()
	parts, err := f.client.Do(ctx, f.client.B().Time().Build()).AsStrSlice()
	if err != nil {
		return failed(ctx, "read the clock", err)
	}
	if len(parts) != 2 {
		return failed(ctx, "read the clock", fmt.Errorf("it answers %q", parts))
	}
	seconds, err := strconv.ParseInt(parts[0], 10, 64)
	micros, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err = errors.Join(err, err2); err != nil {
		return failed(ctx, "read the clock", err)
	}
	middle := from.Add(time.Since(from) / 2)
	f.ahead.Store(int64(time.Unix(seconds, micros*1000).Sub(middle)))
	f.timed.Store(true)
	return nil
}
