// Package operate contains the commands of operators: server, worker, ui, doctor, migrate, backup, restore, broker, languages, bench.
package operate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
)

func ServerCommand(a *app.App) *cobra.Command {
	var noWorker, local bool
	var grace time.Duration
	c := &cobra.Command{
		Use:   "server",
		Short: "Serve the API, with workers in this process",
		Long: `Serve the HTTP API on an address, with an engine and workers in this process. All data is kept in the state
directory; unfinished work continues after a restart, even if the process was killed.

Without a token, the server only listens on loopback addresses. SIGTERM (or Ctrl-C) drains: nothing new is
started, running work may finish within --grace, and the rest is continued by the next server. A second signal
ends the process immediately. If the engine, the listener or the worker fails, the server stops with exit code
1.`,
		Example: `  pawl server
  pawl server --listen 0.0.0.0:7411 --token-file /run/secrets/pawl
  curl -s http://127.0.0.1:7411/openapi.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case !local:
				return serve(cmd.Context(), a, a.Config.Text("listen"), !noWorker, grace)
			case noWorker || cmd.Flags().Changed("listen"):
				return exit.Usagef("--local serves the state directory without an address and runs the work of those who join: leave --listen and --no-worker out")
			}
			ctx, stop := app.Interruptible(cmd.Context())
			defer stop()
			return serveLocal(ctx, a, grace)
		},
	}
	config.Declare(c.Flags(), "server")
	c.Flags().BoolVar(&noWorker, "no-worker", false, "run no work in this process; workers run elsewhere")
	c.Flags().BoolVar(&local, "local", false,
		"listen on no address: serve only this user's commands on the state directory, and stop 3s after the last one")
	grace = 20 * time.Second
	app.DurationVar(c.Flags(), &grace, "grace", "how long running work may continue when this process is told to stop")
	return c
}

func serve(ctx context.Context, a *app.App, listen string, works bool, grace time.Duration) error {
	ctx, stop := app.Interruptible(ctx)
	defer stop()
	if a.Config.Text("server") != "" && a.Config.Source["server"] == "--server" {
		return exit.Usagef("pawl server is a server: --server names another one and has no meaning here")
	}
	if err := instance.CheckTokens(a.Config.Tokens()); err != nil {
		return err
	}
	l, err := a.Listening(listen)
	if err != nil {
		return err
	}
	if host, _, _ := net.SplitHostPort(l.Addr().String()); len(a.Config.Tokens()) == 0 && !net.ParseIP(host).IsLoopback() {
		_ = l.Close()
		return exit.Usagef("listening on %s lets other machines run code here: set a token (--token-file, PAWL_TOKEN or PAWL_TOKEN_FILE), or listen on 127.0.0.1", l.Addr())
	}
	page, err := pageOf(&a.Config)
	if err != nil {
		_ = l.Close()
		return err
	}
	url := ""
	if page != nil {
		url = pageURL(l.Addr())
	}
	dir := a.Config.Text("state_dir")
	lock, err := instance.AwaitState(ctx, dir)
	if errors.Is(err, instance.ErrHeld) {
		err = fmt.Errorf("the state directory %s is held by %s: stop it, or use another with --state-dir", dir, instance.ReadOwner(dir))
	}
	if err != nil {
		_ = l.Close()
		return err
	}
	instance.PreferToKeep()
	r, err := instance.Open(ctx, lock, a.Hosting(instance.Options{Works: works, Stays: true, Grace: grace, Drains: 10 * time.Second, Page: page, PageURL: url}))
	if err != nil {
		_ = l.Close()
		return err
	}
	r.Serve(l)
	a.Say("pawl: serving on http://%s (state in %s)", l.Addr(), dir)
	if url != "" {
		a.Say("pawl: the web page is at %s", url)
	}
	presses := app.Interruptions(ctx)
	signalled := false
	select {
	case <-presses.Pressed:
		signalled = true
		a.Say("pawl: stopping; once more to stop at once")
	case <-r.Ended():
		a.Say("pawl: stopping, since %v", r.Reason())
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		r.Close()
	}()
	select {
	case <-closed:
		if !signalled {
			return &exit.Error{Code: exit.General} // the reason has been printed
		}
		return r.Failure()
	case <-presses.Pressed:
		return &exit.Error{Code: exit.Interrupted, Err: errors.New("stopped at once; running work is continued by the next server")}
	}
}
