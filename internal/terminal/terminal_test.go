package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

func sample() *Tree {
	t := &Tree{Hint: "Ctrl-C cancels"}
	t.Node = Node{Name: "grade", Status: "running", Started: ago(3 * time.Second)}
	t.Children = []Node{
		{Name: "collect", Status: "completed", Started: ago(3 * time.Second), Finished: ago(2900 * time.Millisecond)},
		{Name: "evaluate", Status: "running", Started: ago(2900 * time.Millisecond), Total: 4, Ended: 2, Failed: 1, Children: []Node{
			{Name: "[0]", Status: "completed", Started: ago(2800 * time.Millisecond), Finished: ago(2600 * time.Millisecond)},
			{Name: "[1]", Status: "failed", Started: ago(2 * time.Second), Finished: ago(time.Second), Error: "oom: over 64MB\nand more"},
			{Name: "[2]", Status: "running", Attempt: 2, Started: ago(time.Second), Log: "\x1b[31m検査中\x1b[0m \x07line"},
			{Name: "[3]", Status: "requested", Note: "waits for key"},
		}},
		{Name: "rank", Status: "pending"},
	}
	return t
}

func TestRenderDrawsATree(t *testing.T) {
	got := ansi.Strip(Render(sample(), 80, 24, noon))
	want := strings.Join([]string{
		"⠋ grade        running               3.0s",
		"├─ ✓ collect   completed             0.1s",
		"├─ ⠋ evaluate  2/4, 1 failed         2.9s",
		"│  ├─ ✓ [0]    completed             0.2s",
		"│  ├─ ✗ [1]    failed                1.0s  oom: over 64MB",
		"│  ├─ ⠋ [2]    running, attempt 2    1.0s  検査中 line",
		"│  └─ ○ [3]    requested                   waits for key",
		"└─ · rank      pending",
		"Ctrl-C cancels",
	}, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// For any size of the terminal, all lines fit, and nodes at work stay visible.
func TestRenderFitsEverySize(t *testing.T) {
	for width := 20; width < 90; width += 7 {
		for height := 3; height < 14; height++ {
			lines := strings.Split(Render(sample(), width, height, noon), "\n")
			if len(lines) > height {
				t.Errorf("%d×%d: %d lines", width, height, len(lines))
			}
			for _, l := range lines {
				if w := ansi.StringWidth(l); w > width {
					t.Errorf("%d×%d: a line of %d cells: %q", width, height, w, ansi.Strip(l))
				}
			}
		}
	}
	big := sample()
	big.Children[1].Children = nil
	for i := range 500 {
		n := Node{Name: fmt.Sprintf("[%d]", i), Status: "completed", Started: ago(time.Second), Finished: noon}
		if i == 400 {
			n.Status, n.Finished = "running", time.Time{}
		}
		big.Children[1].Children = append(big.Children[1].Children, n)
	}
	text := ansi.Strip(Render(big, 80, 12, noon))
	if !strings.Contains(text, "[400]") || !strings.Contains(text, "more") || strings.Count(text, "\n") > 11 {
		t.Errorf("the item at work is not shown, or too much is:\n%s", text)
	}
}

func TestCleanLeavesNothingThatMovesTheCursor(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                       "plain",
		"\x1b[2J\x1b[1;31mred\x1b[0m": "red",
		"\x1b]0;title\x07text":        "text",
		"a\rb\bc\x00d\x9be":           "abcd\uFFFDe",
		"tab\there":                   "tab here",
		"wide 世界 é":                   "wide 世界 é",
		"bidi \u202e abc":             "bidi  abc",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLinesSayEachChangeOnce(t *testing.T) {
	var b bytes.Buffer
	l := newLines(&b)
	tree := sample()
	l.Show(*tree)
	l.Show(*tree)
	first := b.String()
	if n := strings.Count(first, "\n"); n != 7 {
		t.Errorf("%d lines for 7 nodes that have something to say:\n%s", n, first)
	}
	for _, want := range []string{"evaluate[1]  failed in 1.0s: oom: over 64MB", "evaluate[2]  running, attempt 2", "evaluate[3]  requested: waits for key", "evaluate  running: 4 to do"} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in\n%s", want, first)
		}
	}
	b.Reset()
	tree.Children[2] = Node{Name: "rank", Status: "completed", Started: ago(time.Second), Finished: noon}
	l.Show(*tree)
	if got := b.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "rank  completed in 1.0s") {
		t.Errorf("after one change: %q", got)
	}
}

