package submit

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/output"
)

func UploadCommand(a *app.App) *cobra.Command {
	var f output.Format
	c := &cobra.Command{
		Use:   "upload FILE|-…",
		Short: "Upload files that evaluations then refer to",
		Long: `Upload files that evaluations then refer to, and print one name per line: sha256: and the SHA-256 of the
content. In the API and in workflows the name is used in place of text: {"stdin": {"blob": "sha256:…"}}. Files
that are stored already are not sent again. An upload is kept for a day, and as long as an execution refers to
it.

pawl eval uploads large content automatically.`,
		Example: `  pawl upload big.txt
  tar c data | pawl upload -
  curl -s localhost:7411/api/v1/evaluations -d '{"language": "python", "source": "…", "stdin": {"blob": "'$(pawl upload big.txt)'"}}'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				return upload(ctx, a, s, args, f)
			})
		},
	}
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

// uploaded is the output of -o json for a file.
type uploaded struct {
	File string `json:"file"`
	api.Blob
}

func upload(ctx context.Context, a *app.App, s *app.Session, files []string, f output.Format) error {
	var all []uploaded
	for _, file := range files {
		path := file
		if file == "-" {
			copied, err := spool(nil, a.In)
			if err != nil {
				return fmt.Errorf("keep standard input until it is uploaded: %w", err)
			}
			defer func() { _ = os.Remove(copied) }() // it is a temporary file
			path = copied
		}
		b, err := uploadFile(ctx, s, path)
		if err != nil {
			return err
		}
		if f == output.AsTable {
			fmt.Fprintln(a.Out, b.Blob)
		}
		all = append(all, uploaded{file, *b})
	}
	if f == output.AsTable {
		return nil
	}
	return output.WriteData(a.Out, f, all)
}
