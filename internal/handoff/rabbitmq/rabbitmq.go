// Package rabbitmq makes a post office of RabbitMQ, version 3.10 or later. Nothing that it keeps there is needed to recover: a RabbitMQ that
// has lost everything costs a pause.
//
// A namespace NS has these queues, all of them at the default exchange:
//
//	pawl.NS.ask, .tell, .log   the lines, quorum queues
//	pawl.NS.dead               dead letters, a quorum queue
//	pawl.NS.owner              always empty: one of its arguments says which installation the namespace belongs to
//	pawl.NS.to.USER.BOX        a mailbox, a classic queue that its owner alone reads, deleted by RabbitMQ a while after that is gone
//
// Servers make all of them but the mailboxes; workers make their mailboxes. Every publication is confirmed by the broker, and is returned when
// there is no such queue.
package rabbitmq

import (
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

	"github.com/pawl-run/pawl/internal/handoff/post"
)

// Options configure an Office.
type Options struct {
	// URL is amqp://[user:password@]host[:port][/vhost], or amqps:// for TLS; ?namespace=NAME tells several installations in one vhost apart,
	// addr=host[:port] names another node of the same cluster, and cacertfile, certfile, keyfile and server_name_indication are as everywhere with RabbitMQ.
	URL string
	Log *slog.Logger
	// Installation names the database behind the servers that share a namespace; empty for workers, which do not check it and make no lines.
	Installation string
	// MostBytes bounds the letters of Tells and of Logs; 0: 256 MB. All servers must say the same.
	MostBytes int64
}

// Office is a RabbitMQ, as post.Broker.
type Office struct {
	o         Options
	urls      []string // of the nodes, without the namespace
	namespace string
	prefix    string
	boxes     string // the beginning of mailboxes' names: the user's, so that access rules can tell users' mailboxes apart
	log       *slog.Logger

	ctx  context.Context // of the office
	stop context.CancelFunc
	// While the broker has no memory or no disk left it does not read from connections that publish. So a server reads lines over a connection
	// over which it publishes nothing, and goes on taking letters out. A worker has one connection for both.
	sending, reading *link

	mu     sync.Mutex
	hand   map[post.Line]map[string]*letter // what takes are at, by id
	filled map[post.Line]time.Time          // since when a line is not known to have been without unread letters
}

const (
	// mostBytes bounds Tells and Logs, mostAskBytes and mostDeadBytes the others.
	mostBytes     = 256 << 20
	mostAskBytes  = 64 << 20
	mostDeadBytes = 64 << 20
	mostDead      = 10_000
	keepDead      = 7 * 24 * time.Hour
	// mostTries is how often a letter is delivered before RabbitMQ buries it. Unlike Redis it counts each loss of a connection, also of letters
	// that lay in a buffer: with post.MostTries good reports would be buried while connections come and go.
	mostTries = 16
	// boxLife is how long a mailbox stays without a reader: as long as two leases. messageLife is how long a message stays: by then the process
	// that waits for it has asked again.
	boxLife     = time.Minute
	messageLife = 30 * time.Second
	mostBox     = 16 << 20
	// answerWithin is how long the broker may take to answer a command or confirm a publication. Without an answer the connection is dropped.
	answerWithin = 5 * time.Second
	heartbeat    = 10 * time.Second
)

var parameters = regexp.MustCompile(`^(cacertfile|certfile|keyfile|server_name_indication)$`)

// parseURL reads a URL of Options: a URL for each node.
func parseURL(text string) (nodes []*url.URL, namespace string, err error) {
	u, namespace, err := post.ParseURL(text, "amqp://127.0.0.1:5672 or amqps://user:password@rabbitmq.example.com/vhost", "amqp", "amqps")
	if err != nil {
		return nil, "", err
	}
	q := u.Query()
	addrs := q["addr"]
	q.Del("addr")
	u.RawQuery = q.Encode()
	for name := range u.Query() {
		if !parameters.MatchString(name) {
			// It is not shown: where a password has a ? that is not escaped, it is a part of that.
			return nil, "", errors.New("the broker's URL has another parameter than namespace, addr, cacertfile, certfile, keyfile and server_name_indication; write a ? of a password as %3F")
		}
	}
	for _, host := range append([]string{u.Host}, addrs...) {
		node := *u
		node.Host = host
		if _, err := amqp.ParseURI(node.String()); err != nil {
			return nil, "", errors.New("the broker's URL cannot be read: write amqp://user:password@host:port/vhost?namespace=NAME, with what is special in user and password as %-escapes, and &addr=host:port for each further node of a cluster")
		}
		nodes = append(nodes, &node)
	}
	return nodes, namespace, nil
}

