package instance

import (
	"net/http"
	"slices"
	"time"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/server"
	"github.com/pawl-run/pawl/internal/server/compat"
	"github.com/pawl-run/pawl/internal/server/compat/judge0"
	"github.com/pawl-run/pawl/internal/server/compat/piston"
	"github.com/pawl-run/pawl/internal/server/compat/runcode"
	"github.com/pawl-run/pawl/internal/server/compat/testprogram"
)

// wire is a protocol of another evaluator.
type wire struct {
	name        string
	tokenHeader string
	open        func(compat.Options) http.Handler
}

// wires are the protocols that the setting compat may name; config.Wires has their names.
var wires = []wire{
	{name: runcode.Name, open: runcode.New},
	{name: testprogram.Name, open: testprogram.New},
	{name: piston.Name, open: piston.New},
	{name: judge0.Name, tokenHeader: judge0.TokenHeader, open: judge0.New},
}

// wires are those of the setting. They call the server as its own commands do, and so pass its checks of submissions.
func (r *Instance) wires() []server.Wire {
	var named []server.Wire
	// The wires bound each call by a context, which ends sooner.
	c := client.NewInProcess(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.server.Handler().ServeHTTP(w, req) }),
		client.WithUserAgent("pawl/"+r.Version), client.WithPatience(24*time.Hour), client.WithChain(""))
	known := language.BuiltIn()
	for _, name := range r.Config.Languages.Added() {
		known = known.With(language.Name{Name: name})
	}
	for _, w := range wires {
		if slices.Contains(r.Config.List("compat"), w.name) {
			named = append(named, server.Wire{Name: w.name, TokenHeader: w.tokenHeader, Outcomes: compat.Outcomes(),
				Handler: func(count func(string)) http.Handler {
					return w.open(compat.Options{Pawl: c, Count: count, Languages: known.Known()})
				}})
		}
	}
	return named
}