// Lines are in order of their times: those of one node never run backwards, however late the view sees a change, and those of one
// snapshot are sorted.
func TestLinesInOrderOfTime(t *testing.T) {
	before := func(d time.Duration) time.Time { return time.Date(2000, 1, 2, 12, 0, 0, 0, time.UTC).Add(-d) }
	var b bytes.Buffer
	l := newLines(&b)
	show := func(children ...Node) {
		l.Show(Tree{Node: Node{Name: "wf", Status: "running", Since: before(time.Minute)}})
		l.Show(Tree{Node: Node{Name: "wf", Status: "running", Since: before(time.Minute), Children: children}})
	}
	show(Node{Name: "b", Status: "provisioning", Since: before(3 * time.Second)}, Node{Name: "a", Status: "running", Since: before(4 * time.Second)},
		Node{Name: "late", Status: "scheduled"}) // the time is unknown: now, which is later than all of these
	show(Node{Name: "b", Status: "completed", Started: before(3 * time.Second), Finished: before(2 * time.Second), Since: before(2 * time.Second)},
		Node{Name: "a", Status: "running", Since: before(4 * time.Second)},
		Node{Name: "late", Status: "running", Since: before(time.Second)})
	var got []string
	times := map[string]string{}
	for line := range strings.Lines(b.String()) {
		at, what, _ := strings.Cut(strings.TrimSpace(line), "  ")
		name, _, _ := strings.Cut(what, " ")
		if at < times[name] {
			t.Errorf("%s: %s after %s", what, at, times[name])
		}
		times[name] = at
		got = append(got, strings.Join(strings.Fields(what), " "))
	}
	want := []string{"wf running", "a running", "b provisioning", "late scheduled", "b completed in 1.0s", "late running"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if at := times["b"]; at != before(2*time.Second).Local().Format("15:04:05.000") {
		t.Errorf("b completed at %s", at)
	}
}

// The live view forwards Ctrl-C, follows the terminal's size, and leaves its last frame complete.
func TestFrame(t *testing.T) {
	pressed := make(chan struct{}, 1)
	var m tea.Model = frame{interrupted: func() { pressed <- struct{}{} }, width: 80, height: 24}
	step := func(msg tea.Msg) tea.Cmd {
		next, cmd := m.Update(msg)
		m = next
		return cmd
	}
	if got := m.View().Content; got != "" {
		t.Errorf("before there is anything to show: %q", got)
	}
	step(hint("Ctrl-C cancels"))
	tree := *sample()
	tree.Hint = ""
	step(tree)
	if got := ansi.Strip(m.View().Content); !strings.Contains(got, "evaluate") || !strings.HasSuffix(got, "Ctrl-C cancels") {
		t.Errorf("with a tree and a hint:\n%s", got)
	}
	step(tea.WindowSizeMsg{Width: 30, Height: 6})
	for l := range strings.SplitSeq(m.View().Content, "\n") {
		if w := ansi.StringWidth(l); w > 30 {
			t.Errorf("a line of %d cells on a terminal of 30", w)
		}
	}
	step(tea.KeyPressMsg(tea.Key{Code: 'c', Mod: tea.ModCtrl}))
	select {
	case <-pressed:
	case <-time.After(10 * time.Second):
		t.Error("Ctrl-C was not passed on")
	}
	if step(finished{}) == nil {
		t.Error("it does not end")
	}
	if got := m.View().Content; !strings.HasSuffix(got, "\n") || strings.Contains(got, "Ctrl-C") {
		t.Errorf("the last frame: %q", ansi.Strip(got))
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		40 * time.Millisecond: "0.0s", 1260 * time.Millisecond: "1.3s", 99 * time.Second: "99.0s",
		185 * time.Second: "3m05s", 2*time.Hour + 10*time.Minute: "2h10m",
	} {
		if got := Seconds(d); got != want {
			t.Errorf("Seconds(%s) = %s, want %s", d, got, want)
		}
	}
}

// Rounds depend on one another, so their highest number is not an amount of work.
func TestRounds(t *testing.T) {
	task := Node{Name: "poll", Status: "running", Total: 5, Rounds: true, Started: ago(time.Second)}
	shown := func(n Node) string {
		var b bytes.Buffer
		l := newLines(&b)
		l.Show(Tree{Node: Node{Name: "w", Status: "running", Children: []Node{n}}})
		return b.String() + ansi.Strip(Render(&Tree{Node: n}, 80, 24, noon))
	}
	if got := shown(task); strings.Count(got, "at most 5 rounds") != 2 {
		t.Errorf("before the first round:\n%s", got)
	}
	task.Children = []Node{{Name: "[0]", Status: "completed"}, {Name: "[1]", Status: "running"}}
	task.Ended = 1
	if got := shown(task); strings.Count(got, "round 2 of at most 5") != 2 {
		t.Errorf("in the second round:\n%s", got)
	}
	task.Status, task.Ended, task.Finished = "completed", 2, noon
	if got := shown(task); strings.Count(got, "2 rounds") != 2 || strings.Contains(got, "at most") {
		t.Errorf("after two of five rounds:\n%s", got)
	}
}
