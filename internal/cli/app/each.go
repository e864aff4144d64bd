package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/output"
)

// EachNamed calls do for each name and prints the results. It continues after a failure.
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

// ForEach is EachNamed as the function of a command whose arguments are names.
func ForEach(a *App, do func(context.Context, *Session, string) (string, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, names []string) error { return EachNamed(a, cmd, names, do) }
}
