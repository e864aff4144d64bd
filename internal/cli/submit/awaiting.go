package submit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/terminal"
)

// awaitedFresh is how long the text about an execution that waits for an answer or a signal is reused: the question may change.
const awaitedFresh = 5 * time.Second

// statusWaiting is shown for a running execution that does nothing until an answer or a signal comes.
const statusWaiting = "waiting"

// awaited finds out whose answer, or which signal, executions wait for.
type awaited struct {
	notes map[string]awaitedNote // by execution
}

type awaitedNote struct {
	text string
	at   time.Time
}

// show adds to the node of an unfinished execution of kind ask or wait what it waits for.
func (w *awaited) show(ctx context.Context, c *client.Client, n *terminal.Node, id, kind string, status api.Status) {
	if status != api.Running || kind != "ask" && kind != "wait" {
		return
	}
	note, known := w.notes[id]
	if !known || time.Since(note.at) > awaitedFresh {
		text, err := awaitedText(ctx, c, id)
		if err != nil && known {
			text = note.text
		}
		note = awaitedNote{text, time.Now()}
		if w.notes == nil {
			w.notes = map[string]awaitedNote{}
		}
		w.notes[id] = note
	}
	n.Status = statusWaiting
	if note.text != "" {
		n.Note = note.text
	}
}

func awaitedText(ctx context.Context, c *client.Client, id string) (string, error) {
	why, err := c.Why(ctx, id)
	if err != nil {
		return "", err
	}
	if why.Inquiry == "" {
		return strings.TrimPrefix(why.Summary, "waits "), nil
	}
	i, err := c.Inquiry(ctx, why.Inquiry)
	if err != nil {
		return "", err
	}
	whom := "anybody"
	if len(i.Assignees) > 0 {
		whom = strings.Join(i.Assignees, ", ")
	}
	text := fmt.Sprintf("for an answer of %s to %s (%q)", whom, i.ID, i.Title)
	if i.Due != nil {
		text += ", due " + wallClock(*i.Due)
	}
	return text, nil
}

// wallClock writes a time in the user's time zone, with the day if it is not today.
func wallClock(t time.Time) string {
	local := t.Local()
	if now := time.Now(); local.YearDay() == now.YearDay() && local.Year() == now.Year() {
		return local.Format("15:04")
	}
	return local.Format("2006-01-02 15:04")
}
