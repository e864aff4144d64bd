package operate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

type checkup struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Say  string `json:"say"`
	Fix  string `json:"fix,omitempty"`
	// Needed is true if Pawl in its configuration does not work without it.
	Needed bool `json:"needed,omitempty"`
}

func DoctorCommand(a *app.App) *cobra.Command {
	var f output.Format
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine and this configuration, and say how to fix problems",
		Long: `Check what Pawl needs on this machine: the state directory, the database and its invariants, the broker if one
is named, the runtime for code, the languages, and the server's address. The exit code is 1 if Pawl cannot work
with this configuration.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := app.Interruptible(cmd.Context())
			defer stop()
			all := checkups(ctx, a)
			if f != output.AsTable {
				if err := output.WriteData(a.Out, f, all); err != nil {
					return err
				}
			} else {
				for _, c := range all {
					fmt.Fprintln(a.Out, c.line())
				}
			}
			if i := slices.IndexFunc(all, func(c checkup) bool { return c.Needed && !c.OK }); i >= 0 {
				return fmt.Errorf("pawl cannot work like this: %s: %s", all[i].What, all[i].Say)
			}
			return nil
		},
	}
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func (c *checkup) line() string {
	mark := "ok  "
	switch {
	case !c.OK && c.Needed:
		mark = "FAIL"
	case !c.OK:
		mark = "-   "
	}
	line := fmt.Sprintf("%s %s: %s", mark, c.What, c.Say)
	if c.Fix != "" {
		line += "\n     → " + c.Fix
	}
	return line
}

func checkups(ctx context.Context, a *app.App) []checkup {
	var all []checkup
	if server := a.Config.Text("server"); server != "" {
		all = append(all, checkServer(ctx, a, server))
	}
	all = append(all, checkState(ctx, a)...)
	all = append(all, checkBlobs(ctx, a)...)
	if a.Config.Text("broker") != "" {
		all = append(all, checkBroker(ctx, a))
	}
	all = append(all, checkRuntimes(ctx, a)...)
	all = append(all, checkLanguages(ctx, a)...)
	return append(append(all, checkListen(a)), checkEnvironment()...)
}

func checkServer(ctx context.Context, a *app.App, server string) checkup {
	c := checkup{What: "server", Needed: true, OK: true, Say: server + " takes work"}
	cl, err := client.New(server, client.WithToken(a.Config.Text("token")), client.WithPatience(time.Second))
	if err == nil {
		err = cl.Ready(ctx)
	}
	if err == nil {
		_, err = cl.Stats(ctx) // with the token
	}
	if err != nil {
		c.OK, c.Say, c.Fix = false, fmt.Sprintf("%s: %v", server, err), "check the address and the token, or unset PAWL_SERVER to work without a server"
	}
	return c
}

// checkState checks the state directory and, if no process works on it, its database.
func checkState(ctx context.Context, a *app.App) []checkup {
	if dsn := a.Config.Text("store"); config.IsPostgres(dsn) {
		return checkPostgres(ctx, a, dsn)
	}
	dir := a.Config.Text("state_dir")
	state := checkup{What: "state directory", Needed: true, OK: true, Say: dir}
	lock, err := instance.LockState(dir)
	if errors.Is(err, instance.ErrHeld) {
		state.Say += ", where " + instance.ReadOwner(dir).String() + " is working; the database was not checked"
		return []checkup{state}
	}
	if err != nil {
		state.OK, state.Say, state.Fix = false, err.Error(), "give one that this user can write, with --state-dir or PAWL_STATE_DIR"
		return []checkup{state}
	}
	defer func() { _ = lock.Close() }()
	db := checkup{What: "database", Needed: true, OK: true}
	s, err := instance.OpenStore(ctx, a.Config.Text("store"), dir, postgres.Options{})
	if err != nil {
		db.OK, db.Say, db.Fix = false, err.Error(), "restore it from a backup, or move it away to begin with an empty one"
		return []checkup{state, db}
	}
	defer func() { _ = s.Close() }()
	return []checkup{state, checkRows(ctx, db, s)}
}

func checkRows(ctx context.Context, db checkup, s store.Store) checkup {
	size, _ := s.Size(ctx) // only for show
	begin := time.Now()
	violations, err := s.Check(ctx)
	unfinished, _ := instance.CountUnfinished(ctx, s) // only for show
	switch {
	case err != nil:
		db.OK, db.Say = false, err.Error()
	case len(violations) > 0:
		v := violations[0]
		db.OK, db.Say = false, fmt.Sprintf("%d promises are broken, the first is invariant %d by %s: %s", len(violations), v.Invariant, v.Execution, v.Say)
		db.Fix = "this is a bug of Pawl: please report it with this line"
	default:
		db.Say = fmt.Sprintf("%s, %s, every promise holds (checked in %s)", output.Bytes(size),
			instance.UnfinishedText(unfinished), time.Since(begin).Round(time.Millisecond))
	}
	return db
}

func checkRuntimes(ctx context.Context, a *app.App) []checkup {
	var all []checkup
	chosenOnes := a.Config.List("runtime")
	for _, name := range config.RuntimeNames {
		chosen := slices.Contains(chosenOnes, name)
		if !chosen && name == config.Kubernetes { // a cluster that is not configured is not queried
			continue
		}
		rt, err := instance.OpenRuntime(&a.Config, name, sandbox.Options{}, nil)
		if err != nil {
			all = append(all, checkup{What: "runtime " + name, Say: err.Error(), Needed: chosen})
			continue
		}
		findings := rt.Diagnose(ctx)
		c := checkup{What: "runtime " + name, OK: true, Needed: chosen, Say: "a program was run in it"}
		if _, imaged := rt.(runtime.Imaged); imaged && a.Config.Text(instance.ImageSetting(name)) == "" {
			// There is no image in which a program could run.
			if c.OK, c.Say = findings[0].OK, "it answers; containers can run in it"; !c.OK {
				c.Say = findings[0].Say
			}
		} else if err := tryRuntime(ctx, rt); err != nil {
			c.OK, c.Say = false, err.Error()
		}
		switch {
		case c.OK && name == chosenOnes[0]:
			c.Say += "; it is the one that code runs in"
		case c.OK && !chosen:
			c.Say += "; it is not in use (--runtime " + strings.Join(append(chosenOnes, name), ",") + ")"
		}
		all = append(all, c)
		for _, f := range findings {
			all = append(all, checkup{What: name + ", " + f.What, OK: f.OK, Say: f.Say, Fix: f.Fix})
		}
		_ = rt.Close()
	}
	return all
}

// tryRuntime runs a program that does nothing.
func tryRuntime(ctx context.Context, rt runtime.Runtime) error {
	run, err := rt.Start(ctx, runtime.Spec{
		Name: "doctor", Argv: []string{"true"}, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		Limits: runtime.Limits{Wall: 10 * time.Second},
	})
	if err != nil {
		return err
	}
	if r := run.Wait(); r.Verdict != runtime.OK {
		return fmt.Errorf("running true ended with %s: %s", r.Verdict, r.Reason)
	}
	return nil
}

func checkLanguages(ctx context.Context, a *app.App) []checkup {
	var all []checkup
	for _, l := range languages(ctx, a) {
		c := checkup{What: "language " + l.Language, OK: l.Found, Say: l.Say, Fix: l.Fix}
		if l.Found {
			c.Say = strings.TrimSpace(l.Tool + " " + l.Version)
		}
		all = append(all, c)
	}
	return all
}

func checkListen(a *app.App) checkup {
	addr := a.Config.Text("listen")
	c := checkup{What: "address for pawl server", OK: true, Say: addr + " is free"}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		c.OK, c.Say, c.Fix = false, err.Error(), "use another with pawl server --listen or PAWL_LISTEN, or stop what answers there"
		return c
	}
	_ = l.Close()
	return c
}

// checkEnvironment finds variables that look like settings but are not.
func checkEnvironment() []checkup {
	var all []checkup
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		key, ours := strings.CutPrefix(name, "PAWL_")
		if !ours || key == "CONFIG" || strings.HasPrefix(key, "TEST_") || slices.ContainsFunc(config.Settings, func(s config.Setting) bool {
			return name == s.Variable() || name == s.Alias || s.File && (name == s.Variable()+"_FILE" || name == s.Alias+"_FILE")
		}) {
			continue
		}
		all = append(all, checkup{What: "environment", Say: "$" + name + " is not a setting of Pawl's",
			Fix: "the settings are " + config.SettingKeys()})
	}
	return all
}
