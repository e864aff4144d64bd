package definition

import (
	"strings"
	"testing"
)

// A quick evaluation stays within its limit even if operands do not fit: naming their types computes them once more, and they may contain
// such operands again.
func TestQuickLookAtErrors(t *testing.T) {
	t.Parallel()
	nested := "1"
	for range 16 {
		nested = "(input.s - " + nested + " == 1 || true ? 1 : 2)"
	}
	loop := "[" + strings.TrimSuffix(strings.Repeat("1, ", 160), ", ") + "]"
	for name, expression := range map[string]string{
		"nested": "input.s - " + nested,
		"loop":   "input.s - " + loop + ".map(x, x + 1).map(x, x + 1).size()",
	} {
		tpl, err := templateOf(t, `"${{ `+expression+` }}"`)
		if err != nil {
			t.Fatal(err)
		}
		v := testVars()
		v.Work = WorkWithin(QuickWork)
		if _, err = tpl.Eval(v); err == nil || !strings.Contains(err.Error(), "no such overload") || v.Work.Exceeded() {
			t.Errorf("%s: %d operations, %v", name, v.Work.Done, err)
		}
	}
}
