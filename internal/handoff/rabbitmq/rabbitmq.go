// Package rabbitmq is a broker's transport on RabbitMQ, version 3.10 or later. Nothing in RabbitMQ is needed for recovery: if it loses
// everything, work pauses and then continues.
//
// A namespace NS has these queues, all of them at the default exchange:
//
//	pawl.NS.ask, .tell, .log   the lines, quorum queues
//	pawl.NS.dead               dead letters, a quorum queue
//	pawl.NS.owner              always empty: one of its arguments names the installation that owns the namespace
//	pawl.NS.to.USER.NAME        a reply queue, a classic queue that only its owner reads, deleted by RabbitMQ after the owner has died
//
// Servers make all queues except the reply queues, which workers make. The broker confirms every publication, and returns one
// whose queue does not exist.
package rabbitmq

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

type Options struct {
	// URL is amqp://[user:password@]host[:port][/vhost], or amqps:// for TLS. ?namespace=NAME separates several
	// installations in one vhost, addr=host[:port] names another node of the same cluster, and cacertfile, certfile,
	// keyfile and server_name_indication have their usual meaning for RabbitMQ.
	URL string
	Log *slog.Logger
	// Installation names the database behind the servers that share a namespace. It is empty for workers, which neither
	// check it nor make lines.
	Installation string
	// MostBytes bounds the bytes of messages in Tells and in Logs; 0: 256 MB. All servers must use the same number.
	MostBytes int64
}

// Broker is a brokerrpc.Broker on RabbitMQ.
type Broker struct {
	o           Options
	urls        []string // of the nodes, without the namespace
	namespace   string
	prefix      string
	replyQueues string // prefix of reply queues' names with the user in it, so that access rules can separate users
	log         *slog.Logger

	ctx  context.Context // ends when the transport is closed
	stop context.CancelFunc
	// A broker without free memory or disk does not read from connections that publish. So a server reads lines over a connection on which it
	// publishes nothing, and can still take messages out. A worker has one connection for both.
	sending, reading *link

	mu     sync.Mutex
	hand   map[brokerrpc.Line]map[string]*message // messages that takes are handling, by id
	filled map[brokerrpc.Line]time.Time           // when a line was last known to have no unread messages
}

const (
	// mostBytes bounds Tells and Logs; mostAskBytes and mostDeadBytes bound the others.
	mostBytes     = 256 << 20
	mostAskBytes  = 64 << 20
	mostDeadBytes = 64 << 20
	mostDead      = 10_000
	keepDead      = 7 * 24 * time.Hour
	// mostTries is how often a message is delivered before RabbitMQ dead-letters it. It is higher than brokerrpc.MostTries because
	// RabbitMQ, unlike Redis, counts each loss of a connection, even for messages that no take had begun: good reports would
	// be dead-lettered when a connection is lost several times.
	mostTries = 16
	// replyQueueLife is how long a reply queue exists without a reader: two leases. messageLife is how long a message exists: the process that
	// waits for it has asked again by then.
	replyQueueLife = time.Minute
	messageLife    = 30 * time.Second
	maxReplyQueue  = 16 << 20
	// answerWithin is how long the broker may take to answer a command or confirm a publication before the connection is
	// dropped.
	answerWithin = 5 * time.Second
	heartbeat    = 10 * time.Second
)

var parameters = regexp.MustCompile(`^(cacertfile|certfile|keyfile|server_name_indication)$`)

// parseURL reads a URL of Options: a URL for each node.
func parseURL(text string) (nodes []*url.URL, namespace string, err error) {
	u, namespace, err := brokerrpc.ParseURL(text, "amqp://127.0.0.1:5672 or amqps://user:password@rabbitmq.example.com/vhost", "amqp", "amqps")
	if err != nil {
		return nil, "", err
	}
	q := u.Query()
	addrs := q["addr"]
	q.Del("addr")
	u.RawQuery = q.Encode()
	for name := range u.Query() {
		if !parameters.MatchString(name) {
			// The URL is not shown: if a password has an unescaped "?", the parameter is a part of the password.
			return nil, "", errors.New("the broker's URL has another parameter than namespace, addr, cacertfile, certfile, keyfile and server_name_indication; write a ? of a password as %3F")
		}
	}
	for _, host := range append([]string{u.Host}, addrs...) {
		node := *u
		node.Host = host
		if _, err := amqp.ParseURI(node.String()); err != nil {
			return nil, "", errors.New("the broker's URL cannot be read: write amqp://user:password@host:port/vhost?namespace=NAME, with special characters of user and password as %-escapes, and &addr=host:port for each further node of a cluster")
		}
		nodes = append(nodes, &node)
	}
	return nodes, namespace, nil
}

