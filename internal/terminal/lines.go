package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Lines shows changes as plain lines: the time, the node that changed, and its new state. It is used for log files and pipes.
type Lines struct {
	mu      sync.Mutex
	w       io.Writer
	seen    map[string]shown
	changes []change // of the current snapshot
}

// shown is the state and the time in the latest line about a node.
type shown struct {
	state string
	at    time.Time
}

// change is a line to be written.
type change struct {
	at   time.Time
	text string
}

func newLines(w io.Writer) *Lines { return &Lines{w: w, seen: map[string]shown{}} }

// Show writes a line for each difference from the last snapshot, in order of time.
func (l *Lines) Show(t Tree) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range t.Children {
		l.change("", &t.Children[i])
	}
	l.one(t.Name, &t.Node)
	slices.SortStableFunc(l.changes, func(a, b change) int { return a.at.Compare(b.at) })
	for _, c := range l.changes {
		fmt.Fprintln(l.w, c.at.Local().Format("15:04:05.000")+"  "+c.text)
	}
	l.changes = l.changes[:0]
}

func (l *Lines) change(above string, n *Node) {
	path := above + n.Name
	if n.Total == 0 {
		l.one(path, n)
		above = path + "/"
	} else {
		above = path
	}
	for i := range n.Children {
		l.change(above, &n.Children[i])
	}
	if n.Total > 0 {
		l.one(path, n)
	}
}

func (l *Lines) one(path string, n *Node) {
	state := fmt.Sprintf("%s/%d/%d", n.Status, n.Attempt, n.Ended)
	if n.Total > 0 {
		// Every item has its own line; the counts get a line only at the start and at the end. For rounds, Total is the most there may be.
		state = fmt.Sprintf("%s/%d", n.Status, n.Total)
	}
	last := l.seen[path]
	if n.Status == "pending" || last.state == state {
		return
	}
	at := n.Since
	if at.IsZero() {
		at = time.Now()
	}
	if at.Before(last.at) {
		at = last.at // the previous line had the time at which this process noticed the change
	}
	l.seen[path] = shown{state, at}
	line := Clean(path) + "  " + n.Status
	if n.Attempt > 1 {
		line += fmt.Sprintf(", attempt %d", n.Attempt)
	}
	if !n.open() && !n.Started.IsZero() {
		line += " in " + Seconds(n.elapsed(at))
	}
	var more []string
	switch {
	case n.Rounds:
		more = append(more, n.rounds())
	case n.Total > 0 && n.open():
		more = append(more, fmt.Sprintf("%d to do", n.Total))
	case n.Failed > 0:
		more = append(more, fmt.Sprintf("%d of %d failed", n.Failed, n.Total))
	case n.Total > 0:
		more = append(more, fmt.Sprintf("all %d", n.Total))
	}
	switch {
	case n.Error != "":
		more = append(more, Clean(firstLine(n.Error)))
	case n.open() && n.Note != "":
		more = append(more, Clean(n.Note))
	}
	if len(more) > 0 {
		line += ": " + strings.Join(more, "; ")
	}
	l.changes = append(l.changes, change{at, line})
}

func (l *Lines) Say(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.w, line)
}

// Hint does nothing: a log file has no keyboard.
func (l *Lines) Hint(string) {}

// Close does nothing: everything is written at once.
func (l *Lines) Close() {}
