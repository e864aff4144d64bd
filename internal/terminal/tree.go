// Package terminal shows people how an execution goes: a live tree on a terminal, plain lines elsewhere. It is given
// snapshots and knows nothing of where they come from.
package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Tree is a snapshot of an execution and of everything beneath it.
type Tree struct {
	Node
	// Hint is a line under the tree, such as what Ctrl-C will do; empty: none. The live view sets it itself.
	Hint string
}

// Node is one line of the tree: an execution, a task, or one item of a task.
type Node struct {
	Name   string
	Status string // as users see it: "running", "completed", "pending", "skipped" …
	Note   string // said while it waits: "retry 2 in 1.2s"; or what kind of work it is

	Attempt  int // shown from the second on
	Started  time.Time
	Finished time.Time
	Since    time.Time // when it came to stand as it does; zero where that is not known

	Total, Ended, Failed int // items of a task that has several; Total 0: it has none
	// Rounds says that the items are rounds, each of which follows from the one before, and that Total is how many there are at most.
	Rounds bool

	Log   string // the last line that it wrote; may hold anything
	Error string // why it did not complete

	Children []Node
}

// open reports whether the node still has something to do.
func (n *Node) open() bool {
	switch n.Status {
	case "completed", "failed", "cancelled", "timed_out", "skipped":
		return false
	}
	return true
}

// rounds is how many rounds there have been, or may be.
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

// elapsed is how long the node has been at work; zero before it starts. Clocks of different machines may disagree, so it
// is never negative.
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

// Seconds writes a duration as people read it at a glance: "0.3s", "12.4s", "3m05s", "2h10m".
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

// Clean makes a program's text fit for a line of a terminal: without escape sequences, control characters and bytes that
// are not text, so that nothing a program writes can move the cursor or change a colour.
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
