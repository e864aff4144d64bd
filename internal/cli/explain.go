package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strconv"
	"syscall"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

// explained says in terms of this command line what the server or the system says in terms of its own.
func (a *app) explained(err error) error {
	server := a.config.text("server")
	if server == "" && client.IsNotFound(err) {
		return fmt.Errorf("%w (looked in the state directory %s)", err, a.config.text("state_dir"))
	}
	if server == "" {
		return err
	}
	var refused *api.Problem
	var call *url.Error
	switch {
	case errors.As(err, &refused) && refused.Type == api.ProblemUnauthorized && a.config.text("token") == "":
		return fmt.Errorf("%s wants a token (401): give it with --token-file FILE, PAWL_TOKEN or PAWL_TOKEN_FILE", server)
	case errors.As(err, &refused) && refused.Type == api.ProblemUnauthorized:
		return fmt.Errorf("%s refuses the token that %s gives (401): give the one that the server was started with", server, a.config.source["token"])
	case errors.As(err, &call) && errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing answers at %s (%s): is pawl server running there? Without a server leave %s out", server, a.config.source["server"], a.config.source["server"])
	case errors.As(err, &call) && call.Op != "":
		return fmt.Errorf("cannot reach the server %s (%s): %w", server, a.config.source["server"], call.Err)
	}
	return err
}

// checkListen says what is wrong with an address to listen on.
func checkListen(s string) error {
	_, port, err := net.SplitHostPort(s)
	n, fault := strconv.Atoi(port)
	if err != nil || fault != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%.60q is not an address to listen on: write host and port, as in %s, or :7411 for all addresses", s, defaultListen)
	}
	return nil
}

// listening opens the address of a server.
func (a *app) listening(address string) (net.Listener, error) {
	l, err := a.listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another process, perhaps another pawl server: stop that one, or give another address with --listen (port 0 takes a free one)", address)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("this user may not listen on %s: give a port above 1023 with --listen", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s is no address of this machine: give one that is, or 127.0.0.1, with --listen", address)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}
