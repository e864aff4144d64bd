package app

import (
	"github.com/pawl-run/pawl/api"
)

// SayIdle says why there is nothing to follow.
func SayIdle(a *App, id string, status api.Status) {
	a.Say("%s is %s, and no pawl run or pawl server is working on %s: start one, and it goes on", id, status, a.Config.Text("state_dir"))
}
