// Package post is the hand-off through a message broker, for workers that reach the broker and no server. The broker carries calls and
// answers and decides nothing: claims, leases and reports are the engine's, so that every letter may be lost, doubled, late or out of
// order. A worker sends letters to lines, which all servers read together; answers go to the mailbox of the process that asked.
//
//	worker ── ask, tell, log ──► one of the servers ──► engine
//	worker ◄── its mailbox ───── that server
//
// Client is the worker's side, Server the server's, Office what a broker does for both. What is said is package wire's.
package post

import (
	"context"
	"errors"
	"time"
)

// Line is a queue of letters that all servers read together. There are three, because in one a flood of logs would delay the renewals of
// all sessions until their leases run out.
type Line string

const (
	// Asks are calls whose caller waits and asks again. Each is delivered at most once, and is void when it is old.
	Asks Line = "ask"
	// Tells are reports. Each is kept until it has been recorded.
	Tells Line = "tell"
	// Logs are log chunks. Each is kept until it has been stored.
	Logs Line = "log"
)

// Lines lists all lines.
func Lines() []Line { return []Line{Asks, Tells, Logs} }

var (
	// ErrUnavailable means that the broker cannot be reached, or refuses, just now.
	ErrUnavailable = errors.New("broker unavailable")
	// ErrBusy means that a line has no room: servers take letters out more slowly than workers put them in. It is ErrUnavailable as
	// well.
	ErrBusy = errors.New("the line is full")
	// ErrNoBox means that there is no mailbox of that name, or none any more.
	ErrNoBox = errors.New("no such mailbox")
)

// MostLetter bounds the body of a letter and of a message to a mailbox. What is larger goes in pieces.
const MostLetter = 512 << 10

// Letter is what a line delivers.
type Letter struct {
	ID    string // the broker's
	Body  []byte
	Tries int           // deliveries so far, with this one
	Age   time.Duration // since it was sent, by the broker's clock; 0 where the broker does not tell, and delivers no letter that is not valid
}

// Buried is an error of Serve's take for a letter that no server can read: it is put among the dead letters.
type Buried struct{ Reason string }

func (b *Buried) Error() string { return "the letter cannot be read: " + b.Reason }

// MostTries is how often a letter of Tells and Logs is delivered before it is buried: one that ends the process that reads it would end
// every server again and again.
const MostTries = 5

// Depth is how much lies in a line. A broker that tells only how many letters no server has been given does not have in Letters, Bytes and
// Oldest what other servers have in hand.
type Depth struct {
	Letters int64
	Bytes   int64         // -1: the broker does not tell
	Oldest  time.Duration // age of the oldest letter, or more where the broker does not tell; 0: there is none
	Unread  int64         // of Letters, those that no server has been given
}

// DeadAction is what Dead does with dead letters.
type DeadAction int

// The actions.
const (
	ListDead    DeadAction = iota // nothing
	RedriveDead                   // puts them back into their lines; asks are deleted, since their workers have asked again
	DropDead                      // deletes them
)

// DeadLetter is a letter that was buried.
type DeadLetter struct {
	ID     string
	Line   Line
	Reason string
	Tries  int
	Age    time.Duration // since it was buried
	Size   int           // bytes of the letter
}

// Office is a broker. It is safe for concurrent use. It connects again by itself: its errors are of the moment.
type Office interface {
	// Send puts a letter into a line. Nil means that the broker has it, which is no receipt: the broker may lose it. After valid the
	// letter is of no use, and the broker may delete it; 0: it is of use for ever.
	Send(ctx context.Context, line Line, body []byte, valid time.Duration) error
	// Serve delivers letters of a line, at most that many at a time, each to a call of take in a goroutine of its own, until ctx ends
	// and every take has returned. A letter of Tells and Logs for which take returns nil is deleted; for an error that is
	// Buried it is put among the dead letters; for any other it is delivered again, here or to another server. The letters
	// of a server that is gone are delivered to the others within 20 seconds.
	Serve(ctx context.Context, line Line, most int, take func(context.Context, Letter) error)
	// Box makes a mailbox of a name that was never used before. The broker deletes it some time after its owner is gone.
	Box(ctx context.Context) (Box, error)
	// Put puts a message into a mailbox.
	Put(ctx context.Context, box string, message []byte) error
	// Backlog tells what lies in the lines.
	Backlog(ctx context.Context) (map[Line]Depth, error)
	// Dead returns dead letters, the oldest first and at most 1,000, after it has done with them what it is told.
	Dead(ctx context.Context, do DeadAction) ([]DeadLetter, error)
}

// Box is a mailbox. One goroutine reads it.
type Box interface {
	Name() string
	// Next waits for the next message. After ErrUnavailable it may be called again, and nothing is passed over; after any other error
	// the mailbox is of no use any more.
	Next(ctx context.Context) ([]byte, error)
	// Close deletes it.
	Close()
}
