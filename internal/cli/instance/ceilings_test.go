package instance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/cli/config"
)

// A command without other workers refuses at submission what its only worker would refuse; a server may get larger workers.
func TestAutomaticCeilingsAtTheEdge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := config.Load(pflag.NewFlagSet("test", pflag.ContinueOnError), func(name string) string {
		return map[string]string{"PAWL_STATE_DIR": dir, "HOME": dir, "PAWL_SLOTS": "4", "PAWL_MAX_PIDS": "77"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	here := ceilingsHere(&c)
	if here.Memory == 0 {
		t.Skip("NOT TESTED: the memory of this machine is not known")
	}
	var said []string
	announceCeilings(&c, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	if len(said) != 2 || !strings.Contains(said[0], "MB of memory") || !strings.Contains(said[0], "4 slots: max_memory says otherwise") || !strings.Contains(said[1], "max_disk") {
		t.Errorf("announced: %q", said)
	}
	for _, tt := range []struct {
		works, stays bool
		memory       int64
	}{{true, false, here.Memory}, {true, true, 0}, {false, true, 0}, {false, false, 0}} {
		r := &Instance{Options: Options{Config: &c, Works: tt.works, Stays: tt.stays}}
		if got := r.ceilings(); got.Memory != tt.memory || got.Pids != 77 {
			t.Errorf("works %v, stays %v: %+v, want %d of memory", tt.works, tt.stays, got, tt.memory)
		}
	}
}
