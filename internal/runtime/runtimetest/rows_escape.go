//go:build unix

package runtimetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// escapeRows try to leave the sandbox and to gain privileges.
var escapeRows = []row{
	{"33 new and other namespaces", func(t testing.TB, h *hostile) { h.probe(t, "namespaces") }},
	{"34 mounts", func(t testing.TB, h *hostile) { h.probe(t, "mounts") }},
	{"35 release agent", func(t testing.TB, h *hostile) { h.probe(t, "release-agent") }},
	{"36 leave the cgroup", func(t testing.TB, h *hostile) {
		h.probe(t, "leave-cgroup")
		run, _ := h.start(t, h.spec("scatter"), "scattered\n")
		// A process is found by its command line, which is unreadable between fork and exec. One that is exiting, as three of the
		// family do, shows "/" in the hierarchies of version 1.
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		var family []string
		var places map[string]int
		for deadline := time.Now().Add(time.Minute); (len(places) != 1 || len(family) < 5) && time.Now().Before(deadline); <-tick.C {
			family, places = Processes(h.token), make(map[string]int)
			for _, process := range family {
				pid, _, _ := strings.Cut(process, " ")
				place, err := os.ReadFile("/proc/" + pid + "/cgroup")
				if err == nil {
					places[string(place)]++
				}
			}
		}
		if len(places) != 1 || len(family) < 5 {
			t.Errorf("%d processes of one run are in these cgroups: %v", len(family), places)
		}
		run.Kill("seen")
		run.Wait()
	}},
	{"37 other processes", func(t testing.TB, h *hostile) {
		h.probe(t, "trace")
		bystander, _ := h.start(t, h.spec("sleep", "here\n"), "here\n")
		result, stdout, _ := h.finish(t, h.spec("massacre"))
		wantVerdict(t, result, runtime.OK)
		if stdout != "alive\n" {
			t.Errorf("stdout %q: process 1 did not live through it", stdout)
		}
		if len(Processes(h.token)) == 0 {
			t.Error("a program of another run was killed")
		}
		bystander.Kill("the end")
		wantVerdict(t, bystander.Wait(), runtime.Killed)
	}},
	{"38 become root", func(t testing.TB, h *hostile) {
		dir, _ := h.setUserID(t)
		spec := h.spec("become-root", h.token, h.namespace, filepath.Join(dir, "tool"))
		spec.Mounts = []runtime.Mount{{Path: dir}}
		h.probeSpec(t, spec)
	}},
	{"39 devices", func(t testing.TB, h *hostile) {
		spec := h.spec("devices")
		if dir, device := h.setUserID(t); device {
			spec = h.spec("devices", filepath.Join(dir, "zero"))
			spec.Mounts = []runtime.Mount{{Path: dir}}
		}
		h.probeSpec(t, spec)
	}},
	{"40 administer the host", func(t testing.TB, h *hostile) { h.probe(t, "administer") }},
	{"41 facilities with a history", func(t testing.TB, h *hostile) { h.probe(t, "facilities") }},
	{"42 foreign calls", func(t testing.TB, h *hostile) { h.probe(t, "foreign-calls") }},
	{"43 raise limits", func(t testing.TB, h *hostile) { h.probe(t, "raise-limits") }},
}
