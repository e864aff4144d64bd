package define

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
)

func ListActions(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	all, err := listing.First(c.Definitions(ctx), l.Limit)
	if err != nil {
		return nil, nil, err
	}
	t := output.Titled("NAME", "VERSION", "KIND", "CREATED", "STATE")
	for _, d := range all {
		t.Row(d.Name, strconv.Itoa(d.Version), d.Kind, output.Ago(d.CreatedAt), stoppedText(&d))
	}
	return all, t, nil
}

// ListVersions lists the versions of one definition, the newest first, with the aliases of each.
func ListVersions(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	if name, version, _ := strings.Cut(l.VersionsOf, "@"); version != "" {
		return nil, nil, exit.Usagef("%q: give the name without a version: pawl get versions %s", l.VersionsOf, name)
	}
	all, err := listing.First(c.DefinitionVersions(ctx, l.VersionsOf), l.Limit)
	if err != nil {
		return nil, nil, err
	}
	aliases, err := c.Aliases(ctx, l.VersionsOf)
	if err != nil {
		return nil, nil, err
	}
	t := output.Titled("VERSION", "KIND", "CREATED", "ALIASES")
	for _, d := range all {
		t.Row(fmt.Sprintf("%s@%d", d.Name, d.Version), d.Kind, output.Ago(d.CreatedAt), aliasesText(aliases, d.Version))
	}
	return all, t, nil
}

// aliasesText lists the aliases of a version, with the version's share of the executions if an alias has other targets, too.
func aliasesText(aliases []api.Alias, version int) string {
	var texts []string
	for _, a := range aliases {
		rest := 100.0 // the share of the one target without a percentage
		for _, to := range a.To {
			rest -= to.Percent
		}
		for _, to := range a.To {
			if to.Version != version {
				continue
			}
			text := a.Alias
			if part := cmp.Or(to.Percent, rest); len(a.To) > 1 {
				text += "=" + strconv.FormatFloat(part, 'g', 6, 64) + "%"
			}
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ", ")
}

// stoppedText is the STATE column: whether a definition is retired or paused, by whom and why; empty for neither.
func stoppedText(d *api.Definition) string {
	retired, paused := retiredText(d.Retired), output.Pause(d.Paused)
	if retired != "" && paused != "" {
		return retired + "; " + paused
	}
	return retired + paused
}

// retiredText says by whom and why a definition was retired; empty if it was not.
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
