package terminal

import (
	"io"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// live is the tree on a terminal. It draws below the existing text, and its last frame stays.
type live struct {
	program *tea.Program
	done    chan struct{}
	close   sync.Once
}

func openLive(w io.Writer, interrupted func()) View {
	v := &live{done: make(chan struct{})}
	v.program = tea.NewProgram(frame{interrupted: interrupted, width: Width(w, 80), height: 24},
		tea.WithInput(os.Stdin), tea.WithOutput(w), tea.WithoutSignalHandler(), tea.WithFPS(20))
	go func() {
		defer close(v.done)
		// A failure affects only the drawing: the caller still prints the outcome.
		_, _ = v.program.Run()
	}()
	return v
}

func (v *live) Show(t Tree)      { v.program.Send(t) }
func (v *live) Say(line string)  { v.program.Send(said(line)) }
func (v *live) Hint(text string) { v.program.Send(hint(text)) }

func (v *live) Close() {
	v.close.Do(func() {
		v.program.Send(finished{})
		<-v.done
	})
}

type (
	said     string
	hint     string
	tick     time.Time
	finished struct{}
)

// frame is the model of the program: the latest snapshot and the size of the terminal.
type frame struct {
	tree          Tree
	shown         bool
	over          bool
	width, height int
	now           time.Time
	interrupted   func()
}

func nextTick() tea.Cmd {
	return tea.Tick(100*time.Millisecond, func(t time.Time) tea.Msg { return tick(t) })
}

func (f frame) Init() tea.Cmd { return nextTick() }

func (f frame) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case Tree:
		m.Hint = f.tree.Hint
		f.tree, f.shown, f.now = m, true, time.Now()
	case hint:
		f.tree.Hint = string(m)
	case said:
		return f, tea.Println(string(m))
	case tick:
		f.now = time.Time(m)
		return f, nextTick()
	case finished:
		f.over, f.now = true, time.Now()
		f.tree.Hint = ""
		return f, tea.Quit
	case tea.WindowSizeMsg:
		f.width, f.height = m.Width, m.Height
	case tea.KeyPressMsg:
		switch m.String() {
		case "ctrl+c":
			go f.interrupted()
		case "ctrl+z":
			return f, tea.Suspend
		}
	}
	return f, nil
}

func (f frame) View() tea.View {
	if !f.shown {
		return tea.NewView("")
	}
	text := Render(&f.tree, f.width, f.height-1, f.now)
	if f.over {
		text += "\n" // the next text starts on the last line of the last frame
	}
	return tea.NewView(text)
}
