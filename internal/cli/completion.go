package cli

import "github.com/spf13/cobra"

// addCompletion adds cobra's command for completion scripts, and makes it refuse unknown shells. Cobra alone prints the help and exits with
// 0: `pawl completion evil > FILE` would write the help into FILE.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Args, c.RunE = argsOf(cobra.NoArgs), func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		for _, shell := range c.Commands() {
			shell.Args = argsOf(cobra.NoArgs)
		}
	}
}
