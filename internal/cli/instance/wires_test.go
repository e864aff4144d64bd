package instance

import (
	"slices"
	"testing"

	"github.com/pawl-run/pawl/internal/cli/config"
)

// The setting accepts exactly the existing wires.
func TestWiresAreThoseOfTheSetting(t *testing.T) {
	t.Parallel()
	var names []string
	for _, w := range wires {
		names = append(names, w.name)
	}
	if !slices.Equal(names, config.Wires) {
		t.Errorf("the setting has %v, and there are %v", config.Wires, names)
	}
}
