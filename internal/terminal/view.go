package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// View shows snapshots to a person. Its methods may be called from any goroutine.
type View interface {
	// Show replaces what is shown.
	Show(t Tree)
	// Say writes a line that stays.
	Say(line string)
	// Hint is what the person can do now.
	Hint(text string)
	// Close shows the last snapshot for good and gives the terminal back. Calling it again does nothing.
	Close()
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width is how many cells a line of the terminal w has, or otherwise when it is none.
func Width(w io.Writer, otherwise int) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return otherwise
}

// Open shows a tree on w: live when w and the standard input are terminals that can move their cursor, else as lines.
// interrupted is called when the person presses Ctrl-C in the live view, where no signal comes.
func Open(w io.Writer, interrupted func()) View {
	if IsTerminal(w) && IsTerminal(os.Stdin) && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != "" {
		return openLive(w, interrupted)
	}
	return newLines(w)
}