// Open connects. Its error describes the fault of the broker at the URL: it does not answer, refuses the password, is too old, has no such
// vhost or has queues with other arguments, or another installation has the namespace. The caller must close the transport.
func Open(ctx context.Context, o Options) (*Broker, error) {
	nodes, namespace, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.MostBytes = cmp.Or(o.MostBytes, mostBytes)
	f := &Broker{
		o: o, namespace: namespace, prefix: "pawl." + namespace + ".", log: o.Log,
		hand:   map[brokerrpc.Line]map[string]*message{brokerrpc.Asks: {}, brokerrpc.Tells: {}, brokerrpc.Logs: {}},
		filled: map[brokerrpc.Line]time.Time{},
	}
	for _, line := range brokerrpc.Lines() {
		f.filled[line] = time.Now()
	}
	for _, node := range nodes {
		f.urls = append(f.urls, node.String())
	}
	user := "guest"
	if name := nodes[0].User.Username(); name != "" {
		user = name
	}
	f.replyQueues = notInNames.ReplaceAllString(user, "_") + "."
	f.ctx, f.stop = context.WithCancel(context.Background())
	if f.sending, err = f.open(ctx, true, "pawl"); err == nil {
		f.reading = f.sending
		if f.server() {
			f.reading, err = f.open(ctx, false, "pawl, reading")
		}
	}
	if err == nil && f.server() {
		err = f.declareAll(ctx)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// server reports whether this is a server's transport, which makes missing queues.
func (f *Broker) server() bool { return f.o.Installation != "" }

func (f *Broker) Close() {
	f.stop()
	for _, l := range []*link{f.sending, f.reading} {
		if l != nil {
			<-l.over
		}
	}
}

func (f *Broker) queue(name string) string { return f.prefix + name }

func (f *Broker) line(l brokerrpc.Line) string { return f.queue(string(l)) }

func (f *Broker) replyQueue(name string) string { return f.queue("to." + name) }

func newID() string {
	raw := make([]byte, 16)
	rand.Read(raw) // never fails on the systems that Go supports
	return hex.EncodeToString(raw)
}

func (f *Broker) Send(ctx context.Context, line brokerrpc.Line, body []byte, valid time.Duration) error {
	m := amqp.Publishing{MessageId: newID(), Body: body, DeliveryMode: amqp.Persistent}
	if valid > 0 {
		m.Expiration = strconv.FormatInt(valid.Milliseconds(), 10)
	}
	return f.send(ctx, line, m)
}

// publishOrMake publishes to a line, or to the dead letters. If the queue does not exist, a server makes it: the broker has
// lost it, or an operator has deleted it.
func (f *Broker) publishOrMake(ctx context.Context, line brokerrpc.Line, queue string, m amqp.Publishing) error {
	err := f.publish(ctx, queue, m)
	if errors.Is(err, errNoQueue) && f.server() {
		if err = f.declareLine(ctx, line); err == nil {
			err = f.publish(ctx, queue, m)
		}
	}
	return err
}

func (f *Broker) send(ctx context.Context, line brokerrpc.Line, m amqp.Publishing) error {
	err := f.publishOrMake(ctx, line, f.line(line), m)
	switch {
	case errors.Is(err, errNoQueue):
		return fmt.Errorf("%w: there is no queue %s: servers make it, and none has been started with this broker and namespace",
			brokerrpc.ErrUnavailable, f.line(line))
	case errors.Is(err, brokerrpc.ErrBusy):
		return fmt.Errorf("%w, or its queue, which has just been made, has no leader yet: %s", err, line)
	}
	return err
}

func (f *Broker) Put(ctx context.Context, replyQueue string, message []byte) error {
	err := f.publish(ctx, f.replyQueue(replyQueue), amqp.Publishing{Body: message, DeliveryMode: amqp.Transient})
	if errors.Is(err, errNoQueue) {
		return brokerrpc.ErrNoReplyQueue
	}
	return err
}
