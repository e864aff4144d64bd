package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// Diagnose queries the engine. It starts no container, which would need an image.
func (r *Runtime) Diagnose(ctx context.Context) []runtime.Finding {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	engine := runtime.Finding{What: "engine", OK: true}
	f, err := r.known(ctx)
	if err != nil {
		engine.OK = false
		engine.Say, engine.Fix = err.Error(), "start the engine, or name another with DOCKER_HOST"
		if i := strings.LastIndex(engine.Say, "; "); i >= 0 {
			engine.Say, engine.Fix = engine.Say[:i], engine.Say[i+2:]
		}
		return []runtime.Finding{engine}
	}
	engine.Say = "Docker " + f.version + " at " + r.engine.DaemonHost()
	findings := []runtime.Finding{engine}
	oci := runtime.Finding{What: "OCI runtime", OK: true, Say: f.defaultOCI}
	if want := r.options.OCIRuntime; want != "" {
		oci.Say = want
		if !slices.Contains(f.ociRuntimes, want) {
			slices.Sort(f.ociRuntimes)
			oci.OK, oci.Say = false, fmt.Sprintf("the engine has no runtime %q; it has %s", want, strings.Join(f.ociRuntimes, ", "))
			oci.Fix = "install it and name it in the engine's daemon.json under runtimes"
		}
	}
	seccomp := runtime.Finding{What: "seccomp", OK: f.seccomp, Say: "a profile of Pawl's, stricter than the engine's"}
	if !f.seccomp {
		seccomp.Say, seccomp.Fix = "the engine applies no seccomp profile", "use an engine and a kernel with seccomp for code that you do not trust"
	}
	limits := runtime.Finding{What: "limits", OK: true,
		Say: f.cgroups + "; CPU time by watching, and so the size of the working directory where its volume can be read from here"}
	return append(findings, oci, seccomp, limits)
}
