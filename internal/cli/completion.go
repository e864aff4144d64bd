package cli

import "github.com/spf13/cobra"

// addCompletion adds cobra's command for completion scripts, which by itself shows the help and reports success for a shell that it does
// not know: pawl completion evil > FILE would write the help into the file.
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
