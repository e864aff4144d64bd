package posttest_test

import (
	"testing"

	"github.com/pawl-run/pawl/internal/handoff/post"
	"github.com/pawl-run/pawl/internal/handoff/post/posttest"
)

func TestModel(t *testing.T) {
	t.Parallel()
	posttest.Exercise(t, func(*testing.T) *posttest.Rig {
		m := &posttest.Model{MostLetters: 190}
		office := func(*testing.T) post.Office { return m }
		return &posttest.Rig{Office: office, Full: office, Flush: func(*testing.T) { m.Flush() }}
	})
}
