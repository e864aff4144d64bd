// Package brokerrpc is the hand-off through a message broker, for workers that reach a broker but no server. The broker only carries
// calls and answers. The engine alone decides about claims, leases and reports, so any message may be lost, repeated, late or
// out of order. A worker sends messages to lines, which all servers read together; answers go to the reply queue of the process that
// asked.
//
//	worker ── ask, tell, log ──► one of the servers ──► engine
//	worker ◄── its reply queue ───── that server
//
// Client is the worker's side, Server the server's, and Transport is the port to a broker for both. Package wire has the messages.
package brokerrpc

import (
	"context"
	"errors"
	"time"
)

// Line is a queue of messages that all servers read together. There are three, because with one a flood of logs would delay the
// renewals of all sessions until their leases run out.
type Line string

const (
	// Asks are calls whose callers wait and ask again. Each is delivered at most once, and is ignored when it is old.
	Asks Line = "ask"
	// Tells are reports. Each is kept until it is recorded.
	Tells Line = "tell"
	// Logs are log chunks. Each is kept until it is stored.
	Logs Line = "log"
)

func Lines() []Line { return []Line{Asks, Tells, Logs} }

var (
	// ErrUnavailable means that the broker cannot be reached, or refuses, at the moment.
	ErrUnavailable = errors.New("broker unavailable")
	// ErrBusy means that a line is full, because servers take messages out more slowly than workers put them in. It comes
	// together with ErrUnavailable.
	ErrBusy = errors.New("the line is full")
	// ErrNoReplyQueue means that a reply queue does not exist, or not any more.
	ErrNoReplyQueue = errors.New("no such reply queue")
)

// MaxMessage bounds, in bytes, the body of a message in a line or in a reply queue. Larger bodies go as transfers.
const MaxMessage = 512 << 10

// Message is what a line delivers.
type Message struct {
	ID    string // given by the broker
	Body  []byte
	Tries int // deliveries, including this one
	// since it was sent, by the broker's clock; 0 if the broker does not tell, but then it delivers no message whose validity has ended
	Age time.Duration
}

// Unreadable is an error of Serve's take for a message that no server can read. The message is put among the dead letters.
type Unreadable struct{ Reason string }

func (b *Unreadable) Error() string { return "the message cannot be read: " + b.Reason }

// MostTries is how often a message of Tells and Logs is delivered before it is dead-lettered. A message that makes the process crash
// which reads it would otherwise crash every server, again and again.
const MostTries = 5

// Depth is the content of a line. Some brokers count only messages that no server has got yet; then Messages, Bytes and Oldest leave out
// messages that servers are handling.
type Depth struct {
	Messages int64
	Bytes    int64         // -1: the broker does not report it
	Oldest   time.Duration // at least the age of the oldest message; 0: there is none
	Unread   int64         // those of Messages that no server has got yet
}

// DeadAction is what Dead does with dead letters.
type DeadAction int

const (
	ListDead    DeadAction = iota // leaves them
	RedriveDead                   // puts them back into their lines; asks are deleted, since their workers have asked again
	DropDead                      // deletes them
)

type DeadLetter struct {
	ID     string
	Line   Line
	Reason string
	Tries  int
	Age    time.Duration // since it was dead-lettered
	Size   int           // bytes of the message
}

// Transport is the port to a broker. It is safe for concurrent use and reconnects by itself, so its errors are temporary.
type Transport interface {
	// Send puts a message into a line. A nil error means that the broker has the message, but the broker may still lose it.
	// After the time valid the message is useless and the broker may delete it; 0: it is useful for ever.
	Send(ctx context.Context, line Line, body []byte, valid time.Duration) error
	// Serve delivers messages of a line until ctx ends, and returns when every take has returned. Each message goes to a call
	// of take in a goroutine of its own, at most "most" at once. If take returns nil for a message of Tells or Logs, the
	// message is deleted; if it returns an Unreadable, the message is put among the dead letters; after any other error it is
	// delivered again, here or to another server. The messages of a server that has died are delivered to the others within
	// 20 seconds.
	Serve(ctx context.Context, line Line, most int, take func(context.Context, Message) error)
	// ReplyQueue makes a reply queue with a name that was never used before. The broker deletes it some time after its owner has died.
	ReplyQueue(ctx context.Context) (ReplyQueue, error)
	// Put puts a message into a reply queue.
	Put(ctx context.Context, replyQueue string, message []byte) error
	// Backlog returns the content of the lines.
	Backlog(ctx context.Context) (map[Line]Depth, error)
	// Dead does something with dead letters and returns them, the oldest first and at most 1,000.
	Dead(ctx context.Context, do DeadAction) ([]DeadLetter, error)
}

// ReplyQueue is a reply queue, read by one goroutine.
type ReplyQueue interface {
	Name() string
	// Next waits for the next message. After ErrUnavailable it may be called again and no message is skipped; after any
	// other error the reply queue cannot be used any more.
	Next(ctx context.Context) ([]byte, error)
	// Close deletes the reply queue.
	Close()
}
