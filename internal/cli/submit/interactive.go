package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
)

// sendStdin sends this process's standard input to an interactive evaluation, from an offset of its stdin on, until an end of
// file or the end of the evaluation. It retries when sending fails temporarily. The error says why the rest is not sent.
func sendStdin(ctx context.Context, a *app.App, s *app.Session, id string, offset int64) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := a.In.Read(buf)
		over := errors.Is(err, io.EOF)
		if err != nil && !over {
			return fmt.Errorf("read standard input: %w", err)
		}
		if n == 0 && !over {
			continue
		}
		if err := sendPiece(ctx, a, s, id, &offset, buf[:n], over); err != nil {
			if ctx.Err() == nil && !client.IsFinished(err) {
				return err
			}
			return nil
		}
		if over {
			return nil
		}
	}
}

// sendPiece sends a piece until the server has accepted it, or refuses it for a permanent reason.
func sendPiece(ctx context.Context, a *app.App, s *app.Session, id string, offset *int64, piece []byte, last bool) error {
	for told := false; ; {
		w := s.Current().WriteStdin(ctx, id, *offset)
		n, err := w.Write(piece)
		if err == nil && last {
			err = w.Close()
		}
		piece, *offset = piece[n:], w.Offset()
		var refused *api.Problem
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.As(err, &refused) || refused.Status >= 500:
			// The reader of the output finds out whether the engine is gone for good.
			if !told {
				told = true
				a.Say("pawl: stdin is sent again when the server answers: %v", err)
			}
			if err := instance.WaitFor(ctx, 500*time.Millisecond); err != nil {
				return err
			}
		case refused.Type == api.ProblemStdinOffset:
			at, fault := s.Current().Stdin(ctx, id)
			if fault != nil {
				return fault
			}
			a.Say("pawl: another terminal types, too: this goes behind what was typed there")
			*offset = at.Offset
		default:
			return err
		}
	}
}

func AttachCommand(a *app.App) *cobra.Command {
	var quiet bool
	c := &cobra.Command{
		Use:   "attach ID",
		Short: "Attach to an interactive evaluation: see its output, and type",
		Long: `Attach to an evaluation that was started with pawl eval -i (or with "interactive": true): its output so far and
from now on is printed, and typed text is added to its input. Ctrl-D is end-of-file. Ctrl-C detaches and lets
it continue; pawl kill ends it.`,
		Example: `  pawl eval -i game.py --detach       prints the id
  pawl attach ex_…`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				return attach(ctx, a, s, args[0], quiet)
			})
		},
	}
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "omit earlier output")
	return c
}

func attach(ctx context.Context, a *app.App, s *app.Session, id string, quiet bool) error {
	s.Leave()
	at, err := s.Stdin(ctx, id)
	if err != nil {
		return err
	}
	if s.Embedded && !at.Status.Terminal() {
		app.SayIdle(a, id, at.Status)
		return &exit.Error{Code: exit.General}
	}
	var q client.LogQuery
	if quiet {
		before, err := lastLog(ctx, s.Client, id)
		if err != nil {
			return err
		}
		q.After = before
	}
	sending, stop := context.WithCancel(ctx)
	defer stop()
	refused := make(chan error, 1)
	if !at.Status.Terminal() && !at.Closed {
		go func() {
			if err := sendStdin(sending, a, s, id, at.Offset); err != nil {
				refused <- err
				stop()
			}
		}()
	}
	err = passOn(sending, a, s.Client, id, &q, chunksTo(a.Out))
	select {
	case err := <-refused:
		return fmt.Errorf("stdin: %w; it waits until its limits: pawl kill %s ends it", err, id)
	default:
	}
	if err != nil {
		return err
	}
	end, err := s.Wait(ctx, id)
	if err != nil {
		return err
	}
	if end.Status == api.Completed {
		return nil
	}
	if end.Error != nil {
		a.Say("pawl: %s", end.Error)
	}
	return &exit.Error{Code: exit.CodeOf(end.Status)}
}

// lastLog is the cursor after all output of an execution so far.
func lastLog(ctx context.Context, c *client.Client, id string) (string, error) {
	var q client.LogQuery
	for {
		page, err := c.Logs(ctx, id, q)
		if err != nil {
			return "", fmt.Errorf("find the end of the log: %w", err)
		}
		q.After = page.NextCursor
		if !page.More {
			return q.After, nil
		}
	}
}
