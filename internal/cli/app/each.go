package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/output"
)

// EachNamed does something to everything named and prints the results. A failure for one does not keep it from the others.
func EachNamed(a *App, cmd *cobra.Command, names []string, do func(context.Context, *Session, string) (string, error)) error {
	return a.WithClient(cmd.Context(), Reading, func(ctx context.Context, s *Session) error {
		var failed []error
		for _, name := range names {
			say, err := do(ctx, s, name)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s %s: %w", cmd.Name(), name, err))
				continue
			}
			output.Printf(a.Out, "%s\n", say)
		}
		return errors.Join(failed...)
	})
}

// ForEach is EachNamed as the function of a command whose arguments are the names.
func ForEach(a *App, do func(context.Context, *Session, string) (string, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, names []string) error { return EachNamed(a, cmd, names, do) }
}
