package cli

import (
	"fmt"
	goruntime "runtime"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/output"
)

func versionCommand(a *app.App) *cobra.Command {
	var f output.Format
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
			}{app.Version(), goruntime.Version(), goruntime.GOOS, goruntime.GOARCH}
			if f != output.AsTable {
				return output.WriteData(a.Out, f, v)
			}
			fmt.Fprintf(a.Out, "pawl %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
			return nil
		},
	}
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}
