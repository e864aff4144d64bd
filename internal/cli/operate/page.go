package operate

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/terminal"
	"github.com/pawl-run/pawl/web"
)

// pageOf is the handler of the web page according to the setting ui; nil: none.
func pageOf(c *config.Config) (http.Handler, error) {
	switch ui := c.Text("ui"); ui {
	case "off":
		return nil, nil
	case "on":
		return web.New(web.Files)
	default:
		h, err := web.Directory(os.DirFS(ui))
		if err != nil {
			return nil, exit.Usagef("ui: %q is neither on nor off nor a directory with the page: %v", ui, err)
		}
		return h, nil
	}
}

// pageURL is the address of the page of a server that listens on l, for a browser on this machine.
func pageURL(l net.Addr) string {
	host, port, err := net.SplitHostPort(l.String())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + web.Root
}

func UICommand(a *app.App) *cobra.Command {
	var printOnly bool
	c := &cobra.Command{
		Use:   "ui",
		Short: "Open the web page of the server",
		Long: `Print the address of the web page and, in a terminal, open it in a browser. The page belongs to the server named
by --server, or else to the server on this state directory.`,
		Example: `  pawl ui
  pawl ui --print
  pawl ui --server https://pawl.example.org`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			url, err := findPage(a)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Out, url)
			if printOnly || !terminal.IsTerminal(a.Out) {
				return nil
			}
			if err := openBrowser(url); err != nil {
				a.Say("pawl: no browser was opened (%v): open the address yourself", err)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&printOnly, "print", false, "print the address only")
	return c
}

// findPage is the address of the page of the server that the commands here use.
func findPage(a *app.App) (string, error) {
	if url := a.Config.Text("server"); url != "" {
		return strings.TrimSuffix(url, "/") + web.Root, nil
	}
	dir := a.Config.Text("state_dir")
	lock, err := instance.LockState(dir)
	if err == nil {
		_ = lock.Close()
		return "", fmt.Errorf("no server works on the state directory %s: start one with pawl server, or name one with --server", dir)
	}
	if !errors.Is(err, instance.ErrHeld) {
		return "", err
	}
	o := instance.ReadOwner(dir)
	if o.Page == "" {
		return "", fmt.Errorf("%s works on the state directory %s and serves no page: start pawl server there, or name a server with --server", o, dir)
	}
	return o.Page, nil
}

// openBrowser makes the desktop open an address.
func openBrowser(url string) error {
	opener := "xdg-open"
	if goruntime.GOOS == "darwin" {
		opener = "open"
	}
	c := exec.Command(opener, url)
	if err := c.Start(); err != nil {
		return err
	}
	return c.Process.Release()
}
