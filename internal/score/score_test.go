package score

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestPassAt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		k     int
		tasks map[string]Tally
		want  float64
		ok    bool
	}{
		{1, map[string]Tally{"a": {4, 1}}, 0.25, true},
		{2, map[string]Tally{"a": {4, 1}}, 0.5, true},
		{1, map[string]Tally{"a": {2, 1}, "b": {4, 4}}, 0.75, true},
		{2, map[string]Tally{"a": {2, 1}, "b": {1, 1}}, 0, false},
		{1, nil, 0, false},
	} {
		if got, ok := PassAt(c.k, c.tasks); ok != c.ok || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("pass@%d of %v: %v, %t; want %v", c.k, c.tasks, got, ok, c.want)
		}
	}
}

// The product equals 1 - C(n-c, k) / C(n, k), whose direct computation overflows for a few hundred programs.
func TestPassAtKIsTheBinomial(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "n")
		c, k := rapid.IntRange(0, n).Draw(t, "c"), rapid.IntRange(1, n).Draw(t, "k")
		fails, all := new(big.Int).Binomial(int64(n-c), int64(k)), new(big.Int).Binomial(int64(n), int64(k))
		want, _ := new(big.Rat).SetFrac(new(big.Int).Sub(all, fails), all).Float64()
		if got := passAtK(n, c, k); math.Abs(got-want) > 1e-9 {
			t.Fatalf("n=%d c=%d k=%d: %v, want %v", n, c, k, got, want)
		}
	})
}

func TestJudged(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[string]bool{"ok": true, "wrong_answer": true, "timeout": true, "infra_error": false, "worker_lost": false, "cancelled": false, "killed": false, "checker_error": false, "": false} {
		if Judged(verdict) != want {
			t.Errorf("%q", verdict)
		}
	}
}
