package brokerrpctest_test

import (
	"testing"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
)

func TestModel(t *testing.T) {
	t.Parallel()
	brokerrpctest.Exercise(t, func(*testing.T) *brokerrpctest.Rig {
		m := &brokerrpctest.Model{MaxMessages: 190}
		transport := func(*testing.T) brokerrpc.Transport { return m }
		return &brokerrpctest.Rig{Transport: transport, Full: transport, Flush: func(*testing.T) { m.Flush() }}
	})
}
