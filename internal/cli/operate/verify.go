package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/histories"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
	"github.com/pawl-run/pawl/internal/store/sqlite"
	rows "github.com/pawl-run/pawl/internal/store/verification"
)

// Verifying adds `pawl doctor --verify`, which checks only the database, and every row of it.
func Verifying(a *app.App, doctor *cobra.Command) *cobra.Command {
	var verify, replay bool
	doctor.Flags().BoolVar(&verify, "verify", false,
		"only check every row of the database against the documented invariants, also while servers use it; exit code 1 on a violation")
	doctor.Flags().BoolVar(&replay, "replay", false, "with --verify: also replay every history and compare (docs/replay.md)")
	otherwise := doctor.RunE
	doctor.RunE = func(cmd *cobra.Command, args []string) error {
		if replay && !verify {
			return exit.Usagef("--replay is part of --verify: add that")
		}
		if !verify {
			return otherwise(cmd, args)
		}
		ctx, stop := app.Interruptible(cmd.Context())
		defer stop()
		v, err := verification(ctx, a, replay)
		if err != nil {
			return err
		}
		if f := output.Format(cmd.Flags().Lookup("output").Value.String()); f != output.AsTable {
			err = output.WriteData(a.Out, f, v)
		} else {
			printVerification(a, v)
		}
		if err == nil && len(v.Broken) > 0 {
			err = fmt.Errorf("%s broken: please report what it says above, it is a bug of Pawl or damage to its database",
				output.Plural(len(v.Broken), "promise is", "promises are"))
		}
		return err
	}
	return doctor
}

// verification asks the named server, or the process that works on the state directory, or checks by itself.
func verification(ctx context.Context, a *app.App, replay bool) (*api.Verification, error) {
	if server := a.Config.Text("server"); server != "" {
		c, err := client.New(server, client.WithToken(a.Config.Text("token")), client.WithUserAgent("pawl/"+app.Version()), client.WithPatience(time.Second))
		if err != nil {
			return nil, exit.Usagef("%v", err)
		}
		return verifyThrough(ctx, c, replay)
	}
	if dsn := a.Config.Text("store"); config.IsPostgres(dsn) {
		s, err := instance.OpenPostgres(ctx, dsn, postgres.Options{AsIs: true})
		if err != nil {
			return nil, err
		}
		return verifyRows(ctx, s, replay)
	}
	dir := a.Config.Text("state_dir")
	lock, err := instance.LockState(dir)
	if errors.Is(err, instance.ErrHeld) {
		o := instance.ReadOwner(dir)
		c, err := o.Client(app.Version())
		if err == nil && o.Address == "" {
			err = errors.New("it has no address yet")
		}
		var v *api.Verification
		if err == nil {
			v, err = verifyThrough(ctx, c, replay)
		}
		if err != nil {
			return nil, fmt.Errorf("ask %s, which works on %s: %w", o, dir, err)
		}
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }()
	path := instance.SQLitePath(a.Config.Text("store"), dir)
	s, err := sqlite.Open(ctx, path, sqlite.Options{AsIs: true})
	if errors.Is(err, fs.ErrNotExist) {
		a.Say("pawl: there is no database at %s yet", path)
		return &api.Verification{At: time.Now().UTC(), Broken: []api.Violation{}, Promises: promises(nil)}, nil
	}
	if err != nil {
		return nil, &exit.Error{Code: exit.Misuse, Err: err}
	}
	return verifyRows(ctx, s, replay)
}

func verifyThrough(ctx context.Context, c *client.Client, replay bool) (*api.Verification, error) {
	if replay {
		return c.VerifyHistories(ctx)
	}
	return c.Verify(ctx)
}

func verifyRows(ctx context.Context, s store.Store, replay bool) (*api.Verification, error) {
	defer func() { _ = s.Close() }()
	begun := time.Now()
	broken, err := s.Check(ctx)
	if err != nil {
		return nil, fmt.Errorf("verify the database: %w", err)
	}
	v := &api.Verification{At: begun.UTC(), Broken: []api.Violation{}}
	var checkedBy []rows.By
	if replay {
		checkedBy = append(checkedBy, rows.Replay)
		r, err := histories.Of(s, catalog.New(s)).Verify(ctx)
		if err != nil {
			return nil, err
		}
		broken = append(broken, r.Broken...)
		v.Replayed = &api.Replayed{Executions: r.Executions, Events: r.Events, Unknown: r.Unknown}
	}
	v.Promises = promises(broken, checkedBy...)
	v.Seconds = time.Since(begun).Seconds()
	for _, b := range broken {
		out := api.Violation{Invariant: b.Invariant, Message: b.Say}
		if !b.Execution.IsZero() {
			out.Execution = b.Execution.String()
		}
		v.Broken = append(v.Broken, out)
	}
	return v, nil
}

// promises are the results of the checked invariants.
func promises(broken []store.Violation, checkedBy ...rows.By) (all []api.Invariant) {
	for _, p := range rows.Report(broken, checkedBy...) {
		all = append(all, api.Invariant{Invariant: p.Number, Says: p.Says, LookedAt: p.LookedAt, State: p.State, Broken: p.Times})
	}
	return all
}

// printVerification lists the invariants by number, with their violations.
func printVerification(a *app.App, v *api.Verification) {
	by := map[int][]api.Violation{}
	for _, b := range v.Broken {
		by[b.Invariant] = append(by[b.Invariant], b)
	}
	all := slices.Clone(v.Promises)
	for n, broken := range by {
		if !slices.ContainsFunc(all, func(p api.Invariant) bool { return p.Invariant == n }) { // the server is of another version
			all = append(all, api.Invariant{Invariant: n, Says: "see docs/invariants.md", State: rows.Broken, Broken: len(broken)})
		}
	}
	slices.SortFunc(all, func(a, b api.Invariant) int { return cmp.Compare(a.Invariant, b.Invariant) })
	for _, p := range all {
		n := p.Invariant
		switch p.State {
		case rows.Broken:
			fmt.Fprintf(a.Out, "FAIL %2d: %s (broken %d times)\n", n, p.Says, p.Broken)
		case rows.Unknown:
			fmt.Fprintf(a.Out, "?    %2d: %s (not looked at to the end: too much is broken)\n", n, p.Says)
		default:
			fmt.Fprintf(a.Out, "ok   %2d: %s (%s)\n", n, p.Says, p.LookedAt)
		}
		const few = 20
		for i, b := range by[n] {
			if i == few {
				fmt.Fprintf(a.Out, "         … and %d more (-o json has them)\n", len(by[n])-few)
				break
			}
			fmt.Fprintf(a.Out, "         %s: %s\n", cmp.Or(b.Execution, "(no execution)"), b.Message)
		}
	}
	if r := v.Replayed; r != nil {
		a.Say("pawl: %s with %s replayed; of %s something is not recorded", output.Plural(r.Executions, "history", "histories"), output.Plural(r.Events, "event", "events"), output.Plural(r.Unknown, "history", "histories"))
	}
	a.Say("pawl: every row was read in %s; docs/invariants.md says what each number means", time.Duration(v.Seconds*float64(time.Second)).Round(time.Millisecond))
}
