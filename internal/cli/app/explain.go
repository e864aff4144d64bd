package app

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"regexp"
	"syscall"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// noID matches the error for the name of an action in place of an execution's id.
var noID = regexp.MustCompile(`"([a-z0-9][a-z0-9._-]*)" is not an id: want "ex_"`)

// Explained rewrites an error of the server or the system in terms of this command line.
func (a *App) Explained(err error) error {
	if m := noID.FindStringSubmatch(err.Error()); m != nil {
		err = fmt.Errorf("%w; of a name, pawl get executions --action %s lists the executions, the latest first", err, m[1])
	}
	server := a.Config.Text("server")
	if server == "" && client.IsNotFound(err) {
		return fmt.Errorf("%w (looked in the state directory %s)", err, a.Config.Text("state_dir"))
	}
	if server == "" {
		return err
	}
	var refused *api.Problem
	var call *url.Error
	switch {
	case errors.As(err, &refused) && refused.Type == api.ProblemUnauthorized && a.Config.Text("token") == "":
		return fmt.Errorf("%s wants a token (401): give it with --token-file FILE, PAWL_TOKEN or PAWL_TOKEN_FILE", server)
	case errors.As(err, &refused) && refused.Type == api.ProblemUnauthorized:
		return fmt.Errorf("%s refuses the token that %s gives (401): give the one that the server was started with", server, a.Config.Source["token"])
	case errors.As(err, &call) && errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing answers at %s (%s): is pawl server running there? Without a server leave %s out", server, a.Config.Source["server"], a.Config.Source["server"])
	case errors.As(err, &call) && call.Op != "":
		return fmt.Errorf("cannot reach the server %s (%s): %w", server, a.Config.Source["server"], call.Err)
	}
	return err
}

// Listening opens the address of a server.
func (a *App) Listening(address string) (net.Listener, error) {
	l, err := a.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another process, perhaps another pawl server: stop that one, or give another address with --listen (port 0 takes a free one)", address)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("this user may not listen on %s: give a port above 1023 with --listen", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s is not an address of this machine: give one that is, or 127.0.0.1, with --listen", address)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}