// Open connects. Its error says what is wrong with the broker at the URL: that it does not answer, refuses the password, is too old, has no such
// vhost, has queues with other arguments, or that another installation has the namespace. Close it.
func Open(ctx context.Context, o Options) (*Office, error) {
	nodes, namespace, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MostBytes == 0 {
		o.MostBytes = mostBytes
	}
	f := &Office{
		o: o, namespace: namespace, prefix: "pawl." + namespace + ".", log: o.Log,
		hand:   map[post.Line]map[string]*letter{post.Asks: {}, post.Tells: {}, post.Logs: {}},
		filled: map[post.Line]time.Time{},
	}
	for _, line := range post.Lines() {
		f.filled[line] = time.Now()
	}
	for _, node := range nodes {
		f.urls = append(f.urls, node.String())
	}
	user := "guest"
	if name := nodes[0].User.Username(); name != "" {
		user = name
	}
	f.boxes = notInNames.ReplaceAllString(user, "_") + "."
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

// server reports whether this is a server's office, which makes what is not there.
func (f *Office) server() bool { return f.o.Installation != "" }

// Close implements post.Broker.
func (f *Office) Close() {
	f.stop()
	for _, l := range []*link{f.sending, f.reading} {
		if l != nil {
			<-l.over
		}
	}
}

func (f *Office) queue(name string) string { return f.prefix + name }

func (f *Office) line(l post.Line) string { return f.queue(string(l)) }

func (f *Office) box(name string) string { return f.queue("to." + name) }

// newID is a random name.
func newID() string {
	raw := make([]byte, 16)
	rand.Read(raw) // never fails on the systems that Go supports
	return hex.EncodeToString(raw)
}

// Send implements post.Office.
func (f *Office) Send(ctx context.Context, line post.Line, body []byte, valid time.Duration) error {
	m := amqp.Publishing{MessageId: newID(), Body: body, DeliveryMode: amqp.Persistent}
	if valid > 0 {
		m.Expiration = strconv.FormatInt(valid.Milliseconds(), 10)
	}
	return f.send(ctx, line, m)
}

// publishOrMake publishes to a line, or to the dead letters. Where there is no such queue a server makes it: the broker has lost it, or an operator
// has deleted it.
func (f *Office) publishOrMake(ctx context.Context, line post.Line, queue string, m amqp.Publishing) error {
	err := f.publish(ctx, queue, m)
	if errors.Is(err, errNoQueue) && f.server() {
		if err = f.declareLine(ctx, line); err == nil {
			err = f.publish(ctx, queue, m)
		}
	}
	return err
}

// send publishes to a line.
func (f *Office) send(ctx context.Context, line post.Line, m amqp.Publishing) error {
	err := f.publishOrMake(ctx, line, f.line(line), m)
	switch {
	case errors.Is(err, errNoQueue):
		return fmt.Errorf("%w: there is no queue %s: servers make it, and none has been started with this broker and namespace", post.ErrUnavailable, f.line(line))
	case errors.Is(err, post.ErrBusy):
		return fmt.Errorf("%w, or its queue, which has just been made, has no leader yet: %s", err, line)
	}
	return err
}

// Put implements post.Office.
func (f *Office) Put(ctx context.Context, box string, message []byte) error {
	err := f.publish(ctx, f.box(box), amqp.Publishing{Body: message, DeliveryMode: amqp.Transient})
	if errors.Is(err, errNoQueue) {
		return post.ErrNoBox
	}
	return err
}
