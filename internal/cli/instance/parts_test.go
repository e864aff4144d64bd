package instance

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cli/exit"
)

// The first part that ends by itself is the failure, with its name and reason; a part that is stopped is not.
func TestPartsThatEnd(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	p := NewParts(slog.New(slog.NewTextHandler(&said, nil)))
	waits := func(ctx context.Context) error { <-ctx.Done(); return nil }
	stop := p.Start("the engine", waits)
	stopSadly := p.Start("the listener", func(ctx context.Context) error { <-ctx.Done(); return errors.New("not in time") })
	stop()
	stopSadly()
	if err := p.Failure(); err != nil || !strings.Contains(said.String(), "not in time") {
		t.Errorf("%v, and the log has %q", err, said.String())
	}
	stopOther := p.Start("the listener", waits)
	p.Start("the worker", func(context.Context) error { return errors.New("refused") })
	<-p.ended.Done()
	stopOther()
	var e *exit.Error
	if err := p.Failure(); !errors.As(err, &e) || e.Code != exit.General || err.Error() != "the worker has ended: refused" {
		t.Errorf("%v", err)
	}
	quiet := NewParts(slog.New(slog.DiscardHandler))
	quiet.Start("the worker", func(context.Context) error { return nil })
	<-quiet.ended.Done()
	if err := quiet.Failure(); err == nil || !strings.Contains(err.Error(), "the worker has ended") {
		t.Errorf("%v", err)
	}
}
