package cli

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/spf13/cobra"
)

func configCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Show how Pawl is configured",
		Long: `A setting comes from the first of these that has it: a flag, an environment variable (PAWL_ and the setting's
name in capitals; secrets also from the file named by PAWL_…_FILE), the configuration file, the default.

The configuration file is the one named by --config or $PAWL_CONFIG, else pawl.yaml in the state directory, else
$XDG_CONFIG_HOME/pawl/pawl.yaml. Unknown settings in it are errors. Profiles of languages can only be set in
this file, under languages: (see pawl languages --help).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use:     "print",
		Short:   "Print every setting, its value and where it comes from",
		Example: "  pawl config print\n  pawl config print > ~/.config/pawl/pawl.yaml   a file to start from",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprint(a.Out, a.Config.Print())
			return nil
		},
	})
	return c
}
