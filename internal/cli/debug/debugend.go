package debug

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/attempt"
)

// digest summarizes a stream.
type digest struct {
	to    io.Writer // nil: nowhere
	sum   hash.Hash
	bytes int64
}

func (d *digest) Write(p []byte) (int, error) {
	d.sum.Write(p)
	d.bytes += int64(len(p))
	if d.to == nil {
		return len(p), nil
	}
	return d.to.Write(p)
}

// written forwards the output of an attempt, and summarizes it.
type written struct {
	out, err io.Writer
	mu       sync.Mutex
	streams  map[string]*digest
}

func (w *written) stream(name string) io.Writer { return w.of(name) }

func (w *written) of(name string) *digest {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams[name] == nil {
		to := w.err
		if name == "stdout" {
			to = w.out
		}
		w.streams[name] = &digest{to: to, sum: sha256.New()}
	}
	return w.streams[name]
}

// compareAttempts prints how an attempt ended here, and how it differs from the record.
func compareAttempts(ctx context.Context, a *app.App, c *client.Client, rec *api.Attempt, end *attempt.End, here *written) error {
	var e *api.Error
	if end.Error != nil {
		e = &api.Error{Code: end.Error.Code, Message: end.Error.Message}
	}
	status := api.Status(end.Stage.String())
	if rec.Lost {
		a.Say("recorded: lost with its worker; how it would have ended is not known")
		a.Say("now:      %s", endText(status, e))
		return nil
	}
	verdict := "the same end"
	if !sameEnd(rec, status, e, end.Output) {
		verdict = "another end"
	}
	a.Say("recorded: %s", endText(rec.Status, rec.Error))
	a.Say("now:      %s - %s", endText(status, e), verdict)
	for _, stream := range []string{"stdout", "stderr"} {
		was, err := recordedStream(ctx, c, rec, stream)
		if err != nil {
			return fmt.Errorf("compare %s: %w", stream, err)
		}
		sayStream(a, stream, was, here.of(stream))
	}
	sayPlaces(a, rec.Output, end.Output)
	return nil
}

func endText(s api.Status, e *api.Error) string {
	if e == nil {
		return string(s)
	}
	return fmt.Sprintf("%s, %s", s, e)
}

// sameEnd reports whether an attempt ended as recorded: with the same status, error code and, if both are known, exit
// code. Messages are not compared: they may name times and paths, which differ from run to run.
func sameEnd(rec *api.Attempt, status api.Status, e *api.Error, output json.RawMessage) bool {
	if rec.Status != status || (rec.Error == nil) != (e == nil) || e != nil && rec.Error.Code != e.Code {
		return false
	}
	was, is := exitCodeIn(rec.Output), exitCodeIn(output)
	if was == nil && rec.Error != nil && is != nil {
		var n int
		if _, err := fmt.Sscanf(rec.Error.Message, "exit code %d", &n); err == nil {
			was = &n
		}
	}
	return was == nil || is == nil || *was == *is
}

func exitCodeIn(output json.RawMessage) *int {
	var r struct {
		ExitCode *int `json:"exit_code"`
	}
	if json.Unmarshal(output, &r) != nil { // no program's
		return nil
	}
	return r.ExitCode
}

func recordedStream(ctx context.Context, c *client.Client, rec *api.Attempt, stream string) (*digest, error) {
	from, err := c.RawLog(ctx, rec.Execution, stream, rec.Attempt, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	d := &digest{sum: sha256.New()}
	_, err = io.Copy(d, from)
	return d, err
}

func sayStream(a *app.App, name string, was, is *digest) {
	switch {
	case was.bytes == 0 && is.bytes == 0:
	case was.bytes == is.bytes && [sha256.Size]byte(was.sum.Sum(nil)) == [sha256.Size]byte(is.sum.Sum(nil)):
		a.Say("%s:   the same %d bytes", name, is.bytes)
	case was.bytes == is.bytes:
		a.Say("%s:   %d bytes, and others than were recorded", name, is.bytes)
	default:
		a.Say("%s:   %d bytes here, %d recorded", name, is.bytes, was.bytes)
	}
}

// sayPlaces prints the differences between the runtimes of the recorded run and of this one.
func sayPlaces(a *app.App, recorded, here json.RawMessage) {
	var was, is api.CodeResult
	if json.Unmarshal(recorded, &was) != nil || json.Unmarshal(here, &is) != nil || was.Runtime == "" || is.Runtime == "" {
		return
	}
	for _, d := range []struct{ what, was, is string }{
		{"runtime", was.Runtime, is.Runtime}, {"tool", was.Tool, is.Tool}, {"tool_version", was.ToolVersion, is.ToolVersion}, {"limits are held by", was.Enforcement, is.Enforcement},
	} {
		if d.was != d.is {
			a.Say("not the same here: %s %s, recorded %s", d.what, cmp.Or(d.is, "none"), cmp.Or(d.was, "none"))
		}
	}
}
