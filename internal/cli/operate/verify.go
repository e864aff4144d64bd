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
)

// Promises are the invariants that rows can show, by their numbers in docs/invariants.md, in a few words.
var Promises = map[int]string{
	1: "stages follow one another as the lifecycle allows", 2: "an end has its time and outcome", 3: "an attempt has one owner at most",
	4: "nothing is written in the name of an attempt that is over", 6: "events are numbered 1, 2, 3 … without a hole",
	12: "a key has no more holders than its limit", 13: "a slot is held exactly while it is needed",
	16: "an execution is in one place", 17: "an item of a task is one execution", 19: "items are numbered 0, 1, 2 … without a hole",
	20: "a workflow that is over has no child that is not", 22: "no more attempts than the policy allows",
	24: "nothing times out before its deadline", 25: "an idempotency key leads to one execution",
	28: "what waits for a gap to close is bounded", 33: "what is derived equals what it is derived from",
	38: "what an execution names and was uploaded is there", histories.InvariantReplay: "histories follow from the rules",
}

// Verifying lets `pawl doctor --verify` look at the database alone, and at every row of it.
func Verifying(a *app.App, doctor *cobra.Command) *cobra.Command {
	var verify, replay bool
	doctor.Flags().BoolVar(&verify, "verify", false, "only check every row of the database against Pawl's promises, also while servers work on it; its schema stays as it is; 1 when one is broken")
	doctor.Flags().BoolVar(&replay, "replay", false, "with --verify: let the rules decide every history once more, and compare (docs/replay.md)")
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

// verification asks the server that was named, or the process that works on the state directory, or looks by itself.
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
		return &api.Verification{Broken: []api.Violation{}}, nil
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

// verifyRows looks at every row, and closes the store.
func verifyRows(ctx context.Context, s store.Store, replay bool) (*api.Verification, error) {
	defer func() { _ = s.Close() }()
	begun := time.Now()
	broken, err := s.Check(ctx)
	if err != nil {
		return nil, fmt.Errorf("verify the database: %w", err)
	}
	v := &api.Verification{Broken: []api.Violation{}}
	if replay {
		r, err := histories.Of(s, catalog.New(s)).Verify(ctx)
		if err != nil {
			return nil, err
		}
		broken = append(broken, r.Broken...)
		v.Replayed = &api.Replayed{Executions: r.Executions, Events: r.Events, Unknown: r.Unknown}
	}
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

// printVerification lists the promises by number, and what breaks them.
func printVerification(a *app.App, v *api.Verification) {
	by := map[int][]api.Violation{}
	for _, b := range v.Broken {
		by[b.Invariant] = append(by[b.Invariant], b)
	}
	numbers := make([]int, 0, len(Promises))
	for n := range Promises {
		if n != histories.InvariantReplay || v.Replayed != nil || by[n] != nil {
			numbers = append(numbers, n)
		}
	}
	for n := range by {
		if Promises[n] == "" {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, cmp.Compare[int])
	for _, n := range numbers {
		mark, count := "ok  ", ""
		if k := len(by[n]); k > 0 {
			mark, count = "FAIL", fmt.Sprintf(" (broken %d times)", k)
		}
		fmt.Fprintf(a.Out, "%s %2d: %s%s\n", mark, n, cmp.Or(Promises[n], "see docs/invariants.md"), count)
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
