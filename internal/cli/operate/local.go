package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/instance"
)

// lingers is how long a local server stays unused: longer than the pause between two commands of a script, so that the second one
// need not open the state directory again (0.2 s), and longer than a client takes from starting a server to joining it.
const lingers = 3 * time.Second

// serveLocal serves only on the socket of the state directory, until no command or client of this user has joined for lingers.
func serveLocal(ctx context.Context, a *app.App, grace time.Duration) error {
	if err := instance.CheckTokens(a.Config.Tokens()); err != nil {
		return err
	}
	dir := a.Config.Text("state_dir")
	lock, err := instance.AwaitState(ctx, dir)
	if errors.Is(err, instance.ErrHeld) {
		return fmt.Errorf("the state directory %s is held by %s: join that one, or use another with --state-dir", dir, instance.ReadOwner(dir))
	}
	if err != nil {
		return err
	}
	r, err := instance.Open(ctx, lock, a.Hosting(instance.Options{Works: true, Stays: true, Grace: grace, Drains: 10 * time.Second}))
	if err != nil {
		return err
	}
	defer r.Close()
	presses := app.Interruptions(ctx)
	again := time.Tick(50 * time.Millisecond)
	for left := time.Now(); ; {
		select {
		case <-again:
		case <-presses.Pressed:
			return nil
		case <-r.Ended():
			return r.Failure()
		}
		used, err := joined(dir)
		switch {
		case err != nil:
			return err
		case used:
			left = time.Now()
		case time.Since(left) > lingers:
			if err := r.CloseToOthers(); !errors.Is(err, instance.ErrHeld) {
				return err
			}
		}
	}
}

// joined reports whether a command or client uses the engine on the state directory. A command that joins at the same moment tries again.
func joined(dir string) (bool, error) {
	f, err := instance.LockJoin(dir, unix.LOCK_EX)
	if errors.Is(err, instance.ErrHeld) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, f.Close()
}
