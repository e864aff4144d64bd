package define

import (
	"context"
	"strconv"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
)

func ListActions(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	all := []api.Definition{}
	t := &output.Table{}
	t.Row("NAME", "VERSION", "KIND", "CREATED", "STATE")
	found := c.Definitions(ctx)
	if l.VersionsOf != "" {
		found = c.DefinitionVersions(ctx, l.VersionsOf)
	}
	for d, err := range found {
		if err != nil {
			return nil, nil, err
		}
		all = append(all, d)
		t.Row(d.Name, strconv.Itoa(d.Version), d.Kind, output.Ago(d.CreatedAt), stoppedText(&d))
		if len(all) >= l.Limit {
			break
		}
	}
	return all, t, nil
}

// stoppedText is the STATE column: whether a definition is retired or paused, by whom and why; empty where it is neither.
func stoppedText(d *api.Definition) string {
	retired, paused := retiredText(d.Retired), output.Pause(d.Paused)
	if retired != "" && paused != "" {
		return retired + "; " + paused
	}
	return retired + paused
}

// retiredText says by whom and why a definition is retired; nothing where it is not.
func retiredText(r *api.Retirement) string {
	if r == nil {
		return ""
	}
	text := "retired"
	if r.By != "" {
		text += " by " + r.By
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}
