package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// View shows snapshots to a person. Its methods may be called from any goroutine.
type View interface {
	// Show replaces the current snapshot.
	Show(t Tree)
	// Say writes a permanent line.
	Say(line string)
	// Hint shows what the user can do now.
	Hint(text string)
	// Close shows the last snapshot permanently and releases the terminal. Calling it again does nothing.
	Close()
}

// descriptor is what a file has and a buffer has not.
type descriptor interface{ Fd() uintptr }

func IsTerminal(w io.Writer) bool {
	f, ok := w.(descriptor)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width is the width of the terminal w in cells, or otherwise if w is not a terminal.
func Width(w io.Writer, otherwise int) int {
	if f, ok := w.(descriptor); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return otherwise
}

// Open shows a tree on w: live if w and the standard input are terminals with cursor control, else as lines.
// interrupted is called when the user presses Ctrl-C in the live view, which sends no signal.
func Open(w io.Writer, interrupted func()) View {
	if IsTerminal(w) && IsTerminal(os.Stdin) && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != "" {
		return openLive(w, interrupted)
	}
	return newLines(w)
}
