package terminal

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

var (
	faint  = lipgloss.NewStyle().Faint(true)
	strong = lipgloss.NewStyle().Bold(true)
	green  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	red    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	yellow = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	cyan   = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
)

// look is the style and mark of a status.
func (n *Node) look(now time.Time) (lipgloss.Style, string) {
	switch n.Status {
	case "completed":
		return green, "✓"
	case "failed":
		return red, "✗"
	case "timed_out":
		return red, "⧗"
	case "cancelled":
		return yellow, "⊘"
	case "skipped":
		return faint, "–"
	case "running", "provisioning":
		frame := int(now.UnixMilli()/100) % len(spinner)
		return cyan, string(spinner[frame])
	case "pending":
		return faint, "·"
	}
	return yellow, "○"
}

// row is one line before it is laid out in columns.
type row struct {
	guide string // lines of the tree, "│  ├─ "
	node  *Node
	text  string // in place of a node: "… 8 more"
}

// Render draws the tree in at most height lines of at most width cells. Nodes that do not fit are summed up in one
// line, ended ones first.
func Render(t *Tree, width, height int, now time.Time) string {
	width, height = max(width, 20), max(height, 3)
	if t.Hint != "" {
		height--
	}
	rows := []row{{node: &t.Node}}
	rows = layOut(rows, t.Children, "", height-1)
	left, middle := 0, 0
	for _, r := range rows {
		if r.node != nil {
			left = max(left, ansi.StringWidth(r.guide)+2+ansi.StringWidth(Clean(r.node.Name)))
			middle = max(middle, ansi.StringWidth(r.node.progress()))
		}
	}
	left = min(left, width*2/5)
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(r.draw(left, middle, width, now))
	}
	if t.Hint != "" {
		b.WriteString("\n" + faint.Render(ansi.Truncate(t.Hint, width, "…")))
	}
	return b.String()
}

// layOut appends the rows of nodes, at most room lines.
func layOut(rows []row, nodes []Node, guide string, room int) []row {
	shown, hidden := choose(nodes, room)
	budget := room - len(shown)
	if hidden > 0 {
		budget--
	}
	for i, n := range shown {
		last := i == len(shown)-1 && hidden == 0
		branch, below := "├─ ", "│  "
		if last {
			branch, below = "└─ ", "   "
		}
		rows = append(rows, row{guide: guide + branch, node: n})
		before := len(rows)
		if budget > 0 {
			rows = layOut(rows, n.Children, guide+below, budget)
		}
		budget -= len(rows) - before
	}
	if hidden > 0 {
		rows = append(rows, row{guide: guide + "└─ ", text: fmt.Sprintf("… %d more", hidden)})
	}
	return rows
}

// choose selects the nodes for room lines: all, or first those at work, then those that failed, then the others, in their original order.
func choose(nodes []Node, room int) (shown []*Node, hidden int) {
	if room <= 0 {
		return nil, 0
	}
	take := make([]bool, len(nodes))
	left := len(nodes)
	if left > room {
		left = room - 1 // one line sums up the others
	}
	for _, wanted := range []func(*Node) bool{
		func(n *Node) bool { return n.open() && !n.Started.IsZero() },
		func(n *Node) bool { return n.bad() },
		func(*Node) bool { return true },
	} {
		for i := range nodes {
			if left > 0 && !take[i] && wanted(&nodes[i]) {
				take[i] = true
				left--
			}
		}
	}
	for i := range nodes {
		if take[i] {
			shown = append(shown, &nodes[i])
		} else {
			hidden++
		}
	}
	return shown, hidden
}

// progress is the column after the name.
func (n *Node) progress() string {
	switch {
	case n.Rounds:
		return n.rounds()
	case n.Total > 0 && n.Failed > 0:
		return fmt.Sprintf("%d/%d, %d failed", n.Ended, n.Total, n.Failed)
	case n.Total > 0:
		return fmt.Sprintf("%d/%d", n.Ended, n.Total)
	case n.Attempt > 1:
		return fmt.Sprintf("%s, attempt %d", n.Status, n.Attempt)
	}
	return n.Status
}

func (r row) draw(left, middle, width int, now time.Time) string {
	if r.node == nil {
		return faint.Render(ansi.Truncate(r.guide+r.text, width, "…"))
	}
	n := r.node
	style, mark := n.look(now)
	name := ansi.Truncate(Clean(n.Name), max(left-ansi.StringWidth(r.guide)-2, 1), "…")
	gap := strings.Repeat(" ", max(left-ansi.StringWidth(r.guide)-2-ansi.StringWidth(name), 0))
	if r.guide == "" {
		name = strong.Render(name)
	} else if n.Status == "pending" || n.Status == "skipped" {
		name = faint.Render(name)
	}
	line := faint.Render(r.guide) + style.Render(mark) + " " + name + gap
	said := n.progress()
	line += "  " + style.Render(said)
	more := ""
	switch {
	case n.Error != "":
		more = style.Render(Clean(firstLine(n.Error)))
	case n.Note != "" && n.open():
		more = faint.Render(Clean(n.Note))
	case n.Log != "":
		more = faint.Render(Clean(n.Log))
	}
	if took := n.took(now); took != "" || more != "" {
		line += strings.Repeat(" ", max(middle-ansi.StringWidth(said), 0)) + faint.Render(fmt.Sprintf("  %6s", took))
	}
	if more != "" {
		line += "  " + more
	}
	return ansi.Truncate(line, width, "…")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

func (n *Node) took(now time.Time) string {
	if n.Started.IsZero() {
		return ""
	}
	return Seconds(n.elapsed(now))
}
