package cli

import "testing"

// A shell that pawl completion does not know, and an argument behind one that it does, are refused: the output may go into a file that a
// shell reads.
func TestCompletionRefusesUnknownShells(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"evil"}, {""}, {"bash", "evil"}, {"evil", "bash"}} {
		if out, errs, code := pawl(t, nil, append([]string{"completion"}, args...)...); code != 2 || out != "" || errs == "" {
			t.Errorf("pawl completion %q exits with %d, prints %.200q and reports %q", args, code, out, errs)
		}
	}
	if out, _, code := pawl(t, nil, "completion", "bash"); code != 0 || out == "" {
		t.Errorf("pawl completion bash exits with %d", code)
	}
}
