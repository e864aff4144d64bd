package app

import (
	"github.com/pawl-run/pawl/api"
)

// SayIdle tells the user why there is nothing to follow.
func SayIdle(a *App, id string, status api.Status) {
	a.Say("%s is %s, and no pawl run or pawl server is working on %s: start one, and it goes on", id, status, a.Config.Text("state_dir"))
}

// SayLeft tells the user that a new execution waits, because no process works on the state directory. The execution's id is empty for
// several executions.
func SayLeft(a *App, s *Session, id string) {
	if !s.Embedded {
		return
	}
	here := ""
	if id != "" {
		here = ", or run it here: pawl wait " + id
	}
	a.Say("pawl: it waits, since no pawl run or pawl server is working on %s: start pawl server%s", a.Config.Text("state_dir"), here)
}
