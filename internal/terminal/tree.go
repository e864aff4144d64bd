// Package terminal shows people the progress of an execution: as a live tree on a terminal, as plain lines
// elsewhere. It gets snapshots and does not know their source.
package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Tree is a snapshot of an execution and everything beneath it.
type Tree struct {
	Node
	// Hint is a line under the tree, such as what Ctrl-C will do; empty: none. The live view sets it itself.
	Hint string
}

// Node is one line of the tree: an execution, a task, or one item of a task.
type Node struct {
	Name   string
	Status string // for users: "running", "completed", "pending", "skipped" …
	Note   string // while it waits: "retry 2 in 1.2s"; or the kind of its work

	Attempt  int // shown from 2 on
	Started  time.Time
	Finished time.Time
	Since    time.Time // time of its last change of state; zero if unknown

	Total, Ended, Failed int // for a task with several items; Total 0: not such a task
	// Rounds is true if the items are consecutive rounds; Total is then the most there may be.
	Rounds bool

	Log   string // the last line of its output; may contain anything
	Error string // the reason why it did not complete

	Children []Node
}

// open reports whether the node has not ended.
func (n *Node) open() bool {
	switch n.Status {
	case "completed", "failed", "cancelled", "timed_out", "skipped":
		return false
	}
	return true
}

// rounds is the number of rounds so far, or the most there may be.
func (n *Node) rounds() string {
	switch {
	case n.open() && len(n.Children) > 0:
		return fmt.Sprintf("round %d of at most %d", len(n.Children), n.Total)
	case n.open():
		return fmt.Sprintf("at most %d rounds", n.Total)
	case n.Ended == 1:
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n.Ended)
}

func (n *Node) bad() bool { return n.Status == "failed" || n.Status == "timed_out" }

// elapsed is how long the node has run; zero before it starts. Clocks of different machines may disagree, so it is never negative.
func (n *Node) elapsed(now time.Time) time.Duration {
	if n.Started.IsZero() {
		return 0
	}
	end := n.Finished
	if end.IsZero() {
		end = now
	}
	return max(end.Sub(n.Started), 0)
}

// Seconds writes a duration in a short form: "0.3s", "12.4s", "3m05s", "2h10m".
func Seconds(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	d = d.Round(time.Minute)
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

// Clean makes a program's text fit for a line of a terminal: it removes escape sequences, control characters and invalid
// bytes, so that the text cannot move the cursor or change a colour.
func Clean(s string) string {
	s = ansi.Strip(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == utf8.RuneError, unicode.IsPrint(r):
			return r
		}
		return -1
	}, s)
}
