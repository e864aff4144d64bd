package app

import (
	"github.com/pawl-run/pawl/api"
)

// SayIdle says why there is nothing to follow.
func SayIdle(a *App, id string, status api.Status) {
	a.Say("%s is %s, and no pawl run or pawl server is working on %s: start one, and it goes on", id, status, a.Config.Text("state_dir"))
}

// SayLeft says of a new execution that this command leaves it to others, and that there are none. The execution's id is empty where there
// are several.
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
