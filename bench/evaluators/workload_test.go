package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program of HumanEval is checked by its own test, and a wrong solution is an error.
func TestPool(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("no /usr/bin/python3 here")
	}
	problems := filepath.Join(t.TempDir(), "problems.jsonl")
	line := `{"prompt": "def f():\n", "entry_point": "f", "canonical_solution": "    return 1\n", "test": "def check(f): assert f() == %d"}`
	lines := fmt.Sprintf(line+"\n"+line+"\n", 1, 2)
	if err := os.WriteFile(problems, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	programs, err := humanEval(problems)
	if err != nil {
		t.Fatal(err)
	}
	p, err := openPool(t.Context(), options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := p.run(t.Context(), programs[0]); err != nil {
		t.Error(err)
	}
	if err := p.run(t.Context(), programs[1]); err == nil || !strings.Contains(err.Error(), "AssertionError") {
		t.Errorf("a wrong solution gave %v", err)
	}
	w := workload{clients: 2, programs: programs[:1], metrics: []string{rate}}
	if figures, err := w.measure(t.Context(), p); err != nil || len(figures) != 1 || figures[rate] <= 0 {
		t.Errorf("measured %v, %v", figures, err)
	}
}

func TestPeersThatAreNotHere(t *testing.T) {
	for _, name := range []string{"go-judge", "code_eval", "sandboxfusion"} {
		if _, err := open(t.Context(), name, options{}); err == nil || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parse([]string{"-peers", "pool,nothing"}); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("-peers: %v", err)
	}
}
